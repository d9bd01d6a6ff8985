import Glibc

@testable import VencejoHTTP2

/// What happened on a loop, for a test on another thread to wait for.
final class EventLog<Event: Sendable>: Sendable {
  private let events = Locked<[Event]>([])

  func push(_ event: Event) { events.withLock { $0.append(event) } }

  var all: [Event] { events.withLock { $0 } }

  /// The first event that passes `test`, waiting up to five seconds for it.
  func wait<R>(for test: (Event) -> R?) -> R? {
    let end = now() + 5_000_000_000
    repeat {
      for event in all { if let found = test(event) { return found } }
      poll(nil, 0, 1)
    } while now() < end
    return nil
  }

  private func now() -> UInt64 {
    var t = timespec()
    clock_gettime(CLOCK_MONOTONIC, &t)
    return UInt64(t.tv_sec) * 1_000_000_000 + UInt64(t.tv_nsec)
  }
}
