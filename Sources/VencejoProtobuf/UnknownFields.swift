/// The fields of a message its generated code does not know, byte for byte and in
/// the order they arrived; they are written again after the known fields.
public struct UnknownFields: Hashable, Sendable {
  /// The fields as on the wire, tags included.
  public internal(set) var bytes: [UInt8] = []

  /// No fields.
  @inlinable
  public init() {}

  /// Whether there are none.
  public var isEmpty: Bool { bytes.isEmpty }

  /// Appends whole fields, tags included.
  public mutating func append(_ field: UnsafeRawBufferPointer) { bytes.append(contentsOf: field) }

  /// Removes all fields.
  public mutating func removeAll() { bytes.removeAll() }
}
