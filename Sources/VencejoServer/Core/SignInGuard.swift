import Synchronization
import VencejoStore

/// Slows down who guesses passwords.
///
/// Counted by account and address together: a stranger who guesses from elsewhere locks nobody
/// out of their own account.
final class SignInGuard: Sendable {
  private struct Key: Hashable {
    let name: String
    let address: String
  }

  private struct Failures {
    var count = 0
    /// Microseconds since the Unix epoch.
    var last: Int64 = 0
    var until: Int64 = 0
  }

  /// Failures that cost nothing.
  static let free = 5
  /// The first wait, which doubles with each further failure up to the longest.
  static let firstWait: Int64 = 2_000_000
  static let longestWait: Int64 = 15 * 60 * 1_000_000
  /// Failures are forgotten after so long without another.
  static let memory: Int64 = 3600 * 1_000_000
  private static let capacity = 65_536

  private let failures = Mutex<[Key: Failures]>([:])

  /// - Throws: `TOO_MANY_FAILURES` with a RetryInfo.
  func check(_ name: String, _ address: String, now: Int64) throws(StoreError) {
    let until = failures.withLock { $0[Self.key(name, address)]?.until ?? 0 }
    guard until > now else { return }
    throw StoreError(
      .resourceExhausted, "TOO_MANY_FAILURES", "too many wrong passwords: wait",
      details: [.retry(afterMilliseconds: (until - now + 999) / 1000)])
  }

  func failed(_ name: String, _ address: String, now: Int64) {
    failures.withLock { failures in
      // Full of names somebody made up: forget those that are over, or else all.
      if failures.count >= Self.capacity {
        failures = failures.filter { $0.value.until > now }
        if failures.count >= Self.capacity { failures.removeAll() }
      }
      var entry = failures[Self.key(name, address)] ?? Failures()
      if now - entry.last > Self.memory { entry = Failures() }
      entry.count += 1
      entry.last = now
      if entry.count >= Self.free {
        let doublings = min(entry.count - Self.free, 20)
        entry.until = now + min(Self.longestWait, Self.firstWait << Int64(doublings))
      }
      failures[Self.key(name, address)] = entry
    }
  }

  func succeeded(_ name: String, _ address: String) {
    failures.withLock { $0[Self.key(name, address)] = nil }
  }

  private static func key(_ name: String, _ address: String) -> Key {
    // Long names are nobody's: one entry for all of them.
    Key(name: name.utf8.count > 254 ? "" : name.lowercased(), address: address)
  }
}
