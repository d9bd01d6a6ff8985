import InteropEcho
import Testing
import VencejoHTTP2
import VencejoRPC

@testable import VencejoObservability

@Suite("Metrics of calls (gRFC A66)")
struct MetricsTests {
  @Test func boundsBelongToTheirBuckets() {
    var histogram = Histogram(bounds: [1, 2, 5])
    for value in [0, 1, 1.5, 2, 2.1, 5, 5.1, 1_000] { histogram.record(value) }
    #expect(histogram.counts == [2, 2, 2, 2])
    #expect(histogram.count == 8)
    #expect(histogram.sum == 1_016.7)
  }

  /// The numbers stand in gRFC A66, "Units".
  @Test func bucketsAreTheSpecifications() {
    #expect(Histogram.latencyBounds.count == 41)
    #expect(Histogram.latencyBounds.prefix(3) == [0, 0.00001, 0.00005])
    #expect(Histogram.latencyBounds.last == 100)
    #expect(Histogram.latencyBounds == Histogram.latencyBounds.sorted())
    #expect(Histogram.sizeBounds.count == 14)
    #expect(Histogram.sizeBounds.last == 4_294_967_296)
  }

  private func labels(_ point: Metric.Point) -> [String: String] {
    Dictionary(uniqueKeysWithValues: point.labels.map { ($0.name, $0.value) })
  }

  @Test func callsAreCountedUnderTheirNames() async throws {
    let metrics = CallMetrics()
    let server = try EchoServer(observers: [metrics])
    let channel = server.channel(observers: [metrics])
    let echo = Interop.EchoClient(channel)
    for _ in 0..<3 { _ = try await echo.unary(.init(payload: [1, 2, 3])) }
    await #expect(throws: RPCError.self) {
      _ = try await echo.unary(.init(failure: .init(code: 5)))
    }
    let unknown = channel.bytes("/none.Such/Method\(Int.random(in: 0..<1_000))")
    unknown.finish()
    await #expect(throws: RPCError.self) { _ = try await unknown.next() }
    await server.stop()

    let all = Dictionary(uniqueKeysWithValues: metrics.metrics().map { ($0.name, $0) })
    #expect(
      Set(all.keys) == [
        "grpc.client.attempt.started", "grpc.client.attempt.duration",
        "grpc.client.attempt.sent_total_compressed_message_size",
        "grpc.client.attempt.rcvd_total_compressed_message_size", "grpc.client.call.duration",
        "grpc.server.call.started", "grpc.server.call.duration",
        "grpc.server.call.sent_total_compressed_message_size",
        "grpc.server.call.rcvd_total_compressed_message_size",
      ])
    let method = "vencejo.interop.v1.Echo/Unary"
    let started = try #require(all["grpc.server.call.started"])
    #expect(started.unit == "{call}")
    #expect(started.points.map { labels($0)["grpc.method"] } == ["other", method])
    for (point, wanted) in zip(started.points, [UInt64(1), 4]) {
      guard case .count(let count) = point.value else { return #expect(Bool(false)) }
      #expect(count == wanted)
      #expect(labels(point).count == 1)
    }
    let ended = try #require(all["grpc.client.attempt.sent_total_compressed_message_size"])
    #expect(ended.unit == "By")
    let series = ended.points.map(labels)
    #expect(
      series.map { $0["grpc.status"] ?? "" } == ["UNIMPLEMENTED", "OK", "NOT_FOUND"])
    #expect(series.allSatisfy { $0["grpc.target"] != nil && $0.count == 3 })
    guard case .histogram(let sizes) = ended.points[1].value else { return #expect(Bool(false)) }
    // Three messages of five bytes.
    #expect((sizes.count, sizes.sum) == (3, 15))
    let duration = try #require(all["grpc.server.call.duration"])
    #expect(duration.unit == "s")
  }

  @Test func targetsAreWrittenInFull() async throws {
    let metrics = CallMetrics()
    for target in ["127.0.0.1:1", "unix:/nowhere/at/all"] {
      var configuration = Channel.Configuration()
      configuration.observers = [metrics]
      let channel = try Channel(target, configuration: configuration)
      await #expect(throws: RPCError.self) {
        _ = try await Interop.EchoClient(channel).unary(.init())
      }
      channel.close()
    }
    let points = metrics.metrics().first { $0.name == "grpc.client.call.duration" }?.points ?? []
    #expect(
      points.map { labels($0)["grpc.target"] } == ["dns:///127.0.0.1:1", "unix:/nowhere/at/all"])
    #expect(points.allSatisfy { labels($0)["grpc.status"] == "UNAVAILABLE" })
  }

  @Test func methodsBeyondTheLimitAreOthers() async throws {
    let metrics = CallMetrics(maxSeries: 2)
    let server = try EchoServer(services: [Echo(), Health(), Reflection()])
    let channel = server.channel(observers: [metrics])
    let echo = Interop.EchoClient(channel)
    _ = try await echo.unary(.init())
    for try await _ in echo.serverStream(.init()) {}
    _ = try await GRPCHealth.HealthClient(channel).check(.init())
    _ = try await GRPCHealth.HealthClient(channel).list(.init())
    await server.stop()
    let started = metrics.metrics().first { $0.name == "grpc.client.attempt.started" }
    #expect(started?.points.map { labels($0)["grpc.method"] }.contains("other") == true)
    #expect(started?.points.count == 3)
  }

  @Test func textForPrometheus() {
    var histogram = Histogram(bounds: [0.005, 1])
    histogram.record(0.001)
    histogram.record(3)
    let text = PrometheusText.encode([
      Metric(
        name: "grpc.server.call.started", description: "a\\b\nc", unit: "{call}",
        points: [
          .init(labels: [("grpc.method", "a\"b\\c\nd")], value: .count(3)),
          .init(labels: [], value: .count(4)),
        ]),
      Metric(
        name: "x.duration", description: "d", unit: "s",
        points: [.init(labels: [("0l", "v")], value: .histogram(histogram))]),
      Metric(
        name: "9up", description: "g", unit: "1", points: [.init(labels: [], value: .gauge(0.5))]),
      Metric(name: "none", description: "", unit: "", points: []),
    ])
    // After the examples of Prometheus' page "Exposition formats".
    #expect(
      text == #"""
        # HELP grpc_server_call_started_total a\\b\nc
        # TYPE grpc_server_call_started_total counter
        grpc_server_call_started_total{grpc_method="a\"b\\c\nd"} 3
        grpc_server_call_started_total 4
        # HELP x_duration_seconds d
        # TYPE x_duration_seconds histogram
        x_duration_seconds_bucket{_0l="v",le="0.005"} 1
        x_duration_seconds_bucket{_0l="v",le="1"} 1
        x_duration_seconds_bucket{_0l="v",le="+Inf"} 2
        x_duration_seconds_sum{_0l="v"} 3.001
        x_duration_seconds_count{_0l="v"} 2
        # HELP _9up g
        # TYPE _9up gauge
        _9up 0.5

        """#)
  }
}
