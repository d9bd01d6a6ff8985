import Synchronization
import VencejoAPI
import VencejoProtobuf
import VencejoRPC

/// A frame of a `Subscribe` stream, of either service.
protocol ResumableFrame: Message {
  /// Set on the last frame of a transaction.
  var resumeToken: String { get }
  /// Set on the last frame of a stream: how long to wait before opening it again, in seconds.
  var closingDelay: Double? { get }
}

extension Chat.SubscribeResponse: ResumableFrame {
  var closingDelay: Double? {
    guard case .closing(let closing) = event else { return nil }
    return delay(closing.retryDelay, isReplaced: closing.reason == .replacedByNewerStream)
  }
}

extension Record.SubscribeResponse: ResumableFrame {
  var closingDelay: Double? {
    guard case .closing(let closing) = event else { return nil }
    return delay(closing.retryDelay, isReplaced: closing.reason == .replacedByNewerStream)
  }
}

/// What the server asks for and a little jitter. Streams of one session that push each other out
/// must not do so without a pause.
private func delay(_ asked: Google.Duration?, isReplaced: Bool) -> Double {
  let seconds = asked.map { Double($0.seconds) + Double($0.nanos) / 1e9 } ?? 0
  return max(min(max(seconds, 0), 60), isReplaced ? 10 : 0)
    + .random(in: 0...ReconnectDelay.shortest)
}

/// How the connection of a stream stands.
public enum ConnectionState: Sendable, Hashable {
  /// Nobody asked for a connection.
  case offline
  case connecting
  /// Frames arrive of what happened meanwhile.
  case catchingUp
  /// All that arrives has just happened.
  case live
  /// The next attempt is this many seconds away; the status and its message say why.
  case waiting(seconds: Double, reason: String)
  /// Nobody is signed in, or the session is over.
  case signedOut
  /// Refused for good: nothing will come any more.
  case ended(reason: String)
}

/// Reads a `Subscribe` stream for as long as it takes: opens it again after every loss with the
/// token of the last transaction read, so that nothing is missed and nothing comes twice.
///
/// Frames come in groups: those of one transaction, the last with its token. A group cut off by a
/// lost connection is dropped, since the server sends it again. Pulled by its reader, so that a
/// slow one slows the server down and nothing piles up here.
final class ResumableStream<Frame: ResumableFrame>: Sendable {
  struct Group: Sendable {
    var frames: [Frame]
    /// To be kept together with what the frames changed.
    var token: String
  }

  typealias Open = @Sendable (_ token: String, _ options: CallOptions) -> ServerStreamingCall<Frame>

  private struct State {
    var token: String
    var call: ServerStreamingCall<Frame>?
    var pending: [Frame] = []
    var delay = ReconnectDelay()
    var accessToken = ""
    var refusedTokens = 0
    var lastFrame = ContinuousClock.now
    /// The stream has brought nothing yet.
    var isFresh = true
    /// Counts streams, so that a watchdog knows its own.
    var generation = 0
  }

  private let state: Mutex<State>
  private let authenticator: Authenticator
  private let heartbeat: Duration
  private let open: Open
  private let report: @Sendable (ConnectionState) -> Void

  /// A transaction of more frames than this would fill the memory; no server sends one.
  private static var largestGroup: Int { 1_000_000 }

  init(
    token: String, authenticator: Authenticator, heartbeat: Duration,
    report: @escaping @Sendable (ConnectionState) -> Void, open: @escaping Open
  ) {
    state = Mutex(State(token: token))
    self.authenticator = authenticator
    self.heartbeat = heartbeat
    self.report = report
    self.open = open
  }

  /// The next transaction. Throws when opening the stream again cannot help, and `.cancelled`
  /// when the task was cancelled. For one reader.
  func next() async throws(RPCError) -> Group {
    while true {
      if Task.isCancelled {
        close()
        throw RPCError(.cancelled, "the reader was cancelled")
      }
      do throws(RPCError) {
        if let group = try await nextOfThisStream() { return group }
        close()
      } catch {
        close()
        try await recover(from: error)
      }
    }
  }

  func close() {
    let call = state.withLock { state in
      defer {
        state.call = nil
        state.pending.removeAll()
        state.generation += 1
      }
      return state.call
    }
    call?.cancel()
  }

  /// Nil when the stream ended in good order.
  private func nextOfThisStream() async throws(RPCError) -> Group? {
    var iterator = try await connected().makeAsyncIterator()
    while true {
      guard let frame = try await iterator.next() else {
        close()
        try await pause(seconds: state.withLock { $0.delay.next() }, "the stream ended")
        return nil
      }
      if let delay = frame.closingDelay {
        close()
        try await pause(seconds: delay, "the server restarts or moves its clients")
        return nil
      }
      let (group, isFirst) = state.withLock { state -> (Group?, Bool) in
        let isFirst = state.isFresh
        state.isFresh = false
        state.lastFrame = .now
        state.delay.reset()
        state.refusedTokens = 0
        state.pending.append(frame)
        if frame.resumeToken.isEmpty { return (nil, isFirst) }
        state.token = frame.resumeToken
        defer { state.pending.removeAll() }
        return (Group(frames: state.pending, token: frame.resumeToken), isFirst)
      }
      if isFirst { report(.catchingUp) }
      if let group { return group }
      if state.withLock({ $0.pending.count }) > Self.largestGroup {
        throw RPCError(.resourceExhausted, "a transaction of too many frames")
      }
    }
  }

  /// The open stream, or a new one.
  private func connected() async throws(RPCError) -> ServerStreamingCall<Frame> {
    if let call = state.withLock({ $0.call }) { return call }
    report(.connecting)
    let access = try await authenticator.token()
    let token = state.withLock { state in
      state.accessToken = access
      return state.token
    }
    let call = open(token, Authenticator.options(access, nil))
    let generation = state.withLock { state in
      state.call = call
      state.isFresh = true
      state.pending.removeAll()
      state.lastFrame = .now
      state.generation += 1
      return state.generation
    }
    watch(generation)
    return call
  }

  /// Ends a stream that fell silent: half-open connections tell nobody that they are dead.
  private func watch(_ generation: Int) {
    let limit = heartbeat * 5 / 2
    Task { [weak self] in
      while true {
        guard
          let quiet = self?.state.withLock({ state in
            state.generation == generation ? ContinuousClock.now - state.lastFrame : nil
          })
        else { return }
        if quiet >= limit {
          self?.state.withLock { $0.generation == generation ? $0.call : nil }?.cancel()
          return
        }
        try? await Task.sleep(for: limit - quiet)
      }
    }
  }

  private func recover(from error: RPCError) async throws(RPCError) {
    switch error.code {
    case .unauthenticated where error.origin == .remote:
      // The stream's token had run out. A new one helps once; a second refusal in a row means
      // that the session is over.
      let (access, refused) = state.withLock { state in
        state.refusedTokens += 1
        return (state.accessToken, state.refusedTokens)
      }
      if refused > 1 { throw error }
      do throws(RPCError) {
        _ = try await authenticator.refreshed(instead: access)
      } catch {
        if error.code == .unauthenticated { throw error }
        try await pause(seconds: state.withLock { $0.delay.next() }, "\(error)")
      }
    case .invalidArgument, .permissionDenied, .notFound, .unimplemented, .unauthenticated,
      .failedPrecondition:
      throw error
    default:
      if Task.isCancelled { throw RPCError(.cancelled, "the reader was cancelled") }
      try await pause(seconds: state.withLock { $0.delay.next() }, "\(error)")
    }
  }

  private func pause(seconds: Double, _ reason: String) async throws(RPCError) {
    report(.waiting(seconds: seconds, reason: reason))
    do {
      try await Task.sleep(for: .milliseconds(Int(seconds * 1000)))
    } catch {
      throw RPCError(.cancelled, "the reader was cancelled")
    }
  }
}
