import VencejoRPC

/// What a measurement found.
struct BenchReport: Sendable {
  static let quantiles: [(name: String, part: Double)] = [
    ("p10", 0.1), ("p25", 0.25), ("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95),
    ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999),
  ]

  let plan: BenchPlan
  let tally: BenchRun.Tally
  let duration: Duration
  let wasInterrupted: Bool

  var calls: UInt64 { tally.latencies.count }
  var seconds: Double { duration / .seconds(1) }
  var rate: Double { seconds > 0 ? Double(calls) / seconds : 0 }

  private var statuses: [(code: StatusCode, count: UInt64)] {
    tally.statuses.map { ($0.key, $0.value) }
      .sorted { ($1.count, $0.code.rawValue) < ($0.count, $1.code.rawValue) }
  }

  var exitCode: Int32 {
    if wasInterrupted { return ExitCode.interrupted }
    guard calls > 0 else { return ExitCode.failure }
    guard let worst = statuses.first(where: { $0.code != .ok }) else { return ExitCode.ok }
    return ExitCode.status(worst.code)
  }

  // MARK: Text

  var text: String {
    let plan = plan
    var text = "\(plan.method?.path ?? "")\n\n"
    text += row("calls", "\(calls) in \(Self.number(seconds)) s")
    if wasInterrupted { text += row("", "interrupted: the rest was not made") }
    text += row("rate", "\(Self.number(rate)) calls/s")
    if let wanted = plan.rate { text += row("asked for", "\(Self.number(wanted)) calls/s") }
    text += row("at a time", "\(plan.concurrency) on \(plan.connections) connections")
    text += row(
      "messages",
      "\(tally.receivedMessages) received; \(tally.sentBytes) bytes sent, "
        + "\(tally.receivedBytes) received")
    text += "\nlatency"
    text += plan.rate == nil ? "\n" : ", from when each call was due\n"
    let latencies = tally.latencies
    if calls > 0 {
      text += row("mean", Self.time(latencies.mean))
      text += row("deviation", Self.time(latencies.standardDeviation))
      text += row("fastest", Self.time(Double(latencies.min)))
      for (name, part) in Self.quantiles where Double(calls) * (1 - part) >= 0.999 {
        text += row(name, Self.time(Double(latencies.quantile(part))))
      }
      text += row("slowest", Self.time(Double(latencies.max)))
      text += "\n"
      let steps = latencies.steps(12)
      let most = steps.map(\.count).max() ?? 1
      for step in steps {
        let bar = String(
          repeating: "█", count: Int((Double(step.count) / Double(most) * 40).rounded()))
        text += "  \(Self.padded(Self.time(Double(step.to)), 10)) \(bar) \(step.count)\n"
      }
    }
    text += "\nstatus\n"
    for (code, count) in statuses {
      let message = tally.messages[code].map { ": " + VisibleText.clean($0) } ?? ""
      text += row("\(code)", "\(count)\(message)")
    }
    return text
  }

  private func row(_ name: String, _ value: String) -> String {
    "  \(name)\(String(repeating: " ", count: max(1, 12 - name.count)))\(value)\n"
  }

  private static func padded(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
  }

  /// Three digits that count.
  static func number(_ value: Double) -> String {
    var unit = 1.0
    while abs(value) * unit < 100, unit < 1_000 { unit *= 10 }
    let rounded = (value * unit).rounded() / unit
    return rounded == rounded.rounded() ? "\(Int64(rounded))" : "\(rounded)"
  }

  static func time(_ nanoseconds: Double) -> String {
    switch nanoseconds {
    case ..<1_000: "\(number(nanoseconds)) ns"
    case ..<1_000_000: "\(number(nanoseconds / 1_000)) µs"
    case ..<1_000_000_000: "\(number(nanoseconds / 1_000_000)) ms"
    default: "\(number(nanoseconds / 1_000_000_000)) s"
    }
  }

  // MARK: JSON

  /// One object. Latencies are in microseconds.
  var json: String {
    func micros(_ nanoseconds: Double) -> String { "\((nanoseconds).rounded() / 1_000)" }
    let latencies = tally.latencies
    var members = [
      "\"method\":\(Self.quoted(plan.method?.path ?? ""))",
      "\"calls\":\(calls)", "\"seconds\":\(seconds)", "\"callsPerSecond\":\(rate)",
      "\"concurrency\":\(plan.concurrency)", "\"connections\":\(plan.connections)",
    ]
    if let rate = plan.rate { members.append("\"wantedCallsPerSecond\":\(rate)") }
    members.append("\"receivedMessages\":\(tally.receivedMessages)")
    members.append("\"sentBytes\":\(tally.sentBytes)")
    members.append("\"receivedBytes\":\(tally.receivedBytes)")
    if calls > 0 {
      var latency = [
        "\"mean\":\(micros(latencies.mean))",
        "\"standardDeviation\":\(micros(latencies.standardDeviation))",
        "\"min\":\(micros(Double(latencies.min)))",
      ]
      for (name, part) in Self.quantiles {
        latency.append("\"\(name)\":\(micros(Double(latencies.quantile(part))))")
      }
      latency.append("\"max\":\(micros(Double(latencies.max)))")
      members.append("\"latencyMicroseconds\":{\(latency.joined(separator: ","))}")
      let steps = latencies.steps(20).map {
        "{\"from\":\(micros(Double($0.from))),\"to\":\(micros(Double($0.to))),"
          + "\"count\":\($0.count)}"
      }
      members.append("\"histogram\":[\(steps.joined(separator: ","))]")
    }
    let counts = statuses.map { "\"\($0.code)\":\($0.count)" }
    members.append("\"statuses\":{\(counts.joined(separator: ","))}")
    let messages = statuses.compactMap { status in
      tally.messages[status.code].map { "\"\(status.code)\":\(Self.quoted($0))" }
    }
    members.append("\"messages\":{\(messages.joined(separator: ","))}")
    return "{\(members.joined(separator: ","))}\n"
  }

  private static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": quoted += "\\\(scalar)"
      case "\u{0}"..."\u{1f}":
        let hex = String(scalar.value, radix: 16)
        quoted += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }
}
