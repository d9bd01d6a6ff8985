import Synchronization
public import VencejoRPC

/// Counts calls and measures how long they take and how large they are, under the names of
/// gRPC's OpenTelemetry metrics (gRFC A66).
///
/// One value may observe any number of servers and channels:
///
/// | instrument | labels |
/// |---|---|
/// | `grpc.client.attempt.started` | `grpc.method`, `grpc.target` |
/// | `grpc.client.attempt.duration` | and `grpc.status` |
/// | `grpc.client.attempt.sent_total_compressed_message_size` | the same |
/// | `grpc.client.attempt.rcvd_total_compressed_message_size` | the same |
/// | `grpc.client.call.duration` | the same |
/// | `grpc.server.call.started` | `grpc.method` |
/// | `grpc.server.call.duration` | and `grpc.status` |
/// | `grpc.server.call.sent_total_compressed_message_size` | the same |
/// | `grpc.server.call.rcvd_total_compressed_message_size` | the same |
///
/// Methods that are not registered (`CallReport.isRegistered`) are counted as `other`.
public final class CallMetrics: RPCObserver, MetricSource {
  fileprivate struct Key: Hashable {
    /// As reports have it, so that nothing is made anew for each call.
    var method: String
    var target: String
    var status: StatusCode?
  }

  fileprivate struct Ended {
    var duration = Histogram(bounds: Histogram.latencyBounds)
    var sent = Histogram(bounds: Histogram.sizeBounds)
    var received = Histogram(bounds: Histogram.sizeBounds)
  }

  private struct State {
    var attemptsStarted: [Key: UInt64] = [:]
    var attempts: [Key: Ended] = [:]
    var calls: [Key: Histogram] = [:]
    var servedStarted: [Key: UInt64] = [:]
    var served: [Key: Ended] = [:]
  }

  private static let other = "other"

  private let state = Mutex(State())
  private let maxSeries: Int

  /// Beyond `maxSeries` combinations of labels of one instrument new methods are `other`.
  public init(maxSeries: Int = 4_096) { self.maxSeries = maxSeries }

  private static func key(_ call: CallReport, status: StatusCode?) -> Key {
    Key(
      method: call.isRegistered ? call.method : other,
      target: canonical(call.target), status: status)
  }

  /// A target without a scheme is a name for DNS (gRPC "Name Resolution").
  private static func canonical(_ target: String) -> String {
    let schemes = ["dns:", "ipv4:", "ipv6:", "unix:"]
    if target.isEmpty || target.contains("://") || schemes.contains(where: target.hasPrefix) {
      return target
    }
    return "dns:///" + target
  }

  private func bounded<Value>(_ key: Key, _ series: [Key: Value]) -> Key {
    guard series.count >= maxSeries, series[key] == nil else { return key }
    return Key(method: Self.other, target: Self.other, status: key.status)
  }

  public func callBegan(_ call: CallReport) {
    guard call.target.isEmpty else { return }
    state.withLock { state in
      let key = bounded(Self.key(call, status: nil), state.servedStarted)
      state.servedStarted[key, default: 0] += 1
    }
  }

  public func callEnded(_ call: CallReport) {
    let seconds = call.duration / .seconds(1)
    state.withLock { state in
      if call.target.isEmpty {
        let key = bounded(Self.key(call, status: call.status), state.served)
        state.served[key, default: Ended()].record(seconds, call)
      } else {
        let key = bounded(Self.key(call, status: call.status), state.calls)
        state.calls[key, default: Histogram(bounds: Histogram.latencyBounds)].record(seconds)
      }
    }
  }

  public func attemptBegan(_ call: CallReport) {
    state.withLock { state in
      let key = bounded(Self.key(call, status: nil), state.attemptsStarted)
      state.attemptsStarted[key, default: 0] += 1
    }
  }

  public func attemptEnded(_ call: CallReport) {
    let seconds = call.duration / .seconds(1)
    state.withLock { state in
      let key = bounded(Self.key(call, status: call.status), state.attempts)
      state.attempts[key, default: Ended()].record(seconds, call)
    }
  }

  // MARK: What is shown

  public func metrics() -> [Metric] {
    let state = state.withLock { $0 }
    return [
      counter(
        "grpc.client.attempt.started", "Attempts of calls begun, finished or not.", "{attempt}",
        state.attemptsStarted),
      histogram(
        "grpc.client.attempt.duration", "How long attempts took.", "s",
        state.attempts.mapValues(\.duration)),
      histogram(
        "grpc.client.attempt.sent_total_compressed_message_size",
        "Request messages of an attempt, compressed.", "By", state.attempts.mapValues(\.sent)),
      histogram(
        "grpc.client.attempt.rcvd_total_compressed_message_size",
        "Response messages of an attempt, compressed.", "By",
        state.attempts.mapValues(\.received)),
      histogram(
        "grpc.client.call.duration", "How long calls took for their callers.", "s", state.calls),
      counter(
        "grpc.server.call.started", "Calls begun, finished or not.", "{call}",
        state.servedStarted),
      histogram(
        "grpc.server.call.sent_total_compressed_message_size",
        "Response messages of a call, compressed.", "By", state.served.mapValues(\.sent)),
      histogram(
        "grpc.server.call.rcvd_total_compressed_message_size",
        "Request messages of a call, compressed.", "By", state.served.mapValues(\.received)),
      histogram(
        "grpc.server.call.duration", "How long calls took, as the server sees them.", "s",
        state.served.mapValues(\.duration)),
    ].filter { !$0.points.isEmpty }
  }

  private func counter(
    _ name: String, _ description: String, _ unit: String, _ series: [Key: UInt64]
  ) -> Metric {
    metric(name, description, unit, series.mapValues { .count($0) })
  }

  private func histogram(
    _ name: String, _ description: String, _ unit: String, _ series: [Key: Histogram]
  ) -> Metric {
    metric(name, description, unit, series.mapValues { .histogram($0) })
  }

  private func metric(
    _ name: String, _ description: String, _ unit: String, _ series: [Key: Metric.Value]
  ) -> Metric {
    let points = series.sorted { $0.key < $1.key }.map { key, value in
      var labels: [(name: String, value: String)] = [
        ("grpc.method", String(key.method.drop { $0 == "/" }))
      ]
      if !key.target.isEmpty { labels.append(("grpc.target", key.target)) }
      if let status = key.status { labels.append(("grpc.status", "\(status)")) }
      return Metric.Point(labels: labels, value: value)
    }
    return Metric(name: name, description: description, unit: unit, points: points)
  }
}

extension CallMetrics.Key: Comparable {
  /// By what the labels show.
  static func < (left: Self, right: Self) -> Bool {
    (left.shown, left.target, left.status?.rawValue ?? -1)
      < (right.shown, right.target, right.status?.rawValue ?? -1)
  }

  private var shown: Substring { method.drop { $0 == "/" } }
}

extension CallMetrics.Ended {
  fileprivate mutating func record(_ seconds: Double, _ call: CallReport) {
    duration.record(seconds)
    sent.record(Double(call.sentBytes))
    received.record(Double(call.receivedBytes))
  }
}
