/// How often which latency was seen, in a bounded amount of memory: buckets that grow with the
/// value, each less than 1 % wide (the idea of Gil Tene's HdrHistogram).
struct LatencyHistogram: Sendable {
  /// Bits of a value that are kept.
  private static let precision = 7
  /// About 73 minutes, in nanoseconds; what is longer counts as that.
  static let limit: UInt64 = 1 << 42 - 1

  private var counts: [UInt64]
  private(set) var count: UInt64 = 0
  private(set) var min: UInt64 = .max
  private(set) var max: UInt64 = 0
  private var sum = 0.0
  private var sumOfSquares = 0.0

  init() { counts = Array(repeating: 0, count: Self.index(of: Self.limit) + 1) }

  static func index(of value: UInt64) -> Int {
    let value = Swift.min(value, limit)
    let bits = UInt64.bitWidth - value.leadingZeroBitCount
    let shift = Swift.max(0, bits - precision - 1)
    return shift << precision + Int(value >> UInt64(shift))
  }

  /// The smallest and the largest value of a bucket.
  static func range(of index: Int) -> ClosedRange<UInt64> {
    let shift = Swift.max(0, index >> precision - 1)
    let low = UInt64(index - shift << precision) << UInt64(shift)
    return low...(low + (1 << UInt64(shift) - 1))
  }

  /// In nanoseconds.
  mutating func record(_ nanoseconds: UInt64) {
    counts[Self.index(of: nanoseconds)] &+= 1
    count &+= 1
    min = Swift.min(min, nanoseconds)
    max = Swift.max(max, nanoseconds)
    let value = Double(nanoseconds)
    sum += value
    sumOfSquares += value * value
  }

  mutating func merge(_ other: LatencyHistogram) {
    for index in counts.indices { counts[index] &+= other.counts[index] }
    count &+= other.count
    min = Swift.min(min, other.min)
    max = Swift.max(max, other.max)
    sum += other.sum
    sumOfSquares += other.sumOfSquares
  }

  var mean: Double { count == 0 ? 0 : sum / Double(count) }

  var standardDeviation: Double {
    guard count > 1 else { return 0 }
    return Swift.max(0, sumOfSquares / Double(count) - mean * mean).squareRoot()
  }

  /// The latency that a part of the values, from 0 to 1, does not exceed.
  func quantile(_ part: Double) -> UInt64 {
    guard count > 0 else { return 0 }
    let rank = Swift.max(1, UInt64((part * Double(count)).rounded(.up)))
    var seen: UInt64 = 0
    for (index, here) in counts.enumerated() where here > 0 {
      seen &+= here
      if seen >= rank { return Swift.min(Self.range(of: index).upperBound, max) }
    }
    return max
  }

  /// The values from the smallest to the largest in steps of equal width, for a picture.
  func steps(_ number: Int) -> [(from: UInt64, to: UInt64, count: UInt64)] {
    guard count > 0, number > 0 else { return [] }
    let width = Swift.max(1, (max - min) / UInt64(number) + 1)
    var steps = (0..<UInt64(number)).map {
      (from: min + $0 * width, to: Swift.min(max, min + ($0 + 1) * width - 1), count: UInt64(0))
    }
    for (index, here) in counts.enumerated() where here > 0 {
      let range = Self.range(of: index)
      let middle = Swift.min(Swift.max((range.lowerBound + range.upperBound) / 2, min), max)
      steps[Swift.min(Int((middle - min) / width), number - 1)].count += here
    }
    return steps.filter { $0.from <= max }
  }
}
