/// The delay between attempts to connect (gRPC "Connection Backoff Protocol").
public struct Backoff: Sendable, Hashable {
  public var initial: Duration
  public var multiplier: Double
  /// A share of the delay by which it varies both ways.
  public var jitter: Double
  public var maximum: Duration

  public init(
    initial: Duration = .seconds(1), multiplier: Double = 1.6, jitter: Double = 0.2,
    maximum: Duration = .seconds(120)
  ) {
    self.initial = initial
    self.multiplier = multiplier
    self.jitter = jitter
    self.maximum = maximum
  }

  func delay(afterFailures failures: Int) -> Duration {
    let ceiling = Double(maximum.nanoseconds)
    var delay = Double(initial.nanoseconds)
    for _ in 0..<min(failures, 64) where delay < ceiling { delay *= multiplier }
    let spread = min(max(jitter, 0), 1)
    return .nanoseconds(
      Int64(min(delay, ceiling) * Double.random(in: (1 - spread)...(1 + spread))))
  }
}
