// A subset of AIP-160, read by hand.
//
//   filter     = or { ["AND"] or }          OR binds tighter than AND: AIP-160
//   or         = unary { "OR" unary }
//   unary      = ["NOT" | "-"] primary
//   primary    = "(" filter ")" | call | field operator value
//   operator   = "=" "!=" "<" "<=" ">" ">=" ":"      f:x  list f holds x;  f:* f is present
//   value      = "text" | 'text' | number | RFC 3339 time | bare word
//              | timestamp("…") | reference("record") | bytes("hex")
//   call       = search("x y", f, …) | beginsWith(f, "x") | in(f, v, …) | contains(f, v, …) | containsAll(f, v, …)
//              | present(f) | distance(f, lat, lon) < metres

extension Predicate {
  /// Longest filter accepted, in bytes.
  public static let maxFilterBytes = 16_384

  /// Parses an AIP-160 filter; empty text is no condition. References name a
  /// record of `zone`.
  ///
  /// - Throws: ``RecordViolation`` with the byte offset in its text.
  public init?(filter: String, zone: String = ZoneID.defaultZone) throws(RecordViolation) {
    guard filter.utf8.count <= Self.maxFilterBytes else {
      throw RecordViolation("filter", "longer than \(Self.maxFilterBytes) bytes")
    }
    var parser = FilterParser(tokens: try FilterLexer.tokens(of: filter), zone: zone)
    guard let predicate = try parser.parse() else { return nil }
    self = predicate
  }
}

/// Turns tokens into a predicate, by recursive descent.
struct FilterParser {
  let tokens: [FilterToken]
  let zone: String
  private var at = 0
  private var depth = 0

  init(tokens: [FilterToken], zone: String) {
    self.tokens = tokens
    self.zone = zone
  }

  mutating func parse() throws(RecordViolation) -> Predicate? {
    guard !tokens.isEmpty else { return nil }
    let predicate = try conjunction()
    if let extra = peek { throw wrong("unexpected \(extra.shown)") }
    return predicate
  }

  private var peek: FilterToken? { at < tokens.count ? tokens[at] : nil }

  private func wrong(_ what: String) -> RecordViolation {
    let place = peek.map { "at byte \($0.offset)" } ?? "at the end"
    return RecordViolation("filter", "\(what) \(place)")
  }

  private mutating func take(_ symbol: String) -> Bool {
    guard let token = peek, case .symbol(symbol) = token.kind else { return false }
    at += 1
    return true
  }

  private mutating func takeWord(_ word: String) -> Bool {
    guard let token = peek, case .word(word) = token.kind else { return false }
    at += 1
    return true
  }

  private mutating func expect(_ symbol: String) throws(RecordViolation) {
    guard take(symbol) else { throw wrong("expected `\(symbol)`") }
  }

  private mutating func conjunction() throws(RecordViolation) -> Predicate {
    depth += 1
    defer { depth -= 1 }
    guard depth <= Predicate.maxDepth else { throw wrong("nested too deep") }
    var parts = [try disjunction()]
    while let next = peek {
      if case .symbol(")") = next.kind { break }
      _ = takeWord("AND")
      parts.append(try disjunction())
    }
    return parts.count == 1 ? parts[0] : .allOf(parts)
  }

  private mutating func disjunction() throws(RecordViolation) -> Predicate {
    var parts = [try unary()]
    while takeWord("OR") { parts.append(try unary()) }
    return parts.count == 1 ? parts[0] : .anyOf(parts)
  }

  private mutating func unary() throws(RecordViolation) -> Predicate {
    if takeWord("NOT") || take("-") { return .not(try primary()) }
    return try primary()
  }

  private mutating func primary() throws(RecordViolation) -> Predicate {
    if take("(") {
      let inner = try conjunction()
      try expect(")")
      return inner
    }
    guard case .word(let name)? = peek?.kind, name != "AND", name != "OR" else {
      throw wrong("expected a field, a function or `(`")
    }
    at += 1
    if take("(") { return try call(name) }
    if take(":") {
      if take("*") { return .present(field: name) }
      return .listContains(field: name, [try value()], all: false)
    }
    return .comparison(field: name, try comparator(), try value())
  }

  private mutating func comparator() throws(RecordViolation) -> Predicate.Comparator {
    if take("=") { return .equal }
    if take("!=") { return .notEqual }
    if take("<=") { return .lessThanOrEqual }
    if take(">=") { return .greaterThanOrEqual }
    if take("<") { return .lessThan }
    if take(">") { return .greaterThan }
    throw wrong("expected one of = != < <= > >= :")
  }

  private mutating func call(_ name: String) throws(RecordViolation) -> Predicate {
    if name == "search" { return try search() }
    guard case .word(let field)? = peek?.kind else { throw wrong("expected a field") }
    at += 1
    switch name {
    case "present":
      try expect(")")
      return .present(field: field)
    case "beginsWith":
      let values = try arguments()
      guard values.count == 1, case .string(let prefix) = values[0] else {
        throw wrong("beginsWith takes a field and a text")
      }
      return .beginsWith(field: field, prefix)
    case "in": return .isIn(field: field, try arguments())
    case "contains": return .listContains(field: field, try arguments(), all: false)
    case "containsAll": return .listContains(field: field, try arguments(), all: true)
    case "distance":
      let values = try arguments().map(\.number)
      guard values.count == 2, let latitude = values[0], let longitude = values[1] else {
        throw wrong("distance takes a field, a latitude and a longitude")
      }
      guard take("<=") || take("<"), let radius = try value().number else {
        throw wrong("write distance(…) < metres")
      }
      return .distance(
        field: field, center: RecordLocation(latitude: latitude, longitude: longitude),
        radiusMeters: radius)
    default:
      throw RecordViolation(
        "filter",
        "no function \(name); there are beginsWith, in, contains, containsAll, present,"
          + " search and distance")
    }
  }

  /// `search("all these words", field, …)`; without fields in any.
  private mutating func search() throws(RecordViolation) -> Predicate {
    guard case .string(let words) = try value() else { throw wrong("expected words in quotes") }
    var fields: [String] = []
    while take(",") {
      guard case .word(let field)? = peek?.kind else { throw wrong("expected a field") }
      at += 1
      fields.append(field)
    }
    try expect(")")
    return .search(words: [words], all: true, fields: fields)
  }

  /// The rest of a call after its field, with the closing parenthesis.
  private mutating func arguments() throws(RecordViolation) -> [RecordValue] {
    var values: [RecordValue] = []
    while take(",") { values.append(try value()) }
    try expect(")")
    return values
  }

  private mutating func value() throws(RecordViolation) -> RecordValue {
    let negative = take("-")
    guard let token = peek else { throw wrong("expected a value") }
    at += 1
    switch token.kind {
    case .text(let text) where !negative: return .string(text)
    case .number(let text):
      let text = negative ? "-\(text)" : text
      if let integer = Int64(text) { return .int64(integer) }
      if let real = Double(text), real.isFinite { return .double(real) }
    case .time(let microseconds) where !negative: return .timestamp(microseconds)
    case .word(let word) where !negative:
      guard take("(") else { return .string(word) }
      guard case .text(let text)? = peek?.kind else { throw wrong("expected a text in quotes") }
      at += 1
      try expect(")")
      switch word {
      case "timestamp":
        guard let time = RFC3339.microseconds(text) else {
          throw RecordViolation("filter", "\(text) is no RFC 3339 time, as 2026-01-31T12:00:00Z")
        }
        return .timestamp(time)
      case "reference": return .reference(RecordReference(zone: zone, record: text))
      case "bytes":
        guard let bytes = FilterLexer.bytes(hex: text) else {
          throw RecordViolation("filter", "bytes(…) takes an even number of hexadecimal digits")
        }
        return .bytes(bytes)
      default:
        throw RecordViolation(
          "filter", "no value \(word)(…); there are timestamp, reference, bytes")
      }
    default: break
    }
    at -= 1
    throw wrong("expected a value")
  }
}

extension RecordValue {
  /// The value as a double, when it is a number.
  fileprivate var number: Double? {
    switch self {
    case .int64(let number): Double(number)
    case .double(let number): number
    default: nil
    }
  }
}
