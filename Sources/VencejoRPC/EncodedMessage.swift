public import VencejoProtobuf

/// A message encoded once, ready to be sent on any number of streams without another copy.
public struct EncodedMessage: Sendable {
  /// gRPC's five-byte prefix and the message.
  let frame: [UInt8]

  public init(_ message: some Message) {
    var frame = message.serializedBytes(reservingPrefix: Deframer.prefixLength)
    frame.sealFrame()
    self.frame = frame
  }

  /// Wraps bytes that already are a message's encoding.
  public init(serialized bytes: [UInt8]) {
    var frame = [UInt8]()
    frame.reserveCapacity(bytes.count + Deframer.prefixLength)
    frame.append(contentsOf: repeatElement(0, count: Deframer.prefixLength))
    frame.append(contentsOf: bytes)
    frame.sealFrame()
    self.frame = frame
  }

  /// Wraps an encoding made of parts: concatenated messages merge, so an event shared by
  /// all recipients may be followed by the fields of one of them.
  public init(serialized parts: [[UInt8]]) {
    self.init(serialized: Array(parts.joined()))
  }

  /// The same, with bytes of its own. Who hands a message to many streams makes one for each loop:
  /// threads that count references to the same bytes at once hold each other up.
  package func copied() -> EncodedMessage { EncodedMessage(copying: frame) }

  private init(copying other: [UInt8]) {
    frame = Array(unsafeUninitializedCapacity: other.count) { bytes, count in
      count = bytes.initialize(fromContentsOf: other)
    }
  }

  /// Of the message, without the prefix.
  public var count: Int { frame.count - Deframer.prefixLength }
}
