/// A JSON value of a service config.
indirect enum ConfigJSON {
  case null
  case bool(Bool)
  /// As it is written: what it becomes depends on the field.
  case number(String)
  case string(String)
  case array([ConfigJSON])
  /// In the order of the text, where a name may be there twice.
  case object([(name: String, value: ConfigJSON)])

  /// Parses a JSON text (RFC 8259), strictly. A service config is small and read once: not with
  /// VencejoJSON, which every program that makes calls would then hold, with all descriptors.
  init(parsing text: String) throws(ConfigJSONParser.Fault) {
    var parser = ConfigJSONParser(text)
    self = try parser.document()
  }

  /// What it is, for messages.
  var description: String {
    switch self {
    case .null: "null"
    case .bool: "a boolean"
    case .number: "a number"
    case .string: "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }
}

struct ConfigJSONParser {
  /// What is wrong, and at which byte of the text.
  struct Fault: Error, CustomStringConvertible {
    let message: String
    let offset: Int
    var description: String { "\(message) at byte \(offset)" }
  }

  /// Arrays and objects within each other.
  private static let maximumDepth = 100

  private let bytes: [UInt8]
  private var position = 0
  private var depth = 0

  init(_ text: String) { bytes = Array(text.utf8) }

  /// The next byte, nil at the end.
  private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  private func fault(_ message: String) -> Fault { Fault(message: message, offset: position) }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard next == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  private mutating func skipBlanks() {
    while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 {
      position += 1
    }
  }

  mutating func document() throws(Fault) -> ConfigJSON {
    let value = try value()
    guard next == nil else { throw fault("unexpected text behind the value") }
    return value
  }

  /// A value with the blanks around it.
  private mutating func value() throws(Fault) -> ConfigJSON {
    skipBlanks()
    defer { skipBlanks() }
    if take("{") { return .object(try members()) }
    if take("[") { return .array(try elements()) }
    switch next {
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    case nil: throw fault("the text ends where a value is expected")
    default: return .number(try number())
    }
  }

  private mutating func enter() throws(Fault) {
    guard depth < Self.maximumDepth else { throw fault("nested too deeply") }
    depth += 1
    skipBlanks()
  }

  private mutating func members() throws(Fault) -> [(name: String, value: ConfigJSON)] {
    try enter()
    defer { depth -= 1 }
    var members: [(name: String, value: ConfigJSON)] = []
    if take("}") { return members }
    repeat {
      skipBlanks()
      guard next == UInt8(ascii: "\"") else { throw fault("expected a name in quotes") }
      let name = try string()
      skipBlanks()
      guard take(":") else { throw fault("expected a colon behind the name") }
      members.append((name, try value()))
    } while take(",")
    guard take("}") else { throw fault("expected a comma or }") }
    return members
  }

  private mutating func elements() throws(Fault) -> [ConfigJSON] {
    try enter()
    defer { depth -= 1 }
    var elements: [ConfigJSON] = []
    if take("]") { return elements }
    repeat { elements.append(try value()) } while take(",")
    guard take("]") else { throw fault("expected a comma or ]") }
    return elements
  }

  private mutating func word(_ word: String, _ value: ConfigJSON) throws(Fault) -> ConfigJSON {
    guard bytes[position...].starts(with: word.utf8) else { throw fault("expected \(word)") }
    position += word.utf8.count
    return value
  }

  private mutating func digits() throws(Fault) {
    let start = position
    while let byte = next, byte >= 0x30, byte <= 0x39 { position += 1 }
    if position == start { throw fault("expected a value") }
  }

  private mutating func number() throws(Fault) -> String {
    let start = position
    _ = take("-")
    if !take("0") { try digits() }
    if take(".") { try digits() }
    if take("e") || take("E") {
      if !take("+") { _ = take("-") }
      try digits()
    }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private mutating func string() throws(Fault) -> String {
    position += 1
    var text: [UInt8] = []
    while let byte = next, byte >= 0x20 {
      position += 1
      switch byte {
      case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"): text += try escape()
      default: text.append(byte)
      }
    }
    throw fault(next == nil ? "the string does not end" : "control character in a string")
  }

  private mutating func escape() throws(Fault) -> [UInt8] {
    guard let byte = next else { throw fault("the string does not end") }
    position += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
    case UInt8(ascii: "b"): return [0x08]
    case UInt8(ascii: "f"): return [0x0C]
    case UInt8(ascii: "n"): return [0x0A]
    case UInt8(ascii: "r"): return [0x0D]
    case UInt8(ascii: "t"): return [0x09]
    case UInt8(ascii: "u"):
      var code = try hex()
      if code >= 0xD800 && code < 0xDC00, take("\\"), take("u") {
        let low = try hex()
        guard low >= 0xDC00 && low < 0xE000 else { throw fault("half a surrogate pair") }
        code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
      }
      guard let scalar = Unicode.Scalar(code) else { throw fault("half a surrogate pair") }
      return Array(String(Character(scalar)).utf8)
    default: throw fault("unknown escape")
    }
  }

  private mutating func hex() throws(Fault) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let byte = next, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
        throw fault("expected four hexadecimal digits")
      }
      value = value << 4 | UInt32(digit)
      position += 1
    }
    return value
  }
}
