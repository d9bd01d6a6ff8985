import Glibc

/// A measurement as a picture: how latencies are distributed, and the latency of each
/// percentile on a scale that shows the slow ones.
enum BenchPlot {
  private static let width = 860.0
  private static let height = 360.0
  private static let left = 90.0
  private static let right = 24.0

  static func svg(_ report: BenchReport) -> String {
    var svg = """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Int(width)) \(Int(height * 2 + 60))" \
      font-family="sans-serif" font-size="12" fill="#222">
      <rect width="100%" height="100%" fill="#fff"/>
      <text x="\(left)" y="24" font-size="15">\(escaped(title(report)))</text>

      """
    svg += histogram(report.tally.latencies, top: 48)
    svg += percentiles(report.tally.latencies, top: 48 + height)
    return svg + "</svg>\n"
  }

  private static func title(_ report: BenchReport) -> String {
    "\(report.plan.method?.path ?? ""): \(report.calls) calls, "
      + "\(BenchReport.number(report.rate)) calls/s, \(report.plan.concurrency) at a time"
  }

  private static func histogram(_ latencies: LatencyHistogram, top: Double) -> String {
    let steps = latencies.steps(48)
    guard let most = steps.map(\.count).max(), most > 0 else { return "" }
    let (plotWidth, plotHeight) = (width - left - right, height - 70)
    var svg = axes(top, plotHeight, "calls")
    let bar = plotWidth / 48
    for (index, step) in steps.enumerated() where step.count > 0 {
      let size = max(1, Double(step.count) / Double(most) * plotHeight)
      svg += """
        <rect x="\(shown(left + Double(index) * bar))" y="\(shown(top + plotHeight - size))" \
        width="\(shown(max(1, bar - 1)))" height="\(shown(size))" fill="#2a6f97"><title>\
        \(escaped(BenchReport.time(Double(step.from)))) to \
        \(escaped(BenchReport.time(Double(step.to)))): \(step.count)</title></rect>

        """
    }
    svg += label(left - 8, top + 10, "\(most)", anchor: "end")
    for index in [0, 12, 24, 36, 47] where steps.indices.contains(index) {
      svg += label(
        left + (Double(index) + 0.5) * bar, top + plotHeight + 18,
        BenchReport.time(Double(steps[index].to)), anchor: "middle")
    }
    return svg
  }

  private static func percentiles(_ latencies: LatencyHistogram, top: Double) -> String {
    guard latencies.count > 0 else { return "" }
    let (plotWidth, plotHeight) = (width - left - right, height - 70)
    var svg = axes(top, plotHeight, "latency")
    // Each tenfold step towards 100 % takes the same room.
    let nines = max(1.0, min(6, log10(Double(latencies.count)).rounded(.down)))
    let most = Double(max(latencies.max, 1))
    var points: [String] = []
    for step in 0...240 {
      let position = Double(step) / 240
      let part = 1 - pow(10, -position * nines)
      let value = Double(latencies.quantile(part))
      points.append(
        "\(shown(left + position * plotWidth)),\(shown(top + plotHeight * (1 - value / most)))")
    }
    svg += """
      <polyline points="\(points.joined(separator: " "))" fill="none" stroke="#c1440e" \
      stroke-width="2"/>

      """
    let marks = ["0 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %"]
    for (index, mark) in marks.enumerated() where Double(index) <= nines {
      svg += label(
        left + Double(index) / nines * plotWidth, top + plotHeight + 18, mark, anchor: "middle")
    }
    for fraction in [0.0, 0.25, 0.5, 0.75, 1] {
      svg += label(
        left - 8, top + plotHeight * (1 - fraction) + 4, BenchReport.time(most * fraction),
        anchor: "end")
    }
    return svg
  }

  private static func axes(_ top: Double, _ plotHeight: Double, _ name: String) -> String {
    """
    <path d="M\(left) \(top)V\(top + plotHeight)H\(width - right)" fill="none" stroke="#888"/>
    <text x="16" y="\(top + plotHeight / 2)" \
    transform="rotate(-90 16 \(top + plotHeight / 2))">\(name)</text>

    """
  }

  private static func label(
    _ x: Double, _ y: Double, _ text: String, anchor: String
  ) -> String {
    "<text x=\"\(shown(x))\" y=\"\(shown(y))\" text-anchor=\"\(anchor)\">\(escaped(text))</text>\n"
  }

  private static func shown(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }

  private static func escaped(_ text: String) -> String {
    var escaped = ""
    for character in text {
      switch character {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      default: escaped.append(character)
      }
    }
    return escaped
  }
}
