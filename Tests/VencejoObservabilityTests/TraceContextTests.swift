import InteropEcho
import Synchronization
import Testing
import VencejoHTTP2
import VencejoRPC

@testable import VencejoObservability

/// After the cases of W3C's own test harness (trace-context/test/test.py).
@Suite("W3C trace context")
struct TraceContextTests {
  private static let id = "12345678901234567890123456789012"
  private static let span = "1234567890123456"

  @Test(arguments: [
    "00-\(id)-\(span)-01", "00-\(id)-\(span)-00", "00-\(id)-\(span)-ff",
    // Of versions to come what is known is read.
    "01-\(id)-\(span)-01", "cc-\(id)-\(span)-01", "cc-\(id)-\(span)-01-what-the-future-brings",
    "fe-\(id)-\(span)-01-",
  ])
  func read(_ text: String) throws {
    let context = try #require(TraceContext(traceparent: text))
    #expect("\(context.traceID)" == Self.id)
    #expect(context.spanID == 0x1234_5678_9012_3456)
    #expect(context.isSampled == !text.contains("-00", after: 40))
  }

  @Test(arguments: [
    "", "00", "00-\(id)", "00-\(id)-\(span)", "00-\(id)-\(span)-", "00-\(id)-\(span)-1",
    "00-\(id)-\(span)-01.", "00-\(id)-\(span)-01-", "00-\(id)-\(span)-01-more",
    "cc-\(id)-\(span)-01.what", "ff-\(id)-\(span)-01", ".0-\(id)-\(span)-01", "0.-\(id)-\(span)-01",
    "00-00000000000000000000000000000000-\(span)-01", "00-\(id)-0000000000000000-01",
    "00-.2345678901234567890123456789012-\(span)-01",
    "00-1234567890123456789012345678901.-\(span)-01",
    "00-123456789012345678901234567890-\(span)-01", "00-\(id)-123456789012345-01",
    "00-\(id)-.234567890123456-01", "00-\(id)-\(span)-.0", "00-\(id)-\(span)-0.",
    "00-ABCDEFABCDEFABCDEFABCDEFABCDEFAB-\(span)-01", "00-\(id)-ABCDEFABCDEFABCD-01",
    "00-\(id)-\(span)-0A", " 00-\(id)-\(span)-01", "00_\(id)_\(span)_01",
  ])
  func refused(_ text: String) { #expect(TraceContext(traceparent: text) == nil) }

  @Test func whatIsWrittenIsRead() throws {
    for isSampled in [true, false] {
      let root = TraceContext.root(isSampled: isSampled)
      #expect(TraceContext(traceparent: root.traceparent) == root)
      let child = root.child()
      #expect(child.traceID == root.traceID && child.spanID != root.spanID)
    }
  }

  @Test(arguments: [
    (["foo=1"], "foo=1"), (["foo=1,bar=2"], "foo=1,bar=2"), (["foo=1", "bar=2"], "foo=1,bar=2"),
    (["foo=1 \t , \t bar=2, \t baz=3"], "foo=1,bar=2,baz=3"),
    (["foo=1,,,bar=2", "", ","], "foo=1,bar=2"), (["foo@=1"], nil), (["@foo=1"], nil),
    (["foo@@bar=1"], nil), (["foo@bar@baz=1"], nil), (["t@v=1"], "t@v=1"),
    (["0t@v=1"], "0t@v=1"), (["0t=1"], nil), (["t@0v=1"], nil), (["foo=1,foo=1"], nil),
    (["foo=1", "foo=2"], nil), (["foo =1"], nil), (["FOO=1"], nil), (["foo.bar=1"], nil),
    (["foo=1=2"], nil), (["foo="], nil), (["foo"], nil), (["foo=b\tr"], nil), (["foo=bär"], nil),
    (["foo= 1"], "foo= 1"), (["foo=1 2"], "foo=1 2"), (["a_-*/0=1"], "a_-*/0=1"),
  ])
  func tracestates(_ headers: [String], _ wanted: String?) {
    #expect(TraceState(headers: headers)?.header == wanted)
  }

  @Test func lengthsOfTracestates() {
    func state(_ text: String) -> TraceState? { TraceState(headers: [text]) }
    let z = { (count: Int) in String(repeating: "z", count: count) }
    #expect(state("\(z(256))=1") != nil)
    #expect(state("\(z(257))=1") == nil)
    #expect(state("\(z(241))@\(z(14))=1") != nil)
    #expect(state("\(z(242))@v=1") == nil)
    #expect(state("t@\(z(15))=1") == nil)
    #expect(state("foo=\(z(256))") != nil)
    #expect(state("foo=\(z(257))") == nil)
    let many = (1...33).map { "bar\($0)=\($0)" }
    #expect(state(many.prefix(32).joined(separator: ","))?.members.count == 32)
    #expect(state(many.joined(separator: ",")) == nil)
  }

  @Test func aMalformedTracestateLosesItselfOnly() {
    let context = TraceContext(
      traceparent: "00-\(Self.id)-\(Self.span)-01", tracestate: ["foo=1,foo=2"])
    #expect(context != nil && context?.state.header == nil)
  }
}

extension String {
  fileprivate func contains(_ text: String, after offset: Int) -> Bool {
    String(dropFirst(offset)).hasSuffix(text)
  }
}

@Suite("Tracing")
struct TracingTests {
  final class Spans: Sendable {
    private let list = Mutex<[Span]>([])
    var all: [Span] { list.withLock { $0 } }
    func add(_ span: Span) { list.withLock { $0.append(span) } }
  }

  /// Asks another server, and answers what it was told of.
  struct Relay: Interop.EchoService {
    let other: Interop.EchoClient
    func unary(
      _ request: Interop.EchoRequest, _ context: ServerContext
    ) async throws -> Interop.EchoResponse {
      try await other.unary(request)
    }
  }

  @Test func aTraceGoesThroughServers() async throws {
    let spans = Spans()
    let tracing = Tracing { spans.add($0) }
    let last = try EchoServer(server: [tracing])
    let other = Interop.EchoClient(last.channel(client: [tracing]))
    let first = try EchoServer(server: [tracing], services: [Relay(other: other)])
    let echo = Interop.EchoClient(first.channel())
    let metadata: Metadata = [
      "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      "tracestate": "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
    ]
    _ = try await echo.unary(.init(payload: [1]), .init(metadata: metadata))
    let all = spans.all
    #expect(all.map(\.kind) == [.server, .client, .server])
    try #require(all.count == 3)
    #expect(all[2].parentSpanID == 0xb7ad_6b71_6920_3331)
    #expect(all[1].parentSpanID == all[2].context.spanID)
    #expect(all[0].parentSpanID == all[1].context.spanID)
    for span in all {
      #expect("\(span.context.traceID)" == "0af7651916cd43dd8448eb211c80319c")
      #expect(span.context.state.header == "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE")
      #expect(span.name == "vencejo.interop.v1.Echo/Unary")
      #expect(span.status == .ok && !span.isError)
      #expect(span.end >= span.start)
    }
    await first.stop()
    await last.stop()
  }

  @Test func whatTheCallerDoesNotSampleIsNotRecordedButGoesOn() async throws {
    let spans = Spans()
    let tracing = Tracing { spans.add($0) }
    let server = try EchoServer(server: [tracing])
    let echo = Interop.EchoClient(server.channel())
    _ = try await echo.unary(
      .init(),
      .init(metadata: ["traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"]))
    #expect(spans.all.isEmpty)
    // One that is malformed begins a trace of its own.
    _ = try await echo.unary(.init(), .init(metadata: ["traceparent": "nonsense"]))
    #expect(spans.all.map(\.parentSpanID) == [nil])
    await server.stop()
  }

  @Test func noneIsSampledAtZero() async throws {
    let spans = Spans()
    let tracing = Tracing(sampling: 0) { spans.add($0) }
    let server = try EchoServer(server: [tracing])
    let echo = Interop.EchoClient(server.channel(client: [tracing]))
    for _ in 0..<20 { _ = try await echo.unary(.init()) }
    #expect(spans.all.isEmpty)
    await server.stop()
  }

  @Test func errorsAreToldAsTheConventionsSay() async throws {
    let spans = Spans()
    let tracing = Tracing { spans.add($0) }
    let server = try EchoServer(server: [tracing])
    let echo = Interop.EchoClient(server.channel(client: [tracing]))
    for code: Int32 in [5, 13] {
      let call = { try await echo.unary(.init(failure: .init(code: code, message: "why"))) }
      await #expect(throws: RPCError.self) { _ = try await call() }
    }
    let all = spans.all
    #expect(all.map(\.kind) == [.server, .client, .server, .client])
    // NOT_FOUND is no fault of a server's.
    #expect(all.map(\.isError) == [false, true, true, true])
    #expect(all.allSatisfy { $0.message == "why" })
    await server.stop()
  }
}
