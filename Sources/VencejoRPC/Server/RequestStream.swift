public import VencejoProtobuf

/// The messages a client streams, in order, for one reader. What is not read stays with
/// the client: the window opens as the reader goes on.
public struct RequestStream<Request: Message>: AsyncSequence, Sendable {
  public typealias Element = Request
  public typealias Failure = RPCError

  let call: ServerCall

  public func makeAsyncIterator() -> Iterator { Iterator(requests: self) }

  public struct Iterator: AsyncIteratorProtocol {
    @usableFromInline let requests: RequestStream
    /// Whether the message returned last came compressed.
    public private(set) var messageWasCompressed = false

    init(requests: RequestStream) { self.requests = requests }

    public mutating func next() async throws(RPCError) -> Request? {
      try take(after: await requests.wait())
    }

    // Into the handler that waits: a frame of its own would be a part of each idle stream.
    @inlinable
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(RPCError) -> Request? {
      try take(after: await requests.wait())
    }

    /// Apart from the functions that wait: see `CallCore.untilMessage`.
    @usableFromInline
    @inline(never)
    mutating func take(after wake: ReaderWake) throws(RPCError) -> Request? {
      let call = requests.call
      guard let message = try call.takeMessage(after: wake) else { return nil }
      messageWasCompressed = message.wasCompressed
      return try ServerMethod.decode(call.passed(message))
    }
  }

  /// As `CallCore.untilMessage`. Nobody but the call cancels the handler's own task, and its end
  /// wakes the reader: to look out for a cancellation would take a fifth of what an idle stream
  /// does.
  @usableFromInline
  func wait() async -> ReaderWake {
    if call.hasMessage { return .ready }
    guard call.isOwnTask else { return await call.untilMessage() }
    return await withUnsafeContinuation { call.enter($0) }
  }
}
