import Synchronization
public import VencejoRPC

/// Sends spans and metrics to a collector of OpenTelemetry, over OTLP/gRPC.
///
/// Spans wait in a queue that is bounded: while the collector is away the oldest stay and new
/// ones are dropped and counted. Metrics are cumulative, so that a report that was lost loses
/// nothing.
///
/// ```swift
/// let exporter = OTLPExporter(
///   try Channel("collector.example:4317", tls: .systemRoots), metrics: [metrics])
/// exporter.start()
/// // … and at the end
/// await exporter.shutdown()
/// ```
public final class OTLPExporter: Sendable {
  public struct Configuration: Sendable {
    /// `service.name` of everything that is sent.
    public var serviceName: String
    /// More attributes of the resource, as `service.version` or `deployment.environment.name`.
    public var attributes: [(key: String, value: String)] = []
    /// Goes with every report: a collector's key, for instance.
    public var metadata: Metadata = [:]
    /// Between two reports.
    public var interval: Duration = .seconds(10)
    public var timeout: Duration = .seconds(10)
    /// Spans that wait at most.
    public var maxQueuedSpans = 4_096
    /// Spans of one report at most.
    public var maxSpansPerReport = 512

    public init(serviceName: String = "vencejo") { self.serviceName = serviceName }
  }

  private struct State {
    var queue: [Span] = []
    var dropped: UInt64 = 0
    var task: Task<Void, Never>?
    var lastError: RPCError?
  }

  private let channel: Channel
  private let configuration: Configuration
  private let sources: [any MetricSource]
  private let created = WallClock.now
  private let state = Mutex(State())

  /// The channel is the exporter's own: one without interceptors and observers, or each report
  /// would cause another.
  public init(
    _ channel: Channel, configuration: Configuration = .init(), metrics: [any MetricSource] = []
  ) {
    self.channel = channel
    self.configuration = configuration
    sources = metrics
  }

  /// Spans that found the queue full, or that the collector refused.
  public var droppedSpans: UInt64 { state.withLock { $0.dropped } }
  /// Why the last report failed; nil when it did not.
  public var lastError: RPCError? { state.withLock { $0.lastError } }

  /// Takes a span; never waits.
  public func export(_ span: Span) {
    state.withLock { state in
      if state.queue.count < configuration.maxQueuedSpans {
        state.queue.append(span)
      } else {
        state.dropped += 1
      }
    }
  }

  /// Reports at every interval from now on, until `shutdown()`.
  public func start() {
    let interval = configuration.interval
    state.withLock { state in
      guard state.task == nil else { return }
      state.task = Task { [weak self] in
        while !Task.isCancelled {
          try? await Task.sleep(for: interval)
          // What is left when it is cancelled is for `shutdown` to send.
          if Task.isCancelled { return }
          await self?.flush()
        }
      }
    }
  }

  /// Sends what there is now. False when something could not be sent; the spans then wait for
  /// the next report.
  @discardableResult
  public func flush() async -> Bool {
    var sent = await flushSpans()
    if !sources.isEmpty { sent = await flushMetrics() && sent }
    return sent
  }

  /// Sends what there is and stops reporting.
  public func shutdown() async {
    let task = state.withLock { state in
      defer { state.task = nil }
      return state.task
    }
    task?.cancel()
    await flush()
    channel.close()
  }

  private var options: CallOptions {
    CallOptions(timeout: configuration.timeout, metadata: configuration.metadata)
  }

  private func flushSpans() async -> Bool {
    while true {
      let spans = state.withLock { state in
        let taken = Array(state.queue.prefix(configuration.maxSpansPerReport))
        state.queue.removeFirst(taken.count)
        return taken
      }
      guard !spans.isEmpty else { return true }
      do {
        let answer = try await OTLPTraceCollector.TraceClient(channel).export(
          OTLPEncoding.traces(spans, configuration), options)
        let rejected = answer.partialSuccess?.rejectedSpans ?? 0
        state.withLock { state in
          state.dropped += UInt64(clamping: rejected)
          state.lastError = nil
        }
      } catch {
        putBack(spans, error)
        return false
      }
    }
  }

  private func putBack(_ spans: [Span], _ error: RPCError) {
    state.withLock { state in
      state.lastError = error
      let room =
        Self.isWorthAnotherTry(error)
        ? max(0, configuration.maxQueuedSpans - state.queue.count) : 0
      state.queue.insert(contentsOf: spans.prefix(room), at: 0)
      state.dropped += UInt64(max(0, spans.count - room))
    }
  }

  /// OTLP, "Failures": only these promise anything; RESOURCE_EXHAUSTED when the server says when.
  private static func isWorthAnotherTry(_ error: RPCError) -> Bool {
    switch error.code {
    case .cancelled, .deadlineExceeded, .aborted, .outOfRange, .unavailable, .dataLoss: true
    case .resourceExhausted: error.detail(GoogleRPC.RetryInfo.self) != nil
    default: false
    }
  }

  private func flushMetrics() async -> Bool {
    let metrics = sources.flatMap { $0.metrics() }
    guard !metrics.isEmpty else { return true }
    do {
      _ = try await OTLPMetricsCollector.MetricsClient(channel).export(
        OTLPEncoding.metrics(metrics, configuration, start: created, now: WallClock.now), options)
      return true
    } catch {
      state.withLock { $0.lastError = error }
      return false
    }
  }
}
