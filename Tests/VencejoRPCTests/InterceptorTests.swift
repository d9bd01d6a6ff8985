import InteropEcho
import Synchronization
import Testing
import VencejoHTTP2
import VencejoProtobuf
import VencejoRPC

@Suite("Interceptors")
struct InterceptorTests {
  /// Notes when it is entered and left, on either side.
  private final class Journal: ServerInterceptor, ClientInterceptor {
    let name: String
    let entries: Entries

    final class Entries: Sendable {
      private let list = Mutex<[String]>([])
      func add(_ entry: String) { list.withLock { $0.append(entry) } }
      var all: [String] { list.withLock { $0 } }
    }

    init(_ name: String, _ entries: Entries) {
      self.name = name
      self.entries = entries
    }

    func intercept(_ call: ServerInterception) async throws {
      entries.add("\(name) in")
      do {
        try await call.proceed()
        entries.add("\(name) out")
      } catch {
        entries.add("\(name) failed")
        throw error
      }
    }

    func intercept(_ call: ClientInterception) async throws {
      entries.add("\(name) in")
      try await call.proceed()
      entries.add("\(name) out")
    }
  }

  private struct Server1: ServerInterceptor {
    let body: @Sendable (ServerInterception) async throws -> Void
    func intercept(_ call: ServerInterception) async throws { try await body(call) }
  }

  private struct Client1: ClientInterceptor {
    let body: @Sendable (ClientInterception) async throws -> Void
    func intercept(_ call: ClientInterception) async throws { try await body(call) }
  }

  private func withEcho(
    server: [any ServerInterceptor] = [], client: [any ClientInterceptor] = [],
    _ body: (Interop.EchoClient) async throws -> Void
  ) async throws {
    var configuration = Harness.quick
    configuration.interceptors = server
    try await withHarness(configuration: configuration, services: [Echo()]) { harness in
      var configuration = Channel.Configuration()
      configuration.interceptors = client
      let channel = try Channel(harness.address, configuration: configuration)
      try await body(Interop.EchoClient(channel))
      channel.close()
    }
  }

  @Test func theFirstIsOutermost() async throws {
    let entries = Journal.Entries()
    try await withEcho(
      server: [Journal("s1", entries), Journal("s2", entries)],
      client: [Journal("c1", entries), Journal("c2", entries)]
    ) { echo in
      _ = try await echo.unary(.init(payload: [1]))
      #expect(
        entries.all == [
          "c1 in", "c2 in", "s1 in", "s2 in", "s2 out", "s1 out", "c2 out", "c1 out",
        ])
    }
  }

  @Test func everyShapePasses() async throws {
    let entries = Journal.Entries()
    try await withEcho(server: [Journal("s", entries)], client: [Journal("c", entries)]) { echo in
      #expect(try await echo.unary(.init(payload: [1])).payload == [1])
      var count = 0
      for try await _ in echo.serverStream(.init(responseCount: 3)) { count += 1 }
      #expect(count == 3)
      let sum = echo.clientStream()
      for _ in 0..<3 { try await sum.send(.init(payload: [1])) }
      sum.finish()
      #expect(try await sum.response.requestCount == 3)
      let talk = echo.bidirectional()
      var answers = talk.makeAsyncIterator()
      try await talk.send(.init(payload: [9]))
      #expect(try await answers.next()?.payload == [9])
      talk.finish()
      #expect(try await answers.next() == nil)
    }
  }

  @Test func metadataIsReadAndChanged() async throws {
    try await withEcho(
      server: [
        Server1 { call in
          #expect(call.metadata["x-initial-client"] == "1")
          call.metadata["x-initial-server"] = "2"
          try await call.proceed()
        }
      ],
      client: [
        Client1 { call in
          call.options.metadata["x-initial-client"] = "1"
          try await call.proceed()
        }
      ]
    ) { echo in
      let call = echo.serverStream(.init())
      let initial = try await call.initialMetadata
      #expect(initial["x-initial-client"] == "1")
      #expect(initial["x-initial-server"] == "2")
    }
  }

  @Test func messagesAreChangedBothWays() async throws {
    let flip: @Sendable ([UInt8]) throws(RPCError) -> [UInt8] = { $0.map { $0 ^ 0x55 } }
    try await withEcho(
      server: [
        Server1 { call in
          call.mapRequests(flip)
          call.mapResponses(flip)
          try await call.proceed()
        }
      ],
      client: [
        Client1 { call in
          call.mapRequests(flip)
          call.mapResponses(flip)
          try await call.proceed()
        }
      ]
    ) { echo in
      #expect(try await echo.unary(.init(payload: [1, 2, 3])).payload == [1, 2, 3])
      var payloads: [[UInt8]] = []
      for try await answer in echo.serverStream(.init(payload: [7], responseCount: 2)) {
        payloads.append(answer.payload)
      }
      #expect(payloads == [[7], [7]])
      let sum = echo.clientStream()
      try await sum.send(.init(payload: [4, 4]))
      sum.finish()
      #expect(try await sum.response.requestBytes == 2)
    }
  }

  @Test func theServerMayRefuseBeforeTheHandler() async throws {
    try await withEcho(server: [Server1 { _ in throw RPCError(.permissionDenied, "not you") }]) {
      echo in
      let error = try await failure { _ = try await echo.unary(.init()) }
      #expect(error?.code == .permissionDenied)
      #expect(error?.message == "not you")
    }
  }

  @Test func theStatusMayBeReplacedOnBothSides() async throws {
    try await withEcho(
      server: [
        Server1 { call in
          do { try await call.proceed() } catch let error as RPCError {
            #expect(error.code == .aborted)
            throw RPCError(.dataLoss)
          }
        }
      ],
      client: [
        Client1 { call in
          do { try await call.proceed() } catch let error as RPCError {
            #expect(error.code == .dataLoss)
            throw RPCError(.outOfRange, "as the client sees it")
          }
        }
      ]
    ) { echo in
      let unary = try await failure { _ = try await echo.unary(.init(failure: .init(code: 10))) }
      #expect(unary?.code == .outOfRange)
      let stream = try await failure {
        for try await _ in echo.serverStream(.init(failure: .init(code: 10))) {}
      }
      #expect(stream?.code == .outOfRange)
    }
  }

  @Test func anInterceptorThatHangsIsCancelledWithItsCall() async throws {
    let hang = Client1 { call in
      // Nobody waits for it to end: it hangs for as long as any test could last.
      try await Task.sleep(for: .seconds(3_600))
      try await call.proceed()
    }
    try await withEcho(client: [hang]) { echo in
      let task = Task<RPCError?, any Error> {
        try await failure { _ = try await echo.unary(.init()) }
      }
      try? await Task.sleep(for: .milliseconds(1))
      task.cancel()
      let error = try await task.value
      #expect(error?.code == .cancelled)
    }
  }

  @Test func endingWithoutProceedingIsAnError() async throws {
    try await withEcho(client: [Client1 { _ in }]) { echo in
      let error = try await failure { _ = try await echo.unary(.init()) }
      #expect(error?.code == .internalError)
    }
  }
}

@Suite("Deadlines of handlers")
struct PropagationTests {
  /// Calls another server and answers with what that one saw of the deadline.
  private struct Relay: Interop.EchoService {
    let next: Interop.EchoClient
    let execution: HandlerExecution

    func unary(
      _ request: Interop.EchoRequest, _ context: ServerContext
    ) async throws -> Interop.EchoResponse {
      try await next.unary(request, .init(timeout: .seconds(6_000)))
    }
  }

  @Test(arguments: [HandlerExecution.pool, .loop])
  func travelToTheCallsMadeInThem(_ execution: HandlerExecution) async throws {
    try await withHarness { last in
      try await withHarness(services: [Relay(next: last.echo, execution: execution)]) { first in
        let with = try await first.echo.unary(.init(), .init(timeout: .seconds(600)))
        #expect((1...600_000).contains(with.deadlineMilliseconds))
        let without = try await first.echo.unary(.init())
        #expect(without.deadlineMilliseconds > 600_000)
        let error = try await failure {
          _ = try await first.echo.unary(
            .init(delayMilliseconds: 60_000), .init(timeout: .milliseconds(100)))
        }
        #expect(error?.code == .deadlineExceeded)
      }
    }
  }
}
