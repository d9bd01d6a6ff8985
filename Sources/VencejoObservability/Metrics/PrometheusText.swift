/// Metrics as Prometheus reads them (its text format, version 0.0.4).
///
/// Names are made as OpenTelemetry's exporters make them: dots become underscores, the unit and,
/// for counters, `total` follow.
public enum PrometheusText {
  public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  public static func encode(_ metrics: [Metric]) -> String {
    var text = ""
    for metric in metrics { encode(metric, into: &text) }
    return text
  }

  private static func encode(_ metric: Metric, into text: inout String) {
    guard let first = metric.points.first else { return }
    var name = sanitized(metric.name, allowingColon: true) + suffix(ofUnit: metric.unit)
    let type: String
    switch first.value {
    case .count:
      type = "counter"
      name += "_total"
    case .gauge: type = "gauge"
    case .histogram: type = "histogram"
    }
    text += "# HELP \(name) \(escaped(metric.description, quotes: false))\n"
    text += "# TYPE \(name) \(type)\n"
    for point in metric.points {
      let labels = point.labels.map {
        "\(sanitized($0.name))=\"\(escaped($0.value, quotes: true))\""
      }
      switch point.value {
      case .count(let count): text += "\(name)\(braces(labels)) \(count)\n"
      case .gauge(let value): text += "\(name)\(braces(labels)) \(number(value))\n"
      case .histogram(let histogram):
        var cumulated: UInt64 = 0
        for (index, count) in histogram.counts.enumerated() {
          cumulated &+= count
          let bound =
            histogram.bounds.indices.contains(index) ? number(histogram.bounds[index]) : "+Inf"
          text += "\(name)_bucket\(braces(labels + ["le=\"\(bound)\""])) \(cumulated)\n"
        }
        text += "\(name)_sum\(braces(labels)) \(number(histogram.sum))\n"
        text += "\(name)_count\(braces(labels)) \(histogram.count)\n"
      }
    }
  }

  private static func braces(_ labels: [String]) -> String {
    labels.isEmpty ? "" : "{\(labels.joined(separator: ","))}"
  }

  private static func suffix(ofUnit unit: String) -> String {
    switch unit {
    case "s": "_seconds"
    case "By": "_bytes"
    case _ where unit.isEmpty || unit == "1" || unit.hasPrefix("{"): ""
    default: "_" + sanitized(unit)
    }
  }

  /// Letters, digits and underscores, no digit first.
  private static func sanitized(_ name: String, allowingColon: Bool = false) -> String {
    var result = ""
    for scalar in name.unicodeScalars {
      switch scalar {
      case "a"..."z", "A"..."Z", "_": result.unicodeScalars.append(scalar)
      case "0"..."9":
        if result.isEmpty { result += "_" }
        result.unicodeScalars.append(scalar)
      case ":" where allowingColon: result.unicodeScalars.append(scalar)
      default: result += "_"
      }
    }
    return result
  }

  private static func escaped(_ text: String, quotes: Bool) -> String {
    var result = ""
    for character in text.unicodeScalars {
      switch character {
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\"" where quotes: result += "\\\""
      default: result.unicodeScalars.append(character)
      }
    }
    return result
  }

  private static func number(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
    // Whole numbers as people write them; Swift's shortest form is read back exactly.
    if value == value.rounded(), abs(value) < 1e15 { return "\(Int64(value))" }
    return "\(value)"
  }
}
