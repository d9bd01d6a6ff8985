import Glibc
import InteropEcho
import Synchronization
import Testing
import VencejoHTTP2
import VencejoProtobuf

@testable import VencejoRPC

/// Waits until the condition holds; false when it does not within ten seconds.
func eventually(_ holds: () async throws -> Bool) async throws -> Bool {
  let end = ContinuousClock.now + .seconds(10)
  while ContinuousClock.now < end {
    if try await holds() { return true }
    await Task.yield()
  }
  return false
}

@Suite("Servers")
struct ServerTests {
  // MARK: Unknown methods

  /// Passes every call on, as bytes.
  private static func proxy(to upstream: Channel) -> ServerMethod {
    .bidirectional("*") {
      (requests: RequestStream<RawMessage>, out: ResponseWriter<RawMessage>, context) in
      let call: BidirectionalCall<RawMessage, RawMessage> = upstream.bidirectional(
        context.method, CallOptions(metadata: context.metadata))
      try await withThrowingTaskGroup { group in
        group.addTask {
          for try await message in requests { try await call.send(message) }
          call.finish()
        }
        context.sendInitialMetadata(try await call.initialMetadata)
        for try await message in call { try await out.send(message) }
        context.setTrailingMetadata(try await call.trailers)
        group.cancelAll()
      }
    }
  }

  @Test func aProxyOfUnknownMethods() async throws {
    try await withHarness { origin in
      var configuration = Harness.quick
      configuration.unknownMethods = Self.proxy(to: origin.channel)
      try await withHarness(configuration: configuration, services: [Health()]) { harness in
        let echo = harness.echo
        #expect(try await echo.unary(.init(payload: [1, 2])).payload == [1, 2])

        var indices: [Int32] = []
        let stream = echo.serverStream(
          .init(responseCount: 3), .init(metadata: ["x-initial-a": "1", "x-trailing-b": "2"]))
        for try await answer in stream { indices.append(answer.index) }
        #expect(indices == [0, 1, 2])
        #expect(try await stream.initialMetadata["x-initial-a"] == "1")
        #expect(try await stream.trailers["x-trailing-b"] == "2")

        let talk = echo.bidirectional()
        var answers = talk.makeAsyncIterator()
        for size in 0..<4 {
          try await talk.send(.init(payload: [UInt8](repeating: 1, count: size)))
          #expect(try await answers.next()?.payload.count == size)
        }
        talk.finish()
        #expect(try await answers.next() == nil)

        let error = try await failure {
          _ = try await echo.unary(.init(failure: .init(code: 9, message: "no")))
        }
        #expect(error?.code == .failedPrecondition && error?.message == "no")

        // A deadline travels through, a cancellation too.
        let late = try await failure {
          for try await _ in echo.hold(.init(key: "p"), .init(timeout: .milliseconds(80))) {}
        }
        #expect(late?.code == .deadlineExceeded)
        let hold = try await origin.echo.getHold(.init(key: "p", waitMilliseconds: 5_000))
        #expect(hold.cancelled)
      }
    }
  }

  @Test func rawMessagesAreAnyBytes() throws {
    for bytes in [[], [0xFF, 0xFF], [0x0C], [8, 1, 8]] as [[UInt8]] {
      let message = try RawMessage(serializedBytes: bytes)
      #expect(message.bytes == bytes && message.serializedBytes() == bytes)
      #expect(EncodedMessage(message).count == bytes.count)
    }
  }

  // MARK: Services that come and go

  @Test func servicesComeAndGo() async throws {
    let health = Health()
    try await withHarness(services: [health, Reflection()]) { harness in
      let name = Echo.descriptor.fullName
      #expect(
        try await failure { _ = try await harness.echo.unary(.init()) }?.code == .unimplemented)
      try await harness.server.register(Echo())
      #expect(try await harness.echo.unary(.init(payload: [7])).payload == [7])
      let checks = GRPCHealth.HealthClient(harness.channel)
      #expect(try await checks.check(.init(service: name)).status == .serving)
      do {
        try await harness.server.register(Echo())
        Issue.record("registered twice")
      } catch let error as RPCError {
        #expect(error.code == .alreadyExists)
      }
      #expect(throws: RPCError.self) { try MethodTable([Echo(), Echo()]) }

      // A call under way goes on.
      let talk = harness.echo.bidirectional()
      var answers = talk.makeAsyncIterator()
      try await talk.send(.init(payload: [1]))
      #expect(try await answers.next()?.payload == [1])
      #expect(await harness.server.unregister(name))
      #expect(
        try await failure { _ = try await harness.echo.unary(.init()) }?.code == .unimplemented)
      #expect(
        try await failure { _ = try await checks.check(.init(service: name)) }?.code == .notFound)
      try await talk.send(.init(payload: [2]))
      #expect(try await answers.next()?.payload == [2])
      talk.finish()
      #expect(await !harness.server.unregister(name))
    }
  }

  // MARK: Limits

  /// Echo with a limit of its own.
  private struct Limited: Interop.EchoService {
    let echo = Echo()
    var maxConcurrentCalls: Int? { 1 }

    func unary(
      _ request: Interop.EchoRequest, _ context: ServerContext
    ) async throws -> Interop.EchoResponse { try await echo.unary(request, context) }

    func hold(
      _ request: Interop.HoldRequest, _ out: ResponseWriter<Interop.HoldResponse>,
      _ context: ServerContext
    ) async throws { try await echo.hold(request, out, context) }
  }

  private func expectOneAtATime(_ harness: Harness) async throws {
    let held = harness.echo.hold(.init(key: "one"))
    var answers = held.makeAsyncIterator()
    _ = try await answers.next()
    let error = try await failure { _ = try await harness.echo.unary(.init()) }
    #expect(error?.code == .resourceExhausted)
    held.cancel()
    // The place is free once the handler has ended.
    #expect(
      try await eventually {
        try await failure { _ = try await harness.echo.unary(.init()) } == nil
      })
  }

  @Test func aServiceHasALimit() async throws {
    try await withHarness(services: [Limited(), Health()]) { harness in
      try await expectOneAtATime(harness)
      let held = harness.echo.hold(.init(key: "two"))
      var answers = held.makeAsyncIterator()
      _ = try await answers.next()
      // Others are not concerned.
      _ = try await GRPCHealth.HealthClient(harness.channel).check(.init())
    }
  }

  @Test func theProcessHasALimit() async throws {
    var configuration = Harness.quick
    configuration.maxConcurrentCalls = 1
    try await withHarness(configuration: configuration) { harness in
      try await expectOneAtATime(harness)
    }
  }

  /// Refused unseen: the status is UNAVAILABLE after one transparent attempt, and the connection
  /// outlives any number of refusals.
  @Test func beyondALimitCallsMayBeRefused() async throws {
    var configuration = Harness.quick
    configuration.maxConcurrentCalls = 1
    configuration.refusesBeyondLimits = true
    try await withHarness(configuration: configuration) { harness in
      let held = harness.echo.hold(.init(key: "one"))
      var answers = held.makeAsyncIterator()
      _ = try await answers.next()
      for _ in 0..<300 {
        let error = try await failure { _ = try await harness.echo.unary(.init()) }
        #expect(error?.code == .unavailable && error?.origin == .transport)
      }
      held.cancel()
      #expect(
        try await eventually {
          try await failure { _ = try await harness.echo.unary(.init()) } == nil
        })
    }
  }

  @Test func messagesToSendHaveALimit() async throws {
    var configuration = Harness.quick
    configuration.maxSendMessageBytes = 1_000
    try await withHarness(configuration: configuration) { harness in
      #expect(try await harness.echo.unary(.init(responseBytes: 900)).payload.count == 900)
      let unary = try await failure {
        _ = try await harness.echo.unary(.init(responseBytes: 1_000))
      }
      #expect(unary?.code == .resourceExhausted)
      let stream = try await failure {
        for try await _ in harness.echo.serverStream(.init(responseBytes: 1_000)) {}
      }
      #expect(stream?.code == .resourceExhausted)
    }
  }

  // MARK: The end

  @Test func aHardShutdownWaitsForNobody() async throws {
    let harness = try Harness()
    let held = harness.echo.hold(.init(key: "one"))
    var answers = held.makeAsyncIterator()
    _ = try await answers.next()
    await harness.server.shutdown(grace: .zero)
    #expect(try await failure { _ = try await answers.next() }?.code == .unavailable)
  }

  @Test func aSecondShutdownHastensTheFirst() async throws {
    var configuration = Harness.quick
    configuration.drainGrace = .seconds(3_600)
    let harness = try Harness(configuration: configuration)
    let held = harness.echo.hold(.init(key: "one"))
    var answers = held.makeAsyncIterator()
    _ = try await answers.next()
    async let patient: Void = harness.server.shutdown()
    #expect(try await eventually { harness.server.isShutDown })
    await harness.server.shutdown(grace: .zero)
    await patient
    #expect(try await failure { _ = try await answers.next() }?.code == .unavailable)
  }

  @Test func aGracefulShutdownLetsCallsEnd() async throws {
    var configuration = Harness.quick
    configuration.drainGrace = .seconds(60)
    let harness = try Harness(configuration: configuration)
    let talk = harness.echo.bidirectional()
    var answers = talk.makeAsyncIterator()
    try await talk.send(.init(payload: [1]))
    #expect(try await answers.next()?.payload == [1])
    async let over: Void = harness.server.shutdown()
    #expect(try await eventually { harness.server.isShutDown })
    try await talk.send(.init(payload: [2]))
    #expect(try await answers.next()?.payload == [2])
    talk.finish()
    #expect(try await answers.next() == nil)
    await over
  }

  // MARK: Who is there

  private struct WhoAmI: Interop.EchoService {
    func unary(
      _ request: Interop.EchoRequest, _ context: ServerContext
    ) async throws -> Interop.EchoResponse {
      guard let peer = context.peerCredentials else { return .init(index: -1) }
      return .init(index: Int32(bitPattern: peer.userID), requestCount: peer.processID)
    }
  }

  @Test func aUnixSocketTellsWhoIsThere() async throws {
    let server = try Server(
      listening: [
        SocketAddress(parsing: "unix-abstract:vencejo-who-\(getpid())"),
        SocketAddress(parsing: "127.0.0.1:0"),
      ], services: [WhoAmI()])
    let unix = Interop.EchoClient(try Channel("\(server.addresses[0])"))
    let known = try await unix.unary(.init())
    #expect(known.index == Int32(bitPattern: geteuid()) && known.requestCount == getpid())
    let tcp = Interop.EchoClient(try Channel("\(server.addresses[1])"))
    #expect(try await tcp.unary(.init()).index == -1)
    await server.shutdown(grace: .zero)
  }

  /// Large messages on many streams whose client reads nothing: what is queued stays near the
  /// connection's limit, and everything arrives once it reads.
  @Test func producersOfOneConnectionWaitForEachOther() async throws {
    var configuration = Harness.quick
    configuration.threads = 1
    configuration.connection.maxQueuedBytes = 2 << 20
    try await withHarness(configuration: configuration) { harness in
      let calls = (0..<40).map { _ in
        harness.echo.serverStream(.init(responseBytes: 1 << 20, responseCount: 2))
      }
      // All handlers are at it before anybody reads.
      for call in calls { _ = try await call.initialMetadata }
      try await withThrowingTaskGroup(of: Int.self) { group in
        for call in calls {
          group.addTask {
            var bytes = 0
            for try await answer in call { bytes += answer.payload.count }
            return bytes
          }
        }
        for try await bytes in group { #expect(bytes == 2 << 20) }
      }
    }
  }
}
