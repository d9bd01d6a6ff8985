import InteropEcho
import Testing
import VencejoHTTP2
import VencejoInterceptors
import VencejoObservability
import VencejoRPC

// The examples of Interceptors.md and Observability.md; Tests/Scripts/test_docs.py compares them.

struct Timing: ServerInterceptor {
  let note: @Sendable (String, Duration) -> Void

  func intercept(_ call: ServerInterception) async throws {
    let start = ContinuousClock.now
    defer { note(call.context.method, ContinuousClock.now - start) }
    try await call.proceed()
  }
}

struct Stamp: ServerInterceptor {
  func intercept(_ call: ServerInterception) async throws {
    call.metadata["x-seen-by"] = "stamp"
    call.mapResponses(as: Interop.EchoResponse.self) { $0.index += 1 }
    call.mapTrailingMetadata { metadata in
      var metadata = metadata
      metadata["x-stamped"] = "yes"
      return metadata
    }
    do {
      try await call.proceed()
    } catch let error as RPCError where error.code == .unknown {
      throw RPCError(.internalError, "something broke")
    }
  }
}

func guards(_ user: @escaping @Sendable (String) async -> String?) -> [any ServerInterceptor] {
  [
    BearerAuthentication(exempt: ["grpc.health.v1.Health"]) { token, _ in
      await user(token).map { CallerIdentity(subject: $0, attributes: ["role": "reader"]) }
    },
    RateLimit(perSecond: 50, burst: 100) { _ in CallerIdentity.current?.subject },
    Validation()
      .required(Interop.EchoRequest.self, "payload") { $0.payload.isEmpty }
      .rule(for: Interop.EchoRequest.self) { request in
        request.responseCount > 100 ? [("response_count", "is more than 100")] : []
      },
  ]
}

func observed(_ services: [any Service]) throws -> (Server, OTLPExporter) {
  let metrics = CallMetrics()
  let exporter = OTLPExporter(
    try Channel("127.0.0.1:4317"), configuration: .init(serviceName: "shop"), metrics: [metrics])
  let log = CallLog { print(LogFormat.json.encode($0)) }
  var configuration = Server.Configuration()
  configuration.observers = [metrics]
  configuration.interceptors = [Tracing(export: exporter.export), log]
  exporter.start()
  let server = try Server(
    listening: [SocketAddress(parsing: "127.0.0.1:0")], configuration: configuration,
    services: services)
  return (server, exporter)  // at the end: await exporter.shutdown()
}

func debuggable(_ services: [any Service]) throws -> Server {
  let channelz = Channelz()
  return try Server(
    listening: [SocketAddress(parsing: "127.0.0.1:0")], services: services + [channelz])
}

struct Slow: RPCObserver {
  let note: @Sendable (CallReport) -> Void

  func callEnded(_ call: CallReport) {
    if call.duration > .seconds(1) { note(call) }
  }
}

@Suite("Examples of the documentation")
struct DocExamples {
  @Test func interceptorsDoWhatThePageSays() async throws {
    let server = try EchoServer(
      server: [Stamp(), Timing { _, _ in }] + guards { $0 == "good" ? "ana" : nil },
      observers: [Slow { _ in }])
    let echo = Interop.EchoClient(server.channel())
    let good: Metadata = ["authorization": "Bearer good"]
    let call = echo.serverStream(.init(payload: [1], responseCount: 2), .init(metadata: good))
    var indices: [Int32] = []
    for try await answer in call { indices.append(answer.index) }
    #expect(indices == [1, 2])
    #expect(try await call.trailers["x-stamped"] == "yes")
    for (metadata, request, code) in [
      (Metadata(), Interop.EchoRequest(payload: [1]), StatusCode.unauthenticated),
      (good, Interop.EchoRequest(), .invalidArgument),
      (good, Interop.EchoRequest(payload: [1], failure: .init(code: 2)), .internalError),
    ] {
      do {
        _ = try await echo.unary(request, .init(metadata: metadata))
        Issue.record("it was let in")
      } catch {
        #expect(error.code == code)
      }
    }
    await server.stop()
  }
}
