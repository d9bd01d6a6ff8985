// Conveniences of google.protobuf.Timestamp and Duration. What does not fit saturates: what
// peers send never traps.

extension Google.Timestamp {
  /// A moment, in nanoseconds since 1970-01-01T00:00:00Z.
  public init(unixNanoseconds nanoseconds: Int64) {
    let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    // `nanos` counts forward, also before 1970.
    let borrow: Int64 = rest < 0 ? 1 : 0
    self.init(seconds: seconds - borrow, nanos: Int32(rest + borrow * 1_000_000_000))
  }

  /// A moment, in milliseconds since 1970-01-01T00:00:00Z.
  public init(unixMilliseconds milliseconds: Int64) {
    let (seconds, rest) = milliseconds.quotientAndRemainder(dividingBy: 1000)
    let borrow: Int64 = rest < 0 ? 1 : 0
    self.init(seconds: seconds - borrow, nanos: Int32((rest + borrow * 1000) * 1_000_000))
  }

  /// Nanoseconds since 1970-01-01T00:00:00Z; moments before 1677 and after 2262 give the
  /// nearest number there is.
  public var unixNanoseconds: Int64 { seconds.scaled(by: 1_000_000_000, plus: Int64(nanos)) }

  /// Milliseconds since 1970-01-01T00:00:00Z, rounded down; the nearest number there is.
  public var unixMilliseconds: Int64 {
    let (quotient, rest) = nanos.quotientAndRemainder(dividingBy: 1_000_000)
    return seconds.scaled(by: 1000, plus: Int64(rest < 0 ? quotient - 1 : quotient))
  }

  /// Whether it is of the years 1 to 9999 with `nanos` from 0 to 999,999,999, as
  /// `timestamp.proto` demands.
  public var isValid: Bool {
    (-62_135_596_800...253_402_300_799).contains(seconds) && (0..<1_000_000_000).contains(nanos)
  }

  /// The moment so much later.
  public static func + (moment: Self, duration: Swift.Duration) -> Self {
    let (seconds, attoseconds) = duration.components
    let (sum, nanos) = normalized(
      moment.seconds, plus: seconds, nanos: Int64(moment.nanos) + attoseconds / 1_000_000_000,
      isForward: true)
    return Self(seconds: sum, nanos: nanos)
  }

  /// The moment so much earlier.
  public static func - (moment: Self, duration: Swift.Duration) -> Self {
    moment + (.zero - duration)
  }

  /// The time from the right moment to the left one.
  public static func - (left: Self, right: Self) -> Swift.Duration {
    Google.Duration(seconds: left.seconds, nanos: left.nanos).duration
      - Google.Duration(seconds: right.seconds, nanos: right.nanos).duration
  }
}

extension Google.Timestamp: Comparable {
  /// Whether the left moment is earlier.
  public static func < (left: Self, right: Self) -> Bool {
    (left.seconds, left.nanos) < (right.seconds, right.nanos)
  }
}

extension Google.Duration {
  /// From Swift's duration; what is finer than a nanosecond is dropped.
  public init(_ duration: Swift.Duration) {
    let (seconds, attoseconds) = duration.components
    self.init(seconds: seconds, nanos: Int32(attoseconds / 1_000_000_000))
  }

  /// As Swift's duration.
  public var duration: Swift.Duration {
    Swift.Duration(secondsComponent: seconds, attosecondsComponent: 0)
      + Swift.Duration(secondsComponent: 0, attosecondsComponent: Int64(nanos) * 1_000_000_000)
  }

  /// Whether it is at most some 10,000 years with `nanos` of the same sign below a second, as
  /// `duration.proto` demands.
  public var isValid: Bool {
    (-315_576_000_000...315_576_000_000).contains(seconds)
      && (-999_999_999...999_999_999).contains(nanos)
      && !(seconds > 0 && nanos < 0) && !(seconds < 0 && nanos > 0)
  }

  /// The same length with `nanos` below a second and of the sign of `seconds`.
  public func normalized() -> Self {
    let (seconds, nanos) = VencejoProtobuf.normalized(
      seconds, plus: 0, nanos: Int64(nanos), isForward: false)
    return Self(seconds: seconds, nanos: nanos)
  }
}

/// A sum of seconds and nanoseconds; the nanoseconds count forward, or have the sign of the
/// seconds.
private func normalized(
  _ seconds: Int64, plus more: Int64, nanos: Int64, isForward: Bool
) -> (Int64, Int32) {
  var (carry, rest) = nanos.quotientAndRemainder(dividingBy: 1_000_000_000)
  if rest < 0 && isForward {
    rest += 1_000_000_000
    carry -= 1
  }
  var sum = seconds.saturating(plus: more).saturating(plus: carry)
  if !isForward && sum > 0 && rest < 0 {
    sum -= 1
    rest += 1_000_000_000
  } else if !isForward && sum < 0 && rest > 0 {
    sum += 1
    rest -= 1_000_000_000
  }
  return (sum, Int32(rest))
}

extension Int64 {
  fileprivate func saturating(plus addend: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(addend)
    return overflow ? (addend < 0 ? .min : .max) : sum
  }

  /// self * factor + addend, or the nearest number there is.
  fileprivate func scaled(by factor: Int64, plus addend: Int64) -> Int64 {
    let (product, overflow) = multipliedReportingOverflow(by: factor)
    if overflow { return self < 0 ? .min : .max }
    return product.saturating(plus: addend)
  }
}
