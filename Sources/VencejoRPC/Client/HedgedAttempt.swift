import VencejoHTTP2

/// What waits for a connection: a call, or one attempt of a hedged one.
protocol PendingCall: AnyObject {
  var waitsForReady: Bool { get }
  var isOver: Bool { get }
  /// Takes from the service config what the caller left open.
  func configure()
  /// Opens the stream. False when the connection cannot take one now.
  func open(on connection: HTTP2Connection) -> Bool
  /// No server could be reached.
  func fail(_ error: RPCError)
  func abandon(_ error: RPCError)
}

/// The attempts of a hedged call (gRFC A6, "Hedging Policy").
struct Hedge {
  let policy: HedgingPolicy
  var attempts: [HedgedAttempt] = []
  var made = 0
  var timer: LoopTimer?

  init(_ policy: HedgingPolicy) { self.policy = policy }
}

/// One attempt of a hedged call. The first whose response begins becomes the call: from then on
/// it only passes on what it hears.
///
/// Confined to the channel's loop.
final class HedgedAttempt: StreamHandler, PendingCall {
  private let call: ClientCall
  /// From 1.
  private let number: Int
  private(set) var stream: HTTP2Stream?
  private(set) var head = ResponseHead()
  private var isAdopted = false
  private(set) var isOver = false
  private var repeats = 1
  /// Nil when nobody observes.
  let tally: CallTally?

  init(_ call: ClientCall, number: Int) {
    self.call = call
    self.number = number
    tally = call.observation?.attempt()
  }

  var waitsForReady: Bool { call.waitsForReady }

  func configure() {}

  func open(on connection: HTTP2Connection) -> Bool {
    guard !isOver else { return true }
    guard call.mayTravel(on: connection) else { return true }
    stream = call.openStream(
      on: connection, handler: self, previousAttempts: number - 1, tally)
    return stream != nil
  }

  func fail(_ error: RPCError) { end(error) }

  func abandon(_ error: RPCError) { end(error) }

  /// Another attempt has won, or the call is over.
  func cancel() {
    isOver = true
    if let tally { tally.end(.cancelled) }
    stream?.reset(HTTP2Code.cancel)
    stream = nil
  }

  private func end(_ error: RPCError?) {
    guard !isOver else { return }
    isOver = true
    if let tally { tally.end(error?.code ?? .ok) }
    call.attemptEnded(self, error)
  }

  func stream(
    _ stream: HTTP2Stream, header name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
  ) {
    if isAdopted {
      call.stream(stream, header: name, value: value)
    } else {
      head.take(name, value)
    }
  }

  func stream(_ stream: HTTP2Stream, headersEndWith endStream: Bool) {
    if isAdopted { return call.stream(stream, headersEndWith: endStream) }
    guard !isOver, stream === self.stream else { return }
    if stream.headerListOverflowed {
      return end(RPCError(.resourceExhausted, "the server's metadata is too large"))
    }
    switch head.endBlock(endStream: endStream) {
    case .initial(let metadata):
      isAdopted = true
      call.adopt(self, metadata)
    case .fault(let error):
      end(error)
      stream.reset(HTTP2Code.cancel)
    case nil: break
    }
  }

  func stream(_ stream: HTTP2Stream, data: UnsafeRawBufferPointer) {
    if isAdopted {
      call.stream(stream, data: data)
    } else {
      stream.consume(data.count)
    }
  }

  func streamDidEnd(_ stream: HTTP2Stream) {
    if isAdopted { return call.streamDidEnd(stream) }
    if stream === self.stream { end(head.outcome) }
  }

  func streamDidDrain(_ stream: HTTP2Stream) {
    if isAdopted { call.streamDidDrain(stream) }
  }

  func stream(_ stream: HTTP2Stream, closedWith code: UInt32) {
    if isAdopted { return call.stream(stream, closedWith: code) }
    defer { call.core.streamClosed() }
    guard !isOver, stream === self.stream else { return }
    self.stream = nil
    if code == HTTP2Code.refusedStream, !head.hasBegun, repeats > 0 {
      repeats -= 1
      call.core.submit(self)
    } else {
      end(call.core.error(forStreamClosedWith: code, on: stream.connection))
    }
  }
}

extension ClientCall {
  /// Makes the next attempt, and plans the one after it.
  func hedgeOn() {
    guard !isOver, var hedge else { return }
    hedge.timer?.cancel()
    hedge.timer = nil
    guard hedge.made < hedge.policy.maxAttempts, hedge.made == 0 || core.throttle.allowsRetry
    else {
      self.hedge = hedge
      return
    }
    hedge.made += 1
    let attempt = HedgedAttempt(self, number: hedge.made)
    hedge.attempts.append(attempt)
    if hedge.made < hedge.policy.maxAttempts {
      hedge.timer = loop.schedule(after: hedge.policy.delay) { [weak self] in self?.hedgeOn() }
    }
    self.hedge = hedge
    core.submit(attempt)
  }

  /// An attempt has ended before its response began.
  func attemptEnded(_ attempt: HedgedAttempt, _ error: RPCError?) {
    guard !isOver, let policy = hedge?.policy else { return }
    hedge?.attempts.removeAll { $0 === attempt }
    guard let error else { return take(attempt.head, nil) }
    guard policy.nonFatalCodes.contains(error.code) || error.origin != .remote else {
      return take(attempt.head, error)
    }
    core.throttle.failed()
    let made = hedge?.made ?? 0
    let mayGoOn = made < policy.maxAttempts && core.throttle.allowsRetry
    switch attempt.head.retryPushback {
    case nil where mayGoOn: hedgeOn()
    case let pushback? where pushback >= 0 && mayGoOn:
      hedge?.timer?.cancel()
      hedge?.timer = loop.schedule(after: .milliseconds(pushback)) { [weak self] in
        self?.hedgeOn()
      }
    default:
      // The server, the policy or the throttle wants no more: those under way may still win.
      hedge?.timer?.cancel()
      hedge?.timer = nil
      if hedge?.attempts.isEmpty ?? true { take(attempt.head, error) }
    }
  }

  /// The others are given up.
  func leaveAttempts(but winner: HedgedAttempt?) {
    guard let hedge else { return }
    self.hedge = nil
    hedge.timer?.cancel()
    for attempt in hedge.attempts where attempt !== winner { attempt.cancel() }
  }
}
