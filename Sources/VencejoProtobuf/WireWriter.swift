#if canImport(Glibc)
  import Glibc
#endif

/// Writes protobuf's wire format backwards: the last field first, each value before its
/// length and tag. A sub-message's length is then known when it is written, without a pass
/// over the message to compute sizes.
public struct WireWriter: ~Copyable {
  /// What follows the memory being written, the last part of the message first.
  private enum Piece {
    case written(UnsafeRawBufferPointer)
    case lent([UInt8])
  }

  // Invariant: base <= position <= end; the bytes from position to end are written, and
  // followed by those of `pieces`, of which there are `finished`.
  @usableFromInline var base: UnsafeMutableRawPointer
  @usableFromInline var position: UnsafeMutableRawPointer
  @usableFromInline var end: UnsafeMutableRawPointer
  @usableFromInline var finished = 0
  private var pieces: [Piece] = []
  /// Memory to be freed: each block begins with the address of the one before it.
  private var blocks: UnsafeMutableRawPointer?

  /// Whether map entries are sorted by their keys, so that equal messages have equal bytes.
  public let deterministic: Bool
  /// See ``StringWords/areKnown``; here, as Swift calls a function whenever it is asked for.
  private let knowsStrings = StringWords.areKnown

  /// Arrays of so many bytes are not copied until all is written.
  private static let leastLent = 4096

  /// Writes into scratch memory as long as it suffices, which must outlive the writer.
  init(scratch: UnsafeMutableRawBufferPointer, deterministic: Bool) {
    // An empty buffer has no address; nothing is written to this one before it grows.
    base = scratch.baseAddress ?? Self.nothing
    end = base + scratch.count
    position = end
    self.deterministic = deterministic
  }

  // Stands in for memory while there is none. Neither read nor written: its room is zero.
  private nonisolated(unsafe) static let nothing = UnsafeMutableRawPointer.allocate(
    byteCount: 1, alignment: 1)

  /// A writer with memory of its own.
  public init(deterministic: Bool = false) {
    self.init(scratch: .init(start: nil, count: 0), deterministic: deterministic)
    allocate(256)
  }

  deinit {
    var next = blocks
    while let block = next {
      next = block.load(as: UnsafeMutableRawPointer?.self)
      block.deallocate()
    }
  }

  /// Goes on in a new block with room for so many bytes.
  private mutating func allocate(_ size: Int) {
    let header = 16
    let block = UnsafeMutableRawPointer.allocate(byteCount: header + size, alignment: 16)
    block.storeBytes(of: blocks, as: UnsafeMutableRawPointer?.self)
    blocks = block
    base = block + header
    end = base + size
    position = end
  }

  /// How many bytes have been written. Also a mark for ``delimit(_:since:)``.
  @inlinable
  public var count: Int { (end - position) &+ finished }

  /// `prefix` zero bytes, then what has been written.
  public mutating func bytes(reservingPrefix prefix: Int = 0) -> [UInt8] {
    if prefix > 0 {
      reserve(prefix)
      position -= prefix
      memset(position, 0, prefix)
    }
    defer { position += prefix }
    let front = UnsafeRawBufferPointer(start: position, count: end - position)
    if finished == 0 { return [UInt8](front) }
    var result: [UInt8] = []
    result.reserveCapacity(count)
    result.append(contentsOf: front)
    for piece in pieces.reversed() {
      switch piece {
      case .written(let bytes): result.append(contentsOf: bytes)
      case .lent(let array): result.append(contentsOf: array)
      }
    }
    return result
  }

  // MARK: Raw writing

  /// Makes room for `size` bytes below the position.
  @inlinable
  @inline(__always)
  mutating func reserve(_ size: Int) {
    if position - base < size { grow(size) }
  }

  /// Leaves what has been written where it is and goes on elsewhere.
  @inline(never)
  @usableFromInline
  mutating func grow(_ size: Int) {
    let capacity = max(min(4 * count, 1 << 20), 8192, size)
    if pieces.isEmpty { pieces.reserveCapacity(8) }
    finish()
    allocate(capacity)
  }

  /// Makes what has been written since the last time a piece of its own.
  private mutating func finish() {
    guard position < end else { return }
    pieces.append(.written(UnsafeRawBufferPointer(start: position, count: end - position)))
    finished += end - position
    end = position
  }

  /// Writes a varint that ends at `position`; returns where it begins. Ten bytes are free there.
  @inlinable
  @inline(__always)
  static func put(
    _ value: UInt64, before position: UnsafeMutableRawPointer
  ) -> UnsafeMutableRawPointer {
    // ceil(bits / 7) without a division by 7.
    let size = ((63 &- (value | 1).leadingZeroBitCount) &* 9 &+ 73) >> 6
    guard size <= 8 else { return putLongest(value, size, before: position) }
    // Spreads the groups of seven bits to bytes: first halves, then quarters, then all. No loop,
    // whose length would be hard to predict. What of the eight bytes is too much goes to where
    // nothing has been written.
    var bits = value & 0x0FFF_FFFF | (value & 0x00FF_FFFF_F000_0000) << 4
    bits = bits & 0x0000_3FFF_0000_3FFF | (bits & 0x0FFF_C000_0FFF_C000) << 2
    bits = bits & 0x007F_007F_007F_007F | (bits & 0x3F80_3F80_3F80_3F80) << 1
    let shift = UInt64(truncatingIfNeeded: 64 &- 8 &* size)
    let more = (0x0080_8080_8080_8080 as UInt64) & ~(UInt64.max &<< (64 &- 8 &- shift))
    (position - 8).storeBytes(of: ((bits | more) &<< shift).littleEndian, as: UInt64.self)
    return position - size
  }

  @inline(never)
  @usableFromInline
  static func putLongest(
    _ value: UInt64, _ size: Int, before position: UnsafeMutableRawPointer
  ) -> UnsafeMutableRawPointer {
    let start = position - size
    var rest = value
    for index in 0..<size - 1 {
      start.storeBytes(
        of: UInt8(truncatingIfNeeded: rest) | 0x80, toByteOffset: index, as: UInt8.self)
      rest >>= 7
    }
    start.storeBytes(
      of: UInt8(truncatingIfNeeded: rest), toByteOffset: size - 1, as: UInt8.self)
    return start
  }

  /// Writes many varints.
  @inlinable
  mutating func varints<C: WireVarintCoding>(_: C.Type, _ list: UnsafeBufferPointer<C.Value>) {
    var index = list.count
    while index > 0 {
      // So many at a time that the room kept for them is not large.
      let first = max(0, index &- 256)
      reserve(10 &* (index &- first))
      var place = position
      while index > first {
        index &-= 1
        place = Self.put(C.bits(of: list[index]), before: place)
      }
      position = place
    }
  }

  // What follows writes where there is room, and else goes another way by a call that is the last
  // thing it does: so it needs no registers of its caller's, which it would have to save.

  /// Writes a varint.
  public mutating func varint(_ value: UInt64) {
    guard position - base >= 10 else { return varintElsewhere(value) }
    position = Self.put(short: value, before: position)
  }

  @inline(never)
  private mutating func varintElsewhere(_ value: UInt64) {
    grow(10)
    varint(value)
  }

  /// Writes a varint field.
  public mutating func varint(_ tag: UInt32, _ value: UInt64) {
    let tag = UInt64(tag)
    guard position - base >= 20, value < 1 << 56 else { return longest(tag, value) }
    if value | tag < 0x80 {
      position -= 2
      let pair = UInt16(truncatingIfNeeded: tag | value << 8)
      position.storeBytes(of: pair.littleEndian, as: UInt16.self)
    } else {
      position = Self.put(short: tag, before: Self.put(short: value, before: position))
    }
  }

  /// Writes a varint that mostly takes one or two bytes; see `put(_:before:)`.
  @inline(__always)
  private static func put(
    short value: UInt64, before position: UnsafeMutableRawPointer
  ) -> UnsafeMutableRawPointer {
    if value < 0x80 {
      (position - 1).storeBytes(of: UInt8(truncatingIfNeeded: value), as: UInt8.self)
      return position - 1
    }
    if value < 0x4000 {
      let pair = UInt16(truncatingIfNeeded: (value & 0x7F | 0x80) | (value >> 7) << 8)
      (position - 2).storeBytes(of: pair.littleEndian, as: UInt16.self)
      return position - 2
    }
    return put(value, before: position)
  }

  @inline(never)
  private mutating func longest(_ tag: UInt64, _ value: UInt64) {
    reserve(20)
    position = Self.put(short: tag, before: Self.put(value, before: position))
  }

  /// Writes four bytes, little-endian.
  public mutating func fixed32(_ value: UInt32) {
    reserve(4)
    position -= 4
    position.storeBytes(of: value.littleEndian, as: UInt32.self)
  }

  /// Writes eight bytes, little-endian.
  public mutating func fixed64(_ value: UInt64) {
    reserve(8)
    position -= 8
    position.storeBytes(of: value.littleEndian, as: UInt64.self)
  }

  /// Writes bytes as they are.
  public mutating func raw(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    reserve(bytes.count)
    position -= bytes.count
    memcpy(position, start, bytes.count)
  }

  /// Writes bytes and their length.
  public mutating func lengthPrefixed(_ bytes: UnsafeRawBufferPointer) {
    raw(bytes)
    varint(UInt64(truncatingIfNeeded: bytes.count))
  }

  /// Writes a tag, the length of bytes, and those.
  @inline(never)
  private mutating func lengthPrefixed(_ tag: UInt32, _ bytes: UnsafeRawBufferPointer) {
    raw(bytes)
    varint(tag, UInt64(truncatingIfNeeded: bytes.count))
  }

  /// Writes the tag, and before it the length of what was written since `mark`.
  public mutating func delimit(_ tag: UInt32, since mark: Int) {
    varint(tag, UInt64(truncatingIfNeeded: count &- mark))
  }

  /// Writes the length of what was written since `mark`.
  @usableFromInline
  mutating func delimit(since mark: Int) { varint(UInt64(truncatingIfNeeded: count &- mark)) }

  // MARK: Fields

  /// Writes an `int32`: negative ones take ten bytes.
  public mutating func int32(_ tag: UInt32, _ value: Int32) {
    varint(tag, UInt64(bitPattern: Int64(value)))
  }
  /// Writes an `int64`.
  public mutating func int64(_ tag: UInt32, _ value: Int64) {
    varint(tag, UInt64(bitPattern: value))
  }
  /// Writes a `uint32`.
  public mutating func uint32(_ tag: UInt32, _ value: UInt32) { varint(tag, UInt64(value)) }
  /// Writes a `uint64`.
  public mutating func uint64(_ tag: UInt32, _ value: UInt64) { varint(tag, value) }
  /// Writes a `sint32`, zigzag.
  public mutating func sint32(_ tag: UInt32, _ value: Int32) {
    varint(tag, UInt64(UInt32(bitPattern: (value << 1) ^ (value >> 31))))
  }
  /// Writes a `sint64`, zigzag.
  public mutating func sint64(_ tag: UInt32, _ value: Int64) {
    varint(tag, UInt64(bitPattern: (value << 1) ^ (value >> 63)))
  }
  /// Writes a `bool`.
  public mutating func bool(_ tag: UInt32, _ value: Bool) { varint(tag, value ? 1 : 0) }
  /// Writes a `fixed32`.
  public mutating func fixedUInt32(_ tag: UInt32, _ value: UInt32) {
    guard position - base >= 14 else { return fixedElsewhere(tag, UInt64(value), 4) }
    (position - 4).storeBytes(of: value.littleEndian, as: UInt32.self)
    position = Self.put(short: UInt64(tag), before: position - 4)
  }
  /// Writes a `fixed64`.
  public mutating func fixedUInt64(_ tag: UInt32, _ value: UInt64) {
    guard position - base >= 18 else { return fixedElsewhere(tag, value, 8) }
    (position - 8).storeBytes(of: value.littleEndian, as: UInt64.self)
    position = Self.put(short: UInt64(tag), before: position - 8)
  }

  @inline(never)
  private mutating func fixedElsewhere(_ tag: UInt32, _ value: UInt64, _ size: Int) {
    grow(18)
    if size == 4 {
      fixedUInt32(tag, UInt32(truncatingIfNeeded: value))
    } else {
      fixedUInt64(tag, value)
    }
  }

  /// Writes an `sfixed32`.
  public mutating func fixedInt32(_ tag: UInt32, _ value: Int32) {
    fixedUInt32(tag, UInt32(bitPattern: value))
  }
  /// Writes an `sfixed64`.
  public mutating func fixedInt64(_ tag: UInt32, _ value: Int64) {
    fixedUInt64(tag, UInt64(bitPattern: value))
  }
  /// Writes a `float`.
  public mutating func float(_ tag: UInt32, _ value: Float) { fixedUInt32(tag, value.bitPattern) }
  /// Writes a `double`.
  public mutating func double(_ tag: UInt32, _ value: Double) { fixedUInt64(tag, value.bitPattern) }

  /// Writes a string and its length, without a tag.
  public mutating func string(_ value: String) {
    value.utf8Span.span.bytes.withUnsafeBytes { lengthPrefixed($0) }
  }
  /// Writes a `string`.
  public mutating func string(_ tag: UInt32, _ value: String) {
    let words = StringWords(value)
    guard knowsStrings && (words.isSmall || words.isOwned) else {
      return value.utf8Span.span.bytes.withUnsafeBytes { lengthPrefixed(tag, $0) }
    }
    guard words.isSmall else {
      lengthPrefixed(tag, words.owned)
      // Its bytes have been read up to here.
      return withExtendedLifetime(value) {}
    }
    guard position - base >= 32 else { return smallElsewhere(tag, value) }
    let count = words.smallCount
    words.storeSmall(before: position)
    position -= count
    varint(tag, UInt64(truncatingIfNeeded: count))
  }

  /// Writes a `string` of implicit presence: nothing when it is empty.
  //
  // To ask here is less code in each message, and to compile, than there.
  public mutating func implicitString(_ tag: UInt32, _ value: String) {
    if value.isEmpty { return }
    string(tag, value)
  }

  @inline(never)
  private mutating func smallElsewhere(_ tag: UInt32, _ value: String) {
    grow(32)
    string(tag, value)
  }
  private mutating func lengthPrefixed(_ array: [UInt8]) {
    array.withUnsafeBytes { lengthPrefixed($0) }
  }
  /// Writes bytes and their length, without a tag.
  public mutating func bytes(_ value: [UInt8]) {
    guard value.count >= Self.leastLent else { return lengthPrefixed(value) }
    finish()
    pieces.append(.lent(value))
    finished += value.count
    varint(UInt64(value.count))
  }
  /// Writes a `bytes`.
  public mutating func bytes(_ tag: UInt32, _ value: [UInt8]) {
    guard value.count < Self.leastLent else {
      bytes(value)
      return varint(UInt64(tag))
    }
    value.withUnsafeBytes { lengthPrefixed(tag, $0) }
  }
  /// Writes an enum's number.
  @inlinable
  public mutating func enumeration<E: Enumeration>(_ tag: UInt32, _ value: E) {
    int32(tag, value.rawValue)
  }
  /// Writes the fields nobody knows.
  @inlinable
  public mutating func unknown(_ fields: UnknownFields) {
    if !fields.isEmpty { raw(fields) }
  }

  @usableFromInline
  mutating func raw(_ fields: UnknownFields) { fields.bytes.withUnsafeBytes { raw($0) } }
}
