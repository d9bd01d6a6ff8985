import InteropEcho
import Synchronization
import Testing
import VencejoCompression
import VencejoHTTP2
import VencejoProtobuf

@testable import VencejoRPC

@Suite("Compressed messages")
struct CompressedCallTests {
  private static let payload = [UInt8](repeating: 0x61, count: 200_000)

  /// Answers each request with itself, compressed as it is told.
  private struct Packer: Interop.EchoService {
    let compression: Compression?

    func unary(
      _ request: Interop.EchoRequest, _ context: ServerContext
    ) async throws -> Interop.EchoResponse {
      context.setResponseCompression(compression)
      return .init(payload: request.payload)
    }

    func serverStream(
      _ request: Interop.EchoRequest, _ out: ResponseWriter<Interop.EchoResponse>,
      _ context: ServerContext
    ) async throws {
      context.setResponseCompression(compression)
      for _ in 0..<3 { try await out.send(.init(payload: request.payload)) }
    }
  }

  @Test(arguments: [nil, Compression.gzip, .deflate], [nil, Compression.gzip, .deflate])
  func passBothWays(_ up: Compression?, _ down: Compression?) async throws {
    try await withHarness(services: [Packer(compression: down)]) { harness in
      let options = CallOptions(compression: up)
      let request = Interop.EchoRequest(payload: Self.payload)
      #expect(try await harness.echo.unary(request, options).payload == Self.payload)
      var count = 0
      for try await answer in harness.echo.serverStream(request, options) {
        #expect(answer.payload == Self.payload)
        count += 1
      }
      #expect(count == 3)
    }
  }

  @Test func theServerMayCompressEverything() async throws {
    var configuration = Harness.quick
    configuration.compression = .gzip
    try await withHarness(configuration: configuration) { harness in
      let answer = try await harness.echo.unary(.init(payload: Self.payload))
      #expect(answer.payload == Self.payload)
    }
  }

  /// Tells of each message whether it came compressed, and answers so.
  private struct Teller: Interop.EchoService {
    func unary(
      _ request: Interop.EchoRequest, _ context: ServerContext
    ) async throws -> Interop.EchoResponse {
      .init(index: context.requestWasCompressed ? 1 : 0)
    }

    func bidirectional(
      _ requests: RequestStream<Interop.EchoRequest>,
      _ out: ResponseWriter<Interop.EchoResponse>, _ context: ServerContext
    ) async throws {
      context.setResponseCompression(.gzip)
      var iterator = requests.makeAsyncIterator()
      while let request = try await iterator.next() {
        let answer = Interop.EchoResponse(
          payload: request.payload, index: iterator.messageWasCompressed ? 1 : 0)
        try await out.send(answer, compressed: iterator.messageWasCompressed)
      }
    }
  }

  @Test func eachMessageMayGoEitherWay() async throws {
    try await withHarness(services: [Teller()]) { harness in
      let request = Interop.EchoRequest(payload: Self.payload)
      #expect(try await harness.echo.unary(request).index == 0)
      #expect(try await harness.echo.unary(request, .init(compression: .gzip)).index == 1)

      let call = harness.echo.bidirectional(.init(compression: .gzip))
      var answers = call.makeAsyncIterator()
      for compressed in [true, false, true] {
        try await call.send(request, compressed: compressed)
        let answer = try await answers.next()
        #expect(answer?.index == (compressed ? 1 : 0))
        #expect(answer?.payload == Self.payload)
        #expect(answers.messageWasCompressed == compressed)
      }
      call.finish()
      #expect(try await answers.next() == nil)
    }
  }

  /// 64 MiB of zeros are 64 KiB of gzip: the limit counts what comes out.
  @Test func aBombIsRefused() async throws {
    try await withHarness { harness in
      let error = try await failure {
        _ = try await harness.echo.unary(
          .init(payload: [UInt8](repeating: 0, count: 64 << 20)), .init(compression: .gzip))
      }
      #expect(error?.code == .resourceExhausted)
    }
  }

  /// The flags of the messages in a body (PROTOCOL-HTTP2, Compressed-Flag).
  private static func flags(_ body: [UInt8]) -> [UInt8] {
    var flags: [UInt8] = []
    var rest = body[...]
    while rest.count >= 5 {
      flags.append(rest[rest.startIndex])
      let length = rest.dropFirst().prefix(4).reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(5 + length)
    }
    return flags
  }

  @Test func aMessageMayGoAsItIs() async throws {
    let server = try ScriptedServer(onEnd: { stream, _ in ScriptedServer.answer(stream) })
    var configuration = Channel.Configuration()
    configuration.compression = .gzip
    let echo = Interop.EchoClient(try Channel(server.address, configuration: configuration))
    let call = echo.clientStream()
    try await call.send(.init(payload: Self.payload))
    try await call.send(.init(payload: Self.payload), compressed: false)
    try await call.send(.init(payload: Self.payload))
    call.finish()
    _ = try await call.response
    _ = try await echo.unary(.init(payload: Self.payload))
    _ = try await echo.unary(.init(payload: Self.payload), .init(compressed: false))
    _ = try await echo.unary(.init(payload: Self.payload), .init(compression: .deflate))
    let log = server.log.withLock { $0 }
    #expect(log.bodies.map(Self.flags) == [[1, 0, 1], [1], [0], [1]])
    #expect(log.requests.map { $0["grpc-encoding"] } == ["gzip", "gzip", nil, "deflate"])
    server.stop()
  }

  private struct Alternating: Interop.EchoService {
    func serverStream(
      _ request: Interop.EchoRequest, _ out: ResponseWriter<Interop.EchoResponse>,
      _ context: ServerContext
    ) async throws {
      context.setResponseCompression(.gzip)
      try await out.send(.init(payload: request.payload))
      try await out.send(.init(payload: request.payload), compressed: false)
      try await out.send(.init(payload: request.payload), compressed: true)
    }
  }

  /// What the server sends to a client that can, and to one that cannot, read gzip.
  @Test(arguments: [
    ("identity,deflate,gzip", [1, 0, 1]), ("identity", [0, 0, 0]), ("", [0, 0, 0]),
  ])
  func theServerCompressesForThoseWhoCanRead(_ accepted: String, _ wanted: [UInt8]) async throws {
    try await withHarness(services: [Alternating()]) { harness in
      let request = EncodedMessage(Interop.EchoRequest(payload: Self.payload)).frame
      let answer = try await RawCall.make(
        harness.address, "/vencejo.interop.v1.Echo/ServerStream",
        [("grpc-accept-encoding", accepted)], request)
      #expect(Self.flags(answer.body) == wanted)
      #expect(answer.fields["grpc-encoding"] == (wanted.contains(1) ? "gzip" : nil))
      #expect(answer.fields["grpc-status"] == "0")
    }
  }

  /// compression.md: an encoding the server does not know is UNIMPLEMENTED, and it says what it
  /// knows; a flag without an encoding is INTERNAL.
  @Test func unknownEncodingsAreRefused() async throws {
    try await withHarness { harness in
      let frame: [UInt8] = [1, 0, 0, 0, 2, 7, 7]
      let snappy = try await RawCall.make(
        harness.address, "/vencejo.interop.v1.Echo/Unary", [("grpc-encoding", "snappy")], frame)
      #expect(snappy.fields["grpc-status"] == "12")
      #expect(snappy.fields["grpc-accept-encoding"]?.contains("gzip") == true)
      let none = try await RawCall.make(
        harness.address, "/vencejo.interop.v1.Echo/Unary", [], frame)
      #expect(none.fields["grpc-status"] == "13")
      // An unknown encoding of messages that are not compressed does no harm.
      let plain = try await RawCall.make(
        harness.address, "/vencejo.interop.v1.Echo/Unary", [("grpc-encoding", "snappy")],
        [0, 0, 0, 0, 0])
      #expect(plain.fields["grpc-status"] == "0")
    }
  }
}

/// One call on bytes, below everything of the client's.
final class RawCall: StreamHandler {
  struct Answer: Sendable {
    var fields: [String: String] = [:]
    var body: [UInt8] = []
    var code: UInt32 = 0
  }

  private var answer = Answer()
  private let done: (Answer) -> Void

  private init(_ done: @escaping (Answer) -> Void) { self.done = done }

  static func make(
    _ address: String, _ path: String, _ fields: [(String, String)], _ body: [UInt8]
  ) async throws -> Answer {
    let loop = try EventLoop(name: "raw")
    let address = try SocketAddress(parsing: address)
    let headers = HeaderList(
      [
        (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"),
        ("te", "trailers"), ("content-type", "application/grpc"),
      ] + fields)
    let answer: Result<Answer, HTTP2Error> = await withCheckedContinuation { continuation in
      HTTP2Connection.connect(to: address, on: loop, configuration: .init()) { result in
        do throws(HTTP2Error) {
          let connection = try result.get()
          let call = RawCall {
            continuation.resume(returning: .success($0))
            connection.close(0)
          }
          let stream = try connection.open(handler: call, headers: headers, endStream: false)
          stream.send(data: body)
          stream.finish()
        } catch {
          continuation.resume(returning: .failure(error))
        }
      }
    }
    loop.shutdown()
    return try answer.get()
  }

  func stream(
    _ stream: HTTP2Stream, header name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
  ) {
    answer.fields[String(decoding: name, as: UTF8.self)] = String(decoding: value, as: UTF8.self)
  }

  func stream(_ stream: HTTP2Stream, headersEndWith endStream: Bool) {}

  func stream(_ stream: HTTP2Stream, data: UnsafeRawBufferPointer) {
    answer.body.append(contentsOf: data)
    stream.consume(data.count)
  }

  func streamDidEnd(_ stream: HTTP2Stream) {}
  func streamDidDrain(_ stream: HTTP2Stream) {}

  func stream(_ stream: HTTP2Stream, closedWith code: UInt32) {
    answer.code = code
    done(answer)
  }
}
