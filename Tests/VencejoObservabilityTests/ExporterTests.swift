import Testing
import VencejoRPC

@testable import VencejoObservability

@Suite("Exporter of OTLP")
struct ExporterTests {
  private func span() -> Span {
    Span(
      context: .root(isSampled: true), parentSpanID: nil, name: "a.B/C", kind: .server, start: 1,
      end: 2, status: .ok, message: "", attributes: [])
  }

  /// Python's collector is the judge of what is sent: Tests/Interop/test_observability.py.
  @Test func whileNobodyListensSpansWaitAndTheRestIsCounted() async throws {
    var configuration = OTLPExporter.Configuration()
    configuration.maxQueuedSpans = 100
    configuration.maxSpansPerReport = 30
    let exporter = OTLPExporter(try Channel("127.0.0.1:1"), configuration: configuration)
    for _ in 0..<150 { exporter.export(span()) }
    #expect(exporter.droppedSpans == 50)
    #expect(await exporter.flush() == false)
    #expect(exporter.lastError?.code == .unavailable)
    // Those of the report that failed wait on.
    #expect(exporter.droppedSpans == 50)
    exporter.export(span())
    #expect(exporter.droppedSpans == 51)
    await exporter.shutdown()
  }

  @Test func aRefusalIsNotTriedAgain() async throws {
    // No collector: UNIMPLEMENTED.
    let server = try EchoServer()
    let exporter = OTLPExporter(server.channel())
    exporter.export(span())
    #expect(await exporter.flush() == false)
    #expect(exporter.droppedSpans == 1)
    #expect(await exporter.flush())
    await exporter.shutdown()
    await server.stop()
  }
}

@Suite("What strangers may send")
struct StrangerTests {
  /// Nothing traps, and what is read is written as it came.
  @Test func anyBytesAsTraceContext() {
    let pieces = [
      "00", "ff", "-", "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "01", ",", "=", "@",
      "a", " ", "\t", "é", "\u{0}", "z",
    ]
    for _ in 0..<20_000 {
      let text = (0..<Int.random(in: 0...9)).map { _ in pieces.randomElement() ?? "" }.joined()
      if let context = TraceContext(traceparent: text, tracestate: [text]) {
        #expect(TraceContext(traceparent: context.traceparent)?.traceID == context.traceID)
      }
      if let header = TraceState(headers: [text, text + "x=1"])?.header {
        #expect(TraceState(headers: [header])?.header == header)
      }
    }
  }
}
