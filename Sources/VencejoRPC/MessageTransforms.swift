import Synchronization
import VencejoProtobuf

/// What interceptors do to the messages and the response's metadata of one call.
final class MessageTransforms: Sendable {
  typealias Transform = @Sendable ([UInt8]) throws(RPCError) -> [UInt8]

  typealias MetadataTransform = @Sendable (Metadata) -> Metadata

  private struct Lists {
    var incoming: [Transform] = []
    var outgoing: [Transform] = []
    var initial: [MetadataTransform] = []
    var trailing: [MetadataTransform] = []
  }

  private let lists = Mutex(Lists())

  /// Which transform of metadata comes first: on a server what the outermost interceptor sees
  /// is what travels, on a client it is what the caller sees.
  func addInitial(_ transform: @escaping MetadataTransform) {
    lists.withLock { $0.initial.insert(transform, at: 0) }
  }

  func addTrailing(_ transform: @escaping MetadataTransform) {
    lists.withLock { $0.trailing.insert(transform, at: 0) }
  }

  func initial(_ metadata: Metadata) -> Metadata {
    lists.withLock { $0.initial }.reduce(metadata) { $1($0) }
  }

  func trailing(_ metadata: Metadata) -> Metadata {
    lists.withLock { $0.trailing }.reduce(metadata) { $1($0) }
  }

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

extension MessageTransforms {
  /// A transform of bytes that decodes, changes and encodes.
  static func onValues<M: Message>(
    _ change: @escaping @Sendable (inout M) throws -> Void
  ) -> Transform {
    let transform: Transform = { bytes throws(RPCError) in
      do {
        var message = try M(serializedBytes: bytes)
        try change(&message)
        return message.serializedBytes()
      } catch {
        if let error = error as? RPCError { throw error }
        throw RPCError(
          .internalError, "an interceptor could not change a \(M.messageName): \(error)")
      }
    }
    return transform
  }
}
