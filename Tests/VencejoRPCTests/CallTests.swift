import Glibc
import InteropEcho
import Synchronization
import Testing
import VencejoHTTP2
import VencejoProtobuf
import VencejoRPC

@Suite("Calls between our own two sides")
struct CallTests {
  @Test(arguments: [HandlerExecution.loop, .pool])
  func fourShapes(_ execution: HandlerExecution) async throws {
    try await withHarness(services: [Echo(execution: execution)]) { harness in
      let answer = try await harness.echo.unary(.init(payload: [1, 2, 3]))
      #expect(answer.payload == [1, 2, 3])

      var indices: [Int32] = []
      for try await answer in harness.echo.serverStream(.init(responseCount: 10)) {
        indices.append(answer.index)
      }
      #expect(indices == Array(0..<10))

      let client = harness.echo.clientStream()
      for size in 1...4 { try await client.send(.init(payload: Array(repeating: 0, count: size))) }
      client.finish()
      let sum = try await client.response
      #expect(sum.requestCount == 4 && sum.requestBytes == 10)

      let talk = harness.echo.bidirectional()
      var answers = talk.makeAsyncIterator()
      for size in 0..<5 {
        try await talk.send(.init(payload: Array(repeating: 1, count: size)))
        #expect(try await answers.next()?.payload.count == size)
      }
      talk.finish()
      #expect(try await answers.next() == nil)
    }
  }

  @Test func theHandlerSeesTheCancellationAtOnce() async throws {
    try await withHarness { harness in
      for key in ["a", "b", "c"] {
        let task = Task { for try await _ in harness.echo.hold(.init(key: key)) {} }
        while !(try await harness.echo.getHold(.init(key: key)).started) {
          // Between two looks.
          try? await Task.sleep(for: .milliseconds(1))
        }
        let start = ContinuousClock.now
        task.cancel()
        let hold = try await harness.echo.getHold(.init(key: key, waitMilliseconds: 5_000))
        #expect(hold.cancelled)
        // A bound for a machine under load; interop tests hold a quiet one to 50 ms.
        #expect(ContinuousClock.now - start < .seconds(2))
        #expect(try await failure { try await task.value }?.code == .cancelled)
      }
    }
  }

  @Test func theDeadlineEndsBothSides() async throws {
    try await withHarness { harness in
      let error = try await failure {
        let request = Interop.HoldRequest(key: "late")
        for try await _ in harness.echo.hold(request, .init(timeout: .milliseconds(50))) {}
      }
      #expect(error?.code == .deadlineExceeded)
      let hold = try await harness.echo.getHold(.init(key: "late", waitMilliseconds: 5_000))
      #expect(hold.cancelled)
    }
  }

  @Test func aPassedDeadlineNeverReachesTheServer() async throws {
    try await withHarness { harness in
      let error = try await failure {
        _ = try await harness.echo.unary(.init(), .init(timeout: .zero))
      }
      #expect(error?.code == .deadlineExceeded)
    }
  }

  @Test func messagesBeforeAFailureAreRead() async throws {
    try await withHarness { harness in
      for _ in 0..<50 {
        var count = 0
        let error = try await failure {
          let request = Interop.EchoRequest(responseCount: 5, failure: .init(code: 10))
          for try await _ in harness.echo.serverStream(request) { count += 1 }
        }
        #expect(count == 5)
        #expect(error?.code == .aborted)
        #expect(error?.origin == .remote)
      }
    }
  }

  @Test func longMessagesAreCutWithAMark() async throws {
    try await withHarness { harness in
      let message = String(repeating: "ñ", count: 9_000)
      let error = try await failure {
        _ = try await harness.echo.unary(.init(failure: .init(code: 3, message: message)))
      }
      #expect(error?.code == .invalidArgument)
      #expect(error?.message.hasSuffix("… (cut)") == true)
      #expect(error?.message.hasPrefix("ñññ") == true)
    }
  }

  @Test func limitsHoldBothWays() async throws {
    try await withHarness { harness in
      let sent = try await failure {
        _ = try await harness.echo.unary(.init(payload: .init(repeating: 0, count: 5 << 20)))
      }
      #expect(sent?.code == .resourceExhausted)
      let received = try await failure {
        _ = try await harness.echo.unary(.init(responseBytes: 5 << 20))
      }
      #expect(received?.code == .resourceExhausted)
      let fits = try await harness.echo.unary(.init(payload: .init(repeating: 3, count: 3 << 20)))
      #expect(fits.payload.count == 3 << 20)
    }
  }

  @Test func badMetadataIsRefusedBeforeItIsSent() async throws {
    try await withHarness { harness in
      for metadata in [["grpc-x": "1"], ["Key": "v"], ["key": "line\nbreak"]] as [Metadata] {
        let error = try await failure {
          _ = try await harness.echo.unary(.init(), .init(metadata: metadata))
        }
        #expect(error?.code == .internalError)
        #expect(error?.origin == .local)
      }
    }
  }

  @Test func hugeMetadataIsRefusedAndTheConnectionLives() async throws {
    try await withHarness { harness in
      let metadata: Metadata = ["key": String(repeating: "v", count: 20_000)]
      let error = try await failure {
        _ = try await harness.echo.unary(.init(), .init(metadata: metadata))
      }
      #expect(error?.code == .resourceExhausted)
      #expect(try await harness.echo.unary(.init(payload: [1])).payload == [1])
    }
  }

  @Test func twoReadersOfOneStreamAreToldSo() async throws {
    try await withHarness { harness in
      let call = harness.echo.hold(.init(key: "two"))
      var first = call.makeAsyncIterator()
      _ = try await first.next()
      try await withThrowingTaskGroup(of: StatusCode?.self) { group in
        for _ in 0..<2 {
          group.addTask {
            var iterator = call.makeAsyncIterator()
            return try await failure { _ = try await iterator.next() }?.code
          }
        }
        let refused = try await group.next()
        #expect(refused == .internalError)
        call.cancel()
        let ended = try await group.next()
        #expect(ended == .cancelled)
      }
    }
  }

  @Test func aThousandCallsAtOnceOverOneConnection() async throws {
    var configuration = Harness.quick
    configuration.connection.maxConcurrentStreams = 50
    try await withHarness(configuration: configuration) { harness in
      try await withThrowingTaskGroup(of: Bool.self) { group in
        for number in 0..<1_000 {
          group.addTask {
            let payload = Array("\(number)".utf8)
            return try await harness.echo.unary(.init(payload: payload)).payload == payload
          }
        }
        for try await right in group { #expect(right) }
      }
    }
  }
}

@Suite("Backpressure")
struct BackpressureTests {
  /// Sends without end and counts what it could send.
  private final class Flood: Interop.EchoService {
    let sent = Atomic<Int>(0)

    func serverStream(
      _ request: Interop.EchoRequest, _ out: ResponseWriter<Interop.EchoResponse>,
      _ context: ServerContext
    ) async throws {
      let message = EncodedMessage(
        Interop.EchoResponse(payload: [UInt8](repeating: 0, count: 16 << 10)))
      while true {
        try await out.send(message)
        sent.add(message.count, ordering: .relaxed)
      }
    }
  }

  /// Waits until a counter that grows stays as it is for some turns.
  private func settled(_ value: () -> Int) async -> Int {
    var last = -1
    var same = 0
    while same < 200 {
      let now = value()
      same = now == last ? same + 1 : 0
      last = now
      // Not a wait for an event: the interval at which the counter is looked at.
      try? await Task.sleep(for: .milliseconds(1))
    }
    return last
  }

  @Test func aStoppedReaderStopsTheServer() async throws {
    let flood = Flood()
    try await withHarness(services: [flood]) { harness in
      let call = harness.echo.serverStream(.init())
      var messages = call.makeAsyncIterator()
      _ = try await messages.next()
      let sent = await settled { flood.sent.load(ordering: .relaxed) }
      #expect(sent < 2 << 20)
      for _ in 0..<500 { _ = try await messages.next() }
      let more = await settled { flood.sent.load(ordering: .relaxed) }
      #expect(more >= 500 * (16 << 10) && more < 500 * (16 << 10) + 2 << 20)
      call.cancel()
    }
  }

  /// Reads one message, then waits until told to go on.
  private final class Sleeper: Interop.EchoService {
    let resume = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    func clientStream(
      _ requests: RequestStream<Interop.EchoRequest>, _ context: ServerContext
    ) async throws -> Interop.EchoResponse {
      var answer = Interop.EchoResponse()
      for try await request in requests {
        if answer.requestCount == 0 { for await _ in resume.stream { break } }
        answer.requestCount += 1
        answer.requestBytes += Int64(request.payload.count)
      }
      return answer
    }
  }

  @Test func aStoppedHandlerStopsTheClient() async throws {
    let sleeper = Sleeper()
    try await withHarness(services: [sleeper]) { harness in
      let sent = Mutex(0)
      let call = harness.echo.clientStream()
      let task = Task {
        let message = EncodedMessage(
          Interop.EchoRequest(payload: [UInt8](repeating: 0, count: 16 << 10)))
        for _ in 0..<1_000 {
          try await call.send(message)
          sent.withLock { $0 += message.count }
        }
        call.finish()
      }
      let stopped = await settled { sent.withLock { $0 } }
      #expect(stopped > 0 && stopped < 2 << 20)
      sleeper.resume.continuation.yield()
      try await task.value
      #expect(try await call.response.requestCount == 1_000)
    }
  }
}

@Suite("Connections")
struct ConnectionTests {
  @Test func noServerIsUnavailable() async throws {
    // A port that was free a moment ago.
    let server = try Server(
      listening: [SocketAddress(parsing: "127.0.0.1:0")], configuration: Harness.quick,
      services: [Echo()])
    let address = "\(server.addresses[0])"
    await server.shutdown()
    let channel = try Channel(address)
    let error = try await failure { _ = try await Interop.EchoClient(channel).unary(.init()) }
    #expect(error?.code == .unavailable)
    #expect(error?.origin == .transport)
    channel.close()
  }

  @Test func waitForReadyOutlastsARestart() async throws {
    // Not a TCP port: another test might get it meanwhile.
    let address = "unix-abstract:vencejo-restart-\(getpid())"
    do {
      let first = try Server(
        listening: [SocketAddress(parsing: address)], configuration: Harness.quick,
        services: [Echo()])
      let channel = try Channel(address)
      #expect(try await Interop.EchoClient(channel).unary(.init(payload: [1])).payload == [1])
      await first.shutdown()
    }
    var configuration = Channel.Configuration()
    configuration.backoff = Backoff(initial: .milliseconds(5), maximum: .milliseconds(20))
    let channel = try Channel(address, configuration: configuration)
    let call = Task {
      try await Interop.EchoClient(channel).unary(
        .init(payload: [2]), .init(timeout: .seconds(20), waitForReady: true))
    }
    // Long enough for the other to begin.
    try? await Task.sleep(for: .milliseconds(1))
    let second = try Server(
      listening: [SocketAddress(parsing: address)], configuration: Harness.quick,
      services: [Echo()])
    #expect(try await call.value.payload == [2])
    channel.close()
    await second.shutdown()
  }

  @Test func shutdownLetsCallsEndAndRefusesNewOnes() async throws {
    let harness = try Harness()
    let slow = Task {
      try await harness.echo.unary(.init(payload: [5], delayMilliseconds: 200))
    }
    let hold = harness.echo.hold(.init(key: "drain"))
    var messages = hold.makeAsyncIterator()
    _ = try await messages.next()
    let stopping = Task { await harness.server.shutdown() }
    #expect(try await slow.value.payload == [5])
    // Held for ever: cut off when the grace is over.
    let error = try await failure { _ = try await messages.next() }
    #expect(error?.code == .unavailable)
    await stopping.value
    let late = try await failure { _ = try await harness.echo.unary(.init()) }
    #expect(late?.code == .unavailable)
    harness.channel.close()
  }

  @Test func twoServicesOfOneNameAreRefused() throws {
    #expect(throws: RPCError.self) {
      _ = try Server(
        listening: [SocketAddress(parsing: "127.0.0.1:0")], services: [Echo(), Echo()])
    }
  }

  @Test func aBusyPortNamesTheAddress() async throws {
    try await withHarness { harness in
      do {
        _ = try Server(listening: [SocketAddress(parsing: harness.address)], services: [])
        Issue.record("a second server took the port")
      } catch let error as HTTP2Error {
        #expect(error.kind == .addressInUse)
        #expect("\(error)".contains(harness.address))
      }
    }
  }

  @Test func aServerIsReachedInProcess() async throws {
    let server = try Server(listening: [Server.Endpoint](), services: [Echo()])
    let channel = server.channel()
    let echo = Interop.EchoClient(channel)
    #expect(try await echo.unary(.init(payload: [1, 2])).payload == [1, 2])
    let large = [UInt8](repeating: 7, count: 3 << 20)
    #expect(try await echo.unary(.init(payload: large)).payload == large)
    let talk = echo.bidirectional()
    var answers = talk.makeAsyncIterator()
    for size in 0..<100 {
      try await talk.send(.init(payload: Array(repeating: 1, count: size)))
      #expect(try await answers.next()?.payload.count == size)
    }
    talk.finish()
    #expect(try await answers.next() == nil)
    let late = try await failure {
      _ = try await echo.unary(.init(delayMilliseconds: 60_000), .init(timeout: .milliseconds(50)))
    }
    #expect(late?.code == .deadlineExceeded)
    await server.shutdown()
    let after = try await failure { _ = try await echo.unary(.init()) }
    #expect(after?.code == .unavailable)
    channel.close()
  }

  @Test(arguments: ["nonsense", "host:", ":1", "host:0", "host:70000", "http://host:1", ""])
  func refusesTargetsItCannotRead(_ target: String) {
    #expect(throws: RPCError.self) { _ = try Channel(target) }
  }

  @Test func namesAreResolved() async throws {
    try await withHarness { harness in
      let port = harness.address.split(separator: ":").last ?? ""
      for target in ["localhost:\(port)", "dns:///localhost:\(port)", "ipv4:127.0.0.1:\(port)"] {
        let channel = try Channel(target)
        #expect(try await Interop.EchoClient(channel).unary(.init(payload: [7])).payload == [7])
        channel.close()
      }
    }
  }
}

@Suite("Health and reflection")
struct ServiceTests {
  @Test func healthTellsOfEveryService() async throws {
    let health = Health()
    try await withHarness(services: [Echo(), health]) { harness in
      let client = GRPCHealth.HealthClient(harness.channel)
      #expect(try await client.check(.init()).status == .serving)
      #expect(try await client.check(.init(service: "vencejo.interop.v1.Echo")).status == .serving)
      let unknown = try await failure { _ = try await client.check(.init(service: "no.Such")) }
      #expect(unknown?.code == .notFound)
      #expect(
        try await client.list(.init()).statuses.keys.sorted()
          == ["", "grpc.health.v1.Health", "vencejo.interop.v1.Echo"])

      var watch = client.watch(.init(service: "later")).makeAsyncIterator()
      #expect(try await watch.next()?.status == .serviceUnknown)
      health.set(.serving, for: "later")
      #expect(try await watch.next()?.status == .serving)
      health.setAll(.notServing)
      #expect(try await watch.next()?.status == .notServing)
    }
  }

  @Test(arguments: ["v1", "v1alpha"])
  func reflectionAnswersInBothVersions(_ version: String) async throws {
    try await withHarness(services: [Echo(), Health(), Reflection()]) { harness in
      let call:
        BidirectionalCall<
          GRPCReflection.ServerReflectionRequest, GRPCReflection.ServerReflectionResponse
        > = harness.channel.bidirectional(
          "/grpc.reflection.\(version).ServerReflection/ServerReflectionInfo")
      var answers = call.makeAsyncIterator()
      try await call.send(.init(messageRequest: .listServices("")))
      guard case .listServicesResponse(let list) = try await answers.next()?.messageResponse else {
        Issue.record("no list")
        return
      }
      #expect(
        list.service.map(\.name) == [
          "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
          "grpc.reflection.v1alpha.ServerReflection", "vencejo.interop.v1.Echo",
        ])

      for symbol in [
        "vencejo.interop.v1.Echo", "vencejo.interop.v1.Echo.Unary",
        "vencejo.interop.v1.EchoRequest", "vencejo.interop.v1.EchoRequest.payload",
      ] {
        try await call.send(.init(messageRequest: .fileContainingSymbol(symbol)))
        guard
          case .fileDescriptorResponse(let files) = try await answers.next()?.messageResponse
        else {
          Issue.record("no file declares \(symbol)")
          continue
        }
        let names = try files.fileDescriptorProto.map {
          try Google.FileDescriptorProto(serializedBytes: $0).name ?? ""
        }
        #expect(names.sorted() == ["google/protobuf/any.proto", "interop.proto"])
      }

      try await call.send(.init(messageRequest: .fileContainingSymbol("no.Such")))
      guard case .errorResponse(let error) = try await answers.next()?.messageResponse else {
        Issue.record("an unknown symbol was found")
        return
      }
      #expect(error.errorCode == 5)
      call.finish()
      #expect(try await answers.next() == nil)
    }
  }
}
