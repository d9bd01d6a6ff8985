public import VencejoProtobuf

/// The one error of a call: what a handler throws to answer with a status, and what
/// a client's call throws.
public struct RPCError: Error, Sendable {
  /// Where the error arose.
  public enum Origin: Sendable, Hashable {
    /// In this process: a deadline, a cancelled task, a limit, bytes that could not be
    /// decoded.
    case local
    /// The peer answered with this status.
    case remote
    /// Between the two: no connection, a broken one, a proxy's HTTP status.
    case transport
  }

  public var code: StatusCode
  /// For developers, in English; may be empty.
  public var message: String
  /// The details of google.rpc.Status, in its order.
  public var details: [Google.AnyMessage]
  /// On a server: trailing metadata to send. On a client: what came with the status.
  public var metadata: Metadata
  public var origin: Origin

  public init(
    _ code: StatusCode, _ message: String = "", details: [Google.AnyMessage] = [],
    metadata: Metadata = [:], origin: Origin = .local
  ) {
    self.code = code
    self.message = message
    self.details = details
    self.metadata = metadata
    self.origin = origin
  }

  /// The answer to a method that nobody serves.
  public static func unimplemented(_ path: String) -> RPCError {
    RPCError(.unimplemented, "unknown method \(path)")
  }

  /// The first detail of type `M`, or nil when there is none or it does not decode.
  public func detail<M: Message>(_ type: M.Type) -> M? {
    for any in details where any.typeUrl.hasSuffix("/" + M.messageName) {
      return try? M(serializedBytes: any.value)
    }
    return nil
  }

  /// Appends a detail; its type URL is `type.googleapis.com/` and the message's name.
  public mutating func add<M: Message>(detail: M) {
    var any = Google.AnyMessage()
    any.typeUrl = "type.googleapis.com/" + M.messageName
    any.value = detail.serializedBytes()
    details.append(any)
  }
}

extension RPCError: CustomStringConvertible {
  public var description: String { message.isEmpty ? "\(code)" : "\(code): \(message)" }
}

extension RPCError {
  /// What a handler's error means to the caller. An error of another type tells its type
  /// only: its text may hold what a stranger should not read.
  init(handlerError error: any Error) {
    switch error {
    case let error as RPCError: self = error
    case is CancellationError: self = RPCError(.cancelled, "the handler was cancelled")
    default: self = RPCError(.unknown, "the handler failed with \(type(of: error))")
    }
  }
}
