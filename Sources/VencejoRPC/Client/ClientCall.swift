import Synchronization
import VencejoCompression
import VencejoHTTP2

/// One call on the client: from a path and metadata to messages, trailers and a status.
///
/// `@unchecked Sendable`: loop-confined, but for what `CallCore` guards and what does not change.
final class ClientCall: CallCore, StreamHandler, PendingCall, @unchecked Sendable {
  private enum Phase {
    /// Waits for a connection.
    case waiting
    case open
    case done
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
  var request: [UInt8]?
  let core: ChannelCore
  /// Nil where there are no interceptors.
  let transforms: MessageTransforms?
  private let created = ContinuousClock.now
  private let inheritedDeadline = CallScope.deadline
  let gate = Mutex(Gate())
  /// Of the call as a whole; `tally` is the attempt's. Nil when nobody observes.
  let observation: CallTally?

  // Loop.
  private var phase = Phase.waiting
  private var timer: LoopTimer?
  private var deadline: ContinuousClock.Instant?
  /// Of streams that the server refused unseen, and of those that never left.
  private var transparentRetries = 1
  private var unsentRetries = 8
  private var attempts = 1
  /// Since the beginning, or the server's last pushback.
  private var backoffs = 0
  private var retryTimer: LoopTimer?
  /// Messages sent on a stream of requests that the server has not begun to answer.
  private var replay: Replay?
  var hedge: Hedge?
  private var isCounted = false

  // What the service config has a say in, loop.
  private var isConfigured = false
  private(set) var waitsForReady: Bool
  private var retry: RetryPolicy?
  private var sendLimit: Int
  var hasCredentials = false

  // The response, loop.
  private var head = ResponseHead()
  private var finishedSending: Bool
  private var single: [UInt8]?

  let outcome = Mutex(Outcome())

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
    waitsForReady = options.waitForReady ?? false
    sendLimit = options.maxSendMessageBytes
    replay = request == nil ? Replay() : nil
    let isPlain = core.interceptors.isEmpty && core.configuration.credentials == nil
    transforms = isPlain && options.credentials == nil ? nil : MessageTransforms()
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
  var isOver: Bool { phase == .done }

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

  func beginSoon() {
    if loop.isCurrent { begin() } else { loop.execute { self.begin() } }
  }

  func cancel() {
    let error = RPCError(.cancelled, "the call was cancelled")
    if loop.isCurrent { abandon(error) } else { loop.execute { self.abandon(error) } }
  }

  // MARK: Starting

  private func begin() {
    guard phase == .waiting else { return }
    if let problem = options.metadata.problem {
      return abandon(RPCError(.internalError, problem))
    }
    core.callBegan()
    isCounted = true
    waitsForReady = options.waitForReady ?? false
    sendLimit = options.maxSendMessageBytes
    limitTime(options.timeout)
    if core.isConfigured { configure() }
    guard phase == .waiting else { return }
    submit()
  }

  private func submit() {
    if hedge != nil { return hedgeOn() }
    if let observation { tally = observation.attempt() }
    core.submit(self)
  }

  func configure() {
    guard !isConfigured else { return }
    isConfigured = true
    retry = options.retryPolicy ?? core.retryPolicy
    if let method = core.config?.method(path) { apply(method) }
    if let request { _ = isTooLong(request) }
  }

  private func apply(_ method: ServiceConfig.Method) {
    waitsForReady = options.waitForReady ?? method.waitForReady ?? false
    retry = options.retryPolicy ?? method.retry ?? core.retryPolicy
    if let limit = method.maxRequestBytes { sendLimit = min(sendLimit, limit) }
    if let limit = method.maxResponseBytes {
      deframer = Deframer(limit: min(options.maxReceiveMessageBytes, limit))
    }
    if let policy = method.hedging, options.retryPolicy == nil, request != nil {
      hedge = Hedge(policy)
    }
    limitTime(method.timeout)
  }

  /// Ends the call so long after its creation, or earlier where something else says so. A call
  /// made in a handler ends with the call that the handler answers.
  private func limitTime(_ timeout: Duration?) {
    guard timeout != nil || inheritedDeadline != nil else { return }
    let own = timeout.map { created + $0 }
    guard let sooner = Self.sooner(own, inheritedDeadline),
      deadline.map({ sooner < $0 }) ?? true
    else { return }
    deadline = sooner
    timer?.cancel()
    let left = sooner - .now
    guard left > .zero else { return abandon(Self.deadlinePassed) }
    timer = loop.schedule(after: left) { [weak self] in self?.abandon(Self.deadlinePassed) }
  }

  private static func sooner(
    _ one: ContinuousClock.Instant?, _ other: ContinuousClock.Instant?
  ) -> ContinuousClock.Instant? {
    guard let one, let other else { return one ?? other }
    return min(one, other)
  }

  private func isTooLong(_ frame: [UInt8]) -> Bool {
    let count = frame.count - Deframer.prefixLength
    guard count > sendLimit else { return false }
    abandon(
      RPCError(
        .resourceExhausted, "a message of \(count) bytes where \(sendLimit) may be sent"))
    return true
  }

  func open(on connection: HTTP2Connection) -> Bool {
    guard phase == .waiting, mayTravel(on: connection) else { return true }
    if hedge != nil {
      // The service config came while the call waited.
      if let tally { tally.end(.cancelled) }
      tally = nil
      hedgeOn()
      return true
    }
    guard
      let stream = openStream(
        on: connection, handler: self, previousAttempts: attempts - 1, tally)
    else { return false }
    self.stream = stream
    phase = .open
    if request == nil {
      if let replay {
        for frame in replay.frames { put(frame, on: stream) }
        if replay.hasEnded { stream.finish() }
      }
      flush()
    }
    return true
  }

  /// Credentials stay where others could read them. False when that ended the call.
  func mayTravel(on connection: HTTP2Connection) -> Bool {
    if !hasCredentials || connection.isEncrypted || connection.peerAddress.isLoopback {
      return true
    }
    abandon(
      RPCError(
        .unauthenticated, "credentials are not sent in plain text to \(connection.peerAddress)"))
    return false
  }

  /// nil when the connection cannot take a stream now.
  func openStream(
    on connection: HTTP2Connection, handler: any StreamHandler, previousAttempts: Int,
    _ tally: CallTally?
  ) -> HTTP2Stream? {
    var fields = options.metadata.fields
    if let deadline {
      let left = max((deadline - .now).nanoseconds, 1)
      fields.append(("grpc-timeout", Timeout.format(nanoseconds: left)))
    }
    if previousAttempts > 0 { fields.append(("grpc-previous-rpc-attempts", "\(previousAttempts)")) }
    if let compression {
      fields.append(("grpc-encoding", compression.rawValue))
    }
    let base = core.requestHeaders(path)
    let headers = fields.isEmpty ? base : HeaderList(base: base, adding: fields)
    do {
      let stream = try connection.open(handler: handler, headers: headers, endStream: false)
      if let tally { tally.opened(on: connection) }
      if let request {
        let frame = compressed(request)
        stream.send(data: frame)
        if let tally { tally.sent(frame.count) }
        stream.finish()
      }
      return stream
    } catch {
      return nil
    }
  }

  override func transmit(_ frame: [UInt8], on stream: HTTP2Stream) {
    if isTooLong(frame) { return }
    replay?.add(frame)
    if replay?.isTooLong ?? false { replay = nil }
    put(frame, on: stream)
  }

  override func transmitEnd(on stream: HTTP2Stream) {
    replay?.hasEnded = true
    stream.finish()
  }

  override func streamForMessages() -> HTTP2Stream? { phase == .open ? stream : nil }

  func compressed(_ frame: [UInt8]) -> [UInt8] {
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
    case .initial(let metadata): begins(metadata)
    case .fault(let error): abandon(error)
    case nil: break
    }
  }

  /// The server answers: from here on the call is made only this once.
  private func begins(_ metadata: Metadata) {
    request = nil
    replay = nil
    if let encoding = head.encoding { deframer.compression = Compression(rawValue: encoding) }
    let metadata = transforms?.initial(metadata) ?? metadata
    let waiters = outcome.withLock { state in
      state.initialMetadata = metadata
      return state.takeWaiters()
    }
    for waiter in waiters { waiter.resume() }
  }

  /// An attempt's response begins: it becomes the call's.
  func adopt(_ attempt: HedgedAttempt, _ metadata: Metadata) {
    guard phase == .waiting else { return attempt.cancel() }
    leaveAttempts(but: attempt)
    stream = attempt.stream
    head = attempt.head
    tally = attempt.tally
    phase = .open
    begins(metadata)
  }

  /// An attempt's response, which is only a status, becomes the call's.
  func take(_ head: ResponseHead, _ error: RPCError?) {
    self.head = head
    finish(error)
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
    if code == HTTP2Code.refusedStream, !head.hasBegun, request != nil || replay != nil,
      stream.isUnsent ? unsentRetries > 0 : transparentRetries > 0
    {
      // gRFC A6, "Transparent Retries": what never left may leave again, though not for ever to
      // a server that hangs up on everybody.
      if stream.isUnsent { unsentRetries -= 1 } else { transparentRetries -= 1 }
      phase = .waiting
      drained()
      if let tally { tally.end(.unavailable) }
      submit()
      return
    }
    if let deadline, deadline <= .now { return finish(Self.deadlinePassed) }
    let error = core.error(forStreamClosedWith: code, on: stream.connection)
    if !makesAgain(after: error) { finish(error) }
  }

  /// Makes the call again where its policy and the server allow it.
  private func makesAgain(after error: RPCError) -> Bool {
    guard let policy = retry else { return false }
    let isRetryable = policy.retryableCodes.contains(error.code)
    // A server that wants no more is as good as a failure to the throttle.
    if isRetryable || (head.retryPushback ?? 0) < 0 { core.throttle.failed() }
    guard isRetryable else { return false }
    // The requests are kept until the server begins to answer.
    guard request != nil || replay != nil, attempts < policy.maxAttempts, core.throttle.allowsRetry
    else {
      return false
    }
    let delay: Duration
    switch head.retryPushback {
    case nil:
      backoffs += 1
      delay = policy.delay(afterAttempts: backoffs)
    case let pushback? where pushback >= 0:
      backoffs = 0
      delay = .milliseconds(pushback)
    default: return false
    }
    attempts += 1
    phase = .waiting
    if let tally { tally.end(error.code) }
    stream = nil
    head = ResponseHead()
    deframer = Deframer(limit: deframer.limit)
    single = nil
    drained()
    retryTimer = loop.schedule(after: delay) { [weak self] in
      guard let self, self.phase == .waiting else { return }
      self.submit()
    }
    return true
  }

  // MARK: The end

  /// A retry policy counts for connections that fail as well.
  func fail(_ error: RPCError) {
    if phase == .waiting, makesAgain(after: error) { return }
    abandon(error)
  }

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
    leaveAttempts(but: nil)
    request = nil
    replay = nil
    if isCounted { core.callEnded() }
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

  func conclude(_ error: RPCError?) {
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
