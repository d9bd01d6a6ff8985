public import VencejoHTTP2
public import VencejoProtobuf

/// Sends a handler's messages.
public struct ResponseWriter<Response: Message>: Sendable {
  let call: ServerCall

  /// Sends a message, and waits while the client is behind.
  ///
  /// Throws `.cancelled` when the call is over or the task is cancelled. With `compressed`
  /// false the message goes as it is, whatever the call's compression.
  public func send(_ message: Response, compressed: Bool = true) async throws(RPCError) {
    // Before it is encoded: a message that must wait is not held twice.
    if call.isCongested { await call.waitForRoom() }
    try await call.respond(EncodedMessage(message).frame, compressed: compressed)
  }

  /// Sends a message that is encoded already.
  public func send(_ message: EncodedMessage, compressed: Bool = true) async throws(RPCError) {
    if call.isCongested { await call.waitForRoom() }
    try await call.respond(message.frame, compressed: compressed)
  }

  /// The loop `tryWrite` must be called on.
  public var loop: EventLoop { call.loop }

  /// Sends without waiting. False, and nothing is sent, when the client is behind or the
  /// call is over. On the connection's loop only.
  public func tryWrite(_ message: EncodedMessage, compressed: Bool = true) -> Bool {
    call.tryRespond(message.frame, compressed: compressed)
  }
}
