/// The fields of a message its generated code does not know, byte for byte and in
/// the order they arrived; they are written again after the known fields.
public struct UnknownFields: Hashable, Sendable {
  /// The fields as on the wire, tags included.
  public internal(set) var bytes: [UInt8] = []

  /// No fields.
  @inlinable
  public init() {}

  /// Whether there are none.
  @inlinable
  public var isEmpty: Bool { bytes.isEmpty }

  /// Appends whole fields, tags included.
  public mutating func append(_ field: UnsafeRawBufferPointer) { bytes.append(contentsOf: field) }

  /// Appends a varint field.
  public mutating func append(number: UInt32, varint: UInt64) {
    append(varint: UInt64(number) << 3)
    append(varint: varint)
  }

  private mutating func append(varint: UInt64) {
    var rest = varint
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
  }

  /// Removes all fields.
  public mutating func removeAll() { bytes.removeAll() }
}
