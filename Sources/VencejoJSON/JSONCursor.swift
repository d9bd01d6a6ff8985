import VencejoDescriptors

/// Reads the tokens of a JSON text (RFC 8259), strictly, from bytes that outlive it.
struct JSONCursor: ~Copyable {
  /// Arrays and objects within each other; as for messages on the wire.
  static let maximumDepth = 100

  // Invariant: 0 <= position <= count. The bytes are UTF-8: they are a String's.
  private let base: UnsafeRawPointer
  private let count: Int
  private(set) var position = 0
  private var depth = 0
  /// The last string with escapes, without them.
  private var decoded = ByteBuffer()

  // Stands in for the address of an empty text, which has none. Never read, as the count is zero,
  // and never changed.
  private nonisolated(unsafe) static let nothing = UnsafeRawPointer(
    UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1))

  init(_ text: UnsafeRawBufferPointer) {
    base = text.baseAddress ?? Self.nothing
    count = text.count
  }

  /// The next byte, 0 at the end.
  var next: UInt8 {
    position < count ? base.load(fromByteOffset: position, as: UInt8.self) : 0
  }

  var isAtEnd: Bool { position == count }

  func fault(_ message: String, at offset: Int? = nil) -> JSONFault {
    JSONFault(message: message, offset: offset ?? position)
  }

  /// What to say when something else than the next value is wanted.
  func unexpected(_ wanted: String) -> JSONFault {
    if isAtEnd { return fault("the text ends where a value is expected") }
    let found =
      switch next {
      case UInt8(ascii: "{"): "an object"
      case UInt8(ascii: "["): "an array"
      case UInt8(ascii: "\""): "a string"
      case UInt8(ascii: "t"), UInt8(ascii: "f"): "a boolean"
      case UInt8(ascii: "n"): "null"
      case UInt8(ascii: "-"), 0x30...0x39: "a number"
      default: ""
      }
    return fault(found.isEmpty ? "expected a value" : "expected \(wanted), found \(found)")
  }

  // MARK: Structure

  mutating func skipBlanks() {
    while position < count {
      switch base.load(fromByteOffset: position, as: UInt8.self) {
      case 0x20, 0x0A, 0x0D, 0x09: position += 1
      default: return
      }
    }
  }

  private mutating func take(_ character: UInt8) -> Bool {
    guard next == character, position < count else { return false }
    position += 1
    return true
  }

  /// Takes the bracket of an object or array, which is next.
  mutating func open() throws(JSONFault) {
    guard depth < Self.maximumDepth else { throw fault("nested too deeply") }
    depth += 1
    position += 1
  }

  /// Goes on to the next element or member; false behind the last one.
  mutating func next(_ isFirst: inout Bool, until end: UInt8) throws(JSONFault) -> Bool {
    skipBlanks()
    if take(end) {
      depth -= 1
      return false
    }
    if isFirst {
      isFirst = false
      return true
    }
    guard take(UInt8(ascii: ",")) else {
      throw fault(end == UInt8(ascii: "]") ? "expected a comma or ]" : "expected a comma or }")
    }
    skipBlanks()
    return true
  }

  /// Takes the name of a member.
  mutating func name() throws(JSONFault) -> UnsafeRawBufferPointer {
    guard next == UInt8(ascii: "\"") else { throw fault("expected a name in quotes") }
    return try string()
  }

  /// Takes the colon behind a name.
  mutating func colon() throws(JSONFault) {
    skipBlanks()
    guard take(UInt8(ascii: ":")) else { throw fault("expected a colon behind the name") }
    skipBlanks()
  }

  mutating func word(_ word: StaticString) throws(JSONFault) {
    let start = position
    for index in 0..<word.utf8CodeUnitCount {
      guard take(word.utf8Start[index]) else { throw fault("expected \(word)", at: start) }
    }
  }

  /// Where one is in a text, to come back.
  struct Place {
    fileprivate let position: Int
    fileprivate let depth: Int
  }

  var place: Place { Place(position: position, depth: depth) }

  mutating func goBack(to place: Place) {
    position = place.position
    depth = place.depth
  }

  /// The step of a path that the name at an offset is; empty when there is no name.
  mutating func step(at offset: Int) -> String {
    let here = position
    defer { position = here }
    position = offset
    do throws(JSONFault) {
      return "." + String(decoding: try name(), as: UTF8.self)
    } catch {
      return ""
    }
  }

  /// Skips a value.
  mutating func skip() throws(JSONFault) {
    var isFirst = true
    switch next {
    case UInt8(ascii: "{"):
      try open()
      while try next(&isFirst, until: UInt8(ascii: "}")) {
        _ = try name()
        try colon()
        try skip()
      }
    case UInt8(ascii: "["):
      try open()
      while try next(&isFirst, until: UInt8(ascii: "]")) { try skip() }
    case UInt8(ascii: "\""): _ = try string()
    case UInt8(ascii: "t"): try word("true")
    case UInt8(ascii: "f"): try word("false")
    case UInt8(ascii: "n"): try word("null")
    case UInt8(ascii: "-"), 0x30...0x39: _ = try number()
    default: throw unexpected("a value")
    }
  }

  // MARK: Numbers

  /// A number as it is written.
  struct Number {
    let text: UnsafeRawBufferPointer
    /// Whether it has neither fraction nor exponent.
    let isInteger: Bool

    var string: String { String(decoding: text, as: UTF8.self) }
  }

  private mutating func digits() -> Int {
    let start = position
    while position < count {
      let byte = base.load(fromByteOffset: position, as: UInt8.self)
      if byte < 0x30 || byte > 0x39 { break }
      position += 1
    }
    return position - start
  }

  /// Takes a number.
  mutating func number() throws(JSONFault) -> Number {
    let start = position
    var isInteger = true
    _ = take(UInt8(ascii: "-"))
    let leadingZero = next == UInt8(ascii: "0")
    let integer = digits()
    guard integer > 0, !leadingZero || integer == 1 else {
      throw fault("malformed number", at: start)
    }
    if take(UInt8(ascii: ".")) {
      isInteger = false
      guard digits() > 0 else { throw fault("malformed number", at: start) }
    }
    if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
      isInteger = false
      if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
      guard digits() > 0 else { throw fault("malformed number", at: start) }
    }
    return Number(
      text: UnsafeRawBufferPointer(start: base + start, count: position - start),
      isInteger: isInteger)
  }

  // MARK: Strings

  /// Goes on to the next quote, backslash or control character, or to the end.
  private mutating func skipPlain() {
    let ones: UInt64 = 0x0101_0101_0101_0101
    while count - position >= 8 {
      let bytes = UInt64(
        littleEndian: base.loadUnaligned(fromByteOffset: position, as: UInt64.self))
      // The lowest high bit set says where the first such byte is; others may be wrong.
      let quote = bytes ^ ones &* 0x22
      let backslash = bytes ^ ones &* 0x5C
      let found =
        (quote &- ones) & ~quote | (backslash &- ones) & ~backslash
        | (bytes &- ones &* 0x20) & ~bytes
      let hits = found & (ones &* 0x80)
      if hits != 0 {
        position += hits.trailingZeroBitCount / 8
        return
      }
      position += 8
    }
    while position < count {
      let byte = base.load(fromByteOffset: position, as: UInt8.self)
      if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte < 0x20 { return }
      position += 1
    }
  }

  /// Takes a string, whose quote is next: its bytes, valid until the next one is taken.
  mutating func string() throws(JSONFault) -> UnsafeRawBufferPointer {
    let start = position
    position += 1
    skipPlain()
    if take(UInt8(ascii: "\"")) {
      return UnsafeRawBufferPointer(start: base + start + 1, count: position - start - 2)
    }
    decoded.truncate(to: 0)
    var plain = start + 1
    while position < count {
      decoded.append(UnsafeRawBufferPointer(start: base + plain, count: position - plain))
      if take(UInt8(ascii: "\"")) { return decoded.written }
      guard take(UInt8(ascii: "\\")) else { throw fault("control character in a string") }
      try escape()
      plain = position
      skipPlain()
    }
    throw fault("the string does not end", at: start)
  }

  private mutating func escape() throws(JSONFault) {
    let start = position - 1
    guard !isAtEnd else { throw fault("the string does not end", at: start) }
    let byte = next
    position += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): decoded.append(byte)
    case UInt8(ascii: "b"): decoded.append(0x08)
    case UInt8(ascii: "f"): decoded.append(0x0C)
    case UInt8(ascii: "n"): decoded.append(0x0A)
    case UInt8(ascii: "r"): decoded.append(0x0D)
    case UInt8(ascii: "t"): decoded.append(0x09)
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
      guard let scalar = Unicode.Scalar(code), let bytes = UTF8.encode(scalar) else {
        throw fault("half a surrogate pair", at: start)
      }
      for byte in bytes { decoded.append(byte) }
    default: throw fault("unknown escape", at: start)
    }
  }

  private mutating func hex(_ start: Int) throws(JSONFault) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 {
      let digit: UInt8
      switch next {
      case 0x30...0x39: digit = next - 0x30
      case 0x41...0x46: digit = next - 0x41 + 10
      case 0x61...0x66: digit = next - 0x61 + 10
      default: throw fault("expected four hexadecimal digits", at: start)
      }
      value = value << 4 | UInt32(digit)
      position += 1
    }
    return value
  }
}
