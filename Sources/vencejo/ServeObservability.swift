import VencejoHTTP2
import VencejoObservability
import VencejoRPC
import VencejoTools

/// The metrics, traces and logs that `vencejo serve` is asked for. What is not asked for costs
/// nothing.
struct ServeObservability {
  static let options: [ArgumentList.Option] = [
    .init("metrics", value: true), .init("otlp", value: true),
    .init("otlp-interval", value: true), .init("otlp-header", value: true),
    .init("otlp-ca", value: true),
    .init("trace-sampling", value: true), .init("log-calls"), .init("log-metadata"),
    .init("redact", value: true), .init("channelz"),
  ]

  static let help = """
      --log-format FORM  text (default), logfmt or json: a line for each entry
      --log-calls        also a line for each call, with a request id that its errors carry too
      --log-metadata     with the metadata of the calls. Credentials, cookies and '-bin' keys are
                         never shown
      --redact KEY       nor is this key of metadata; may be repeated
      -q, --quiet        errors only: the same as --log-level error
      --metrics ADDRESS  show metrics to Prometheus: GET http://ADDRESS/metrics
      --otlp ADDRESS     send metrics and traces to an OpenTelemetry collector by OTLP/gRPC; with
                         https:// before it over TLS
      --otlp-ca FILE     over TLS, trusting these issuers (PEM)
      --otlp-header K:V  metadata of the reports, as a collector's key; may be repeated
      --otlp-interval S  every so many seconds (default: 10)
      --trace-sampling P the part of calls to trace whose callers do not say, from 0 to 1
                         (default: 1)
      --channelz         offer grpc.channelz.v1, which shows connections and their counts to
                         whoever may call this server
    """

  private let loop: EventLoop?
  private let pages: PageServer?
  private let exporter: OTLPExporter?
  private let log: Log
  let observers: [any RPCObserver]
  let interceptors: [any ServerInterceptor]

  init(_ arguments: ArgumentList, _ log: Log) throws {
    self.log = log
    var callLog = CallLog.Configuration()
    callLog.level = log.level
    callLog.logsMetadata = arguments.has("log-metadata")
    callLog.redaction = Redaction(keys: arguments.all("redact"))
    let calls = CallLog(callLog, write: log.write)
    let logsCalls = arguments.has("log-calls") || arguments.has("log-metadata")

    var observers: [any RPCObserver] = logsCalls ? [calls] : [ConnectionLog(calls)]
    var interceptors: [any ServerInterceptor] = []
    var sources: [any MetricSource] = []
    if arguments.has("metrics") || arguments.has("otlp") {
      let metrics = CallMetrics()
      observers.append(metrics)
      sources.append(metrics)
    }
    exporter = try arguments["otlp"].map { target in
      var configuration = OTLPExporter.Configuration()
      if let interval = try Self.interval(arguments) { configuration.interval = interval }
      configuration.metadata = try Self.metadata(arguments)
      let exporter = OTLPExporter(
        try Self.channel(target, roots: arguments["otlp-ca"]), configuration: configuration,
        metrics: sources)
      interceptors.append(
        Tracing(sampling: try Self.sampling(arguments), export: exporter.export))
      return exporter
    }
    if logsCalls { interceptors.append(calls) }
    if let address = arguments["metrics"] {
      let loop = try EventLoop(name: "metrics")
      self.loop = loop
      let sources = sources
      pages = try PageServer(address: Self.address(address), loop: loop) { path in
        path == "/metrics"
          ? .init(
            contentType: PrometheusText.contentType,
            body: PrometheusText.encode(sources.flatMap { $0.metrics() })) : nil
      }
    } else {
      loop = nil
      pages = nil
    }
    self.observers = observers
    self.interceptors = interceptors
  }

  func start() {
    if let pages { log.info("metrics on http://\(pages.localAddress)/metrics") }
    exporter?.start()
  }

  func stop() async {
    pages?.close()
    loop?.shutdown()
    guard let exporter else { return }
    await exporter.shutdown()
    if let error = exporter.lastError { log.error("the last report by OTLP failed: \(error)") }
    if exporter.droppedSpans > 0 { log.error("\(exporter.droppedSpans) spans were dropped") }
  }

  private static func address(_ text: String) throws(ArgumentList.Fault) -> SocketAddress {
    do {
      return try SocketAddress(parsing: text)
    } catch {
      throw ArgumentList.Fault("'\(text)' is no address to show metrics on: \(error)")
    }
  }

  private static func metadata(
    _ arguments: ArgumentList
  ) throws(ArgumentList.Fault) -> Metadata {
    var metadata = Metadata()
    for header in arguments.all("otlp-header") {
      guard let colon = header.firstIndex(of: ":") else {
        throw ArgumentList.Fault("'\(header)' is no header: write key:value")
      }
      let value = header[header.index(after: colon)...].drop { $0 == " " }
      metadata.add(String(value), for: header[..<colon].lowercased())
    }
    if let problem = metadata.problem { throw ArgumentList.Fault("--otlp-header: \(problem)") }
    return metadata
  }

  private static func channel(
    _ text: String, roots: String?
  ) throws(ArgumentList.Fault) -> Channel {
    var target = text
    var tls: ClientTLS? = roots.map { .roots(.file($0)) }
    if text.hasPrefix("https://") {
      target = String(text.dropFirst(8))
      tls = tls ?? .systemRoots
    } else if text.hasPrefix("http://") {
      target = String(text.dropFirst(7))
    }
    do {
      return try Channel(target, tls: tls)
    } catch {
      throw ArgumentList.Fault("--otlp: \(error.message)")
    }
  }

  private static func interval(
    _ arguments: ArgumentList
  ) throws(ArgumentList.Fault) -> Duration? {
    guard let text = arguments["otlp-interval"] else { return nil }
    guard let seconds = Double(text), seconds >= 0.01, seconds < 1e6 else {
      throw ArgumentList.Fault("--otlp-interval is a number of seconds, not '\(text)'")
    }
    return .seconds(seconds)
  }

  private static func sampling(_ arguments: ArgumentList) throws(ArgumentList.Fault) -> Double {
    guard let text = arguments["trace-sampling"] else { return 1 }
    guard let part = Double(text), (0...1).contains(part) else {
      throw ArgumentList.Fault("--trace-sampling is a number from 0 to 1, not '\(text)'")
    }
    return part
  }
}

/// Hears of connections only, so that calls cost nothing more.
private struct ConnectionLog: RPCObserver {
  private let log: CallLog

  init(_ log: CallLog) { self.log = log }

  var observesCalls: Bool { false }

  func connectionEnded(_ peer: SocketAddress, _ error: HTTP2Error?) {
    log.connectionEnded(peer, error)
  }
}
