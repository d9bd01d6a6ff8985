import Glibc

/// A 128-bit identifier (RFC 9562).
public struct UUID: Sendable, Hashable, Comparable, CustomStringConvertible {
  fileprivate let high: UInt64
  fileprivate let low: UInt64

  fileprivate init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// The identifier in 16 bytes, big-endian; nil for any other length.
  public init?(bytes: [UInt8]) {
    guard bytes.count == 16 else { return nil }
    var high: UInt64 = 0
    var low: UInt64 = 0
    for index in 0..<8 {
      high = (high << 8) | UInt64(bytes[index])
      low = (low << 8) | UInt64(bytes[index + 8])
    }
    self.init(high: high, low: low)
  }

  /// The identifier written as 8-4-4-4-12 hexadecimal digits of either case; nil otherwise.
  public init?(parsing text: some StringProtocol) {
    var high: UInt64 = 0
    var low: UInt64 = 0
    var digits = 0
    var position = 0
    for byte in text.utf8 {
      defer { position += 1 }
      if position == 8 || position == 13 || position == 18 || position == 23 {
        guard byte == 0x2d else { return nil }
        continue
      }
      let value: UInt8
      switch byte {
      case 0x30...0x39: value = byte - 0x30
      case 0x41...0x46: value = byte - 0x37
      case 0x61...0x66: value = byte - 0x57
      default: return nil
      }
      guard digits < 32 else { return nil }
      if digits < 16 {
        high = (high << 4) | UInt64(value)
      } else {
        low = (low << 4) | UInt64(value)
      }
      digits += 1
    }
    guard digits == 32, position == 36 else { return nil }
    self.init(high: high, low: low)
  }

  /// A time-ordered identifier (RFC 9562, section 5.7) for `milliseconds` since the Unix
  /// epoch; the other 74 bits are random.
  public static func v7(milliseconds: Int64) -> UUID {
    var random: (UInt64, UInt64) = (0, 0)
    for byte in SecureRandom.bytes(16) {
      random = ((random.0 << 8) | (random.1 >> 56), (random.1 << 8) | UInt64(byte))
    }
    let time = UInt64(truncatingIfNeeded: milliseconds) << 16
    return UUID(
      high: time | 0x7000 | (random.0 & 0x0fff),
      low: 0x8000_0000_0000_0000 | (random.1 & 0x3fff_ffff_ffff_ffff))
  }

  /// A time-ordered identifier of this moment.
  public static func v7() -> UUID {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return v7(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
  }

  /// The 16 bytes, big-endian.
  public var bytes: [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(16)
    for word in [high, low] {
      for shift in stride(from: UInt64(56), through: 0, by: -8) {
        result.append(UInt8(truncatingIfNeeded: word >> shift))
      }
    }
    return result
  }

  /// The version field; 7 for time-ordered identifiers.
  public var version: Int { Int((high >> 12) & 0xf) }

  /// Milliseconds since the Unix epoch, when ``version`` is 7.
  public var milliseconds: Int64? { version == 7 ? Int64(high >> 16) : nil }

  /// 8-4-4-4-12 lower-case hexadecimal digits.
  public var description: String {
    String(unsafeUninitializedCapacity: 36) { output in
      var at = 0
      for word in [high, low] {
        for nibble in 0..<16 {
          if at == 8 || at == 13 || at == 18 || at == 23 {
            output[at] = 0x2d
            at += 1
          }
          let value = UInt8((word >> UInt64(60 - nibble * 4)) & 0xf)
          output[at] = value < 10 ? 0x30 + value : 0x57 + value
          at += 1
        }
      }
      return at
    }
  }

  public static func < (left: UUID, right: UUID) -> Bool {
    (left.high, left.low) < (right.high, right.low)
  }
}

/// Time-ordered identifiers of which each is greater than the one before, also within one
/// millisecond: what they name is written in the order of an index (RFC 9562, section 6.2,
/// method 2).
package struct AscendingUUIDs {
  private var last = UUID.v7()

  package init() {}

  package mutating func next() -> UUID {
    let step = 1 + UInt64(UInt32.random(in: 0...UInt32.max))
    let (low, isOver) = last.low.addingReportingOverflow(step)
    // The upper two bits are the variant; beyond them another moment begins.
    guard !isOver, low >> 62 == 2 else {
      last = max(UUID.v7(), UUID.v7(milliseconds: 1 + (last.milliseconds ?? 0)))
      return last
    }
    last = UUID(high: last.high, low: low)
    return last
  }
}
