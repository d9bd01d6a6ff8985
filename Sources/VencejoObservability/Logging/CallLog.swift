import Synchronization
public import VencejoHTTP2
public import VencejoRPC

/// Writes a line for each call, and gives each request an id.
///
/// As an interceptor of a server it takes the id that came under `x-request-id`, or makes one. It
/// answers it in the initial metadata, puts it into the errors it lets pass as a
/// google.rpc.RequestInfo, and handlers find it in `RequestID.current`. As an interceptor of a
/// client it sends that id on. As an observer it writes of calls that no interceptor sees, because
/// nobody serves the method or a limit refused them, and of connections that fail before they carry
/// a call: once for each peer and reason in ten minutes.
public final class CallLog: ServerInterceptor, ClientInterceptor, RPCObserver {
  public struct Configuration: Sendable {
    /// Lines below it are not made. Calls that end well, or by their caller's fault, are `.info`.
    public var level = LogLine.Level.info
    /// Whether lines show the request's metadata, redacted.
    public var logsMetadata = false
    public var redaction = Redaction()

    public init() {}
  }

  private let configuration: Configuration
  private let write: @Sendable (LogLine) -> Void
  private let failures = Mutex(FailureGate())

  /// `write` is called by many threads at a time, and should not wait.
  public init(
    _ configuration: Configuration = .init(), write: @escaping @Sendable (LogLine) -> Void
  ) {
    self.configuration = configuration
    self.write = write
  }

  public func intercept(_ call: ServerInterception) async throws {
    let context = call.context
    let id = RequestID.accepted(call.metadata[RequestID.metadataKey]) ?? RequestID.make()
    call.mapInitialMetadata { metadata in
      var metadata = metadata
      metadata[RequestID.metadataKey] = id
      return metadata
    }
    let metadata = configuration.logsMetadata ? call.metadata : [:]
    let start = ContinuousClock.now
    do {
      try await RequestID.$current.withValue(id) { try await call.proceed() }
      note("served", context.method, nil, start, id, metadata, peer: "\(context.peer)")
    } catch {
      let ending = CallEnding.error(error, deadline: context.deadline)
      note("served", context.method, ending, start, id, metadata, peer: "\(context.peer)")
      throw Self.marked(ending, id)
    }
  }

  public func intercept(_ call: ClientInterception) async throws {
    let known = RequestID.accepted(call.options.metadata[RequestID.metadataKey])
    let id = known ?? RequestID.current ?? RequestID.make()
    call.options.metadata[RequestID.metadataKey] = id
    let metadata = configuration.logsMetadata ? call.options.metadata : [:]
    let start = ContinuousClock.now
    do {
      try await call.proceed()
      note("called", call.method, nil, start, id, metadata, peer: call.target)
    } catch {
      let ending = CallEnding.error(error, deadline: nil)
      note("called", call.method, ending, start, id, metadata, peer: call.target)
      throw ending
    }
  }

  private static func marked(_ error: RPCError, _ id: String) -> RPCError {
    guard error.detail(GoogleRPC.RequestInfo.self) == nil else { return error }
    var error = error
    error.add(detail: GoogleRPC.RequestInfo(requestId: id))
    return error
  }

  private func note(
    _ message: String, _ method: String, _ error: RPCError?, _ start: ContinuousClock.Instant,
    _ id: String, _ metadata: Metadata, peer: String
  ) {
    let level = error.map { Self.level(of: $0.code) } ?? .info
    guard level >= configuration.level else { return }
    let milliseconds = (ContinuousClock.now - start) / .milliseconds(1)
    var fields: [(key: String, value: LogLine.Value)] = [
      ("method", .text(String(method.drop { $0 == "/" }))),
      ("status", .text("\(error?.code ?? .ok)")),
      ("ms", .number((milliseconds * 1_000).rounded() / 1_000)), ("peer", .text(peer)),
      ("request_id", .text(id)),
    ]
    if let trace = TraceContext.current {
      fields.append(("trace_id", .text("\(trace.traceID)")))
      fields.append(("span_id", .text(Hex.text(trace.spanID, digits: 16))))
    }
    if let error, !error.message.isEmpty { fields.append(("error", .text(error.message))) }
    fields += configuration.redaction.fields(metadata)
    write(LogLine(level, message, fields))
  }

  /// An error of ours, not of the caller's.
  private static func level(of code: StatusCode) -> LogLine.Level {
    let ours: [StatusCode] = [.unknown, .internalError, .dataLoss]
    return ours.contains(code) ? .error : .info
  }

  // MARK: What interceptors do not see

  public func callEnded(_ call: CallReport) {
    guard call.target.isEmpty, !call.isHandled, configuration.level <= .info else { return }
    write(
      LogLine(
        .info, "refused",
        [
          ("method", .text(String(call.method.drop { $0 == "/" }))),
          ("status", .text("\(call.status ?? .unknown)")),
        ]))
  }

  public func connectionEnded(_ peer: SocketAddress, _ error: HTTP2Error?) {
    guard let error, error.kind == .tlsFailed || error.kind == .handshakeTimedOut,
      configuration.level <= .info
    else { return }
    let host = peer.isUnix ? "unix" : String("\(peer)".dropLast(portLength(peer)))
    guard failures.withLock({ $0.lets("\(host) \(error.message)", now: .now) }) else { return }
    write(
      LogLine(
        .info, "connection failed",
        [("peer", .text(host)), ("error", .text(error.message))]))
  }

  /// Of the port with its colon: one peer comes from many ports.
  private func portLength(_ peer: SocketAddress) -> Int { peer.port.map { "\($0)".count + 1 } ?? 0 }
}

/// Lets each failure pass once in a while, and not too many altogether: whoever scans the port
/// does not fill the disk.
struct FailureGate {
  static let pause: Duration = .seconds(600)
  static let maxKnown = 1_024
  static let maxPerSecond = 10

  private var known: [String: ContinuousClock.Instant] = [:]
  private var second: ContinuousClock.Instant?
  private var inSecond = 0

  mutating func lets(_ failure: String, now: ContinuousClock.Instant) -> Bool {
    if let last = known[failure], now - last < Self.pause { return false }
    if let second, now - second < .seconds(1) {
      guard inSecond < Self.maxPerSecond else { return false }
      inSecond += 1
    } else {
      second = now
      inSecond = 1
    }
    if known.count >= Self.maxKnown {
      known = known.filter { now - $0.value < Self.pause }
      if known.count >= Self.maxKnown { known = [:] }
    }
    known[failure] = now
    return true
  }
}
