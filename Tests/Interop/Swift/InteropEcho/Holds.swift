import Glibc
import Synchronization

/// When held calls began and when their handlers learned of the end.
final class Holds: Sendable {
  struct Hold {
    var started = false
    /// Microseconds since 1970; nil while held.
    var ended: Int64?
  }

  private struct State {
    var holds: [String: Hold] = [:]
    var waiters: [UInt64: (key: String, continuation: CheckedContinuation<Void, Never>)] = [:]
    var last: UInt64 = 0
  }

  private let state = Mutex(State())

  func begin(_ key: String) { state.withLock { $0.holds[key] = Hold(started: true) } }

  func end(_ key: String) {
    let waiters = state.withLock { state in
      state.holds[key]?.ended = Self.now
      let ids = state.waiters.filter { $0.value.key == key }.map(\.key)
      return ids.compactMap { state.waiters.removeValue(forKey: $0)?.continuation }
    }
    for waiter in waiters { waiter.resume() }
  }

  /// The hold once it has ended, or as it is after `limit`.
  func wait(for key: String, limit: Duration) async -> Hold {
    let id = state.withLock { state in
      state.last += 1
      return state.last
    }
    var timer: Task<Void, Never>?
    await withCheckedContinuation { continuation in
      let ready = state.withLock { state in
        if state.holds[key]?.ended != nil { return true }
        state.waiters[id] = (key, continuation)
        return false
      }
      if ready { return continuation.resume() }
      // Only now: a timer that ran out before the waiter was there would never wake it.
      timer = Task {
        try? await Task.sleep(for: limit)
        state.withLock { $0.waiters.removeValue(forKey: id) }?.continuation.resume()
      }
    }
    timer?.cancel()
    return state.withLock { $0.holds[key] ?? Hold() }
  }

  private static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000
  }
}
