/// Parses JSON (RFC 8259) strictly.
struct JSONParser {
  /// Arrays and objects within each other; as for messages on the wire.
  static let maximumDepth = 100

  private let bytes: [UInt8]
  private var position = 0

  static func parse(_ text: String) throws(JSONFault) -> JSONNode {
    var parser = JSONParser(bytes: Array(text.utf8))
    parser.skipBlanks()
    let node = try parser.value(depth: 0)
    parser.skipBlanks()
    guard parser.position == parser.bytes.count else {
      throw parser.fault("unexpected text behind the value")
    }
    return node
  }

  private init(bytes: [UInt8]) { self.bytes = bytes }

  private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  private func fault(_ message: String, at offset: Int? = nil) -> JSONFault {
    JSONFault(message: message, offset: offset ?? position)
  }

  private mutating func skipBlanks() {
    while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 {
      position += 1
    }
  }

  private mutating func take(_ character: UInt8) -> Bool {
    guard next == character else { return false }
    position += 1
    return true
  }

  private mutating func value(depth: Int) throws(JSONFault) -> JSONNode {
    let start = position
    switch next {
    case nil: throw fault("the text ends where a value is expected")
    case UInt8(ascii: "{"): return try object(depth: depth)
    case UInt8(ascii: "["): return try array(depth: depth)
    case UInt8(ascii: "\""): return JSONNode(kind: .string(try string()), offset: start)
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    case let byte? where byte == UInt8(ascii: "-") || byte >= 0x30 && byte <= 0x39:
      return try number()
    default: throw fault("expected a value")
    }
  }

  private mutating func word(
    _ word: String, _ kind: JSONNode.Kind
  ) throws(JSONFault) -> JSONNode {
    let start = position
    for character in word.utf8 {
      guard take(character) else { throw fault("expected \(word)", at: start) }
    }
    return JSONNode(kind: kind, offset: start)
  }

  private mutating func object(depth: Int) throws(JSONFault) -> JSONNode {
    guard depth < Self.maximumDepth else { throw fault("nested too deeply") }
    let start = position
    position += 1
    var members: [JSONNode.Member] = []
    skipBlanks()
    if take(UInt8(ascii: "}")) { return JSONNode(kind: .object([]), offset: start) }
    while true {
      skipBlanks()
      let nameStart = position
      guard next == UInt8(ascii: "\"") else { throw fault("expected a name in quotes") }
      let name = try string()
      skipBlanks()
      guard take(UInt8(ascii: ":")) else {
        throw fault("expected a colon behind the name")
      }
      skipBlanks()
      let member = try within(".\(name)") { () throws(JSONFault) -> JSONNode in
        try value(depth: depth + 1)
      }
      members.append(JSONNode.Member(name: name, offset: nameStart, value: member))
      skipBlanks()
      if take(UInt8(ascii: "}")) { return JSONNode(kind: .object(members), offset: start) }
      guard take(UInt8(ascii: ",")) else { throw fault("expected a comma or }") }
    }
  }

  private mutating func array(depth: Int) throws(JSONFault) -> JSONNode {
    guard depth < Self.maximumDepth else { throw fault("nested too deeply") }
    let start = position
    position += 1
    var elements: [JSONNode] = []
    skipBlanks()
    if take(UInt8(ascii: "]")) { return JSONNode(kind: .array([]), offset: start) }
    while true {
      skipBlanks()
      elements.append(
        try within("[\(elements.count)]") { () throws(JSONFault) -> JSONNode in
          try value(depth: depth + 1)
        })
      skipBlanks()
      if take(UInt8(ascii: "]")) { return JSONNode(kind: .array(elements), offset: start) }
      guard take(UInt8(ascii: ",")) else { throw fault("expected a comma or ]") }
    }
  }

  // MARK: Numbers

  private mutating func digits() -> Int {
    let start = position
    while let byte = next, byte >= 0x30 && byte <= 0x39 { position += 1 }
    return position - start
  }

  private mutating func number() throws(JSONFault) -> JSONNode {
    let start = position
    _ = take(UInt8(ascii: "-"))
    let leadingZero = next == UInt8(ascii: "0")
    let integer = digits()
    guard integer > 0, !leadingZero || integer == 1 else {
      throw fault("malformed number", at: start)
    }
    if take(UInt8(ascii: ".")) {
      guard digits() > 0 else { throw fault("malformed number", at: start) }
    }
    if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
      if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
      guard digits() > 0 else { throw fault("malformed number", at: start) }
    }
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    return JSONNode(kind: .number(text), offset: start)
  }

  // MARK: Strings

  private mutating func string() throws(JSONFault) -> String {
    let start = position
    position += 1
    var text: [UInt8] = []
    while let byte = next {
      switch byte {
      case UInt8(ascii: "\""):
        position += 1
        // The input was a String, and escapes only add whole characters.
        return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"):
        position += 1
        try escape(into: &text)
      case 0..<0x20: throw fault("control character in a string")
      default:
        text.append(byte)
        position += 1
      }
    }
    throw fault("the string does not end", at: start)
  }

  private mutating func escape(into text: inout [UInt8]) throws(JSONFault) {
    let start = position - 1
    guard let byte = next else { throw fault("the string does not end", at: start) }
    position += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0C)
    case UInt8(ascii: "n"): text.append(0x0A)
    case UInt8(ascii: "r"): text.append(0x0D)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "u"):
      var code = try hex(start)
      if code >= 0xD800 && code < 0xDC00 {
        guard take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else {
          throw fault("half a surrogate pair", at: start)
        }
        let low = try hex(start)
        guard low >= 0xDC00 && low < 0xE000 else {
          throw fault("half a surrogate pair", at: start)
        }
        code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
      }
      guard let scalar = Unicode.Scalar(code) else {
        throw fault("half a surrogate pair", at: start)
      }
      text.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
    default: throw fault("unknown escape", at: start)
    }
  }

  private mutating func hex(_ start: Int) throws(JSONFault) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let byte = next, let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80
      else { throw fault("expected four hexadecimal digits", at: start) }
      value = value << 4 | UInt32(digit)
      position += 1
    }
    return value
  }
}
