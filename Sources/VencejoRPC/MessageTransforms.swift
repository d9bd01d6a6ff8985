import Synchronization

/// What interceptors do to the messages of one call.
final class MessageTransforms: Sendable {
  typealias Transform = @Sendable ([UInt8]) throws(RPCError) -> [UInt8]

  private let lists = Mutex<(incoming: [Transform], outgoing: [Transform])>(([], []))

  func addIncoming(_ transform: @escaping Transform) {
    lists.withLock { $0.incoming.append(transform) }
  }

  /// The last one added is the first one applied.
  func addOutgoing(_ transform: @escaping Transform) {
    lists.withLock { $0.outgoing.insert(transform, at: 0) }
  }

  func incoming(_ bytes: [UInt8]) throws(RPCError) -> [UInt8] {
    var bytes = bytes
    for transform in lists.withLock({ $0.incoming }) { bytes = try transform(bytes) }
    return bytes
  }

  /// A sealed frame in, a sealed frame out.
  func outgoing(_ frame: [UInt8]) throws(RPCError) -> [UInt8] {
    let list = lists.withLock { $0.outgoing }
    guard !list.isEmpty else { return frame }
    var bytes = Array(frame.dropFirst(Deframer.prefixLength))
    for transform in list { bytes = try transform(bytes) }
    return EncodedMessage(serialized: bytes).frame
  }
}
