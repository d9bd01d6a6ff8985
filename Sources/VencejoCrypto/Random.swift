/// Unpredictable numbers from the kernel.
public enum SecureRandom {
  /// `count` unpredictable bytes.
  ///
  /// Swift's system generator is getrandom(2) on Linux, without a state of its own.
  public static func bytes(_ count: Int) -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    var result: [UInt8] = []
    result.reserveCapacity(count)
    while result.count < count {
      var word = generator.next()
      for _ in 0..<min(8, count - result.count) {
        result.append(UInt8(truncatingIfNeeded: word))
        word >>= 8
      }
    }
    return result
  }
}
