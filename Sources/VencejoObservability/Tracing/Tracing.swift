public import VencejoRPC

/// Follows calls through programs by W3C's `traceparent` and `tracestate`.
///
/// On a server it goes on with the caller's trace, or begins one; handlers find it in
/// `TraceContext.current`. On a client it makes the call a child of that and sends it along. Give
/// it to both, first in the order of interceptors, so that what the others say knows the trace.
public struct Tracing: ServerInterceptor, ClientInterceptor {
  private let sampling: Double
  private let export: @Sendable (Span) -> Void

  /// `sampling` is the part of new traces that are recorded, from 0 to 1; what callers have
  /// decided is kept to. `export` is told of each recorded span: `OTLPExporter.export`.
  public init(sampling: Double = 1, export: @escaping @Sendable (Span) -> Void) {
    self.sampling = sampling
    self.export = export
  }

  private func root() -> TraceContext {
    .root(isSampled: sampling >= 1 || Double.random(in: 0..<1) < sampling)
  }

  public func intercept(_ call: ServerInterception) async throws {
    // Two of them are none (section 3.2.2).
    let sent = call.metadata[all: "traceparent"]
    let parent =
      sent.count == 1
      ? TraceContext(traceparent: sent[0], tracestate: call.metadata[all: "tracestate"]) : nil
    let context = parent?.child() ?? root()
    let start = WallClock.now
    do {
      try await TraceContext.$current.withValue(context) { try await call.proceed() }
      end(context, parent, call.context.method, .server, start, nil, peer: call.context)
    } catch {
      end(
        context, parent, call.context.method, .server, start,
        CallEnding.error(error, deadline: call.context.deadline), peer: call.context)
      throw error
    }
  }

  public func intercept(_ call: ClientInterception) async throws {
    let parent = TraceContext.current
    let context = parent?.child() ?? root()
    call.options.metadata["traceparent"] = context.traceparent
    call.options.metadata["tracestate"] = context.state.header
    let start = WallClock.now
    do {
      try await call.proceed()
      end(context, parent, call.method, .client, start, nil, target: call.target)
    } catch {
      end(
        context, parent, call.method, .client, start, CallEnding.error(error, deadline: nil),
        target: call.target)
      throw error
    }
  }

  private func end(
    _ context: TraceContext, _ parent: TraceContext?, _ method: String, _ kind: Span.Kind,
    _ start: UInt64, _ error: RPCError?, peer: ServerContext? = nil, target: String? = nil
  ) {
    guard context.isSampled else { return }
    let name = method.drop { $0 == "/" }
    var attributes: [(key: String, value: String)] = [("rpc.system", "grpc")]
    if let slash = name.lastIndex(of: "/") {
      attributes.append(("rpc.service", String(name[..<slash])))
      attributes.append(("rpc.method", String(name[name.index(after: slash)...])))
    }
    if let peer { attributes.append(("network.peer.address", "\(peer.peer)")) }
    if let target { attributes.append(("server.address", target)) }
    export(
      Span(
        context: context, parentSpanID: parent?.spanID, name: String(name), kind: kind,
        start: start, end: max(start, WallClock.now), status: error?.code ?? .ok,
        message: error?.message ?? "", attributes: attributes))
  }
}
