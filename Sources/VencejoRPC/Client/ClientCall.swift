import Synchronization
import VencejoCompression
import VencejoHTTP2

/// One call on the client: from a path and metadata to messages, trailers and a status.
final class ClientCall: CallCore, StreamHandler, @unchecked Sendable {
  private enum Phase {
    /// Waits for a connection.
    case waiting
    case open
    case done
  }

  /// What readers on any thread wait for.
  private struct Outcome {
    var initialMetadata: Metadata?
    /// Set at the end; the trailers, or the error.
    var end: Result<Metadata, RPCError>?
    var single: [UInt8]?
    var waiters: [UnsafeContinuation<Void, Never>] = []

    mutating func takeWaiters() -> [UnsafeContinuation<Void, Never>] {
      defer { waiters = [] }
      return waiters
    }
  }

  let path: String
  /// Of the request's message; empty for a call on bytes.
  let requestTypeName: String
  /// Changed by interceptors only, before the call begins.
  var options: CallOptions
  /// One response message is expected: it is kept for `singleResponse`.
  private let expectsOne: Bool
  /// The only request message, kept until the server has answered: a call that the server
  /// refused unseen is sent again.
  private var request: [UInt8]?
  private let core: ChannelCore
  /// Nil where there are no interceptors.
  let transforms: MessageTransforms?
  private let created = ContinuousClock.now
  private let inheritedDeadline = CallScope.deadline
  private let gate = Mutex(Gate())
  /// Of the call as a whole; `tally` is the attempt's. Nil when nobody observes.
  private let observation: CallTally?

  // Loop.
  private var phase = Phase.waiting
  private var timer: LoopTimer?
  private var deadline: ContinuousClock.Instant?
  private var transparentRetries = 1
  private var attempts = 1
  private var retryTimer: LoopTimer?

  // The response, loop.
  private var head = ResponseHead()
  private var finishedSending: Bool
  private var single: [UInt8]?

  private let outcome = Mutex(Outcome())

  init(
    _ path: String, _ options: CallOptions, core: ChannelCore, request: [UInt8]?, expectsOne: Bool,
    requestTypeName: String = ""
  ) {
    self.path = path
    self.requestTypeName = requestTypeName
    self.options = options
    self.core = core
    self.request = request
    self.expectsOne = expectsOne
    finishedSending = request != nil
    transforms = core.interceptors.isEmpty ? nil : MessageTransforms()
    let observers = core.callObservers
    observation =
      observers.isEmpty && core.channelz == nil
      ? nil
      : CallTally(
        observers, method: path, isRegistered: !requestTypeName.isEmpty, target: core.targetName,
        counts: core.channelz?.calls)
    super.init(loop: core.loop, receiveLimit: options.maxReceiveMessageBytes)
    if request == nil || !expectsOne { openBuffers() }
  }

  var targetName: String { core.targetName }
  var waitsForReady: Bool { options.waitForReady }

  // MARK: Any thread

  func start() {
    guard transforms != nil else { return beginSoon() }
    let task = Task {
      do {
        try await self.proceed(from: 0)
        self.concludeSoon(nil)
      } catch {
        self.concludeSoon(RPCError(handlerError: error))
      }
    }
    gate.withLock { $0.task = task }
  }

  private func beginSoon() {
    if loop.isCurrent { begin() } else { loop.execute { self.begin() } }
  }

  func cancel() {
    let error = RPCError(.cancelled, "the call was cancelled")
    if loop.isCurrent { abandon(error) } else { loop.execute { self.abandon(error) } }
  }

  /// The one message of a unary or client-streaming call's response.
  func singleResponse() async throws(RPCError) -> [UInt8] {
    await waitForEnd()
    let (end, single) = outcome.withLock { ($0.end, $0.single) }
    switch end {
    case .failure(let error)?: throw error
    case .success?:
      if let single { return try transforms?.incoming(single) ?? single }
      throw RPCError(.unimplemented, "the server answered OK without a message")
    case nil: throw RPCError(.cancelled, "the calling task was cancelled")
    }
  }

  /// The metadata before the first message. Throws the call's error when there is none.
  func initialMetadata() async throws(RPCError) -> Metadata {
    await wait { $0.initialMetadata != nil || $0.end != nil }
    let (initial, end) = outcome.withLock { ($0.initialMetadata, $0.end) }
    if let initial { return initial }
    if case .failure(let error)? = end { throw error }
    if end == nil { throw RPCError(.cancelled, "the calling task was cancelled") }
    return [:]
  }

  /// The metadata after the last message; throws the call's error.
  func trailers() async throws(RPCError) -> Metadata {
    await waitForEnd()
    guard let end = outcome.withLock({ $0.end }) else {
      throw RPCError(.cancelled, "the calling task was cancelled")
    }
    return try end.get()
  }

  private func waitForEnd() async {
    await wait { $0.end != nil }
  }

  /// Returns when the condition holds, or once the task is cancelled and the call with it.
  private func wait(until holds: @Sendable (borrowing Outcome) -> Bool) async {
    await withTaskCancellationHandler {
      while !outcome.withLock({ holds($0) }) {
        await withUnsafeContinuation { continuation in
          let ready = outcome.withLock { state in
            if holds(state) { return true }
            state.waiters.append(continuation)
            return false
          }
          if ready { continuation.resume() }
        }
      }
    } onCancel: {
      cancel()
    }
  }

  // MARK: Starting

  private func begin() {
    guard phase == .waiting else { return }
    if let problem = options.metadata.problem {
      return abandon(RPCError(.internalError, problem))
    }
    // A call made in a handler ends with the call that the handler answers.
    let own = options.timeout.map { created + $0 }
    deadline =
      if let own, let inheritedDeadline { min(own, inheritedDeadline) } else {
        own ?? inheritedDeadline
      }
    if let deadline {
      let left = deadline - .now
      guard left > .zero else { return abandon(Self.deadlinePassed) }
      timer = loop.schedule(after: left) { [weak self] in self?.abandon(Self.deadlinePassed) }
    }
    submit()
  }

  private func submit() {
    if let observation { tally = observation.attempt(core.channelzSubchannel?.calls) }
    core.submit(self)
  }

  /// Opens the stream. False when the connection cannot take one now.
  func open(on connection: HTTP2Connection) -> Bool {
    guard phase == .waiting else { return true }
    var fields = options.metadata.fields
    if let deadline {
      let left = max((deadline - .now).nanoseconds, 1)
      fields.append(("grpc-timeout", Timeout.format(nanoseconds: left)))
    }
    if attempts > 1 { fields.append(("grpc-previous-rpc-attempts", "\(attempts - 1)")) }
    if let compression {
      fields.append(("grpc-encoding", compression.rawValue))
    }
    let base = core.requestHeaders(path)
    let headers = fields.isEmpty ? base : HeaderList(base: base, adding: fields)
    do {
      let stream = try connection.open(handler: self, headers: headers, endStream: false)
      self.stream = stream
      phase = .open
      if let tally { tally.opened(on: connection) }
      if let request {
        put(compressed(request), on: stream)
        stream.finish()
      } else {
        flush()
      }
      return true
    } catch {
      return false
    }
  }

  override func streamForMessages() -> HTTP2Stream? { phase == .open ? stream : nil }

  private func compressed(_ frame: [UInt8]) -> [UInt8] {
    compression.map { frame.compressedFrame($0) } ?? frame
  }

  private var compression: Compression? {
    options.compressed ? options.compression ?? core.compression : nil
  }

  func noteFinishedSending() {
    if loop.isCurrent {
      finishedSending = true
    } else {
      loop.execute { self.finishedSending = true }
    }
    finishSending()
  }

  // MARK: The response

  func stream(
    _ stream: HTTP2Stream, header name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
  ) {
    if stream === self.stream { head.take(name, value) }
  }

  func stream(_ stream: HTTP2Stream, headersEndWith endStream: Bool) {
    guard phase == .open, stream === self.stream else { return }
    if stream.headerListOverflowed {
      return abandon(RPCError(.resourceExhausted, "the server's metadata is too large"))
    }
    switch head.endBlock(endStream: endStream) {
    case .initial(let metadata):
      request = nil
      if let encoding = head.encoding { deframer.compression = Compression(rawValue: encoding) }
      let metadata = transforms?.initial(metadata) ?? metadata
      let waiters = outcome.withLock { state in
        state.initialMetadata = metadata
        return state.takeWaiters()
      }
      for waiter in waiters { waiter.resume() }
    case .fault(let error): abandon(error)
    case nil: break
    }
  }

  func stream(_ stream: HTTP2Stream, data: UnsafeRawBufferPointer) {
    guard phase == .open, stream === self.stream else { return stream.consume(data.count) }
    if let tally { tally.received(data.count) }
    var rest = data
    do {
      while let message = try deframer.next(&rest) {
        if let tally { tally.receivedMessage() }
        guard expectsOne else {
          deliver(message)
          continue
        }
        guard single == nil else {
          return abandon(RPCError(.unimplemented, "more than one response message"))
        }
        single = message
      }
    } catch {
      return abandon(
        error.status(limit: deframer.limit, encoding: head.encoding, inResponse: true))
    }
    if expectsOne { stream.consume(data.count) } else { received(data.count) }
  }

  func streamDidEnd(_ stream: HTTP2Stream) {
    guard phase == .open, stream === self.stream else { return }
    var error = head.outcome
    if error == nil, deframer.isInside {
      error = RPCError(.internalError, "the response ends inside a message")
    }
    if let tally { tally.end(error?.code ?? .ok, regularly: true) }
    if let error, makesAgain(after: error) { return }
    finish(error)
    if !finishedSending { stream.reset(HTTP2Code.cancel) }
  }

  func streamDidDrain(_ stream: HTTP2Stream) { drained() }

  func stream(_ stream: HTTP2Stream, closedWith code: UInt32) {
    defer { core.streamClosed() }
    guard stream === self.stream else { return }
    self.stream = nil
    guard phase == .open else { return }
    if code == HTTP2Code.refusedStream, !head.hasBegun, request != nil, transparentRetries > 0 {
      transparentRetries -= 1
      phase = .waiting
      if let tally { tally.end(.unavailable) }
      submit()
      return
    }
    if let deadline, deadline <= .now { return finish(Self.deadlinePassed) }
    let error = core.error(forStreamClosedWith: code)
    if !makesAgain(after: error) { finish(error) }
  }

  /// Makes the call again where its policy and the server allow it.
  private func makesAgain(after error: RPCError) -> Bool {
    guard let policy = options.retryPolicy ?? core.retryPolicy else { return false }
    guard policy.retryableCodes.contains(error.code) else { return false }
    core.throttle.failed()
    // The request is kept until the server begins to answer.
    guard request != nil, attempts < policy.maxAttempts, core.throttle.allowsRetry else {
      return false
    }
    let delay: Duration
    switch head.retryPushback {
    case nil: delay = policy.delay(afterAttempts: attempts)
    case let pushback? where pushback >= 0: delay = .milliseconds(pushback)
    default: return false
    }
    attempts += 1
    phase = .waiting
    if let tally { tally.end(error.code) }
    stream = nil
    head = ResponseHead()
    deframer = Deframer(limit: deframer.limit)
    single = nil
    retryTimer = loop.schedule(after: delay) { [weak self] in
      guard let self, self.phase == .waiting else { return }
      self.submit()
    }
    return true
  }

  // MARK: The end

  /// Ends the call for its callers and resets the stream.
  func abandon(_ error: RPCError) {
    guard phase != .done else { return }
    let stream = self.stream
    finish(error)
    stream?.reset(HTTP2Code.cancel)
  }

  private func finish(_ error: RPCError?) {
    guard phase != .done else { return }
    phase = .done
    timer?.cancel()
    timer = nil
    retryTimer?.cancel()
    retryTimer = nil
    request = nil
    if let tally { tally.end(error?.code ?? .ok) }
    if error == nil { core.throttle.succeeded() }
    guard transforms != nil else { return conclude(error) }
    // Interceptors come between the call's end and its caller, unless the caller gave up.
    openGate(error.map { .failure($0) } ?? .success(()))
    if let error, error.origin == .local {
      gate.withLock { $0.task }?.cancel()
      conclude(error)
    }
  }

  private func conclude(_ error: RPCError?) {
    if let observation { observation.end(error?.code ?? .ok) }
    let trailing = transforms?.trailing(head.trailing) ?? head.trailing
    let waiters = outcome.withLock { state -> [UnsafeContinuation<Void, Never>] in
      guard state.end == nil else { return [] }
      state.end = error.map { .failure($0) } ?? .success(trailing)
      state.single = single
      return state.takeWaiters()
    }
    for waiter in waiters { waiter.resume() }
    // What the server sent before its status is still read.
    endMessages(error, dropping: error.map { $0.origin != .remote } ?? false)
    closeSending(error ?? RPCError(.cancelled, "the call is over"))
    if transforms != nil { letSendersPass() }
  }

  private static var deadlinePassed: RPCError {
    RPCError(.deadlineExceeded, "the deadline passed before the server answered")
  }
}

// MARK: - Interceptors

extension ClientCall {
  /// Holds back the call's end until the interceptors have seen it.
  fileprivate struct Gate {
    var end: Result<Void, RPCError>?
    var waiter: UnsafeContinuation<Result<Void, RPCError>, Never>?
    var task: Task<Void, Never>?
    /// The interceptors have set their transforms: messages may pass, or the call is over.
    var isPassable = false
    var senders: [UnsafeContinuation<Void, Never>] = []
  }

  func proceed(from level: Int) async throws {
    guard level < core.interceptors.count else {
      if let frame = request, let transforms { request = try transforms.outgoing(frame) }
      letSendersPass()
      beginSoon()
      return try await waitAtGate().get()
    }
    try await core.interceptors[level].intercept(ClientInterception(call: self, level: level + 1))
  }

  private func waitAtGate() async -> Result<Void, RPCError> {
    await withUnsafeContinuation { continuation in
      let end = gate.withLock { gate -> Result<Void, RPCError>? in
        if gate.end == nil { gate.waiter = continuation }
        return gate.end
      }
      if let end { continuation.resume(returning: end) }
    }
  }

  private func openGate(_ end: Result<Void, RPCError>) {
    let waiter = gate.withLock { gate in
      gate.end = end
      defer { gate.waiter = nil }
      return gate.waiter
    }
    waiter?.resume(returning: end)
  }

  /// The chain has ended, with or without a call: an interceptor may answer by itself.
  private func concludeSoon(_ error: RPCError?) {
    loop.execute {
      if self.phase != .done {
        self.abandon(
          error ?? RPCError(.internalError, "an interceptor ended without proceeding"))
      }
      self.conclude(error)
    }
  }

  /// The next response message, as the interceptors let it pass.
  func nextResponse() async throws(RPCError) -> Received? {
    guard var message = try await nextMessage() else { return nil }
    if let transforms { message.bytes = try transforms.incoming(message.bytes) }
    return message
  }

  /// Sends a sealed frame, as the interceptors let it pass.
  func request(_ frame: [UInt8], compressed isCompressed: Bool) async throws(RPCError) {
    guard let transforms else {
      return try await send(frame: isCompressed ? compressed(frame) : frame)
    }
    await withUnsafeContinuation { continuation in
      let passable = gate.withLock { gate in
        if !gate.isPassable { gate.senders.append(continuation) }
        return gate.isPassable
      }
      if passable { continuation.resume() }
    }
    let frame = try transforms.outgoing(frame)
    try await send(frame: isCompressed ? compressed(frame) : frame)
  }

  fileprivate func letSendersPass() {
    let senders = gate.withLock { gate in
      gate.isPassable = true
      defer { gate.senders = [] }
      return gate.senders
    }
    for sender in senders { sender.resume() }
  }
}
