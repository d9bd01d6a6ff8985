import Synchronization
import VencejoHTTP2
import VencejoStore

/// What may be done how often, by token buckets: `burst` at once, `perSecond` for good.
public struct RateLimit: Sendable, Hashable {
  public var burst: Double
  public var perSecond: Double

  public init(burst: Double, perSecond: Double) {
    self.burst = burst
    self.perSecond = perSecond
  }
}

/// Counts what callers do.
final class RateLimits: Sendable {
  /// What is counted, each with a limit of its own.
  enum Act: Hashable {
    /// Signing up and in, by address.
    case attempt
    /// Whatever a user calls.
    case call
    /// What changes something, by user.
    case change
    /// What changes something, by session or key: one device does not use up what is its user's.
    case deviceChange
  }

  private struct Key: Hashable {
    let act: Act
    let who: String
  }

  private struct Bucket {
    var tokens: Double
    /// Microseconds since the Unix epoch.
    var time: Int64
  }

  private static let capacity = 65_536
  private let current: Mutex<[Act: RateLimit]>
  private let buckets = Mutex<[Key: Bucket]>([:])

  init(_ limits: [Act: RateLimit]) { current = Mutex(limits) }

  /// From now on; what was done already counts.
  func set(_ limits: [Act: RateLimit]) { current.withLock { $0 = limits } }

  /// Takes one from the bucket of `who`.
  ///
  /// - Throws: `RATE_LIMITED` with a RetryInfo.
  func spend(_ act: Act, _ who: String, now: Int64) throws(StoreError) {
    let limits = current.withLock { $0 }
    guard let limit = limits[act], limit.perSecond > 0 else { return }
    let wait = buckets.withLock { buckets -> Double? in
      let key = Key(act: act, who: who)
      if buckets.count >= Self.capacity, buckets[key] == nil {
        // Full ones say the same as none.
        buckets = buckets.filter {
          let passed = Double(max(0, now - $0.value.time)) / 1_000_000
          let limit = limits[$0.key.act] ?? limit
          return $0.value.tokens + passed * limit.perSecond < limit.burst
        }
        if buckets.count >= Self.capacity { buckets.removeAll() }
      }
      var bucket = buckets[key] ?? Bucket(tokens: limit.burst, time: now)
      let passed = Double(max(0, now - bucket.time)) / 1_000_000
      bucket.tokens = min(limit.burst, bucket.tokens + passed * limit.perSecond)
      bucket.time = now
      defer { buckets[key] = bucket }
      guard bucket.tokens >= 1 else { return (1 - bucket.tokens) / limit.perSecond }
      bucket.tokens -= 1
      return nil
    }
    guard let wait else { return }
    throw StoreError(
      .resourceExhausted, "RATE_LIMITED", "too much at once: wait",
      details: [.retry(afterMilliseconds: Int64(min(wait * 1000, 86_400_000)) + 1)])
  }
}

extension SocketAddress {
  /// Who is counted: the address without its port, and of IPv6 the network a household has.
  var host: String {
    switch self {
    case .ipv4(let address, _): "4:\(address)"
    case .ipv6(let high, let low, _, _): high == 0 ? "6:\(low)" : "6:\(high)::"
    case .unix: "unix"
    }
  }
}
