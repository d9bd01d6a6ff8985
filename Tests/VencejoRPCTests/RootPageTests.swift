import Synchronization
import Testing
import VencejoHTTP2

@testable import VencejoRPC

@Suite("What people find at /")
struct RootPageTests {
  /// One response, by a client that knows HTTP/2 alone.
  private final class Fetch: StreamHandler, Sendable {
    struct Answer {
      var status = ""
      var body: [UInt8] = []
    }
    private let answer = Mutex(Answer())
    private let done: AsyncStream<Answer>.Continuation

    init(_ done: AsyncStream<Answer>.Continuation) { self.done = done }

    func stream(
      _ stream: HTTP2Stream, header name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
    ) {
      guard name.elementsEqual(":status".utf8) else { return }
      answer.withLock { $0.status = String(decoding: value, as: UTF8.self) }
    }
    func stream(_ stream: HTTP2Stream, headersEndWith endStream: Bool) {}
    func stream(_ stream: HTTP2Stream, data: UnsafeRawBufferPointer) {
      answer.withLock { $0.body += data }
      stream.consume(data.count)
    }
    func streamDidEnd(_ stream: HTTP2Stream) {}
    func streamDidDrain(_ stream: HTTP2Stream) {}
    func stream(_ stream: HTTP2Stream, closedWith code: UInt32) {
      done.yield(answer.withLock { $0 })
      done.finish()
    }
  }

  private func get(_ path: String, from server: Server) async throws -> Fetch.Answer? {
    let loop = try EventLoop(name: "fetch")
    defer { loop.shutdown() }
    // One answer comes.
    let (answers, done) = AsyncStream.makeStream(
      of: Fetch.Answer.self, bufferingPolicy: .bufferingNewest(1))
    let address = server.addresses[0]
    loop.execute {
      HTTP2Connection.connect(to: address, on: loop, configuration: .init()) { result in
        guard case .success(let connection) = result else { return done.finish() }
        _ = try? connection.open(
          handler: Fetch(done),
          headers: HeaderList([
            (":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
          ]), endStream: true)
      }
    }
    return await answers.first { _ in true }
  }

  @Test(arguments: [nil, "", "a page of our own"]) func canBeReplacedAndTurnedOff(
    _ text: String?
  ) async throws {
    var configuration = Harness.quick
    configuration.rootPage = text
    try await withHarness(configuration: configuration) { harness in
      let answer = try await get("/", from: harness.server)
      #expect(answer?.status == (text == nil ? "405" : "200"))
      #expect(answer?.body == Array((text ?? "").utf8))
    }
  }

  @Test func saysWhatThePortIs() async throws {
    try await withHarness { harness in
      let answer = try await get("/", from: harness.server)
      #expect(answer?.status == "200")
      let text = String(decoding: answer?.body ?? [], as: UTF8.self)
      #expect(text.contains("gRPC") && text.contains(VencejoRPC.version))
      #expect(try await get("/other", from: harness.server)?.status == "405")
    }
  }
}
