/// One instrument and its values, in OpenTelemetry's terms.
public struct Metric: Sendable {
  /// A value with its labels.
  public struct Point: Sendable {
    public let labels: [(name: String, value: String)]
    public let value: Value

    public init(labels: [(name: String, value: String)], value: Value) {
      self.labels = labels
      self.value = value
    }
  }

  public enum Value: Sendable {
    /// Only grows.
    case count(UInt64)
    /// Goes up and down.
    case gauge(Double)
    case histogram(Histogram)
  }

  /// As `grpc.server.call.duration`.
  public let name: String
  public let description: String
  /// As UCUM writes it: `s`, `By`, `{call}`.
  public let unit: String
  public let points: [Point]

  public init(name: String, description: String, unit: String, points: [Point]) {
    self.name = name
    self.description = description
    self.unit = unit
    self.points = points
  }
}

/// Something that has metrics to show, asked each time somebody looks.
public protocol MetricSource: Sendable {
  func metrics() -> [Metric]
}

/// How values are distributed.
public struct Histogram: Sendable, Hashable {
  /// Upper bounds of the buckets, ascending; each belongs to its bucket.
  public let bounds: [Double]
  /// One more than there are bounds; not cumulative.
  public private(set) var counts: [UInt64]
  public private(set) var sum = 0.0
  public private(set) var count: UInt64 = 0

  public init(bounds: [Double]) {
    self.bounds = bounds
    counts = Array(repeating: 0, count: bounds.count + 1)
  }

  public mutating func record(_ value: Double) {
    var low = 0
    var high = bounds.count
    while low < high {
      let middle = (low + high) / 2
      if value <= bounds[middle] { high = middle } else { low = middle + 1 }
    }
    counts[low] &+= 1
    count &+= 1
    sum += value
  }
}

extension Histogram {
  /// Of durations, in seconds (gRFC A66, "Units").
  static let latencyBounds: [Double] = [
    0, 0.00001, 0.00005, 0.0001, 0.0003, 0.0006, 0.0008, 0.001, 0.002, 0.003, 0.004, 0.005, 0.006,
    0.008, 0.01, 0.013, 0.016, 0.02, 0.025, 0.03, 0.04, 0.05, 0.065, 0.08, 0.1, 0.13, 0.16, 0.2,
    0.25, 0.3, 0.4, 0.5, 0.65, 0.8, 1, 2, 5, 10, 20, 50, 100,
  ]

  /// Of sizes, in bytes (gRFC A66, "Units").
  static let sizeBounds: [Double] = [
    0, 1_024, 2_048, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864,
    268_435_456, 1_073_741_824, 4_294_967_296,
  ]
}
