/// The delay between attempts to connect (gRPC "Connection Backoff Protocol").
///
/// It counts from the beginning of an attempt to the beginning of the next; an attempt may
/// take as long as that, and always `ConnectionConfiguration.connectTimeout`. A connection that
/// stands puts it back to `initial`.
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

  /// `random` is from 0 to 1 and chooses within the jitter.
  func delay(afterFailures failures: Int, random: Double) -> Duration {
    let ceiling = Double(maximum.nanoseconds)
    var delay = Double(initial.nanoseconds)
    for _ in 0..<min(failures, 64) where delay < ceiling { delay *= multiplier }
    let spread = min(max(jitter, 0), 1)
    let nanoseconds = min(delay, ceiling) * (1 - spread + 2 * spread * random)
    return .nanoseconds(Int64(exactly: max(nanoseconds, 0).rounded()) ?? maximum.nanoseconds)
  }
}
