import Synchronization
import VencejoCompression
import VencejoHTTP2

/// One call on the server: the stream's events in, a handler's task, a status out.
///
/// Loop-confined but for what `CallCore` guards, the mutex here, and the request's head,
/// which does not change once the handler runs.
final class ServerCall: CallCore, StreamHandler, @unchecked Sendable {
  private enum Phase {
    /// Fields and, for one request message, its bytes are coming.
    case receiving
    /// The handler runs.
    case running
    /// The status is sent, or the stream is gone.
    case done
  }

  private struct Extra {
    var initial = Metadata()
    var trailing = Metadata()
    var compression: Compression?
  }

  let connection: ServerConnection
  let peer: SocketAddress

  private var head = RequestHead()
  private(set) var deadline: ContinuousClock.Instant?

  private var phase = Phase.receiving
  private var headComplete = false
  private var headersSent = false
  private var asksForPage = false
  private var request: [UInt8]?
  /// Set before the handler runs.
  private(set) var requestWasCompressed = false
  /// Of the response, until its stream is closed.
  private var pendingBytes = 0
  private var timer: LoopTimer?
  private var task: Task<Void, Never>?
  private let extra = Mutex<Extra?>(nil)
  /// Set before interceptors and handler run, nil where there are no interceptors.
  private var transforms: MessageTransforms?

  init(connection: ServerConnection) {
    self.connection = connection
    peer = connection.http2.peerAddress
    super.init(loop: connection.http2.loop, receiveLimit: connection.host.receiveLimit)
  }

  private var entry: MethodTable.Entry? { head.entry }
  var path: String { head.path }
  var requestTypeName: String { entry?.method.requestTypeName ?? "" }
  var metadata: Metadata { head.metadata }
  var userAgent: String? { head.userAgent }
  var peerCredentials: PeerCredentials? { connection.http2.peerCredentials }
  var peerIdentity: PeerIdentity? { connection.http2.peerIdentity }

  // MARK: The request's head

  func stream(
    _ stream: HTTP2Stream, header name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
  ) {
    // Trailers of a request mean nothing to gRPC.
    if !headComplete { head.take(name, value, connection) }
  }

  func stream(_ stream: HTTP2Stream, headersEndWith endStream: Bool) {
    guard !headComplete else { return }
    headComplete = true
    if stream.headerListOverflowed {
      return finish(RPCError(.resourceExhausted, "the metadata is larger than the server takes"))
    }
    if head.asksForPage, connection.host.page != nil {
      asksForPage = true
      return
    }
    guard head.isPost else { return refuse(Self.methodNotAllowed) }
    guard head.hasGRPCContentType else { return refuse(Self.unsupportedMediaType) }
    if connection.host.isObserved {
      let tally = CallTally(
        connection.host.callObservers, method: path, isRegistered: head.isKnown, target: "",
        counts: connection.host.channelz?.calls)
      tally.opened(on: connection.http2)
      self.tally = tally
    }
    if let fault = head.fault { return finish(fault) }
    if let timeout = head.timeout {
      // Some clients send what is left although nothing is.
      guard timeout > 0 else {
        return finish(RPCError(.deadlineExceeded, "the deadline had passed when the call came"))
      }
      startDeadline(timeout)
    }
    if let encoding = head.encoding { deframer.compression = Compression(rawValue: encoding) }
    if let compression = connection.host.compression { setResponseCompression(compression) }
    guard let entry else { return finish(.unimplemented(path)) }
    if !entry.takesOneRequest, phase == .receiving { run(entry) }
  }

  private func startDeadline(_ nanoseconds: Int64) {
    guard nanoseconds < .max else { return }
    deadline = .now + .nanoseconds(nanoseconds)
    timer = loop.schedule(after: .nanoseconds(nanoseconds)) { [weak self] in
      self?.finish(RPCError(.deadlineExceeded, "the deadline passed before the handler answered"))
    }
  }

  // MARK: The request's messages

  func stream(_ stream: HTTP2Stream, data: UnsafeRawBufferPointer) {
    guard phase != .done, !asksForPage, let entry else {
      // Answered already, or about to be: what still comes is let through and dropped.
      return stream.consume(data.count)
    }
    if let tally { tally.received(data.count) }
    var rest = data
    do {
      while let message = try deframer.next(&rest) {
        if let tally { tally.receivedMessage() }
        guard entry.takesOneRequest else {
          deliver(message)
          continue
        }
        guard request == nil else {
          return finish(RPCError(.unimplemented, "more than one request message"))
        }
        request = message
        requestWasCompressed = deframer.isCompressed
      }
    } catch {
      return finish(
        error.status(limit: deframer.limit, encoding: head.encoding, inResponse: false))
    }
    if entry.takesOneRequest {
      stream.consume(data.count)
    } else {
      received(data.count)
    }
  }

  func streamDidEnd(_ stream: HTTP2Stream) {
    guard phase != .done else { return }
    if asksForPage, let page = connection.host.page { return answer(with: page) }
    guard let entry else { return }
    if deframer.isInside {
      return finish(RPCError(.internalError, "the request ends inside a message"))
    }
    if entry.takesOneRequest {
      guard request != nil else {
        return finish(RPCError(.unimplemented, "no request message"))
      }
      run(entry)
    } else {
      endMessages(nil, dropping: false)
    }
  }

  func streamDidDrain(_ stream: HTTP2Stream) { drained() }

  func stream(_ stream: HTTP2Stream, closedWith code: UInt32) {
    self.stream = nil
    connection.endResponse(pendingBytes)
    pendingBytes = 0
    end()
  }

  // MARK: The handler

  private func run(_ entry: MethodTable.Entry) {
    guard connection.beginHandler() else {
      return refuse(
        RPCError(.resourceExhausted, "too many handlers of this connection are still running"))
    }
    if let error = beginLimited(entry) {
      connection.endHandler()
      return refuse(error)
    }
    phase = .running
    if let tally { tally.handled() }
    if !entry.isUnary { openBuffers() }
    let bytes = request ?? []
    request = nil
    let isPlain = deadline == nil && connection.host.interceptors.isEmpty
    if entry.execution == .loop {
      let task = Task.immediate(executorPreference: loop) {
        // Not behind another asynchronous function: each costs two looks for an executor.
        guard isPlain else {
          return self.handlerEnded(await self.invoke(entry.method, bytes))
        }
        do {
          guard case .unary(let body) = entry.method.body else {
            return self.handlerEnded(.success(try await self.handle(entry.method, bytes)))
          }
          self.handlerEnded(.success(try await body(bytes, ServerContext(call: self))))
        } catch {
          self.handlerEnded(.failure(RPCError(handlerError: error)))
        }
      }
      if phase == .running { self.task = task }
    } else {
      task = Task {
        // Here too: a task takes a KiB more with each few functions that wait.
        let outcome: Result<[UInt8]?, RPCError>
        do {
          outcome =
            isPlain
            ? .success(try await self.handle(entry.method, bytes))
            : await self.invoke(entry.method, bytes)
        } catch {
          outcome = .failure(RPCError(handlerError: error))
        }
        loop.execute { self.handlerEnded(outcome) }
      }
    }
  }

  /// For calls beyond a limit: with a status, or unseen, so that the client tries elsewhere.
  private func refuse(_ error: RPCError) {
    guard connection.host.refusesBeyondLimits, let stream else { return finish(error) }
    if let tally { tally.end(error.code) }
    stream.reset(HTTP2Code.refusedStream)
    end()
  }

  /// Runs interceptors and handler. A sealed frame to send, nothing, or the error to answer
  /// with.
  private func invoke(
    _ method: ServerMethod, _ bytes: [UInt8]
  ) async -> Result<[UInt8]?, RPCError> {
    do {
      guard let deadline else { return .success(try await intercepted(method, bytes)) }
      return .success(
        try await CallScope.$deadline.withValue(deadline) {
          try await self.intercepted(method, bytes)
        })
    } catch {
      return .failure(RPCError(handlerError: error))
    }
  }

  private func intercepted(_ method: ServerMethod, _ bytes: [UInt8]) async throws -> [UInt8]? {
    let interceptors = connection.host.interceptors
    if interceptors.isEmpty { return try await handle(method, bytes) }
    let transforms = MessageTransforms()
    self.transforms = transforms
    let answer = Answer()
    let chain = ServerChain(self, interceptors, transforms) {
      let request = method.takesOneRequest ? try transforms.incoming(bytes) : bytes
      answer.frame = try await self.handle(method, request)
    }
    try await chain.proceed(from: 0)
    return try answer.frame.map { frame throws(RPCError) in try transforms.outgoing(frame) }
  }

  /// The handler's frame on its way out of the chain.
  ///
  /// `@unchecked Sendable`: written in the chain and read after it, by one task.
  private final class Answer: @unchecked Sendable {
    var frame: [UInt8]?
  }

  private func handle(_ method: ServerMethod, _ bytes: [UInt8]) async throws -> [UInt8]? {
    let context = ServerContext(call: self)
    switch method.body {
    case .unary(let body): return try await body(bytes, context)
    case .clientStreaming(let body): return try await body(context)
    case .serverStreaming(let body): try await body(bytes, context)
    case .bidirectional(let body): try await body(context)
    }
    return nil
  }

  /// A message of a request stream, as the interceptors let it pass.
  func passed(_ message: Received) throws(RPCError) -> [UInt8] {
    try transforms?.incoming(message.bytes) ?? message.bytes
  }

  /// Sends a sealed frame, as the interceptors let it pass.
  func respond(_ frame: [UInt8], compressed isCompressed: Bool) async throws(RPCError) {
    let frame = try transforms?.outgoing(frame) ?? frame
    if let refusal = sizeRefusal(frame) { throw refusal }
    try await send(frame: isCompressed ? compressed(frame) : frame)
  }

  func tryRespond(_ frame: [UInt8], compressed isCompressed: Bool) -> Bool {
    var frame = frame
    if let transforms {
      guard let changed = try? transforms.outgoing(frame) else { return false }
      frame = changed
    }
    guard sizeRefusal(frame) == nil else { return false }
    return trySend(frame: isCompressed ? compressed(frame) : frame)
  }

  private func handlerEnded(_ outcome: Result<[UInt8]?, RPCError>) {
    connection.endHandler()
    connection.host.limit?.end()
    entry?.limit?.end()
    task = nil
    guard phase != .done else { return }
    switch outcome {
    case .success(let frame):
      if let frame {
        if let refusal = sizeRefusal(frame) { return finish(refusal) }
        let frame = compressed(frame)
        guard connection.beginResponse(frame.count) else {
          return finish(
            RPCError(.resourceExhausted, "too many responses wait for the client to read them"))
        }
        pendingBytes = frame.count
        guard let stream = streamForMessages() else { return end() }
        put(frame, on: stream)
      } else {
        flush()
      }
      finish(nil)
    case .failure(let error):
      flush()
      finish(error)
    }
  }

  // MARK: The response

  /// Loop. Response headers go before the first message.
  override func streamForMessages() -> HTTP2Stream? {
    guard let stream else { return nil }
    if !headersSent {
      let extra = extra.withLock { $0 }
      var initial = extra?.initial ?? Metadata()
      if let transforms { initial = transforms.initial(initial) }
      if let problem = initial.problem {
        finish(RPCError(.internalError, problem))
        return nil
      }
      headersSent = true
      var fields = initial.fields
      if let compression = extra?.compression {
        fields.insert(("grpc-encoding", compression.rawValue), at: 0)
      }
      stream.send(
        headers: fields.isEmpty
          ? ServerHeaders.response : HeaderList(base: ServerHeaders.response, adding: fields))
    }
    return stream
  }

  func replaceMetadata(_ metadata: Metadata) { head.metadata = metadata }

  func setInitialMetadata(_ metadata: Metadata) {
    extra.withLock { extra in
      var value = extra ?? Extra()
      value.initial = metadata
      extra = value
    }
  }

  func setTrailingMetadata(_ metadata: Metadata) {
    extra.withLock { extra in
      var value = extra ?? Extra()
      value.trailing = metadata
      extra = value
    }
  }

  /// Compresses the messages from now on, if the client can read them and the headers have
  /// not gone.
  func setResponseCompression(_ compression: Compression?) {
    extra.withLock { extra in
      var value = extra ?? Extra()
      value.compression = compression.flatMap { head.accepted.contains($0) ? $0 : nil }
      extra = value
    }
  }

  private func compressed(_ frame: [UInt8]) -> [UInt8] {
    guard let compression = extra.withLock({ $0?.compression }) else { return frame }
    return frame.compressedFrame(compression)
  }

  func sendInitialMetadataSoon() {
    if loop.isCurrent {
      if phase != .done { _ = streamForMessages() }
    } else {
      loop.execute { if self.phase != .done { _ = self.streamForMessages() } }
    }
  }

  /// Sends the status, nil for OK, and ends the call for the handler too.
  private func finish(_ error: RPCError?) {
    guard phase != .done else { return }
    if let tally { tally.end(error?.code ?? .ok, regularly: stream != nil) }
    if let stream {
      if error == nil, transforms == nil, extra.withLock({ $0 == nil }) {
        _ = streamForMessages()
        stream.send(trailers: ServerHeaders.statusOK)
      } else {
        sendStatus(error, on: stream)
      }
    }
    end()
  }

  private func sendStatus(_ error: RPCError?, on stream: HTTP2Stream) {
    var error = error
    var extra = extra.withLock { $0 } ?? Extra()
    if let transforms { extra.trailing = transforms.trailing(extra.trailing) }
    // A handler's mistake is answered, not hidden: the fields would be dropped or, worse,
    // spoil the block.
    if let problem = extra.initial.problem {
      error = RPCError(.internalError, problem)
      setInitialMetadata([:])
    } else if error == nil, let problem = extra.trailing.problem {
      error = RPCError(.internalError, problem)
    }
    if let error {
      let base = headersSent ? nil : ServerHeaders.response
      headersSent = true
      var fields = error.statusFields
      if error.code == .unimplemented, head.encoding != nil, deframer.compression == nil {
        fields.append(("grpc-accept-encoding", Compression.accepted))
      }
      stream.send(trailers: HeaderList(base: base, adding: fields))
    } else {
      _ = streamForMessages()
      stream.send(
        trailers: HeaderList(base: ServerHeaders.statusOK, adding: extra.trailing.fields))
    }
  }

  /// An HTTP status, for what is no gRPC request at all.
  private func refuse(_ headers: HeaderList) {
    stream?.send(trailers: headers)
    end()
  }

  private func answer(with page: RootPage) {
    if let stream {
      if head.isHead {
        stream.send(trailers: page.headers)
      } else {
        stream.send(headers: page.headers)
        stream.send(data: page.body)
        stream.finish()
      }
    }
    end()
  }

  private func end() {
    guard phase != .done else { return }
    phase = .done
    // Without a status: the client is gone.
    if let tally { tally.end(.cancelled) }
    timer?.cancel()
    timer = nil
    if let task {
      task.cancel()
      self.task = nil
    }
    // Nobody reads or writes messages beside a unary handler's arguments and result.
    guard let entry, !entry.isUnary else { return }
    let over = RPCError(.cancelled, "the call is over")
    endMessages(over, dropping: true)
    closeSending(over)
  }

  private static let methodNotAllowed = HeaderList([(":status", "405"), ("allow", "POST")])
  private static let unsupportedMediaType = HeaderList([(":status", "415")])
}

enum ServerHeaders {
  static let response = HeaderList([
    (":status", "200"), ("content-type", "application/grpc"),
  ])
  static let statusOK = HeaderList([("grpc-status", "0")])
}
