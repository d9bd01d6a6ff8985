/// A message that is its own bytes, whatever its type: for what passes messages on without
/// looking into them, such as a proxy.
///
/// Decoding takes every input, well formed or not; encoding gives the same bytes back. It has
/// no fields, name or file of its own.
public struct RawMessage: Message {
  /// The encoding of the message it stands for.
  public var bytes: [UInt8]

  public var unknownFields: UnknownFields {
    get { UnknownFields() }
    set {}
  }

  public static var messageName: String { "" }
  public static let fileDescriptor = FileDescriptor(path: "", base64: "", dependencies: { [] })

  public init() { bytes = [] }

  /// Stands for the message with this encoding.
  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  public mutating func decode(from reader: inout WireReader) {
    bytes += reader.takeRest()
  }

  public func encode(to writer: inout WireWriter) { bytes.withUnsafeBytes { writer.raw($0) } }

  public static func == (left: Self, right: Self) -> Bool { left.bytes == right.bytes }

  public func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}

extension WireReader {
  /// Everything up to the end of the current message, as it is.
  fileprivate mutating func takeRest() -> [UInt8] {
    defer { position = end }
    return [UInt8](UnsafeRawBufferPointer(start: position, count: end - position))
  }
}
