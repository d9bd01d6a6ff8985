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
    reserve(20)
    var index = count &+ Self.digits(of: value)
    count = index
    var rest = value
    // Divisions of 32 bits are faster: most of them are.
    while rest > UInt64(UInt32.max) {
      let eight = UInt32(truncatingIfNeeded: rest % 100_000_000)
      rest /= 100_000_000
      index &-= 8
      put(pair: eight / 1_000_000, at: index)
      put(pair: eight / 10_000 % 100, at: index &+ 2)
      put(pair: eight / 100 % 100, at: index &+ 4)
      put(pair: eight % 100, at: index &+ 6)
    }
    var small = UInt32(truncatingIfNeeded: rest)
    while small >= 100 {
      index &-= 2
      put(pair: small % 100, at: index)
      small /= 100
    }
    if small >= 10 {
      put(pair: small, at: index &- 2)
    } else {
      base[index &- 1] = UInt8(truncatingIfNeeded: 0x30 &+ small)
    }
  }

  @inline(__always)
  private func put(pair: UInt32, at index: Int) {
    // 103 / 1024 is a tenth, near enough below 100.
    let tens = (pair &* 103) >> 10
    base[index] = UInt8(truncatingIfNeeded: 0x30 &+ tens)
    base[index &+ 1] = UInt8(truncatingIfNeeded: 0x30 &+ pair &- tens &* 10)
  }

  /// How many decimal digits a number has.
  @inline(__always)
  private static func digits(of value: UInt64) -> Int {
    if value < 10 { return 1 }
    if value < 100 { return 2 }
    if value < 1000 { return 3 }
    if value < 10_000 { return 4 }
    if value < 100_000_000 {
      return value < 1_000_000 ? (value < 100_000 ? 5 : 6) : (value < 10_000_000 ? 7 : 8)
    }
    // About a third of a digit for each bit; then one more or not.
    let least = ((64 &- value.leadingZeroBitCount) &* 1233) >> 12
    return least &+ (value >= power(of: least) ? 1 : 0)
  }

  @inline(__always)
  private static func power(of exponent: Int) -> UInt64 {
    powers.withUnsafeBufferPointer { exponent < $0.count ? $0[exponent] : .max }
  }

  private static let powers: [UInt64] = [
    1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000,
    10_000_000_000, 100_000_000_000, 1_000_000_000_000, 10_000_000_000_000, 100_000_000_000_000,
    1_000_000_000_000_000, 10_000_000_000_000_000, 100_000_000_000_000_000,
    1_000_000_000_000_000_000, 10_000_000_000_000_000_000,
  ]

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
