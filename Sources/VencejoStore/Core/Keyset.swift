/// Values in a row, for tokens and for the keys of events: integers as zigzag varints, bytes
/// with their length before them.
public struct KeysetWriter: Sendable {
  public private(set) var bytes: [UInt8] = []

  public init() {}

  public mutating func int(_ value: Int64) {
    var rest = UInt64(bitPattern: (value << 1) ^ (value >> 63))
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
  }

  public mutating func raw(_ value: [UInt8]) {
    int(Int64(value.count))
    bytes += value
  }

  /// What another writer has written.
  mutating func append(_ written: [UInt8]) { bytes += written }

  mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

  /// As ``text(_:)``, of UTF-8.
  mutating func text(_ value: UnsafeBufferPointer<UInt8>) {
    int(Int64(value.count))
    bytes.append(contentsOf: value)
  }

  public mutating func text(_ value: String) {
    var value = value
    value.withUTF8 {
      int(Int64($0.count))
      bytes.append(contentsOf: $0)
    }
  }
}

/// Reads what ``KeysetWriter`` wrote; nil where the bytes are not that.
public struct KeysetReader: Sendable {
  private let bytes: [UInt8]
  private var at = 0

  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  public var isAtEnd: Bool { at == bytes.count }

  public mutating func int() -> Int64? {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while at < bytes.count, shift < 70 {
      let byte = bytes[at]
      at += 1
      value |= UInt64(byte & 0x7f) << shift
      if byte < 0x80 { return Int64(bitPattern: (value >> 1) ^ (0 &- (value & 1))) }
      shift += 7
    }
    return nil
  }

  public mutating func raw() -> [UInt8]? {
    guard let length = int(), length >= 0, length <= Int64(bytes.count - at) else { return nil }
    defer { at += Int(length) }
    return Array(bytes[at..<at + Int(length)])
  }

  public mutating func text() -> String? { raw().map { String(decoding: $0, as: UTF8.self) } }
}
