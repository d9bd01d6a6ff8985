import Synchronization
import VencejoProtobuf
public import VencejoRPC

/// Refuses calls beyond a rate, counted for each key apart: a token bucket that holds `burst`
/// tokens and gains `perSecond` of them.
///
/// A call that finds none ends with RESOURCE_EXHAUSTED and a google.rpc.RetryInfo that says when
/// there is one again. On a client it keeps to what a server allows before it asks.
///
/// ```swift
/// RateLimit(perSecond: 50, burst: 100) { $0.peer.isUnix ? nil : "\($0.method)" }
/// ```
public final class RateLimit: ServerInterceptor, ClientInterceptor {
  private let buckets: Mutex<TokenBuckets>
  private let serverKey: @Sendable (ServerContext) -> String?
  private let clientKey: @Sendable (ClientInterception) -> String?

  /// On a server. `key` tells which calls are counted together; calls without one are not
  /// limited. Beyond `maxKeys` the keys that have been quiet for longest are forgotten.
  public init(
    perSecond: Double, burst: Int, maxKeys: Int = 10_000,
    key: @escaping @Sendable (ServerContext) -> String?
  ) {
    buckets = Mutex(TokenBuckets(perSecond: perSecond, burst: burst, maxKeys: maxKeys))
    serverKey = key
    clientKey = { $0.method }
  }

  /// On a client: all calls together, or those with the same key.
  public init(
    callsPerSecond perSecond: Double, burst: Int, maxKeys: Int = 10_000,
    clientKey: @escaping @Sendable (ClientInterception) -> String? = { _ in "" }
  ) {
    buckets = Mutex(TokenBuckets(perSecond: perSecond, burst: burst, maxKeys: maxKeys))
    serverKey = { $0.method }
    self.clientKey = clientKey
  }

  public func intercept(_ call: ServerInterception) async throws {
    try take(serverKey(call.context))
    try await call.proceed()
  }

  public func intercept(_ call: ClientInterception) async throws {
    try take(clientKey(call))
    try await call.proceed()
  }

  private func take(_ key: String?) throws(RPCError) {
    guard let key else { return }
    guard let wait = buckets.withLock({ $0.take(key, now: .now) }) else { return }
    var error = RPCError(.resourceExhausted, "too many calls; try again in \(wait)")
    let (seconds, attoseconds) = wait.components
    error.add(
      detail: GoogleRPC.RetryInfo(
        retryDelay: .init(
          seconds: seconds, nanos: Int32(clamping: attoseconds / 1_000_000_000))))
    throw error
  }
}

/// Pure: times in, decisions out.
struct TokenBuckets {
  private struct Bucket {
    var tokens: Double
    var last: ContinuousClock.Instant
  }

  private let perSecond: Double
  private let burst: Double
  private let maxKeys: Int
  private var buckets: [String: Bucket] = [:]

  init(perSecond: Double, burst: Int, maxKeys: Int) {
    self.perSecond = max(perSecond, 1e-6)
    self.burst = Double(max(burst, 1))
    self.maxKeys = max(maxKeys, 1)
  }

  var count: Int { buckets.count }

  /// Takes a token; nil, or how long until there is one.
  mutating func take(_ key: String, now: ContinuousClock.Instant) -> Duration? {
    var bucket = buckets[key] ?? Bucket(tokens: burst, last: now)
    let earned = max(0, (now - bucket.last) / .seconds(1)) * perSecond
    bucket.tokens = min(burst, bucket.tokens + earned)
    bucket.last = now
    guard bucket.tokens >= 1 else {
      buckets[key] = bucket
      return .seconds(min((1 - bucket.tokens) / perSecond, 86_400))
    }
    bucket.tokens -= 1
    if buckets[key] == nil, buckets.count >= maxKeys { forget(now) }
    buckets[key] = bucket
    return nil
  }

  /// A bucket that is full again by now is as good as none. When there are too few of these, the
  /// quieter half goes: whoever brings many keys must not cost more and more.
  private mutating func forget(_ now: ContinuousClock.Instant) {
    let full = Duration.seconds(burst / perSecond)
    buckets = buckets.filter { now - $0.value.last < full }
    guard buckets.count >= maxKeys else { return }
    let middle = buckets.values.map(\.last).sorted()[buckets.count / 2]
    buckets = buckets.filter { $0.value.last > middle }
  }
}
