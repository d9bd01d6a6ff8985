import InteropEcho
import VencejoCompression
import VencejoHTTP2
import VencejoProtobuf
import VencejoRPC

/// What our client must be able to do with any server of interop.proto.
struct EchoChecks {
  struct Failed: Error, CustomStringConvertible {
    let description: String
  }

  let address: String
  let tls: ClientTLS?
  let configuration: Channel.Configuration

  private static let checks: [(String, @Sendable (Interop.EchoClient) async throws -> Void)] = [
    ("unary", unary), ("server streaming", serverStreaming),
    ("client streaming", clientStreaming), ("bidirectional", bidirectional),
    ("no messages", noMessages), ("status codes", statusCodes), ("status details", details),
    ("metadata", metadata), ("deadline", deadline), ("deadline travels", deadlineTravels),
    ("cancellation", cancellation), ("leaving the loop", leavingTheLoop),
    ("large messages", large), ("too large a message", tooLarge), ("many at once", manyAtOnce),
    ("unknown method", unknownMethod), ("compression", compression),
  ]

  /// Prints a line per check; true when all passed.
  func run() async -> Bool {
    let channel: Channel
    do {
      channel = try Channel(address, tls: tls, configuration: configuration)
    } catch {
      write("no channel: \(error)", to: 1)
      return false
    }
    let client = Interop.EchoClient(channel)
    var passed = true
    for (name, check) in Self.checks {
      do {
        try await check(client)
        write("ok      \(name)", to: 1)
      } catch {
        write("FAILED  \(name): \(error)", to: 1)
        passed = false
      }
    }
    return passed
  }

  private static func expect(
    _ condition: Bool, _ message: @autoclosure () -> String
  ) throws(Failed) {
    if !condition { throw Failed(description: message()) }
  }

  private static func failure(
    of body: () async throws -> Void
  ) async throws -> RPCError {
    do {
      try await body()
    } catch let error as RPCError {
      return error
    }
    throw Failed(description: "the call succeeded")
  }

  private static func unary(_ client: Interop.EchoClient) async throws {
    for size in [0, 1, 100, 16_384, 70_000] {
      let payload = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
      let answer = try await client.unary(.init(payload: payload))
      try expect(answer.payload == payload, "\(size) bytes came back as \(answer.payload.count)")
    }
  }

  private static func serverStreaming(_ client: Interop.EchoClient) async throws {
    var indices: [Int32] = []
    for try await answer in client.serverStream(.init(payload: [1], responseCount: 100)) {
      indices.append(answer.index)
    }
    try expect(indices == Array(0..<100), "the answers' order: \(indices)")
  }

  private static func clientStreaming(_ client: Interop.EchoClient) async throws {
    let call = client.clientStream()
    for size in 1...50 { try await call.send(.init(payload: Array(repeating: 7, count: size))) }
    call.finish()
    let answer = try await call.response
    try expect(answer.requestCount == 50, "\(answer.requestCount) requests came")
    try expect(answer.requestBytes == 1_275, "\(answer.requestBytes) bytes came")
  }

  private static func bidirectional(_ client: Interop.EchoClient) async throws {
    let call = client.bidirectional()
    var answers = call.makeAsyncIterator()
    for size in [1, 20_000, 3, 0, 100_000] {
      try await call.send(.init(payload: Array(repeating: 9, count: size)))
      let answer = try await answers.next()
      try expect(answer?.payload.count == size, "lockstep of \(size) bytes")
    }
    call.finish()
    let end = try await answers.next()
    try expect(end == nil, "a message after the last")
  }

  private static func noMessages(_ client: Interop.EchoClient) async throws {
    for try await _ in client.serverStream(.init(responseCount: -1)) {
      throw Failed(description: "an answer where none was asked for")
    }
    let call = client.clientStream()
    call.finish()
    try expect(try await call.response.requestCount == 0, "requests where none were sent")
  }

  private static func statusCodes(_ client: Interop.EchoClient) async throws {
    for code in Int32(1)...16 {
      let message = "code \(code): ñ, 日本, 100 %\n"
      let error = try await failure {
        _ = try await client.unary(.init(failure: .init(code: code, message: message)))
      }
      try expect(error.code.rawValue == Int(code), "\(code) came as \(error.code)")
      try expect(error.message == message, "the message came as \(error.message)")
    }
    var count = 0
    let error = try await failure {
      let request = Interop.EchoRequest(responseCount: 3, failure: .init(code: 10))
      for try await _ in client.serverStream(request) { count += 1 }
    }
    try expect(error.code == .aborted && count == 3, "\(count) answers, then \(error)")
  }

  private static func details(_ client: Interop.EchoClient) async throws {
    var any = Google.AnyMessage()
    any.typeUrl = "type.googleapis.com/vencejo.interop.v1.EchoResponse"
    any.value = Interop.EchoResponse(payload: [1, 2, 3], index: 4).serializedBytes()
    let error = try await failure {
      _ = try await client.unary(
        .init(failure: .init(code: 9, message: "with details", details: [any])))
    }
    let detail = error.detail(Interop.EchoResponse.self)
    try expect(detail?.payload == [1, 2, 3] && detail?.index == 4, "details: \(error.details)")
  }

  private static func metadata(_ client: Interop.EchoClient) async throws {
    var metadata: Metadata = ["x-initial-text": "one", "x-trailing-text": "two"]
    metadata.add("three", for: "x-initial-text")
    metadata.add([0, 255, 1], for: "x-initial-bytes-bin")
    metadata.add([], for: "x-trailing-empty-bin")
    let call = client.serverStream(.init(payload: [1]), .init(metadata: metadata))
    let initial = try await call.initialMetadata
    try expect(
      initial[all: "x-initial-text"].joined(separator: ",").filter { $0 != " " } == "one,three",
      "initial metadata: \(initial)")
    try expect(initial[binary: "x-initial-bytes-bin"] == [0, 255, 1], "initial bytes: \(initial)")
    for try await _ in call {}
    let trailers = try await call.trailers
    try expect(trailers["x-trailing-text"] == "two", "trailers: \(trailers)")
  }

  private static func deadline(_ client: Interop.EchoClient) async throws {
    let start = ContinuousClock.now
    let error = try await failure {
      _ = try await client.unary(
        .init(delayMilliseconds: 20_000), .init(timeout: .milliseconds(100)))
    }
    try expect(error.code == .deadlineExceeded, "\(error)")
    try expect(ContinuousClock.now - start < .seconds(5), "the deadline came late")
  }

  private static func deadlineTravels(_ client: Interop.EchoClient) async throws {
    let without = try await client.unary(.init())
    try expect(without.deadlineMilliseconds < 0, "a deadline where none was set")
    let with = try await client.unary(.init(), .init(timeout: .seconds(30)))
    try expect(
      (15_000...30_000).contains(with.deadlineMilliseconds),
      "30 s came as \(with.deadlineMilliseconds) ms")
  }

  private static func cancellation(_ client: Interop.EchoClient) async throws {
    let task = Task {
      for try await _ in client.hold(.init(key: "swift-cancel")) {}
    }
    try await untilStarted("swift-cancel", client)
    task.cancel()
    let error = try await failure { try await task.value }
    try expect(error.code == .cancelled, "\(error)")
    try await expectHandlerCancelled("swift-cancel", client)
  }

  private static func leavingTheLoop(_ client: Interop.EchoClient) async throws {
    for try await _ in client.hold(.init(key: "swift-leave")) { break }
    try await expectHandlerCancelled("swift-leave", client)
  }

  private static func untilStarted(_ key: String, _ client: Interop.EchoClient) async throws {
    while !(try await client.getHold(.init(key: key)).started) { await Task.yield() }
  }

  private static func expectHandlerCancelled(
    _ key: String, _ client: Interop.EchoClient
  ) async throws {
    let hold = try await client.getHold(.init(key: key, waitMilliseconds: 5_000))
    try expect(hold.started && hold.cancelled, "the handler was not cancelled")
  }

  private static func large(_ client: Interop.EchoClient) async throws {
    let payload = [UInt8](repeating: 0xAB, count: 3 << 20)
    let answer = try await client.unary(.init(payload: payload))
    try expect(answer.payload == payload, "3 MiB came back as \(answer.payload.count) bytes")
  }

  private static func tooLarge(_ client: Interop.EchoClient) async throws {
    let sent = try await failure {
      _ = try await client.unary(.init(payload: [UInt8](repeating: 1, count: 5 << 20)))
    }
    try expect(sent.code == .resourceExhausted, "sending 5 MiB: \(sent)")
    let received = try await failure {
      _ = try await client.unary(.init(responseBytes: 5 << 20))
    }
    try expect(received.code == .resourceExhausted, "receiving 5 MiB: \(received)")
  }

  private static func manyAtOnce(_ client: Interop.EchoClient) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<500 {
        group.addTask {
          let payload = Array("\(number)".utf8)
          let answer = try await client.unary(.init(payload: payload))
          try expect(answer.payload == payload, "answers are mixed up")
        }
      }
      try await group.waitForAll()
    }
  }

  private static func compression(_ client: Interop.EchoClient) async throws {
    for compression in Compression.allCases {
      let payload = [UInt8](repeating: 0x61, count: 100_000)
      let options = CallOptions(compression: compression)
      let answer = try await client.unary(.init(payload: payload), options)
      try expect(answer.payload == payload, "\(compression) came back wrong")
      let call = client.clientStream(options)
      for _ in 0..<3 { try await call.send(.init(payload: payload)) }
      call.finish()
      try expect(try await call.response.requestBytes == 300_000, "\(compression) on a stream")
    }
  }

  private static func unknownMethod(_ client: Interop.EchoClient) async throws {
    let error = try await failure {
      let _: Interop.EchoResponse = try await client.channel.unary(
        "/vencejo.interop.v1.Echo/Nothing", Interop.EchoRequest())
    }
    try expect(error.code == .unimplemented, "\(error)")
  }
}
