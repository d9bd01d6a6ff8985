import Synchronization
import VencejoHTTP2

/// What a call may take, and what it waits for.
extension ServerCall {
  /// Counts the handler where its service or the process has a limit. What is wrong, or nil.
  func beginLimited(_ entry: MethodTable.Entry) -> RPCError? {
    if let limit = connection.host.limit, !limit.begin() {
      return RPCError(.resourceExhausted, "too many calls are running on this server")
    }
    if let limit = entry.limit, !limit.begin() {
      connection.host.limit?.end()
      return RPCError(.resourceExhausted, "too many calls of this service are running")
    }
    return nil
  }

  func sizeRefusal(_ frame: [UInt8]) -> RPCError? {
    guard frame.count - Deframer.prefixLength > connection.host.sendLimit else { return nil }
    return RPCError(
      .resourceExhausted,
      "a message of \(frame.count - Deframer.prefixLength) bytes where "
        + "\(connection.host.sendLimit) may be sent")
  }

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
