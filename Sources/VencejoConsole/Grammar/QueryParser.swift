/// `Type [where …] [order by field [desc], …] [limit n]`, by recursive descent. `or` binds weaker
/// than `and`, `and` weaker than `not`.
struct QueryParser {
  private enum Lexeme: Equatable {
    case word(String)
    case text(String)
    case symbol(String)
    case end
  }

  private let line: [Character]
  private var index: Int
  private var depth = 0
  private var lexeme = Lexeme.end
  private var range = 0..<0

  /// Deeper than this nobody writes by hand; the parser recurses.
  private static let deepest = 50

  /// The query that begins at `start` and ends at `end`.
  static func parse(_ line: [Character], from start: Int, to end: Int) throws(GrammarError)
    -> RecordQuery
  {
    var parser = QueryParser(line: Array(line[..<end]), index: start)
    try parser.advance()
    return try parser.query()
  }

  private init(line: [Character], index: Int) {
    self.line = line
    self.index = index
  }

  // MARK: Lexemes

  private mutating func advance() throws(GrammarError) {
    while index < line.count, line[index].isWhitespace { index += 1 }
    let start = index
    defer { range = start..<max(index, start + 1) }
    guard index < line.count else {
      lexeme = .end
      return
    }
    let first = line[index]
    if first == "\"" {
      lexeme = .text(try Words.quoted(line, &index))
    } else if "(),".contains(first) {
      index += 1
      lexeme = .symbol(String(first))
    } else if "=!<>".contains(first) {
      index += 1
      if index < line.count, line[index] == "=" || (first == "<" && line[index] == ">") {
        index += 1
      }
      lexeme = .symbol(String(line[start..<index]))
    } else {
      while index < line.count, !line[index].isWhitespace, !"(),=!<>\"".contains(line[index]) {
        index += 1
      }
      lexeme = .word(String(line[start..<index]))
    }
  }

  private func error(_ message: String, _ hint: String? = nil) -> GrammarError {
    GrammarError(message: message, hint: hint, range: range)
  }

  private func isWord(_ word: String) -> Bool {
    if case .word(let text) = lexeme { text.lowercased() == word } else { false }
  }

  private mutating func take(_ word: String) throws(GrammarError) -> Bool {
    guard isWord(word) else { return false }
    try advance()
    return true
  }

  private mutating func takeSymbol(_ symbol: String) throws(GrammarError) -> Bool {
    guard lexeme == .symbol(symbol) else { return false }
    try advance()
    return true
  }

  private mutating func expect(_ symbol: String) throws(GrammarError) {
    if try !takeSymbol(symbol) { throw error("\(symbol) is missing here") }
  }

  private mutating func name(_ what: String) throws(GrammarError) -> String {
    guard case .word(let text) = lexeme else { throw error("\(what) belongs here") }
    try advance()
    return text
  }

  // MARK: Clauses

  private mutating func query() throws(GrammarError) -> RecordQuery {
    if isWord("where") || isWord("order") || isWord("limit") || lexeme == .end {
      throw error("the record type is missing", "for example: query Note where n > 3")
    }
    var query = RecordQuery(type: try name("a record type"))
    if try take("where") { query.filter = try anyOf() }
    if try take("order") {
      if try !take("by") { throw error("by belongs here", "for example: order by n desc") }
      repeat {
        let field = try name("a field")
        let descending = try take("desc")
        if !descending { _ = try take("asc") }
        query.order.append(.init(field: field, descending: descending))
      } while try takeSymbol(",")
    }
    if try take("limit") {
      guard case .word(let text) = lexeme, let limit = Int(text), limit > 0 else {
        throw error("a whole number above zero belongs here", "for example: limit 20")
      }
      query.limit = limit
      try advance()
    }
    if lexeme != .end {
      throw error(
        "the query ends before this",
        "its parts are: where …, order by …, limit …, in this order")
    }
    return query
  }

  private mutating func anyOf() throws(GrammarError) -> RecordQuery.Filter {
    var parts = [try allOf()]
    while try take("or") { parts.append(try allOf()) }
    return parts.count == 1 ? parts[0] : .any(parts)
  }

  private mutating func allOf() throws(GrammarError) -> RecordQuery.Filter {
    var parts = [try condition()]
    while try take("and") { parts.append(try condition()) }
    return parts.count == 1 ? parts[0] : .all(parts)
  }

  private mutating func condition() throws(GrammarError) -> RecordQuery.Filter {
    depth += 1
    defer { depth -= 1 }
    if depth > Self.deepest { throw error("this is nested too deeply") }
    if try take("not") { return .not(try condition()) }
    if try takeSymbol("(") {
      let inner = try anyOf()
      try expect(")")
      return inner
    }
    let nameRange = range
    let field = try name("a field or a function")
    if lexeme == .symbol("(") { return try function(field, nameRange) }
    if try take("in") { return .isIn(field, try values()) }
    return .compare(field, try comparison(), try value())
  }

  private mutating func comparison() throws(GrammarError) -> RecordQuery.Comparison {
    let comparison: RecordQuery.Comparison
    switch lexeme {
    case .symbol("="), .symbol("=="): comparison = .equal
    case .symbol("!="), .symbol("<>"): comparison = .notEqual
    case .symbol("<"): comparison = .less
    case .symbol("<="): comparison = .lessOrEqual
    case .symbol(">"): comparison = .greater
    case .symbol(">="): comparison = .greaterOrEqual
    default: throw error("a comparison belongs here", "one of = != < <= > >= in(…)")
    }
    try advance()
    return comparison
  }

  private mutating func value() throws(GrammarError) -> RecordValue {
    let start = range.lowerBound
    switch lexeme {
    case .text(let text):
      try advance()
      return .string(text)
    case .symbol(">"):
      // A reference: >name.
      try advance()
      return .reference(try name("a record name"))
    case .word(let text):
      let parsed = try ValueParser.parse(text, isQuoted: false, at: start)
      try advance()
      return parsed
    default: throw error("a value belongs here", "a number, \"a text\", @now or >record")
    }
  }

  private mutating func values() throws(GrammarError) -> [RecordValue] {
    try expect("(")
    var values = [try value()]
    while try takeSymbol(",") { values.append(try value()) }
    try expect(")")
    return values
  }

  private mutating func function(
    _ name: String, _ nameRange: Range<Int>
  ) throws(GrammarError) -> RecordQuery.Filter {
    guard
      ["beginswith", "contains", "containsall", "exists", "distance"].contains(name.lowercased())
    else {
      throw GrammarError(
        message: "no such function: \(name)",
        hint: "known are beginsWith, contains, containsAll, exists and distance", range: nameRange)
    }
    try expect("(")
    let field = try self.name("a field")
    switch name.lowercased() {
    case "exists":
      try expect(")")
      return .exists(field)
    case "distance": return try distance(field)
    default: break
    }
    var values: [RecordValue] = []
    while try takeSymbol(",") { values.append(try value()) }
    let end = range
    try expect(")")
    guard let first = values.first else {
      throw GrammarError(message: "\(name) needs a value", hint: nil, range: end)
    }
    if name.lowercased() == "beginswith" {
      guard case .string(let prefix) = first, values.count == 1 else {
        throw GrammarError(
          message: "beginsWith takes one text", hint: "beginsWith(title, \"ho\")", range: end)
      }
      return .beginsWith(field, prefix)
    }
    return .contains(field, values, all: name.lowercased() == "containsall")
  }

  /// After `distance(field`: `, latitude, longitude) < metres`.
  private mutating func distance(_ field: String) throws(GrammarError) -> RecordQuery.Filter {
    let hint = "distance(place, 41.4, 2.2) < 500"
    try expect(",")
    let latitude = try number(hint)
    try expect(",")
    let longitude = try number(hint)
    try expect(")")
    guard lexeme == .symbol("<") || lexeme == .symbol("<=") else {
      throw error("only a distance below a limit can be asked for", hint)
    }
    try advance()
    return .within(
      field: field, latitude: latitude, longitude: longitude, metres: try number(hint))
  }

  private mutating func number(_ hint: String) throws(GrammarError) -> Double {
    guard case .word(let text) = lexeme, ValueParser.looksNumeric(text), let value = Double(text)
    else { throw error("a number belongs here", hint) }
    try advance()
    return value
  }
}
