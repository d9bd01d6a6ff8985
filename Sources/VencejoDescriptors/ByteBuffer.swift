#if canImport(Glibc)
  import Glibc
#endif

/// Bytes that grow at their end: a text being written, or wire format being written forwards.
@frozen
package struct ByteBuffer: ~Copyable {
  // Invariant: the first `count` of the `capacity` bytes at `base` are written.
  @usableFromInline var base: UnsafeMutablePointer<UInt8>
  @usableFromInline var capacity: Int
  @usableFromInline package var count = 0

  // Stands in for memory while there is none. Neither read nor written: its room is zero.
  private nonisolated(unsafe) static let nothing = UnsafeMutablePointer<UInt8>.allocate(capacity: 1)

  /// Nothing, with room for some.
  package init(capacity: Int = 0) {
    self.capacity = max(capacity, 0)
    base = capacity > 0 ? Self.resize(nil, to: capacity) : Self.nothing
  }

  deinit { if capacity > 0 { free(base) } }

  /// Moves memory to where so many bytes are. C's allocator, as it moves large blocks without
  /// copying them.
  private static func resize(
    _ memory: UnsafeMutablePointer<UInt8>?, to capacity: Int
  ) -> UnsafeMutablePointer<UInt8> {
    // As Swift's own arrays do; how much is asked for is bounded by the message that was read.
    guard let moved = realloc(memory, capacity) else { preconditionFailure("out of memory") }
    return moved.assumingMemoryBound(to: UInt8.self)
  }

  /// What has been written; valid until the buffer changes.
  package var written: UnsafeRawBufferPointer { .init(start: base, count: count) }

  /// What has been written from an offset to another one.
  package subscript(_ range: Range<Int>) -> UnsafeRawBufferPointer {
    let range = range.clamped(to: 0..<count)
    return .init(start: base + range.lowerBound, count: range.count)
  }

  /// What has been written, as an array.
  package func bytes() -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      if let target = buffer.baseAddress { memcpy(target, base, count) }
      initialized = count
    }
  }

  /// What has been written, which must be UTF-8.
  package func string() -> String {
    String(decoding: UnsafeBufferPointer(start: base, count: count), as: UTF8.self)
  }

  // MARK: Writing

  /// Makes room for more bytes.
  @inlinable
  package mutating func reserve(_ size: Int) {
    if capacity &- count < size { grow(size) }
  }

  @inline(never)
  @usableFromInline
  mutating func grow(_ size: Int) {
    let larger = max(2 * capacity, count + size, 64)
    base = Self.resize(capacity > 0 ? base : nil, to: larger)
    capacity = larger
  }

  /// Writes a byte.
  @inlinable
  @inline(__always)
  package mutating func append(_ byte: UInt8) {
    reserve(1)
    base[count] = byte
    count &+= 1
  }

  /// Writes bytes.
  package mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    reserve(bytes.count)
    memcpy(base + count, start, bytes.count)
    count &+= bytes.count
  }

  /// Writes a text.
  package mutating func append(_ text: String) {
    var text = text
    text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
  }

  /// Writes a fixed text.
  package mutating func append(literal text: StaticString) {
    append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// Writes so many bytes, which the body fills in.
  package mutating func append(
    count more: Int, _ body: (UnsafeMutablePointer<UInt8>) -> Void
  ) {
    guard more > 0 else { return }
    reserve(more)
    body(base + count)
    count &+= more
  }

  /// Writes what the body fills in, at most so many bytes; it returns how many.
  @inline(__always)
  package mutating func append(upTo most: Int, _ body: (UnsafeMutableRawPointer) -> Int) {
    reserve(most)
    count &+= body(UnsafeMutableRawPointer(base + count))
  }

  /// Forgets what has been written since the count was less.
  package mutating func truncate(to count: Int) { self.count = min(count, self.count) }

  // MARK: Numbers in text

  /// Writes a number in decimal digits, at least so many.
  package mutating func append(decimal value: UInt64, width: Int) {
    let begin = count
    append(decimal: value)
    let missing = width - (count - begin)
    guard missing > 0 else { return }
    reserve(missing)
    memmove(base + begin + missing, base + begin, count - begin)
    memset(base + begin, 0x30, missing)
    count += missing
  }

  /// Writes a number in decimal digits.
  package mutating func append(decimal value: UInt64) {
    reserve(24)
    count &+= Self.put(decimal: value, at: UnsafeMutableRawPointer(base + count))
  }

  /// Writes a number in decimal digits to where 24 bytes are free; returns how many they are.
  @inline(__always)
  package static func put(decimal value: UInt64, at place: UnsafeMutableRawPointer) -> Int {
    if value < 100_000_000 { return put(first: value, at: place) }
    let head = value / 100_000_000
    let tail = digits(of: value % 100_000_000).littleEndian
    if head < 100_000_000 {
      let size = put(first: head, at: place)
      place.storeBytes(of: tail, toByteOffset: size, as: UInt64.self)
      return size &+ 8
    }
    let size = put(first: head / 100_000_000, at: place)
    let middle = digits(of: head % 100_000_000).littleEndian
    place.storeBytes(of: middle, toByteOffset: size, as: UInt64.self)
    place.storeBytes(of: tail, toByteOffset: size &+ 8, as: UInt64.self)
    return size &+ 16
  }

  /// Writes a number below 10 to the eighth without zeros before it.
  @inline(__always)
  private static func put(first value: UInt64, at place: UnsafeMutableRawPointer) -> Int {
    let digits = digits(of: value)
    // A zero keeps its last digit.
    let zeros = (digits & 0x0F0F_0F0F_0F0F_0F0F | 1 << 56).trailingZeroBitCount &>> 3
    place.storeBytes(
      of: (digits &>> UInt64(truncatingIfNeeded: zeros &<< 3)).littleEndian, as: UInt64.self)
    return 8 &- zeros
  }

  /// The eight digits of a number below 10 to the eighth, the first one lowest. No loop, whose
  /// length would be hard to predict: halves, quarters and digits are parted all at once.
  @inline(__always)
  private static func digits(of value: UInt64) -> UInt64 {
    let upper = value / 10_000
    let halves = upper | (value &- upper &* 10_000) &<< 32
    // 10,486 / 2^20 is a hundredth, near enough below 10,000; 103 / 2^10 a tenth below 100.
    let hundreds = (halves &* 10_486) &>> 20 & 0x0000_007F_0000_007F
    let quarters = hundreds | (halves &- hundreds &* 100) &<< 16
    let tens = (quarters &* 103) &>> 10 & 0x000F_000F_000F_000F
    return (tens | (quarters &- tens &* 10) &<< 8) | 0x3030_3030_3030_3030
  }

  /// Writes a number in decimal digits.
  package mutating func append(decimal value: Int64) {
    if value < 0 { append(UInt8(ascii: "-")) }
    append(decimal: value.magnitude)
  }

  // MARK: Wire format

  /// Writes a varint.
  @inlinable
  package mutating func varint(_ value: UInt64) {
    reserve(10)
    var rest = value
    while rest >= 0x80 {
      base[count] = UInt8(truncatingIfNeeded: rest) | 0x80
      count &+= 1
      rest >>= 7
    }
    base[count] = UInt8(truncatingIfNeeded: rest)
    count &+= 1
  }

  /// Writes four bytes, little-endian.
  package mutating func fixed32(_ value: UInt32) {
    reserve(4)
    UnsafeMutableRawPointer(base + count).storeBytes(of: value.littleEndian, as: UInt32.self)
    count &+= 4
  }

  /// Writes eight bytes, little-endian.
  package mutating func fixed64(_ value: UInt64) {
    reserve(8)
    UnsafeMutableRawPointer(base + count).storeBytes(of: value.littleEndian, as: UInt64.self)
    count &+= 8
  }

  /// Writes bytes behind their length.
  package mutating func delimited(_ bytes: UnsafeRawBufferPointer) {
    varint(UInt64(bytes.count))
    append(bytes)
  }

  /// Leaves room for the length of what is written next, up to ``close(_:)``.
  package mutating func open() -> Int {
    append(0)
    return count
  }

  /// Writes the length of what was written since `mark`. Lengths above 127 take more than the
  /// byte that was left: then what was written moves up. Returns by how much.
  @discardableResult
  package mutating func close(_ mark: Int) -> Int {
    let length = count - mark
    if length < 0x80 {
      base[mark - 1] = UInt8(truncatingIfNeeded: length)
      return 0
    }
    let more = (UInt64(length).bitWidth - UInt64(length).leadingZeroBitCount - 1) / 7
    reserve(more)
    memmove(base + mark + more, base + mark, length)
    count = mark - 1
    varint(UInt64(length))
    count += length
    return more
  }
}

extension UnsafeRawBufferPointer {
  /// Whether the bytes are UTF-8.
  package var isUTF8: Bool { (try? UTF8Span(validating: bindMemory(to: UInt8.self).span)) != nil }
}
