public import VencejoProtobuf

/// The messages a client streams, in order, for one reader. What is not read stays with
/// the client: the window opens as the reader goes on.
public struct RequestStream<Request: Message>: AsyncSequence, Sendable {
  public typealias Element = Request
  public typealias Failure = RPCError

  let call: ServerCall

  public func makeAsyncIterator() -> Iterator { Iterator(call: call) }

  public struct Iterator: AsyncIteratorProtocol {
    let call: ServerCall
    /// Whether the message returned last came compressed.
    public private(set) var messageWasCompressed = false

    init(call: ServerCall) { self.call = call }

    public mutating func next() async throws(RPCError) -> Request? {
      try take(after: await call.untilMessage())
    }

    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(RPCError) -> Request? {
      try take(after: await call.untilMessage())
    }

    /// Apart from the functions that wait: see `CallCore.untilMessage`.
    @inline(never)
    private mutating func take(after wake: CallCore.Wake) throws(RPCError) -> Request? {
      guard let message = try call.takeMessage(after: wake) else { return nil }
      messageWasCompressed = message.wasCompressed
      return try ServerMethod.decode(call.passed(message))
    }
  }
}
