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

    public mutating func next() async throws(RPCError) -> Request? {
      guard let bytes = try await call.nextRequest() else { return nil }
      return try ServerMethod.decode(bytes)
    }

    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(RPCError) -> Request? {
      guard let bytes = try await call.nextRequest() else { return nil }
      return try ServerMethod.decode(bytes)
    }
  }
}
