/// Ids chosen by the client.
public enum MessageID {
  /// A new UUID of version 7 (RFC 9562, section 5.7): ordered by the time it was made.
  public static func make() -> String {
    make(milliseconds: WallClock.milliseconds)
  }

  static func make(milliseconds: UInt64) -> String {
    // The system's generator reads the kernel's random bytes.
    var generator = SystemRandomNumberGenerator()
    let high = (milliseconds & 0xFFFF_FFFF_FFFF) << 16 | 0x7000 | generator.next() & 0x0FFF
    let low = 0x8000_0000_0000_0000 | generator.next() & 0x3FFF_FFFF_FFFF_FFFF
    let digits = Array(hexadecimal(high) + hexadecimal(low))
    return [digits[0..<8], digits[8..<12], digits[12..<16], digits[16..<20], digits[20..<32]]
      .map { String($0) }.joined(separator: "-")
  }

  private static func hexadecimal(_ value: UInt64) -> String {
    let text = String(value, radix: 16)
    return String(repeating: "0", count: 16 - text.count) + text
  }
}
