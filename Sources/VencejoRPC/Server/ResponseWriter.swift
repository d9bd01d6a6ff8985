public import VencejoHTTP2
public import VencejoProtobuf

/// Sends a handler's messages.
public struct ResponseWriter<Response: Message>: Sendable {
  let call: ServerCall

  /// Sends a message, and waits while the client is behind.
  ///
  /// Throws `.cancelled` when the call is over or the task is cancelled.
  public func send(_ message: Response) async throws(RPCError) {
    try await send(EncodedMessage(message))
  }

  /// Sends a message that is encoded already.
  public func send(_ message: EncodedMessage) async throws(RPCError) {
    try await call.respond(message.frame)
  }

  /// The loop `tryWrite` must be called on.
  public var loop: EventLoop { call.loop }

  /// Sends without waiting. False, and nothing is sent, when the client is behind or the
  /// call is over. On the connection's loop only.
  public func tryWrite(_ message: EncodedMessage) -> Bool {
    call.tryRespond(message.frame)
  }
}
