/// How long to wait before connecting again: full jitter, so that a thousand clients whose server
/// restarted do not come back in the same instant.
struct ReconnectDelay: Sendable {
  /// Seconds.
  static let shortest = 0.5
  static let longest = 30.0

  private(set) var failures = 0

  mutating func reset() { failures = 0 }

  /// Seconds until the next attempt; `random` is between 0 and 1.
  mutating func next(random: Double = .random(in: 0...1)) -> Double {
    let ceiling = min(Self.longest, Self.shortest * Double(1 << min(failures, 10)))
    failures += 1
    return ceiling * min(max(random, 0), 1)
  }
}
