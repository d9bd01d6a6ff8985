// A schema as text, in CloudKit's schema language:
//
//   DEFINE SCHEMA
//     CREATE ROLE editors;
//     RECORD TYPE Note (
//       title STRING QUERYABLE SORTABLE SEARCHABLE,
//       tags LIST<STRING> QUERYABLE,
//       GRANT READ TO "_world",
//       GRANT CREATE, WRITE TO editors
//     );
//
// Users of roles are not in it: they belong to the container and not to its source.

extension RecordSchema {
  /// The schema as text.
  public var text: String {
    var lines = ["DEFINE SCHEMA"]
    for role in roles.keys.sorted() { lines.append("  CREATE ROLE \(role);") }
    for (name, type) in types.sorted(by: { $0.key < $1.key }) {
      var parts = type.fields.sorted { $0.key < $1.key }.map { name, field in
        let kind = "\(field.kind)".uppercased()
        return "    \(name) \(field.isList ? "LIST<\(kind)>" : kind)"
          + (field.isQueryable ? " QUERYABLE" : "") + (field.isSortable ? " SORTABLE" : "")
          + (field.isSearchable ? " SEARCHABLE" : "")
      }
      for (role, permissions) in (type.grants ?? [:]).sorted(by: { $0.key < $1.key }) {
        let names = [("CREATE", Permissions.create), ("READ", .read), ("WRITE", .write)]
          .filter { permissions.contains($0.1) }.map(\.0)
        if !names.isEmpty {
          parts.append("    GRANT \(names.joined(separator: ", ")) TO \"\(role)\"")
        }
      }
      lines.append("  RECORD TYPE \(name) (\n\(parts.joined(separator: ",\n"))\n  );")
    }
    return lines.joined(separator: "\n") + "\n"
  }

  /// Reads such a text. Roles keep the users they have in `current`.
  ///
  /// - Throws: ``RecordViolation`` with the line of the mistake.
  public init(text: String, current: RecordSchema = RecordSchema()) throws(RecordViolation) {
    var parser = SchemaParser(text)
    self = try parser.schema()
    for role in roles.keys { roles[role] = current.roles[role] ?? [] }
  }
}

private struct SchemaParser {
  private enum Token: Equatable {
    case word(String)
    case quoted(String)
    case mark(UInt8)
  }

  private var tokens: [(token: Token, line: Int)] = []
  private var at = 0
  private var fault: RecordViolation?

  init(_ text: String) {
    let bytes = Array(text.utf8)
    var index = 0
    var line = 1
    while index < bytes.count {
      let byte = bytes[index]
      if byte == UInt8(ascii: "\n") {
        line += 1
        index += 1
      } else if byte <= 0x20 {
        index += 1
      } else if bytes[index...].starts(with: "--".utf8) || bytes[index...].starts(with: "//".utf8) {
        while index < bytes.count, bytes[index] != UInt8(ascii: "\n") { index += 1 }
      } else if byte == UInt8(ascii: "\"") {
        let end = bytes[(index + 1)...].firstIndex(of: byte) ?? bytes.count
        tokens.append((.quoted(String(decoding: bytes[(index + 1)..<end], as: UTF8.self)), line))
        index = end + 1
      } else if Self.isWord(byte) {
        let end = bytes[index...].firstIndex { !Self.isWord($0) } ?? bytes.count
        tokens.append((.word(String(decoding: bytes[index..<end], as: UTF8.self)), line))
        index = end
      } else {
        tokens.append((.mark(byte), line))
        index += 1
      }
    }
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    RecordNaming.isLetter(byte) || RecordNaming.isDigit(byte) || byte == UInt8(ascii: "_")
  }

  private func violation(_ text: String) -> RecordViolation {
    let line = tokens.isEmpty ? 1 : tokens[min(at, tokens.count - 1)].line
    return RecordViolation("schema_text", "line \(line): \(text)")
  }

  private mutating func take(_ mark: Character) -> Bool {
    guard at < tokens.count, case .mark(let byte) = tokens[at].token, byte == mark.asciiValue
    else { return false }
    at += 1
    return true
  }

  /// Key words have no case.
  private mutating func take(word: String) -> Bool {
    guard at < tokens.count, case .word(let text) = tokens[at].token, text.uppercased() == word
    else { return false }
    at += 1
    return true
  }

  private mutating func expect(_ mark: Character) throws(RecordViolation) {
    guard take(mark) else { throw violation("expected \(mark)") }
  }

  private mutating func expect(word: String) throws(RecordViolation) {
    guard take(word: word) else { throw violation("expected \(word)") }
  }

  private mutating func name(_ what: String) throws(RecordViolation) -> String {
    guard at < tokens.count else { throw violation("expected \(what)") }
    switch tokens[at].token {
    case .word(let text), .quoted(let text):
      at += 1
      return text
    case .mark: throw violation("expected \(what)")
    }
  }

  mutating func schema() throws(RecordViolation) -> RecordSchema {
    var schema = RecordSchema()
    try expect(word: "DEFINE")
    try expect(word: "SCHEMA")
    while at < tokens.count {
      if take(word: "CREATE") {
        try expect(word: "ROLE")
        schema.roles[try name("a role")] = []
        try expect(";")
      } else {
        try expect(word: "RECORD")
        try expect(word: "TYPE")
        let type = try name("a record type")
        guard schema.types[type] == nil else { throw violation("\(type) is defined twice") }
        schema.types[type] = try body()
        _ = take(";")
      }
    }
    return schema
  }

  private mutating func body() throws(RecordViolation) -> RecordSchema.RecordType {
    var type = RecordSchema.RecordType()
    try expect("(")
    if take(")") { return type }
    while true {
      if take(word: "GRANT") {
        try grant(&type)
      } else {
        let name = try name("a field or GRANT")
        let field = try field()
        // CloudKit's own texts name system fields, which are always there.
        if !name.hasPrefix("___") {
          guard type.fields[name] == nil else { throw violation("\(name) is defined twice") }
          type.fields[name] = field
        }
      }
      if take(")") { return type }
      try expect(",")
      if take(")") { return type }
    }
  }

  private mutating func field() throws(RecordViolation) -> RecordSchema.Field {
    let isList = take(word: "LIST")
    if isList { try expect("<") }
    let word = try name("a field type").uppercased()
    guard
      let kind = RecordSchema.FieldKind.allCases.first(where: { "\($0)".uppercased() == word })
    else {
      let known = RecordSchema.FieldKind.allCases.map { "\($0)".uppercased() }
      throw violation("\(word) is no field type: there are \(known.joined(separator: ", "))")
    }
    if isList { try expect(">") }
    var field = RecordSchema.Field(kind, isList: isList)
    while true {
      if take(word: "QUERYABLE") {
        field.isQueryable = true
      } else if take(word: "SORTABLE") {
        field.isSortable = true
      } else if take(word: "SEARCHABLE") {
        field.isSearchable = true
      } else {
        return field
      }
    }
  }

  private mutating func grant(_ type: inout RecordSchema.RecordType) throws(RecordViolation) {
    var permissions: RecordSchema.Permissions = []
    repeat {
      if take(word: "CREATE") {
        permissions.insert(.create)
      } else if take(word: "READ") {
        permissions.insert(.read)
      } else {
        try expect(word: "WRITE")
        permissions.insert(.write)
      }
    } while take(",")
    try expect(word: "TO")
    var role = try name("a role")
    if role == "_icloud" { role = RecordSchema.Role.authenticated }
    type.grants = type.grants ?? [:]
    type.grants?[role, default: []].formUnion(permissions)
  }
}
