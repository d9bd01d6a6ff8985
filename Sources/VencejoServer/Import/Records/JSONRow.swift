/// A value of a JSON text; numbers as they are written, so that none loses digits.
package indirect enum JSONRow: Equatable {
  case null
  case bool(Bool)
  case number(String)
  case string(String)
  case array([JSONRow])
  case object([(key: String, value: JSONRow)])

  package static func == (a: JSONRow, b: JSONRow) -> Bool { a.text == b.text }

  /// As JSON again.
  package var text: String {
    switch self {
    case .null: "null"
    case .bool(let value): value ? "true" : "false"
    case .number(let text): text
    case .string(let text): Self.quoted(text)
    case .array(let values): "[" + values.map(\.text).joined(separator: ",") + "]"
    case .object(let members):
      "{" + members.map { Self.quoted($0.key) + ":" + $0.value.text }.joined(separator: ",") + "}"
    }
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      default:
        if scalar.value < 0x20 {
          let hex = String(scalar.value, radix: 16)
          result += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
        } else {
          result.unicodeScalars.append(scalar)
        }
      }
    }
    return result + "\""
  }
}

/// Reads objects one after the other: one a line, all in an array, or all in an array that is a
/// member of the only object there is.
package struct JSONRows {
  private var window: TextWindow
  private var bytes: [UInt8] { window.bytes }
  private var at: Int {
    get { window.at }
    set { window.at = newValue }
  }
  package private(set) var line = 1
  private var isArray: Bool?
  /// The key of the array that rows are in, where there is one.
  package private(set) var key: String?

  /// Deepest nesting that is read.
  private static let maxDepth = 64

  init(_ window: TextWindow) { self.window = window }

  /// The next object; nil at the end.
  ///
  /// - Throws: ``DelimitedText/Fault`` where the text is no JSON, or no object.
  package mutating func next() throws(DelimitedText.Fault) -> (
    line: Int, members: [(key: String, value: JSONRow)]
  )? {
    try window.refill()
    skipSpace()
    if isArray == nil {
      if at < bytes.count, bytes[at] == UInt8(ascii: "{") { enterMember() }
      isArray = at < bytes.count && bytes[at] == UInt8(ascii: "[")
      if isArray == true { at += 1 }
      skipSpace()
    }
    if isArray == true {
      if at < bytes.count, bytes[at] == UInt8(ascii: ",") { at += 1 }
      skipSpace()
      if at < bytes.count, bytes[at] == UInt8(ascii: "]") {
        at += 1
        if key == nil { try end() }
        at = bytes.count
        isArray = false
        return nil
      }
    } else if key != nil {
      return nil
    }
    guard at < bytes.count else {
      if isArray == true { throw fault("the array has no end") }
      return nil
    }
    let start = line
    guard case .object(let members) = try value(0) else {
      throw DelimitedText.Fault(line: start, problem: "an object is expected in every row")
    }
    return (start, members)
  }

  /// Nothing follows an array of rows.
  private mutating func end() throws(DelimitedText.Fault) {
    skipSpace()
    guard at == bytes.count else { throw fault("the array ends, and something follows it") }
  }

  /// Goes to the rows when they are in a member of the first object: when it is the only one, or
  /// longer than a row may be.
  private mutating func enterMember() {
    let start = (at, line)
    var found: (at: Int, line: Int, key: String)?
    at += 1
    var isWhole = false
    scan: while true {
      skipSpace()
      guard at < bytes.count, bytes[at] == UInt8(ascii: "\"") else { break }
      guard let key = try? string(), take(":") else { break }
      skipSpace()
      let place = (at: at, line: line)
      if found == nil, at < bytes.count, bytes[at] == UInt8(ascii: "[") {
        at += 1
        skipSpace()
        if at < bytes.count, bytes[at] == UInt8(ascii: "{") { found = (place.at, place.line, key) }
        (at, line) = place
      }
      guard (try? value(1)) != nil else {
        // Cut by the end of the window: no row is so long.
        isWhole = at >= bytes.count && !window.isLast
        break
      }
      if take(",") { continue }
      guard take("}") else { break }
      skipSpace()
      isWhole = at == bytes.count && window.isLast
      break scan
    }
    (at, line) = start
    guard isWhole, let found else { return }
    (at, line) = (found.at, found.line)
    key = found.key
  }

  private func fault(_ problem: String) -> DelimitedText.Fault {
    let isCut = at >= bytes.count && !window.isLast
    return DelimitedText.Fault(
      line: line, problem: isCut ? "a row is longer than \(window.limit)" : problem)
  }

  private mutating func skipSpace() {
    while at < bytes.count, bytes[at] <= 0x20 {
      if bytes[at] == UInt8(ascii: "\n") { line += 1 }
      at += 1
    }
  }

  private mutating func take(_ mark: Character) -> Bool {
    skipSpace()
    guard at < bytes.count, bytes[at] == mark.asciiValue else { return false }
    at += 1
    return true
  }

  private mutating func value(_ depth: Int) throws(DelimitedText.Fault) -> JSONRow {
    guard depth < Self.maxDepth else { throw fault("nested deeper than \(Self.maxDepth)") }
    skipSpace()
    guard at < bytes.count else { throw fault("the text ends in the middle of a value") }
    switch bytes[at] {
    case UInt8(ascii: "{"):
      at += 1
      var members: [(key: String, value: JSONRow)] = []
      if take("}") { return .object(members) }
      repeat {
        skipSpace()
        guard at < bytes.count, bytes[at] == UInt8(ascii: "\"") else {
          throw fault("a key in quotes is expected")
        }
        let key = try string()
        guard take(":") else { throw fault("a colon is expected after \(key)") }
        members.append((key, try value(depth + 1)))
      } while take(",")
      guard take("}") else { throw fault("a comma or } is expected") }
      return .object(members)
    case UInt8(ascii: "["):
      at += 1
      var values: [JSONRow] = []
      if take("]") { return .array(values) }
      repeat { values.append(try value(depth + 1)) } while take(",")
      guard take("]") else { throw fault("a comma or ] is expected") }
      return .array(values)
    case UInt8(ascii: "\""): return .string(try string())
    default:
      let start = at
      while at < bytes.count, !" \t\r\n,]}:".utf8.contains(bytes[at]) { at += 1 }
      let word = String(decoding: bytes[start..<at], as: UTF8.self)
      switch word {
      case "null": return .null
      case "true": return .bool(true)
      case "false": return .bool(false)
      default:
        let first = word.utf8.first ?? 0
        guard (0x30...0x39).contains(first) || first == UInt8(ascii: "-"), Double(word) != nil
        else { throw fault("\(word.prefix(40)) is no value") }
        return .number(word)
      }
    }
  }

  private mutating func string() throws(DelimitedText.Fault) -> String {
    at += 1
    var text: [UInt8] = []
    var half: UInt32 = 0
    while at < bytes.count {
      let byte = bytes[at]
      at += 1
      if byte == UInt8(ascii: "\"") { return String(decoding: text, as: UTF8.self) }
      guard byte == UInt8(ascii: "\\") else {
        if byte == UInt8(ascii: "\n") { throw fault("a line ends within quotes") }
        text.append(byte)
        continue
      }
      guard at < bytes.count else { break }
      let mark = bytes[at]
      at += 1
      switch mark {
      case UInt8(ascii: "n"): text.append(0x0A)
      case UInt8(ascii: "t"): text.append(0x09)
      case UInt8(ascii: "r"): text.append(0x0D)
      case UInt8(ascii: "b"): text.append(0x08)
      case UInt8(ascii: "f"): text.append(0x0C)
      case UInt8(ascii: "u"):
        guard at + 4 <= bytes.count,
          let code = UInt32(String(decoding: bytes[at..<at + 4], as: UTF8.self), radix: 16)
        else { throw fault("\\u needs four hexadecimal digits") }
        at += 4
        if (0xD800..<0xDC00).contains(code) {
          half = code
          continue
        }
        var scalar = code
        if (0xDC00..<0xE000).contains(code), half != 0 {
          scalar = 0x10000 + (half - 0xD800) << 10 + (code - 0xDC00)
        }
        half = 0
        text += Array(String(Character(UnicodeScalar(scalar) ?? "\u{FFFD}")).utf8)
      default: text.append(mark)
      }
    }
    throw fault("a text in quotes has no end")
  }
}
