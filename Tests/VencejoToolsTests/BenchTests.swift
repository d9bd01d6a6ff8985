import InteropEcho
import Testing
import VencejoHTTP2
import VencejoRPC

@testable import VencejoTools

@Suite("Histogram of latencies")
struct LatencyHistogramTests {
  @Test func bucketsFollowOneAnotherAndAreNarrow() {
    var index = 0
    var next: UInt64 = 0
    while next < LatencyHistogram.limit {
      let range = LatencyHistogram.range(of: index)
      #expect(range.lowerBound == next)
      #expect(LatencyHistogram.index(of: range.lowerBound) == index)
      #expect(LatencyHistogram.index(of: range.upperBound) == index)
      #expect(Double(range.upperBound - range.lowerBound) <= Double(range.lowerBound) / 128)
      next = range.upperBound + 1
      index += 1
    }
    #expect(LatencyHistogram.index(of: .max) == LatencyHistogram.index(of: LatencyHistogram.limit))
  }

  /// Against sorting, which needs all values.
  @Test func quantilesAreThoseOfTheValues() {
    var generator = SystemRandomNumberGenerator()
    var histogram = LatencyHistogram()
    var parts = [LatencyHistogram(), LatencyHistogram()]
    var values: [UInt64] = []
    for number in 0..<20_000 {
      let value = UInt64.random(in: 0...(1 << UInt64.random(in: 1...36)), using: &generator)
      values.append(value)
      histogram.record(value)
      parts[number % 2].record(value)
    }
    values.sort()
    parts[0].merge(parts[1])
    for part in [0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1] {
      let exact = values[max(0, Int((part * Double(values.count)).rounded(.up)) - 1)]
      let found = histogram.quantile(part)
      #expect(found >= exact && Double(found) <= Double(exact) * 1.01 + 1)
      #expect(parts[0].quantile(part) == found)
    }
    #expect(histogram.min == values[0] && histogram.max == values[values.count - 1])
    let sum = values.reduce(0.0) { $0 + Double($1) }
    #expect(abs(histogram.mean - sum / Double(values.count)) <= histogram.mean * 1e-9)
    #expect(histogram.steps(13).reduce(0) { $0 + $1.count } == UInt64(values.count))
  }

  @Test func noneAndOne() {
    var histogram = LatencyHistogram()
    #expect(histogram.quantile(0.5) == 0 && histogram.steps(10).isEmpty && histogram.mean == 0)
    histogram.record(7)
    #expect(histogram.quantile(0) == 7 && histogram.quantile(1) == 7)
    #expect(histogram.steps(10).map(\.count) == [1])
  }
}

@Suite("vencejo bench")
struct BenchTests {
  private func withServer(_ body: (String) async throws -> Void) async throws {
    let server = try Server(
      listening: [SocketAddress(parsing: "127.0.0.1:0")], services: [Echo(), Reflection()])
    try await body("\(server.addresses[0])")
    await server.shutdown()
  }

  private func bench(_ arguments: String...) async -> (code: Int32, out: String, error: String) {
    let transcript = Transcript()
    let code = await BenchCommand.run(arguments, transcript.output)
    return (code, transcript.out, transcript.error)
  }

  @Test(arguments: ["Unary", "ServerStream", "ClientStream", "Bidirectional"])
  func everyKindOfCallIsMade(_ method: String) async throws {
    try await withServer { address in
      let result = await bench(
        address, "vencejo.interop.v1.Echo/\(method)", "-n", "123", "-c", "7", "--connections", "2",
        "-d", #"{"payload":"AQID"}"#, "-O", "json")
      #expect(result.code == 0, "\(result.error)")
      #expect(result.out.contains(#""calls":123,"#))
      #expect(result.out.contains(#""statuses":{"OK":123}"#))
      #expect(result.out.contains(#""receivedMessages":123,"sentBytes":615,"#))
    }
  }

  @Test func statusesAreCountedAndTellTheExitCode() async throws {
    try await withServer { address in
      let result = await bench(
        address, "vencejo.interop.v1.Echo/Unary", "-n", "30", "-c", "3", "-d",
        #"{} {"failure":{"code":5,"message":"not here"}} {}"#)
      #expect(result.code == 64 + 5)
      #expect(result.out.contains("NOT_FOUND   10: not here"))
      #expect(result.out.contains("OK          20"))
    }
  }

  /// One call at a time takes 30 ms, but one is due every millisecond: the last of 20 waits for
  /// all before it. Without the waiting counted, none would take longer than the first.
  @Test func waitingForATurnCounts() async throws {
    try await withServer { address in
      let result = await bench(
        address, "vencejo.interop.v1.Echo/Unary", "-n", "20", "-c", "1", "--rps", "1000", "-d",
        #"{"delayMilliseconds":30}"#, "-O", "json")
      #expect(result.code == 0, "\(result.error)")
      let max = try #require(result.out.split(separator: #""max":"#).last?.prefix { $0 != "}" })
      // 20 × 30 ms, less the 19 ms by which the last was due later.
      #expect(try #require(Double(String(max))) >= 575_000)
    }
  }

  @Test func aDurationEndsIt() async throws {
    try await withServer { address in
      let result = await bench(
        address, "vencejo.interop.v1.Echo/Unary", "-z", "0.2", "-c", "4", "--warm-up", "10", "-O",
        "json")
      #expect(result.code == 0, "\(result.error)")
      #expect(!result.out.contains(#""calls":0,"#))
      // At a rate as well, whatever the number of calls.
      let slow = await bench(
        address, "vencejo.interop.v1.Echo/Unary", "-z", "0.2", "--rps", "50", "-O", "json")
      #expect(slow.out.contains(#""calls":10,"#))
    }
  }

  @Test(arguments: [
    (["-n", "0"], "--calls is a number"), (["-c", "x"], "--concurrency is a number"),
    (["--rps", "-1"], "no number of calls"), (["-O", "xml"], "--output is text or json"),
    (["-z", "soon"], "no number of seconds"), (["-d", "{"], "stays open"),
  ])
  func wrongUsageIsExplained(_ arguments: [String], _ explanation: String) async throws {
    try await withServer { address in
      let transcript = Transcript()
      let code = await BenchCommand.run(
        [address, "vencejo.interop.v1.Echo/Unary"] + arguments, transcript.output)
      #expect(code == ExitCode.usage)
      #expect(transcript.error.contains(explanation), "\(transcript.error)")
    }
  }
}
