// Conveniences of Google's well-known types.

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
}

extension Int64 {
  /// self * factor + addend, or the nearest number there is.
  fileprivate func scaled(by factor: Int64, plus addend: Int64) -> Int64 {
    let (product, overflow) = multipliedReportingOverflow(by: factor)
    if overflow { return self < 0 ? .min : .max }
    let (sum, carry) = product.addingReportingOverflow(addend)
    return carry ? (addend < 0 ? .min : .max) : sum
  }
}

extension Google.AnyMessage {
  /// Packs a message, under `type.googleapis.com/` and its full name.
  public init<M: Message>(packing message: M) {
    self.init(
      typeUrl: "type.googleapis.com/" + M.messageName, value: message.serializedBytes())
  }

  /// The full name of the packed message's type: what follows the last slash.
  public var typeName: String {
    String(typeUrl.utf8.split(separator: UInt8(ascii: "/")).last.map(Substring.init) ?? "")
  }

  /// The packed message, or nil when it is of another type.
  public func unpack<M: Message>(_: M.Type) throws(DecodingError) -> M? {
    guard typeName == M.messageName else { return nil }
    return try M(serializedBytes: value)
  }
}

extension Google.FieldMask {
  /// A mask of paths in their original spelling, for example `display_name`.
  public init(_ paths: String...) { self.init(paths: paths) }

  /// Whether the mask names the path or something around it.
  public func covers(_ path: String) -> Bool {
    paths.contains { $0 == path || path.hasPrefix($0 + ".") }
  }
}
