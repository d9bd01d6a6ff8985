import VencejoDescriptors

// Brackets, names and strings.
extension JSONPrinter {
  /// What has been written of an object or array.
  struct List {
    var count = 0
  }

  mutating func open(_ bracket: StaticString) -> List {
    out.append(literal: bracket)
    depth += 1
    return List()
  }

  mutating func close(_ bracket: StaticString, _ list: List) {
    depth -= 1
    if options.pretty && list.count > 0 { newLine() }
    out.append(literal: bracket)
  }

  /// Begins an element.
  mutating func next(_ list: inout List) {
    if list.count > 0 { out.append(UInt8(ascii: ",")) }
    list.count += 1
    if options.pretty { newLine() }
  }

  /// Begins an element of a list that has been opened.
  mutating func next(_ list: inout List?) {
    if var known = list {
      next(&known)
      list = known
    }
  }

  /// Begins a field's member.
  mutating func next(_ field: Field, _ list: inout List) {
    next(&list)
    let member = options.originalNames ? field.member : field.jsonMember
    if member.isEmpty {
      quote(name(field))
      colon()
    } else {
      out.append(member)
      if options.pretty { out.append(UInt8(ascii: " ")) }
    }
  }

  /// Begins a member.
  mutating func next(_ name: String, _ list: inout List) {
    next(&list)
    quote(name)
    colon()
  }

  mutating func colon() { out.append(literal: options.pretty ? ": " : ":") }

  private mutating func newLine() {
    out.append(UInt8(ascii: "\n"))
    for _ in 0..<depth { out.append(literal: "  ") }
  }

  mutating func quote(_ string: String) {
    string.utf8Span.span.bytes.withUnsafeBytes { quote($0) }
  }

  /// Writes UTF-8 as a string.
  mutating func quote(_ bytes: UnsafeRawBufferPointer) {
    out.append(UInt8(ascii: "\""))
    letters(bytes)
    out.append(UInt8(ascii: "\""))
  }

  /// Writes as a string what needs no escapes.
  mutating func quote(plain bytes: UnsafeRawBufferPointer) {
    out.append(UInt8(ascii: "\""))
    out.append(bytes)
    out.append(UInt8(ascii: "\""))
  }

  /// Writes UTF-8 as a part of a string.
  mutating func letters(_ bytes: UnsafeRawBufferPointer) {
    let index = Self.skipPlain(bytes, from: 0)
    if index == bytes.count { return out.append(bytes) }
    letters(bytes, from: index)
  }

  /// The same, with the first so many bytes being plain.
  @inline(never)
  private mutating func letters(_ bytes: UnsafeRawBufferPointer, from start: Int) {
    var plain = 0
    var index = start
    while index < bytes.count {
      let length = Self.escaped(bytes, index)
      if length == 0 {
        index += 1
      } else {
        out.append(UnsafeRawBufferPointer(rebasing: bytes[plain..<index]))
        escape(bytes, index, length)
        index += length
        plain = index
      }
      index = Self.skipPlain(bytes, from: index)
    }
    out.append(UnsafeRawBufferPointer(rebasing: bytes[plain...]))
  }

  /// Where the next byte is that may need an escape: all but ASCII's letters and signs.
  private static func skipPlain(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
    var index = start
    while bytes.count &- index >= 8 {
      let hits = Self.special(
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
      if hits != 0 { return index &+ hits.trailingZeroBitCount &>> 3 }
      index &+= 8
    }
    if index == bytes.count { return index }
    // The rest: with what is before it, again eight bytes, or one by one.
    if bytes.count >= 8 {
      let before = 8 &- (bytes.count &- index)
      let last = bytes.loadUnaligned(fromByteOffset: index &- before, as: UInt64.self)
      let hits =
        Self.special(UInt64(littleEndian: last))
        & UInt64.max &<< UInt64(truncatingIfNeeded: 8 &* before)
      return hits == 0 ? bytes.count : index &- before &+ hits.trailingZeroBitCount &>> 3
    }
    while index < bytes.count {
      let byte = bytes[index]
      if byte < 0x20 || byte >= 0x7F || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
        return index
      }
      index &+= 1
    }
    return index
  }

  /// High bits in eight bytes: the lowest one set says which is the first that may need an
  /// escape; others may be wrong.
  @inline(__always)
  private static func special(_ eight: UInt64) -> UInt64 {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let quote = eight ^ ones &* 0x22
    let backslash = eight ^ ones &* 0x5C
    let delete = eight ^ ones &* 0x7F
    let found =
      (quote &- ones) & ~quote | (backslash &- ones) & ~backslash | (delete &- ones) & ~delete
      | (eight &- ones &* 0x20) & ~eight | eight
    return found & (ones &* 0x80)
  }

  /// How many bytes the character takes that begins at an index and is written as an escape: what
  /// JSON asks for, and what a terminal would obey or a reader not see. 0 for others.
  private static func escaped(_ bytes: UnsafeRawBufferPointer, _ index: Int) -> Int {
    func byte(_ offset: Int) -> UInt8 {
      index + offset < bytes.count ? bytes[index + offset] : 0
    }
    switch byte(0) {
    case 0..<0x20, UInt8(ascii: "\""), UInt8(ascii: "\\"), 0x7F: return 1
    // U+0080 to U+009F.
    case 0xC2: return byte(1) >= 0x80 && byte(1) < 0xA0 ? 2 : 0
    case 0xE2:
      switch (byte(1), byte(2)) {
      // U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069.
      case (0x80, 0x8E), (0x80, 0x8F), (0x80, 0xA8...0xAE), (0x81, 0xA6...0xA9): return 3
      default: return 0
      }
    // U+FEFF.
    case 0xEF: return byte(1) == 0xBB && byte(2) == 0xBF ? 3 : 0
    default: return 0
    }
  }

  private mutating func escape(_ bytes: UnsafeRawBufferPointer, _ index: Int, _ length: Int) {
    guard index + length <= bytes.count else { return }
    let byte = bytes[index]
    switch byte {
    case UInt8(ascii: "\""): out.append(literal: "\\\"")
    case UInt8(ascii: "\\"): out.append(literal: "\\\\")
    case 0x0A: out.append(literal: "\\n")
    case 0x0D: out.append(literal: "\\r")
    case 0x09: out.append(literal: "\\t")
    default:
      var code = UInt32(byte)
      if length == 2 { code = UInt32(byte & 0x1F) << 6 | UInt32(bytes[index + 1] & 0x3F) }
      if length == 3 {
        code =
          UInt32(byte & 0x0F) << 12 | UInt32(bytes[index + 1] & 0x3F) << 6
          | UInt32(bytes[index + 2] & 0x3F)
      }
      out.append(literal: "\\u")
      for shift: UInt32 in [12, 8, 4, 0] {
        let digit = UInt8(truncatingIfNeeded: code >> shift & 15)
        out.append(digit < 10 ? 0x30 + digit : 0x61 + digit - 10)
      }
    }
  }
}
