import Glibc
import InteropEcho
import Synchronization
import Testing
import VencejoProtobuf

@testable import VencejoHTTP2
@testable import VencejoRPC

/// Waits until the condition holds; false when it does not within ten seconds.
func eventually(_ holds: () async throws -> Bool) async throws -> Bool {
  let end = ContinuousClock.now + .seconds(10)
  while ContinuousClock.now < end {
    if try await holds() { return true }
    try? await Task.sleep(for: .milliseconds(1))
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

  /// Sends large messages, and notes how much its connection holds.
  private final class Producer: Interop.EchoService {
    let most = Mutex(0)
    let calls = Atomic<Int>(0)
    // Without a hop between the look at the connection and the message.
    var execution: HandlerExecution { .loop }

    func serverStream(
      _ request: Interop.EchoRequest, _ out: ResponseWriter<Interop.EchoResponse>,
      _ context: ServerContext
    ) async throws {
      calls.add(1, ordering: .relaxed)
      let message = Interop.EchoResponse(payload: [UInt8](repeating: 1, count: 1 << 20))
      for _ in 0..<4 {
        try await out.send(message)
        note(context)
      }
    }

    func note(_ context: ServerContext) {
      let connection = context.call.connection.http2
      context.loop.execute {
        let held = connection.queuedTotal
        self.most.withLock { $0 = max($0, held) }
      }
    }
  }

  /// A client with open windows that reads nothing: what its handlers have queued stays near the
  /// connection's limit, not at a message for each of forty streams.
  @Test func producersOfOneConnectionWaitForEachOther() async throws {
    var configuration = Harness.quick
    configuration.threads = 1
    configuration.connection.maxQueuedBytes = 2 << 20
    let producer = Producer()
    try await withHarness(configuration: configuration, services: [producer]) { harness in
      let reader = try SlowReader(harness.address)
      let path = "/vencejo.interop.v1.Echo/ServerStream"
      for index in 0..<40 { reader.call(Int32(index * 2 + 1), path) }
      #expect(try await eventually { producer.calls.load(ordering: .relaxed) == 40 })
      // Once it reads, all of it comes.
      let bytes = await withCheckedContinuation { continuation in
        // A thread of its own: it blocks.
        detachThread { continuation.resume(returning: reader.read(40 * 4 << 20)) }
      }
      #expect(bytes >= 40 * 4 << 20)
      let most = producer.most.withLock { $0 }
      #expect(most > 0 && most <= 8 << 20, "\(most) bytes were queued")
    }
  }
}

/// A client written by hand, with all the window there is, that reads when it is told to.
///
/// `@unchecked Sendable`: one task at a time uses it.
private final class SlowReader: @unchecked Sendable {
  private let fd: Int32

  init(_ address: String) throws {
    fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard case .ipv4(let number, let port) = try SocketAddress(parsing: address) else { return }
    var target = sockaddr_in()
    target.sin_family = sa_family_t(AF_INET)
    target.sin_addr.s_addr = number.bigEndian
    target.sin_port = port.bigEndian
    let length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let fd = fd
    let connected = withUnsafePointer(to: &target) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(fd, $0, length) }
    }
    try #require(connected == 0)
    send(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8))
    // SETTINGS_INITIAL_WINDOW_SIZE, and as much for the connection (RFC 9113, section 6.9).
    frame(4, 0, 0, [0, 4, 0x7f, 0xff, 0xff, 0xff])
    frame(8, 0, 0, [0x7f, 0xff, 0, 0])
    frame(4, 1, 0, [])
  }

  deinit { close(fd) }

  private func send(_ bytes: [UInt8]) { _ = Glibc.send(fd, bytes, bytes.count, 0) }

  private func frame(_ type: UInt8, _ flags: UInt8, _ stream: Int32, _ payload: [UInt8]) {
    let id = UInt32(bitPattern: stream)
    send(
      [0, UInt8(payload.count >> 8), UInt8(payload.count & 255), type, flags]
        + [24, 16, 8, 0].map { UInt8(id >> $0 & 255) } + payload)
  }

  /// A request with an empty message.
  func call(_ stream: Int32, _ path: String) {
    let fields = [
      (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"),
      ("content-type", "application/grpc"), ("te", "trailers"),
    ]
    // Literals without indexing (RFC 7541, section 6.2.2).
    let block = fields.flatMap { field -> [UInt8] in
      [0, UInt8(field.0.utf8.count)] + Array(field.0.utf8) + [UInt8(field.1.utf8.count)]
        + Array(field.1.utf8)
    }
    frame(1, 4, stream, block)
    frame(0, 1, stream, [0, 0, 0, 0, 0])
  }

  /// Bytes of any kind until so many have come, or the connection ends.
  func read(_ wanted: Int) -> Int {
    var chunk = [UInt8](repeating: 0, count: 1 << 18)
    var total = 0
    while total < wanted {
      let count = recv(fd, &chunk, chunk.count, 0)
      if count <= 0 { break }
      total += count
    }
    return total
  }
}
