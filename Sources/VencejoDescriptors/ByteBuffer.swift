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

  /// Nothing, with room for some.
  package init(capacity: Int = 256) {
    self.capacity = max(capacity, 64)
    base = .allocate(capacity: self.capacity)
  }

  deinit { base.deallocate() }

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
    capacity = max(2 * capacity, count + size)
    let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
    memcpy(memory, base, count)
    base.deallocate()
    base = memory
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
  package mutating func append(_ text: StaticString) {
    append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// Forgets what has been written since the count was less.
  package mutating func truncate(to count: Int) { self.count = min(count, self.count) }

  // MARK: Numbers in text

  /// Writes a number in decimal digits, at least so many.
  package mutating func append(decimal value: UInt64, width: Int = 1) {
    reserve(20)
    var rest = value
    var digits = 1
    while rest >= 10 {
      rest /= 10
      digits &+= 1
    }
    digits = max(digits, min(width, 20))
    rest = value
    var index = count &+ digits
    count = index
    for _ in 0..<digits {
      index &-= 1
      base[index] = UInt8(truncatingIfNeeded: 0x30 + rest % 10)
      rest /= 10
    }
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
