#if canImport(Glibc)
  import Glibc
#endif

/// Writes protobuf's wire format backwards: the last field first, each value before its
/// length and tag. A sub-message's length is then known when it is written, without a pass
/// over the message to compute sizes.
public struct WireWriter: ~Copyable {
  // Invariant: base <= position <= end; the bytes from position to end are written.
  private var base: UnsafeMutableRawPointer
  private var position: UnsafeMutableRawPointer
  private var end: UnsafeMutableRawPointer
  private var ownsMemory = false

  /// Whether map entries are sorted by their keys, so that equal messages have equal bytes.
  public let deterministic: Bool

  /// Writes into scratch memory as long as it suffices, which must outlive the writer.
  init(scratch: UnsafeMutableRawBufferPointer, deterministic: Bool) {
    if let start = scratch.baseAddress {
      base = start
      end = start + scratch.count
    } else {
      base = .allocate(byteCount: 64, alignment: 1)
      end = base + 64
      ownsMemory = true
    }
    position = end
    self.deterministic = deterministic
  }

  /// A writer with memory of its own.
  public init(deterministic: Bool = false) {
    self.init(scratch: .init(start: nil, count: 0), deterministic: deterministic)
  }

  deinit { if ownsMemory { base.deallocate() } }

  /// How many bytes have been written. Also a mark for ``delimit(_:since:)``.
  public var count: Int { end - position }

  /// `prefix` zero bytes, then what has been written.
  public func bytes(reservingPrefix prefix: Int = 0) -> [UInt8] {
    let count = self.count
    return [UInt8](unsafeUninitializedCapacity: prefix + count) { buffer, initialized in
      guard let target = buffer.baseAddress else { return }
      memset(target, 0, prefix)
      memcpy(target + prefix, position, count)
      initialized = prefix + count
    }
  }

  // MARK: Raw writing

  /// Makes room for `size` bytes below the position.
  @inline(__always)
  private mutating func reserve(_ size: Int) {
    if position - base < size { grow(size) }
  }

  @inline(never)
  private mutating func grow(_ size: Int) {
    let count = self.count
    let capacity = max(2 * (end - base), count + size + 1024)
    let memory = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16)
    let start = memory + (capacity - count)
    memcpy(start, position, count)
    if ownsMemory { base.deallocate() }
    base = memory
    position = start
    end = memory + capacity
    ownsMemory = true
  }

  /// Writes a varint where ten bytes have been reserved.
  @inline(__always)
  private mutating func put(_ value: UInt64) {
    if value < 0x80 {
      position -= 1
      position.storeBytes(of: UInt8(truncatingIfNeeded: value), as: UInt8.self)
    } else {
      putLong(value)
    }
  }

  private mutating func putLong(_ value: UInt64) {
    // ceil(bits / 7) without a division by 7.
    let size = ((63 &- value.leadingZeroBitCount) &* 9 &+ 73) >> 6
    position -= size
    var rest = value
    var index = 0
    while rest >= 0x80 {
      position.storeBytes(
        of: UInt8(truncatingIfNeeded: rest) | 0x80, toByteOffset: index, as: UInt8.self)
      rest >>= 7
      index &+= 1
    }
    position.storeBytes(
      of: UInt8(truncatingIfNeeded: rest), toByteOffset: index, as: UInt8.self)
  }

  /// Writes a varint.
  public mutating func varint(_ value: UInt64) {
    reserve(10)
    put(value)
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
    reserve(bytes.count + 10)
    if let start = bytes.baseAddress {
      position -= bytes.count
      memcpy(position, start, bytes.count)
    }
    put(UInt64(bytes.count))
  }

  /// Writes the tag, and before it the length of what was written since `mark`.
  public mutating func delimit(_ tag: UInt32, since mark: Int) {
    reserve(20)
    put(UInt64(count - mark))
    put(UInt64(tag))
  }

  /// Writes the length of what was written since `mark`.
  @usableFromInline
  mutating func delimit(since mark: Int) { varint(UInt64(count - mark)) }

  /// Writes a varint field.
  public mutating func varint(_ tag: UInt32, _ value: UInt64) {
    reserve(20)
    put(value)
    put(UInt64(tag))
  }

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
    fixed32(value)
    varint(UInt64(tag))
  }
  /// Writes a `fixed64`.
  public mutating func fixedUInt64(_ tag: UInt32, _ value: UInt64) {
    fixed64(value)
    varint(UInt64(tag))
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
    var value = value
    value.withUTF8 { lengthPrefixed(UnsafeRawBufferPointer($0)) }
  }
  /// Writes a `string`.
  public mutating func string(_ tag: UInt32, _ value: String) {
    string(value)
    varint(UInt64(tag))
  }
  /// Writes bytes and their length, without a tag.
  public mutating func bytes(_ value: [UInt8]) {
    value.withUnsafeBytes { lengthPrefixed($0) }
  }
  /// Writes a `bytes`.
  public mutating func bytes(_ tag: UInt32, _ value: [UInt8]) {
    bytes(value)
    varint(UInt64(tag))
  }
  /// Writes an enum's number.
  @inlinable
  public mutating func enumeration<E: Enumeration>(_ tag: UInt32, _ value: E) {
    int32(tag, value.rawValue)
  }
  /// Writes the fields nobody knows.
  public mutating func unknown(_ fields: UnknownFields) {
    if !fields.isEmpty { fields.bytes.withUnsafeBytes { raw($0) } }
  }
}
