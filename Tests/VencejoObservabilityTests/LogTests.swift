import InteropEcho
import Synchronization
import Testing
import VencejoHTTP2
import VencejoRPC

@testable import VencejoObservability

@Suite("Logs")
struct LogTests {
  private final class Lines: Sendable {
    private let list = Mutex<[LogLine]>([])
    var all: [LogLine] { list.withLock { $0 } }
    func add(_ line: LogLine) { list.withLock { $0.append(line) } }
  }

  private func field(_ line: LogLine, _ key: String) -> String? {
    for field in line.fields where field.key == key {
      if case .text(let text) = field.value { return text }
    }
    return nil
  }

  @Test func aLineStaysOneLineWhateverItHolds() {
    let line = LogLine(
      .info, "it \"happened\"",
      [
        ("a", "plain"), ("b", "two words"), ("c", .text("x=1\n\u{1b}[2J\u{85}\\")),
        ("bad key=\n", "v"), ("n", .number(1.5)), ("e", ""), ("ñ", "ñ"),
      ])
    let logfmt = LogFormat.logfmt.encode(line)
    #expect(
      logfmt.hasSuffix(
        #" level=info msg="it \"happened\"" a=plain b="two words" "#
          + #"c="x=1\n\u001b[2J\u0085\\" bad_key__=v n=1.5 e="" _="ñ""#))
    let json = LogFormat.json.encode(line)
    #expect(
      json.hasSuffix(
        #""level":"info","msg":"it \"happened\"","a":"plain","b":"two words","#
          + #""c":"x=1\n\u001b[2J\u0085\\","bad key=\n":"v","n":1.5,"e":"","ñ":"ñ"}"#))
    for text in [logfmt, json, LogFormat.text.encode(line)] { #expect(!text.contains("\n")) }
  }

  @Test func timesAreRFC3339() {
    #expect(WallClock.text(0) == "1970-01-01T00:00:00.000Z")
    #expect(WallClock.text(1_709_210_096_789_123_456) == "2024-02-29T12:34:56.789Z")
  }

  @Test func secretsAreNeverShown() {
    let redaction = Redaction(keys: ["X-Session"])
    var metadata: Metadata = [
      "authorization": "Bearer secret", "cookie": "secret", "x-session": "secret",
      "user": "ana", "long": String(repeating: "x", count: 10_000),
    ]
    metadata.add([1, 2, 3], for: "key-bin")
    for field in redaction.fields(metadata) {
      guard case .text(let text) = field.value else { continue }
      #expect(!text.contains("secret"))
      #expect(text.count < 300)
      if field.key == "metadata.key-bin" { #expect(text == Redaction.mark) }
      if field.key == "metadata.user" { #expect(text == "ana") }
    }
  }

  @Test func lineAndErrorCarryTheSameID() async throws {
    let lines = Lines()
    let server = try EchoServer(server: [CallLog { lines.add($0) }])
    let echo = Interop.EchoClient(server.channel())
    let call = echo.serverStream(.init(failure: .init(code: 13, message: "broke")))
    var seen: RPCError?
    do { for try await _ in call {} } catch { seen = error }
    let id = try #require(seen?.detail(GoogleRPC.RequestInfo.self)?.requestId)
    #expect(try await call.initialMetadata[RequestID.metadataKey] == id)
    let line = try #require(lines.all.first)
    #expect(line.level == .error)
    #expect(field(line, "request_id") == id)
    #expect(field(line, "status") == "INTERNAL")
    #expect(field(line, "error") == "broke")
    #expect(field(line, "method") == "vencejo.interop.v1.Echo/ServerStream")
    await server.stop()
  }

  @Test func aFitIDIsKeptAndGoesOn() async throws {
    let lines = Lines()
    let log = CallLog { lines.add($0) }
    let last = try EchoServer(server: [log])
    let other = Interop.EchoClient(last.channel(client: [log]))
    let first = try EchoServer(server: [log], services: [TracingTests.Relay(other: other)])
    let echo = Interop.EchoClient(first.channel())
    _ = try await echo.unary(.init(), .init(metadata: ["x-request-id": "order-7/a"]))
    #expect(lines.all.map { field($0, "request_id") } == Array(repeating: "order-7/a", count: 3))
    #expect(lines.all.map(\.message) == ["served", "called", "served"])
    // Spaces and quotes are not.
    _ = try await echo.unary(.init(), .init(metadata: ["x-request-id": "a \"b\" c"]))
    let id = try #require(lines.all.last.flatMap { field($0, "request_id") })
    #expect(id.count == 32)
    await first.stop()
    await last.stop()
  }

  @Test func linesAreMadeOfWhatTheLevelAllows() async throws {
    let lines = Lines()
    var configuration = CallLog.Configuration()
    configuration.level = .error
    configuration.logsMetadata = true
    let server = try EchoServer(server: [CallLog(configuration) { lines.add($0) }])
    let echo = Interop.EchoClient(server.channel())
    _ = try await echo.unary(.init())
    await #expect(throws: RPCError.self) {
      _ = try await echo.unary(.init(failure: .init(code: 5)))
    }
    #expect(lines.all.isEmpty)
    await #expect(throws: RPCError.self) {
      _ = try await echo.unary(
        .init(failure: .init(code: 2)), .init(metadata: ["authorization": "Bearer secret"]))
    }
    #expect(lines.all.count == 1)
    #expect(lines.all.first.flatMap { field($0, "metadata.authorization") } == Redaction.mark)
    await server.stop()
  }

  @Test func aDeadlineIsLoggedAsTheClientSeesIt() async throws {
    let lines = Lines()
    let server = try EchoServer(server: [CallLog { lines.add($0) }])
    let echo = Interop.EchoClient(server.channel())
    await #expect(throws: RPCError.self) {
      _ = try await echo.unary(
        .init(delayMilliseconds: 60_000), .init(timeout: .milliseconds(50)))
    }
    // The handler ends when it is cancelled; the shutdown waits for that.
    await server.stop()
    #expect(lines.all.first.flatMap { field($0, "status") } == "DEADLINE_EXCEEDED")
  }

  @Test func methodsNobodyServesAreLoggedToo() async throws {
    let lines = Lines()
    let log = CallLog { lines.add($0) }
    let server = try EchoServer(server: [log], observers: [log])
    let call = server.channel().bytes("/none.Such/Method")
    call.finish()
    await #expect(throws: RPCError.self) { _ = try await call.next() }
    #expect(lines.all.map { field($0, "method") } == ["none.Such/Method"])
    #expect(lines.all.map(\.message) == ["refused"])
    // Those that are handled are told once.
    _ = try await Interop.EchoClient(server.channel()).unary(.init())
    #expect(lines.all.map(\.message) == ["refused", "served"])
    await server.stop()
  }

  @Test func failuresAreToldOnceForEachPeerAndReason() {
    var gate = FailureGate()
    let start = ContinuousClock.now
    func lets(_ failure: String, after seconds: Int = 0) -> Bool {
      gate.lets(failure, now: start + .seconds(seconds))
    }
    #expect(lets("a x"))
    #expect(!lets("a x", after: 599))
    #expect(lets("a y"))
    #expect(lets("b x"))
    #expect(lets("a x", after: 601))
    // Many at once are cut.
    var passed = 0
    for number in 0..<10_000 where lets("\(number)", after: 700) {
      passed += 1
    }
    #expect(passed == FailureGate.maxPerSecond)
  }
}
