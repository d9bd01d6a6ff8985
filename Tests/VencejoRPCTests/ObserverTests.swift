import InteropEcho
import Synchronization
import Testing
import VencejoCompression
import VencejoHTTP2
import VencejoRPC

@Suite("Observers")
struct ObserverTests {
  /// Keeps what it is told.
  private final class Witness: RPCObserver {
    struct Told: Sendable {
      let event: String
      let report: CallReport?
    }

    private let told = Mutex<[Told]>([])

    private func note(_ event: String, _ report: CallReport? = nil) {
      told.withLock { $0.append(Told(event: event, report: report)) }
    }

    func callBegan(_ call: CallReport) { note("call began", call) }
    func callEnded(_ call: CallReport) { note("call ended", call) }
    func attemptBegan(_ call: CallReport) { note("attempt began", call) }
    func attemptEnded(_ call: CallReport) { note("attempt ended", call) }
    func connectionBegan(_ peer: SocketAddress) { note("connection began") }
    func connectionEnded(_ peer: SocketAddress, _ error: HTTP2Error?) { note("connection ended") }

    var all: [Told] { told.withLock { $0 } }
    func reports(_ event: String) -> [CallReport] {
      all.filter { $0.event == event }.compactMap(\.report)
    }
  }

  private func observed(
    retry: RetryPolicy? = nil,
    _ body: (Interop.EchoClient, Channel) async throws -> Void
  ) async throws -> (server: Witness, client: Witness) {
    let (server, client) = (Witness(), Witness())
    var configuration = Harness.quick
    configuration.observers = [server]
    try await withHarness(configuration: configuration, services: [Echo()]) { harness in
      var configuration = Channel.Configuration()
      configuration.observers = [client]
      configuration.retryPolicy = retry
      let channel = try Channel(harness.address, configuration: configuration)
      try await body(Interop.EchoClient(channel), channel)
      channel.close()
    }
    return (server, client)
  }

  @Test func callsAreToldWithTheirSizes() async throws {
    let told = try await observed { echo, _ in
      _ = try await echo.unary(.init(payload: [1, 2, 3]))
    }
    #expect(
      told.client.all.map(\.event).prefix(5)
        == ["call began", "attempt began", "connection began", "attempt ended", "call ended"])
    let path = "/vencejo.interop.v1.Echo/Unary"
    for report in told.client.all.compactMap(\.report) {
      #expect(report.method == path)
      #expect(report.isRegistered)
      #expect(report.target.hasPrefix("127.0.0.1:"))
    }
    // Field 1 of three bytes: a tag, a length and the bytes. The answer has field 5 too, -1 in
    // ten bytes and its tag.
    let attempt = try #require(told.client.reports("attempt ended").first)
    #expect(attempt.status == .ok)
    #expect((attempt.sentMessages, attempt.sentBytes) == (1, 5))
    #expect((attempt.receivedMessages, attempt.receivedBytes) == (1, 16))
    let served = try #require(told.server.reports("call ended").first)
    #expect(served.status == .ok && served.method == path && served.isRegistered)
    #expect((served.sentMessages, served.sentBytes) == (1, 16))
    #expect((served.receivedMessages, served.receivedBytes) == (1, 5))
    #expect(served.duration > .zero && served.duration <= attempt.duration)
    #expect(told.server.all.map(\.event).first == "connection began")
    #expect(told.server.all.map(\.event).last == "connection ended")
  }

  @Test func sizesAreThoseThatTravelCompressed() async throws {
    let told = try await observed { echo, _ in
      _ = try await echo.unary(
        .init(payload: [UInt8](repeating: 7, count: 100_000)), .init(compression: .gzip))
    }
    let attempt = try #require(told.client.reports("attempt ended").first)
    #expect(attempt.sentBytes < 2_000)
    #expect(attempt.receivedBytes > 100_000)
    #expect(told.server.reports("call ended").first?.receivedBytes == attempt.sentBytes)
  }

  @Test func streamsCountEveryMessage() async throws {
    let told = try await observed { echo, _ in
      let talk = echo.bidirectional()
      var answers = talk.makeAsyncIterator()
      for _ in 0..<3 {
        try await talk.send(.init(payload: [9], responseCount: 2))
        for _ in 0..<2 { _ = try await answers.next() }
      }
      talk.finish()
      #expect(try await answers.next() == nil)
    }
    let call = try #require(told.server.reports("call ended").first)
    #expect((call.receivedMessages, call.sentMessages) == (3, 6))
    let attempt = try #require(told.client.reports("attempt ended").first)
    #expect((attempt.sentMessages, attempt.receivedMessages) == (3, 6))
  }

  @Test func eachAttemptIsToldAndTheCallOnce() async throws {
    let policy = RetryPolicy(
      maxAttempts: 3, initialBackoff: .milliseconds(1), retryableCodes: [.aborted])
    let told = try await observed(retry: policy) { echo, _ in
      let error = try await failure { _ = try await echo.unary(.init(failure: .init(code: 10))) }
      #expect(error?.code == .aborted)
    }
    // The handler mirrors metadata at once only when there is some: all three are answered
    // trailers-only, or the first has committed the call.
    let ended = told.client.reports("attempt ended")
    #expect(ended.count == told.client.reports("attempt began").count)
    #expect(ended.allSatisfy { $0.status == .aborted })
    #expect(ended.count == told.server.reports("call ended").count)
    #expect(told.client.reports("call ended").map(\.status) == [.aborted])
  }

  @Test func whatNobodyServesIsMarked() async throws {
    let told = try await observed { _, channel in
      let call = channel.bytes("/none.Such/Method")
      call.finish()
      let error = try await failure { _ = try await call.next() }
      #expect(error?.code == .unimplemented)
    }
    #expect(told.client.reports("call ended").map(\.isRegistered) == [false])
    let served = told.server.reports("call ended")
    #expect(served.map(\.isRegistered) == [false])
    #expect(served.map(\.method) == ["/none.Such/Method"])
    #expect(served.map(\.status) == [.unimplemented])
  }

  @Test func aCallThatFindsNoConnectionEnds() async throws {
    let client = Witness()
    var configuration = Channel.Configuration()
    configuration.observers = [client]
    let channel = try Channel("127.0.0.1:1", configuration: configuration)
    let error = try await failure { _ = try await Interop.EchoClient(channel).unary(.init()) }
    #expect(error?.code == .unavailable)
    #expect(client.reports("attempt ended").map(\.status) == [.unavailable])
    #expect(client.reports("call ended").map(\.status) == [.unavailable])
    channel.close()
  }
}

@Suite("Interceptors: metadata of responses, and values")
struct InterceptorChangeTests {
  private struct OnServer: ServerInterceptor {
    let body: @Sendable (ServerInterception) async throws -> Void
    func intercept(_ call: ServerInterception) async throws { try await body(call) }
  }

  private struct OnClient: ClientInterceptor {
    let body: @Sendable (ClientInterception) async throws -> Void
    func intercept(_ call: ClientInterception) async throws { try await body(call) }
  }

  private func withEcho(
    server: @escaping @Sendable (ServerInterception) async throws -> Void = {
      try await $0.proceed()
    },
    client: @escaping @Sendable (ClientInterception) async throws -> Void = {
      try await $0.proceed()
    },
    _ body: (Interop.EchoClient) async throws -> Void
  ) async throws {
    var configuration = Harness.quick
    configuration.interceptors = [OnServer(body: server)]
    try await withHarness(configuration: configuration, services: [Echo()]) { harness in
      var configuration = Channel.Configuration()
      configuration.interceptors = [OnClient(body: client)]
      let channel = try Channel(harness.address, configuration: configuration)
      try await body(Interop.EchoClient(channel))
      channel.close()
    }
  }

  @Test func metadataOfResponsesChangesOnBothSides() async throws {
    try await withEcho(
      server: { call in
        call.mapInitialMetadata { metadata in
          var metadata = metadata
          metadata["x-server"] = "initial"
          return metadata
        }
        call.mapTrailingMetadata { metadata in
          var metadata = metadata
          metadata["x-server"] = "trailing"
          return metadata
        }
        try await call.proceed()
      },
      client: { call in
        call.mapInitialMetadata { metadata in
          var metadata = metadata
          metadata["x-client"] = "\(metadata["x-server"] ?? "") seen"
          return metadata
        }
        call.mapTrailingMetadata { metadata in
          var metadata = metadata
          metadata["x-client"] = "\(metadata["x-server"] ?? "") seen"
          return metadata
        }
        try await call.proceed()
      }
    ) { echo in
      let call = echo.serverStream(.init(responseCount: 2), .init(metadata: ["x-trailing-a": "b"]))
      #expect(try await call.initialMetadata["x-client"] == "initial seen")
      for try await _ in call {}
      let trailers = try await call.trailers
      #expect(trailers["x-client"] == "trailing seen")
      #expect(trailers["x-trailing-a"] == "b")
      // Also where the handler never says a word of metadata.
      let sum = echo.clientStream()
      sum.finish()
      _ = try await sum.response
      #expect(try await sum.trailers["x-server"] == "trailing")
    }
  }

  @Test func messagesChangeAsValues() async throws {
    try await withEcho(
      server: { call in
        call.mapRequests(as: Interop.EchoRequest.self) { $0.payload += [2] }
        call.mapResponses(as: Interop.EchoResponse.self) { $0.payload += [3] }
        try await call.proceed()
      },
      client: { call in
        call.mapRequests(as: Interop.EchoRequest.self) { $0.payload += [1] }
        call.mapResponses(as: Interop.EchoResponse.self) { $0.payload += [4] }
        try await call.proceed()
      }
    ) { echo in
      #expect(try await echo.unary(.init(payload: [0])).payload == [0, 1, 2, 3, 4])
      var answers: [[UInt8]] = []
      for try await answer in echo.serverStream(.init(payload: [0], responseCount: 2)) {
        answers.append(answer.payload)
      }
      #expect(answers == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]])
    }
  }

  @Test func aChangeOfValuesMayRefuse() async throws {
    try await withEcho(server: { call in
      call.mapRequests(as: Interop.EchoRequest.self) { request in
        if request.payload.isEmpty { throw RPCError(.invalidArgument, "nothing to echo") }
      }
      try await call.proceed()
    }) { echo in
      let error = try await failure { _ = try await echo.unary(.init()) }
      #expect(error?.code == .invalidArgument)
      #expect(error?.message == "nothing to echo")
      #expect(try await echo.unary(.init(payload: [1])).payload == [1])
    }
  }
}
