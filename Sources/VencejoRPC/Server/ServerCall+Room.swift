import Synchronization
import VencejoHTTP2

/// Producers of large messages wait for each other.
extension ServerCall {
  /// Any thread. The connection has more to send than it should hold.
  var isCongested: Bool { connection.http2.isCongested }

  /// Waits until it has room, the connection ends or the task is cancelled.
  func waitForRoom() async {
    let shared = RoomWaiter()
    await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        guard shared.begin(continuation) else { return continuation.resume() }
        loop.execute { self.connection.http2.whenUncongested { shared.end() } }
      }
    } onCancel: {
      shared.end()
    }
  }
}

/// A handler that waits for room on its connection, let go once.
private final class RoomWaiter: Sendable {
  private enum State {
    case new
    case waiting(UnsafeContinuation<Void, Never>)
    case over
  }

  private let state = Mutex(State.new)

  /// False when the wait was over before it began.
  func begin(_ continuation: UnsafeContinuation<Void, Never>) -> Bool {
    state.withLock { state in
      guard case .new = state else { return false }
      state = .waiting(continuation)
      return true
    }
  }

  func end() {
    let waiting = state.withLock { state -> UnsafeContinuation<Void, Never>? in
      defer { state = .over }
      if case .waiting(let continuation) = state { return continuation }
      return nil
    }
    waiting?.resume()
  }
}
