/// When a failed call is made again (gRPC "Retry Design", gRFC A6).
///
/// A call is made again as long as the server has not begun to answer it: after the first
/// response headers it is committed. So is a call whose requests stream once it has sent more
/// than 256 KiB.
public struct RetryPolicy: Sendable, Hashable {
  /// Attempts altogether, from 2 to 5.
  public var maxAttempts: Int
  public var initialBackoff: Duration
  public var maxBackoff: Duration
  public var backoffMultiplier: Double
  /// Statuses that are worth another attempt.
  public var retryableCodes: Set<StatusCode>

  public init(
    maxAttempts: Int = 3, initialBackoff: Duration = .milliseconds(100),
    maxBackoff: Duration = .seconds(1), backoffMultiplier: Double = 2,
    retryableCodes: Set<StatusCode> = [.unavailable]
  ) {
    self.maxAttempts = min(max(maxAttempts, 1), 5)
    self.initialBackoff = initialBackoff
    self.maxBackoff = maxBackoff
    self.backoffMultiplier = backoffMultiplier
    self.retryableCodes = retryableCodes
  }

  /// The delay before the attempt after `made` attempts since the beginning or the server's last
  /// pushback: the backoff, a fifth more or less, so that clients which failed together do not
  /// come back together.
  func delay(afterAttempts made: Int) -> Duration {
    let ceiling = Double(maxBackoff.nanoseconds)
    var backoff = Double(initialBackoff.nanoseconds)
    for _ in 1..<max(made, 1) where backoff < ceiling { backoff *= backoffMultiplier }
    let delay = Double.random(in: 0.8...1.2) * min(backoff, ceiling)
    return .nanoseconds(Int64(exactly: delay.rounded()) ?? .max)
  }
}

/// Stops retries of a channel while too many of its calls fail (gRFC A6, "Throttling Retry
/// Attempts and Hedged RPCs").
struct RetryThrottle {
  private let throttling: ServiceConfig.Throttling?
  private var tokens: Double

  /// Without a `retryThrottling` in the service config nothing is stopped.
  init(_ throttling: ServiceConfig.Throttling?) {
    self.throttling = throttling
    tokens = throttling?.maxTokens ?? 0
  }

  var allowsRetry: Bool { throttling.map { tokens > $0.maxTokens / 2 } ?? true }

  mutating func succeeded() {
    if let throttling { tokens = min(throttling.maxTokens, tokens + throttling.tokenRatio) }
  }

  mutating func failed() { tokens = max(0, tokens - 1) }
}
