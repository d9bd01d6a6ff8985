import Glibc
import InteropEcho
import Synchronization
import Testing
import VencejoHTTP2

@testable import VencejoRPC

@Suite("Service config in force")
struct ResilienceTests {
  private static func config(_ fields: String, _ more: String = "") -> String {
    """
    { "methodConfig": [{ "name": [{ "service": "vencejo.interop.v1.Echo" }], \(fields) }] \(more) }
    """
  }

  private func echo(_ address: String, _ config: String) throws -> Interop.EchoClient {
    Interop.EchoClient(try Channel(address, configuration: .init(config)))
  }

  // MARK: Time and size

  @Test func theSoonerTimeoutHolds() async throws {
    try await withHarness { harness in
      let client = try echo(harness.address, Self.config("\"timeout\": \"0.05s\""))
      let error = try await failure {
        for try await _ in client.hold(.init(key: "t"), .init(timeout: .seconds(3_600))) {}
      }
      #expect(error?.code == .deadlineExceeded)
      let patient = try echo(harness.address, Self.config("\"timeout\": \"600s\""))
      let answer = try await patient.unary(.init())
      #expect(answer.deadlineMilliseconds <= 600_000 && answer.deadlineMilliseconds > 0)
      let sooner = try await failure {
        let request = Interop.EchoRequest(delayMilliseconds: 60_000)
        _ = try await patient.unary(request, .init(timeout: .milliseconds(1)))
      }
      #expect(sooner?.code == .deadlineExceeded)
    }
  }

  @Test func theSmallerLimitHolds() async throws {
    try await withHarness { harness in
      let client = try echo(
        harness.address,
        Self.config("\"maxRequestMessageBytes\": 100, \"maxResponseMessageBytes\": 200"))
      let small = [UInt8](repeating: 1, count: 90)
      let large = [UInt8](repeating: 1, count: 101)
      #expect(try await client.unary(.init(payload: small)).payload == small)
      let request = try await failure { _ = try await client.unary(.init(payload: large)) }
      #expect(request?.code == .resourceExhausted && request?.origin == .local)
      let response = try await failure { _ = try await client.unary(.init(responseBytes: 201)) }
      #expect(response?.code == .resourceExhausted)

      let stream = client.clientStream()
      try await stream.send(.init(payload: small))
      try? await stream.send(.init(payload: large))
      let streamed = try await failure { _ = try await stream.response }
      #expect(streamed?.code == .resourceExhausted && streamed?.origin == .local)

      let own = try await failure {
        _ = try await harness.echo.unary(.init(payload: large), .init(maxSendMessageBytes: 100))
      }
      #expect(own?.code == .resourceExhausted)
    }
  }

  // MARK: Retries

  private static let retries = """
    "retryPolicy": { "maxAttempts": 4, "initialBackoff": "0.001s", "maxBackoff": "0.002s",
      "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"] }
    """

  @Test func retriesAreConfigured() async throws {
    let server = try ScriptedServer(onEnd: { stream, request in
      if request.number < 3 {
        ScriptedServer.refuse(stream, 14)
      } else {
        ScriptedServer.answer(stream)
      }
    })
    let client = try echo(server.address, Self.config(Self.retries))
    _ = try await client.unary(.init(payload: [5]))
    let log = server.log.withLock { $0 }
    #expect(log.requests.map { $0["grpc-previous-rpc-attempts"] } == [nil, "1", "2", "3"])
    #expect(Set(log.bodies).count == 1)
    server.stop()
  }

  /// service_config.proto: backoffs count from the server's last pushback.
  @Test func aPushbackBeginsAnew() async throws {
    let server = try ScriptedServer(onEnd: { stream, request in
      switch request.number {
      case 1: ScriptedServer.refuse(stream, 14, [("grpc-retry-pushback-ms", "0")])
      case 0, 2: ScriptedServer.refuse(stream, 14)
      default: ScriptedServer.answer(stream)
      }
    })
    // The first backoff is a moment, the second would be ten minutes.
    let retries = """
      "retryPolicy": { "maxAttempts": 4, "initialBackoff": "0.001s", "maxBackoff": "600s",
        "backoffMultiplier": 1000000, "retryableStatusCodes": ["UNAVAILABLE"] }
      """
    let client = try echo(server.address, Self.config(retries))
    _ = try await client.unary(.init(), .init(timeout: .seconds(60)))
    #expect(server.log.withLock { $0.requests.count } == 4)
    server.stop()
  }

  /// Streams of requests are made again with all that was sent, as long as that is little and
  /// nothing was answered.
  @Test func streamsOfRequestsAreMadeAgain() async throws {
    let server = try ScriptedServer(onEnd: { stream, request in
      if request.number < 2 {
        ScriptedServer.refuse(stream, 14)
      } else {
        ScriptedServer.answer(stream)
      }
    })
    let client = try echo(server.address, Self.config(Self.retries))
    let call = client.clientStream()
    for size in 1...5 { try await call.send(.init(payload: [UInt8](repeating: 7, count: size))) }
    call.finish()
    _ = try await call.response
    let bodies = server.log.withLock { $0.bodies }
    #expect(bodies.count == 3 && Set(bodies).count == 1)
    // Prefixes of five bytes, tags and lengths of two, and what was sent.
    let sent: Int = 25 + 10 + 15
    #expect(bodies[0].count == sent)
    server.stop()
  }

  @Test func aLongStreamIsMadeOnce() async throws {
    let server = try ScriptedServer(onEnd: { stream, _ in ScriptedServer.refuse(stream, 14) })
    let client = try echo(server.address, Self.config(Self.retries))
    let call = client.clientStream()
    for _ in 0..<6 { try await call.send(.init(payload: [UInt8](repeating: 7, count: 60_000))) }
    call.finish()
    #expect(try await failure { _ = try await call.response }?.code == .unavailable)
    #expect(server.log.withLock { $0.requests.count } == 1)
    server.stop()
  }

  /// gRFC A6: with four tokens two failures leave half, and that is too little.
  @Test func throttlingIsConfigured() async throws {
    let server = try ScriptedServer(onEnd: { stream, _ in ScriptedServer.refuse(stream, 14) })
    let client = try echo(
      server.address,
      Self.config(
        Self.retries, ", \"retryThrottling\": { \"maxTokens\": 4, \"tokenRatio\": 0.1 }"))
    _ = try await failure { _ = try await client.unary(.init()) }
    #expect(server.log.withLock { $0.requests.count } == 2)
    _ = try await failure { _ = try await client.unary(.init()) }
    #expect(server.log.withLock { $0.requests.count } == 3)
    server.stop()
  }

  // MARK: Hedging

  private static func hedging(_ attempts: Int, _ delay: String) -> String {
    """
    "hedgingPolicy": { "maxAttempts": \(attempts), "hedgingDelay": "\(delay)",
      "nonFatalStatusCodes": ["UNAVAILABLE"] }
    """
  }

  /// The first answer wins; the attempt that hangs is cancelled.
  @Test func theFirstAnswerWins() async throws {
    let server = try ScriptedServer(onEnd: { stream, request in
      if request.number > 0 { ScriptedServer.answer(stream) }
    })
    let client = try echo(server.address, Self.config(Self.hedging(3, "0.02s")))
    _ = try await client.unary(.init(payload: [5]))
    var count = 0
    for try await _ in client.serverStream(.init()) { count += 1 }
    #expect(count == 1)
    #expect(
      try await eventually {
        server.log.withLock { $0.resets.contains(HTTP2Code.cancel) }
      })
    let requests = server.log.withLock { $0.requests }
    #expect(requests[0]["grpc-previous-rpc-attempts"] == nil)
    #expect(requests[1]["grpc-previous-rpc-attempts"] == "1")
    server.stop()
  }

  @Test func allAtOnceWithoutADelay() async throws {
    let server = try ScriptedServer(onEnd: { stream, request in
      if request.number == 2 { ScriptedServer.answer(stream) }
    })
    let client = try echo(server.address, Self.config(Self.hedging(3, "0s")))
    _ = try await client.unary(.init())
    #expect(server.log.withLock { $0.requests.count } == 3)
    server.stop()
  }

  /// A status of the list brings the next attempt at once, another ends the call.
  @Test func nonFatalStatusesHurryOn() async throws {
    let server = try ScriptedServer(onEnd: { stream, request in
      switch request.number {
      case 0, 1: ScriptedServer.refuse(stream, 14)
      case 2: ScriptedServer.answer(stream)
      default: ScriptedServer.refuse(stream, 3)
      }
    })
    let client = try echo(server.address, Self.config(Self.hedging(4, "3600s")))
    _ = try await client.unary(.init())
    #expect(server.log.withLock { $0.requests.count } == 3)
    let fatal = try await failure { _ = try await client.unary(.init()) }
    #expect(fatal?.code == .invalidArgument)
    #expect(server.log.withLock { $0.requests.count } == 4)
    server.stop()
  }

  @Test func whenAllFailTheLastStatusIsTheCalls() async throws {
    let server = try ScriptedServer(onEnd: { stream, request in
      ScriptedServer.refuse(stream, 14, [("grpc-message", "number \(request.number)")])
    })
    let client = try echo(server.address, Self.config(Self.hedging(3, "3600s")))
    let error = try await failure { _ = try await client.unary(.init()) }
    #expect(error?.code == .unavailable && error?.message == "number 2")
    server.stop()
  }

  /// gRFC A6, "Pushback": a negative one ends the attempts, another says when.
  @Test func serversPushBack() async throws {
    let server = try ScriptedServer(onEnd: { stream, request in
      switch request.number {
      case 0: ScriptedServer.refuse(stream, 14, [("grpc-retry-pushback-ms", "1")])
      case 1: ScriptedServer.answer(stream)
      default: ScriptedServer.refuse(stream, 14, [("grpc-retry-pushback-ms", "-1")])
      }
    })
    let client = try echo(server.address, Self.config(Self.hedging(4, "3600s")))
    _ = try await client.unary(.init())
    #expect(try await failure { _ = try await client.unary(.init()) }?.code == .unavailable)
    #expect(server.log.withLock { $0.requests.count } == 3)
    server.stop()
  }

  @Test func throttlingHoldsHedges() async throws {
    let server = try ScriptedServer(onEnd: { stream, _ in ScriptedServer.refuse(stream, 14) })
    let client = try echo(
      server.address,
      Self.config(
        Self.hedging(5, "3600s"),
        ", \"retryThrottling\": { \"maxTokens\": 4, \"tokenRatio\": 0.1 }"))
    _ = try await failure { _ = try await client.unary(.init()) }
    #expect(server.log.withLock { $0.requests.count } == 2)
    server.stop()
  }

  @Test func theCallsEndEndsAllAttempts() async throws {
    let server = try ScriptedServer()
    let client = try echo(server.address, Self.config(Self.hedging(3, "0s")))
    let call = Task { try await client.unary(.init()) }
    #expect(try await eventually { server.log.withLock { $0.requests.count } == 3 })
    call.cancel()
    #expect(try await failure { _ = try await call.value }?.code == .cancelled)
    #expect(
      try await eventually {
        server.log.withLock { $0.resets.filter { $0 == HTTP2Code.cancel }.count } == 3
      })
    server.stop()
  }

  @Test func hedgesGoToSeveralServers() async throws {
    let hung = try ScriptedServer()
    let well = try ScriptedServer(onEnd: { stream, _ in ScriptedServer.answer(stream) })
    let config = Self.config(
      Self.hedging(2, "0.01s"), ", \"loadBalancingConfig\": [{ \"round_robin\": {} }]")
    let addresses = try [hung, well].map { try SocketAddress(parsing: $0.address) }
    let client = Interop.EchoClient(
      try Channel(addresses: addresses, configuration: .init(config)))
    for _ in 0..<20 { _ = try await client.unary(.init(), .init(timeout: .seconds(10))) }
    #expect(hung.log.withLock { $0.requests.count } > 0)
    hung.stop()
    well.stop()
  }

  // MARK: Credentials

  private struct Token: Interop.EchoService {
    func unary(
      _ request: Interop.EchoRequest, _ context: ServerContext
    ) async throws -> Interop.EchoResponse {
      .init(payload: Array((context.metadata["authorization"] ?? "-").utf8))
    }
  }

  @Test func credentialsAreAskedForEveryCall() async throws {
    try await withHarness(services: [Token()]) { harness in
      let count = Counter()
      var configuration = Channel.Configuration.quick
      configuration.credentials = { method, audience in
        // Long enough for the other to begin.
        try? await Task.sleep(for: .milliseconds(1))
        return ["authorization": "\(count.next()) \(method) \(audience)"]
      }
      let client = Interop.EchoClient(
        try Channel("\(harness.address)", configuration: configuration))
      let path = "/vencejo.interop.v1.Echo/Unary"
      let audience = "https://\(harness.address)/vencejo.interop.v1.Echo"
      for number in 1...3 {
        let answer = try await client.unary(.init())
        #expect(String(decoding: answer.payload, as: UTF8.self) == "\(number) \(path) \(audience)")
      }
      let own = try await client.unary(
        .init(), .init(credentials: { _, _ in ["authorization": "own"] }))
      #expect(String(decoding: own.payload, as: UTF8.self) == "own")
    }
  }

  private final class Counter: Sendable {
    private let value = Atomic<Int>(0)
    func next() -> Int { value.add(1, ordering: .relaxed).newValue }
  }

  private struct Broken: Error {}

  /// gRFC A54: a status that speaks of the request would be taken for the server's.
  @Test func credentialsThatFailEndTheCall() async throws {
    try await withHarness(services: [Token()]) { harness in
      for (thrown, wanted) in [
        (RPCError(.unauthenticated, "who?"), StatusCode.unauthenticated),
        (RPCError(.notFound), .internalError), (Broken(), .unavailable),
      ] as [(any Error, StatusCode)] {
        let error = try await failure {
          _ = try await harness.echo.unary(.init(), .init(credentials: { _, _ in throw thrown }))
        }
        #expect(error?.code == wanted)
      }
    }
  }

  /// An address of this machine that is not the loopback's.
  private static let outside: SocketAddress? = {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0 else { return nil }
    defer { freeifaddrs(list) }
    var entry = list
    while let one = entry?.pointee {
      let found = one.ifa_addr?.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
        ($0.pointee.sin_family, UInt32(bigEndian: $0.pointee.sin_addr.s_addr))
      }
      if let (family, number) = found, Int32(family) == AF_INET, number >> 24 != 127 {
        return .ipv4(number, port: 0)
      }
      entry = one.ifa_next
    }
    return nil
  }()

  @Test(.enabled(if: outside != nil, "a machine with a network"))
  func credentialsStayOffPlainText() async throws {
    let server = try Server(
      listening: [try #require(Self.outside)], configuration: Harness.quick, services: [Token()])
    let client = Interop.EchoClient(
      try Channel("\(server.addresses[0])", configuration: .quick))
    _ = try await client.unary(.init())
    let error = try await failure {
      _ = try await client.unary(.init(), .init(credentials: { _, _ in ["authorization": "x"] }))
    }
    #expect(error?.code == .unauthenticated && error?.origin == .local)
    await server.shutdown(grace: .zero)
  }
}
