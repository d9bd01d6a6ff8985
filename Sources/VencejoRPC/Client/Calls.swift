public import VencejoProtobuf

/// Cancels a call that nobody holds any more, and keeps its channel alive meanwhile.
final class CallHandle: Sendable {
  private let result: Result<ClientCall, RPCError>
  private let channel: Channel

  init(_ result: Result<ClientCall, RPCError>, channel: Channel) {
    self.result = result
    self.channel = channel
  }

  deinit {
    if case .success(let call) = result { call.cancel() }
  }

  func call() throws(RPCError) -> ClientCall { try result.get() }

  func cancel() {
    if case .success(let call) = result { call.cancel() }
  }

  func next() async throws(RPCError) -> CallCore.Received? {
    let call = try call()
    do {
      return try await call.nextResponse()
    } catch {
      // The reader's task was cancelled: the server should know at once.
      if error.code == .cancelled, error.origin == .local { call.cancel() }
      throw error
    }
  }

  func send(_ message: EncodedMessage, compressed: Bool) async throws(RPCError) {
    try await call().request(message.frame, compressed: compressed)
  }

  func finish() {
    if case .success(let call) = result { call.noteFinishedSending() }
  }
}

/// A call that answers with a stream: a sequence of messages for one reader.
///
/// Leaving the loop and letting go of the call, or cancelling the task, resets the stream.
public struct ServerStreamingCall<Response: Message>: AsyncSequence, Sendable {
  public typealias Element = Response
  public typealias Failure = RPCError
  public typealias AsyncIterator = ResponseIterator<Response>

  private let handle: CallHandle

  init(_ handle: CallHandle) { self.handle = handle }

  public func makeAsyncIterator() -> ResponseIterator<Response> { .init(handle: handle) }

  /// What came before the first message; throws the call's error when nothing did.
  public var initialMetadata: Metadata {
    get async throws(RPCError) { try await handle.call().initialMetadata() }
  }

  /// What came after the last message; throws the call's error.
  public var trailers: Metadata {
    get async throws(RPCError) { try await handle.call().trailers() }
  }

  public func cancel() { handle.cancel() }
}

/// A call that sends a stream and is answered with one message.
public struct ClientStreamingCall<Request: Message, Response: Message>: Sendable {
  private let handle: CallHandle

  init(_ handle: CallHandle) { self.handle = handle }

  /// Sends a message, and waits while the server is behind. Throws `.cancelled` once the
  /// call is over, also when the server answered early: `response` tells how. With
  /// `compressed` false the message goes as it is, whatever the call's compression.
  public func send(_ message: Request, compressed: Bool = true) async throws(RPCError) {
    try await handle.send(EncodedMessage(message), compressed: compressed)
  }

  /// Sends a message that is encoded already.
  public func send(_ message: EncodedMessage, compressed: Bool = true) async throws(RPCError) {
    try await handle.send(message, compressed: compressed)
  }

  /// No more messages follow.
  public func finish() { handle.finish() }

  /// The answer; waits for it.
  public var response: Response {
    get async throws(RPCError) { try Channel.decode(await handle.call().singleResponse()) }
  }

  public var initialMetadata: Metadata {
    get async throws(RPCError) { try await handle.call().initialMetadata() }
  }

  public var trailers: Metadata {
    get async throws(RPCError) { try await handle.call().trailers() }
  }

  public func cancel() { handle.cancel() }
}

/// A call of two streams that are independent of each other.
///
/// Send in one task and receive in another: a task that first sends everything waits for
/// ever once both windows are full and nobody reads.
public struct BidirectionalCall<Request: Message, Response: Message>: AsyncSequence, Sendable {
  public typealias Element = Response
  public typealias Failure = RPCError
  public typealias AsyncIterator = ResponseIterator<Response>

  private let handle: CallHandle

  init(_ handle: CallHandle) { self.handle = handle }

  public func makeAsyncIterator() -> ResponseIterator<Response> { .init(handle: handle) }

  /// Sends a message, and waits while the server is behind. With `compressed` false it goes as
  /// it is, whatever the call's compression.
  public func send(_ message: Request, compressed: Bool = true) async throws(RPCError) {
    try await handle.send(EncodedMessage(message), compressed: compressed)
  }

  /// Sends a message that is encoded already.
  public func send(_ message: EncodedMessage, compressed: Bool = true) async throws(RPCError) {
    try await handle.send(message, compressed: compressed)
  }

  /// No more messages follow.
  public func finish() { handle.finish() }

  public var initialMetadata: Metadata {
    get async throws(RPCError) { try await handle.call().initialMetadata() }
  }

  public var trailers: Metadata {
    get async throws(RPCError) { try await handle.call().trailers() }
  }

  public func cancel() { handle.cancel() }
}

/// The messages of a response, for one reader.
public struct ResponseIterator<Response: Message>: AsyncIteratorProtocol {
  let handle: CallHandle
  /// Whether the message returned last came compressed.
  public private(set) var messageWasCompressed = false

  init(handle: CallHandle) { self.handle = handle }

  public mutating func next() async throws(RPCError) -> Response? {
    guard let message = try await handle.next() else { return nil }
    messageWasCompressed = message.wasCompressed
    return try Channel.decode(message.bytes)
  }

  public mutating func next(
    isolation actor: isolated (any Actor)?
  ) async throws(RPCError) -> Response? {
    guard let message = try await handle.next() else { return nil }
    messageWasCompressed = message.wasCompressed
    return try Channel.decode(message.bytes)
  }
}

/// A call on the bytes of messages, of whatever kind the method is.
public struct BytesCall: Sendable {
  private let handle: CallHandle

  init(_ handle: CallHandle) { self.handle = handle }

  /// Sends a message, and waits while the server is behind. With `compressed` false it goes as
  /// it is, whatever the call's compression.
  public func send(_ message: EncodedMessage, compressed: Bool = true) async throws(RPCError) {
    try await handle.send(message, compressed: compressed)
  }

  /// No more messages follow.
  public func finish() { handle.finish() }

  /// The bytes of the next message, nil after the last.
  public func next() async throws(RPCError) -> [UInt8]? { try await handle.next()?.bytes }

  public var initialMetadata: Metadata {
    get async throws(RPCError) { try await handle.call().initialMetadata() }
  }

  public var trailers: Metadata {
    get async throws(RPCError) { try await handle.call().trailers() }
  }

  public func cancel() { handle.cancel() }
}
