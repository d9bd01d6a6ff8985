/// The two words a `String` consists of, for whoever reads or writes many of them: what Swift
/// offers gives a string's bytes, or makes a short string of bytes, by several calls, which take
/// longer than to copy the bytes.
///
/// Swift does not promise where in a string its bytes are (StringObject.swift tells where they
/// are): ``areKnown`` says whether it is as this type knows it. If not, ask Swift.
struct StringWords {
  private let first: UInt64
  private let second: UInt64

  /// Valid as long as the string.
  @inline(__always)
  init(_ string: String) {
    (first, second) = unsafeBitCast(string, to: (UInt64, UInt64).self)
  }

  // MARK: Small strings

  /// The words of a string of up to fifteen bytes of ASCII; nil when there are others among them.
  /// Sixteen bytes can be read at the place.
  @inline(__always)
  init?(ascii place: UnsafeRawPointer, count: Int) {
    let low = UInt64(littleEndian: place.loadUnaligned(as: UInt64.self))
    let high = UInt64(littleEndian: place.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    let bits = UInt64(truncatingIfNeeded: count &* 8)
    let all = UInt64.max
    // What is shifted by 64 or more is all zeros, here and below.
    first = bits < 64 ? low & ~(all &<< bits) : low
    let rest = bits > 64 ? high & ~(all &<< (bits &- 64)) : 0
    guard (first | rest) & 0x8080_8080_8080_8080 == 0 else { return nil }
    second = rest | (0xE0 | UInt64(truncatingIfNeeded: count)) &<< 56
  }

  /// The string of words that were made of ASCII.
  @inline(__always)
  var string: String { unsafeBitCast((first, second), to: String.self) }

  /// Whether the bytes are in the words, up to fifteen of them.
  @inline(__always)
  var isSmall: Bool { second & 1 << 61 != 0 }

  /// How many bytes are in the words.
  @inline(__always)
  var smallCount: Int { Int(truncatingIfNeeded: second &>> 56 & 15) }

  /// Writes the bytes that are in the words, so that they end at a place. Sixteen bytes before it
  /// are free to be overwritten.
  @inline(__always)
  func storeSmall(before place: UnsafeMutableRawPointer) {
    let bits = UInt64(truncatingIfNeeded: smallCount &* 8)
    if bits > 64 {
      let high = second &<< (128 &- bits) | first &>> (bits &- 64)
      (place - 16).storeBytes(of: (first &<< (128 &- bits)).littleEndian, as: UInt64.self)
      (place - 8).storeBytes(of: high.littleEndian, as: UInt64.self)
    } else {
      // Without a byte there is nothing to shift.
      (place - 8).storeBytes(of: (first &<< (64 &- bits)).littleEndian, as: UInt64.self)
    }
  }

  // MARK: Other strings

  /// Whether the bytes of a string that is not small stand behind its object's header: those of
  /// strings made in Swift, and of literals.
  @inline(__always)
  var isOwned: Bool { first & 1 << 60 != 0 }

  /// The bytes of such a string.
  @inline(__always)
  var owned: UnsafeRawBufferPointer {
    let object = UnsafeRawPointer(bitPattern: UInt(second & 0x0FFF_FFFF_FFFF_FFFF))
    return UnsafeRawBufferPointer(
      start: object?.advanced(by: 32), count: Int(truncatingIfNeeded: first & 0xFFFF_FFFF_FFFF))
  }

  // MARK: What we know

  /// Whether strings are as this type knows them. Looked at once.
  static let areKnown =
    MemoryLayout<String>.size == 16 && (0...15).allSatisfy(isSmallKnown)
    && [
      "Übersee, 燕子", "a literal of more than fifteen letters", String(repeating: "é", count: 100),
      String((0..<50).map { Character(Unicode.Scalar($0)) }),
    ].allSatisfy(areBytesKnown)

  /// Whether ASCII of so many letters is, bit for bit, what Swift makes of it.
  private static func isSmallKnown(_ count: Int) -> Bool {
    let letters =
      Array("abcdefghijklmnop\u{7F}".utf8.suffix(count)) + Array("rest of sixteen.".utf8)
    let swift = String(decoding: letters.prefix(count), as: UTF8.self)
    let ours = letters.withUnsafeBytes { bytes in
      bytes.baseAddress.flatMap { StringWords(ascii: $0, count: count) }
    }
    let words = StringWords(swift)
    return ours?.first == words.first && ours?.second == words.second && words.isSmall
      && areBytesKnown(swift)
  }

  private static func areBytesKnown(_ string: String) -> Bool {
    let words = StringWords(string)
    if words.isSmall {
      return withUnsafeTemporaryAllocation(byteCount: 16, alignment: 8) { room in
        guard let start = room.baseAddress else { return false }
        words.storeSmall(before: start + 16)
        return room.suffix(words.smallCount).elementsEqual(string.utf8)
      }
    }
    // Compared, not followed: it may be no address.
    return string.utf8Span.span.bytes.withUnsafeBytes {
      words.isOwned && $0.baseAddress == words.owned.baseAddress && $0.count == words.owned.count
    }
  }
}
