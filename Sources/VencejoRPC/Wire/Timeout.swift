/// The `grpc-timeout` header (gRPC over HTTP2, "Requests", Timeout): at most eight
/// digits and a unit.
enum Timeout {
  /// Nanoseconds, or nil when malformed. Hours saturate: eight digits of them are more
  /// than 64 bits of nanoseconds hold.
  static func parse(_ text: UnsafeRawBufferPointer) -> Int64? {
    guard text.count >= 2, text.count <= 9, let last = text.last else { return nil }
    var value: Int64 = 0
    for byte in text.dropLast() {
      guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
      value = value * 10 + Int64(byte - UInt8(ascii: "0"))
    }
    let unit: Int64
    switch last {
    case UInt8(ascii: "n"): unit = 1
    case UInt8(ascii: "u"): unit = 1_000
    case UInt8(ascii: "m"): unit = 1_000_000
    case UInt8(ascii: "S"): unit = 1_000_000_000
    case UInt8(ascii: "M"): unit = 60_000_000_000
    case UInt8(ascii: "H"): unit = 3_600_000_000_000
    default: return nil
    }
    let (product, overflow) = value.multipliedReportingOverflow(by: unit)
    return overflow ? .max : product
  }

  /// The finest unit in which the value has at most eight digits, rounded up so that the
  /// server never gives up before the client.
  static func format(nanoseconds: Int64) -> String {
    let nanoseconds = max(nanoseconds, 1)
    let units: [(Int64, Character)] = [
      (1, "n"), (1_000, "u"), (1_000_000, "m"), (1_000_000_000, "S"), (60_000_000_000, "M"),
    ]
    for (unit, letter) in units {
      let value = (nanoseconds - 1) / unit + 1
      if value <= 99_999_999 { return "\(value)\(letter)" }
    }
    return "\(min((nanoseconds - 1) / 3_600_000_000_000 + 1, 99_999_999))H"
  }
}

extension Duration {
  /// Whole nanoseconds, saturating at 64 bits in both directions.
  var nanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    if overflow { return seconds < 0 ? .min : .max }
    let (sum, overflowed) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
    return overflowed ? (seconds < 0 ? .min : .max) : sum
  }
}
