import InteropEcho
import Synchronization
import Testing
import VencejoHTTP2
import VencejoProtobuf
import VencejoRPC

@testable import VencejoInterceptors

func withEcho(
  server: [any ServerInterceptor] = [], client: [any ClientInterceptor] = [],
  services: [any Service] = [Echo(), Health()],
  _ body: (Interop.EchoClient, Channel) async throws -> Void
) async throws {
  var configuration = Server.Configuration()
  configuration.threads = 1
  configuration.interceptors = server
  let running = try Server(
    listening: [Server.Endpoint](), configuration: configuration, services: services)
  var options = Channel.Configuration()
  options.interceptors = client
  let channel = running.channel(configuration: options)
  do {
    try await body(Interop.EchoClient(channel), channel)
  } catch {
    await running.shutdown()
    throw error
  }
  channel.close()
  await running.shutdown()
}

func failure(of body: () async throws -> Void) async throws -> RPCError? {
  do {
    try await body()
    return nil
  } catch let error as RPCError {
    return error
  }
}

@Suite("Bearer authentication")
struct BearerTests {
  /// Says who calls.
  private struct Who: Interop.EchoService {
    func unary(
      _ request: Interop.EchoRequest, _ context: ServerContext
    ) async throws -> Interop.EchoResponse {
      let identity = CallerIdentity.current
      return .init(
        payload: Array(
          "\(identity?.subject ?? "nobody") \(identity?.attributes["role"] ?? "")".utf8))
    }
  }

  private let guarding = BearerAuthentication(exempt: ["grpc.health.v1.Health"]) { token, _ in
    switch token {
    case "good": CallerIdentity(subject: "ana", attributes: ["role": "owner"])
    case "later": throw RPCError(.unavailable, "nobody can tell now")
    default: nil
    }
  }

  @Test(arguments: ["Bearer good", "bearer good", "BEARER  good"])
  func aGoodTokenIsLetIn(_ value: String) async throws {
    try await withEcho(server: [guarding], services: [Who()]) { echo, _ in
      let answer = try await echo.unary(.init(), .init(metadata: ["authorization": value]))
      #expect(String(decoding: answer.payload, as: UTF8.self) == "ana owner")
    }
  }

  @Test(arguments: [
    ("", StatusCode.unauthenticated), ("Bearer", .unauthenticated),
    ("Bearer bad", .unauthenticated),
    ("Basic good", .unauthenticated), ("good", .unauthenticated),
    ("Bearer good bad", .unauthenticated), ("Bearer later", .unavailable),
  ])
  func othersAreNot(_ value: String, _ code: StatusCode) async throws {
    try await withEcho(server: [guarding]) { echo, _ in
      var metadata = Metadata()
      if !value.isEmpty { metadata["authorization"] = value }
      let error = try await failure { _ = try await echo.unary(.init(), .init(metadata: metadata)) }
      #expect(error?.code == code)
    }
  }

  @Test func twoCredentialsAreNone() async throws {
    try await withEcho(server: [guarding]) { echo, _ in
      var metadata: Metadata = ["authorization": "Bearer good"]
      metadata.add("Bearer bad", for: "authorization")
      let error = try await failure { _ = try await echo.unary(.init(), .init(metadata: metadata)) }
      #expect(error?.code == .unauthenticated)
    }
  }

  @Test func exemptServicesNeedNone() async throws {
    try await withEcho(server: [guarding]) { _, channel in
      let answer = try await GRPCHealth.HealthClient(channel).check(.init())
      #expect(answer.status == .serving)
    }
  }
}

@Suite("Rate limit")
struct RateLimitTests {
  private let start = ContinuousClock.now

  @Test func aBucketHoldsItsBurstAndGainsWithTime() {
    var buckets = TokenBuckets(perSecond: 10, burst: 3, maxKeys: 10)
    func take(_ key: String, after milliseconds: Int = 0) -> Duration? {
      buckets.take(key, now: start + .milliseconds(milliseconds))
    }
    for _ in 0..<3 { #expect(take("a") == nil) }
    #expect(take("a") == .milliseconds(100))
    #expect(take("b") == nil)
    #expect(take("a", after: 50) == .milliseconds(50))
    #expect(take("a", after: 101) == nil)
    // Never more than the burst, however long it was quiet; nor does a clock that stands still or
    // goes back give any.
    for _ in 0..<3 { #expect(take("a", after: 60_000) == nil) }
    #expect(take("a", after: 60_000) != nil)
    #expect(take("a") != nil)
  }

  @Test func manyKeysCostNoMoreThanTheirLimit() {
    var buckets = TokenBuckets(perSecond: 0.001, burst: 5, maxKeys: 100)
    for number in 0..<10_000 {
      let wait = buckets.take("key \(number)", now: start + .milliseconds(number))
      #expect(wait == nil)
      #expect(buckets.count <= 100)
    }
  }

  @Test func beyondTheRateCallsAreRefusedWithADelay() async throws {
    let limit = RateLimit(perSecond: 0.01, burst: 2) { context in
      context.method.hasSuffix("/Unary") ? "unary" : nil
    }
    try await withEcho(server: [limit]) { echo, _ in
      for _ in 0..<2 { _ = try await echo.unary(.init()) }
      let error = try await failure { _ = try await echo.unary(.init()) }
      #expect(error?.code == .resourceExhausted && error?.origin == .remote)
      let delay = try #require(error?.detail(GoogleRPC.RetryInfo.self)?.retryDelay)
      // A token every hundred seconds.
      #expect((90...100).contains(delay.seconds))
      for _ in 0..<5 { for try await _ in echo.serverStream(.init()) {} }
    }
  }

  @Test func aClientKeepsToItToo() async throws {
    let limit = RateLimit(callsPerSecond: 0.01, burst: 1)
    try await withEcho(client: [limit]) { echo, _ in
      _ = try await echo.unary(.init())
      let error = try await failure { _ = try await echo.unary(.init()) }
      #expect(error?.code == .resourceExhausted && error?.origin == .local)
    }
  }
}

@Suite("Validation")
struct ValidationTests {
  private let validation = Validation()
    .required(Interop.EchoRequest.self, "payload") { $0.payload.isEmpty }
    .rule(for: Interop.EchoRequest.self) { request in
      request.responseCount > 10 ? [("response_count", "is more than 10")] : []
    }
    .required(GRPCHealth.HealthCheckRequest.self, "service") { $0.service.isEmpty }

  private func expectRefusal(
    _ error: RPCError?, _ fields: [String], sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(error?.code == .invalidArgument, sourceLocation: sourceLocation)
    #expect(
      error?.detail(GoogleRPC.BadRequest.self)?.fieldViolations.map(\.field) == fields,
      sourceLocation: sourceLocation)
  }

  @Test(arguments: [true, false])
  func messagesThatBreakARuleAreRefused(onServer: Bool) async throws {
    try await withEcho(
      server: onServer ? [validation] : [], client: onServer ? [] : [validation]
    ) { echo, channel in
      #expect(try await echo.unary(.init(payload: [1])).payload == [1])
      expectRefusal(try await failure { _ = try await echo.unary(.init()) }, ["payload"])
      expectRefusal(
        try await failure { for try await _ in echo.serverStream(.init(responseCount: 11)) {} },
        ["payload", "response_count"])
      expectRefusal(
        try await failure { _ = try await GRPCHealth.HealthClient(channel).check(.init()) },
        ["service"])
      // Types without rules pass.
      _ = try await GRPCHealth.HealthClient(channel).list(.init())
    }
  }

  @Test func eachMessageOfAStreamIsLookedAt() async throws {
    try await withEcho(server: [validation]) { echo, _ in
      let sum = echo.clientStream()
      try await sum.send(.init(payload: [1]))
      try await sum.send(.init())
      sum.finish()
      expectRefusal(try await failure { _ = try await sum.response }, ["payload"])
    }
  }
}
