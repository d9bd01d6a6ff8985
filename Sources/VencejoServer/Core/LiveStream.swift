import Synchronization
import VencejoHTTP2
import VencejoProtobuf

/// Why the server ends a stream.
enum StreamEnd: Sendable, Hashable {
  case draining
  case revoked
  case replaced
  case aged
  /// Its client took nothing for too long.
  case slow

  /// How long clients should wait before they come again: not all at once to a server that starts.
  var retryDelay: Google.Duration? {
    self == .draining ? Google.Duration(Duration.milliseconds(Int64.random(in: 0...10_000))) : nil
  }
}

/// One server-streaming call that stays open: what wakes its handler, and what ends it.
///
/// A handler either walks the log or sleeps in ``sleep()`` while its loop hands it frames.
///
/// `@unchecked Sendable`: members marked *loop* are touched on the loop's thread only; the
/// rest is constant or behind a mutex.
class LiveStream: @unchecked Sendable {
  enum Wake: Sendable {
    /// There is something to read in the log.
    case behind
    case ended
  }

  let loop: EventLoop
  /// Internal key of the session it belongs to.
  let session: Int64
  private let ending = Mutex<StreamEnd?>(nil)
  /// Loop. The handler, when it sleeps.
  private var sleeper: UnsafeContinuation<Wake, Never>?
  /// Loop. A wake that came while the handler was awake.
  private var isBehind = false

  init(loop: EventLoop, session: Int64) {
    self.loop = loop
    self.session = session
  }

  /// Any thread. Why it must end, once it must.
  var end: StreamEnd? { ending.withLock { $0 } }

  /// Any thread. Ends it; the first reason counts.
  func end(_ reason: StreamEnd) {
    let isNew = ending.withLock { ending in
      defer { ending = ending ?? reason }
      return ending == nil
    }
    if isNew { loop.execute { self.wakeUp(.ended) } }
  }

  /// Loop. Tells the handler to read the log.
  final func fallBehind() {
    isBehind = true
    wakeUp(.behind)
  }

  private func wakeUp(_ wake: Wake) {
    guard let sleeper else { return }
    self.sleeper = nil
    isBehind = false
    sleeper.resume(returning: wake)
  }

  /// The handler waits here, on the loop, until there is something to do. A cancelled task
  /// wakes with `.ended`.
  final func sleep() async -> Wake {
    await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        onLoop {
          if self.end != nil || self.isCancelled {
            continuation.resume(returning: .ended)
          } else if self.isBehind {
            self.isBehind = false
            continuation.resume(returning: .behind)
          } else {
            self.sleeper = continuation
          }
        }
      }
    } onCancel: {
      onLoop {
        self.isCancelled = true
        self.wakeUp(.ended)
      }
    }
  }
  /// Loop.
  private var isCancelled = false

  /// Runs `work` on the loop: at once when there already.
  final func onLoop(_ work: @escaping @Sendable () -> Void) {
    if loop.isCurrent { work() } else { loop.execute(work) }
  }
}
