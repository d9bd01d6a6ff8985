import InteropEcho
import Synchronization
import Testing
import VencejoHTTP2

@testable import VencejoRPC

/// Streams at rest have no task where they need none.
@Suite("Streams at rest")
struct RestTests {
  /// Counts its handlers' beginnings.
  private final class Relay: Interop.EchoService {
    let begun = Atomic<Int>(0)
    let startsWithFirstMessage: Bool
    let execution: HandlerExecution

    init(_ startsWithFirstMessage: Bool, _ execution: HandlerExecution) {
      self.startsWithFirstMessage = startsWithFirstMessage
      self.execution = execution
    }

    var count: Int { begun.load(ordering: .sequentiallyConsistent) }

    func unary(
      _ request: Interop.EchoRequest, _ context: ServerContext
    ) async throws -> Interop.EchoResponse { .init(payload: request.payload) }

    func bidirectional(
      _ requests: RequestStream<Interop.EchoRequest>, _ out: ResponseWriter<Interop.EchoResponse>,
      _ context: ServerContext
    ) async throws {
      begun.add(1, ordering: .sequentiallyConsistent)
      for try await request in requests { try await out.send(.init(payload: request.payload)) }
    }

    func clientStream(
      _ requests: RequestStream<Interop.EchoRequest>, _ context: ServerContext
    ) async throws -> Interop.EchoResponse {
      begun.add(1, ordering: .sequentiallyConsistent)
      var count: Int32 = 0
      for try await _ in requests { count += 1 }
      return .init(requestCount: count)
    }
  }

  @Test(arguments: [HandlerExecution.loop, .pool])
  func aHandlerMayStartWithTheFirstMessage(_ execution: HandlerExecution) async throws {
    let relay = Relay(true, execution)
    try await withHarness(services: [relay]) { harness in
      let call = harness.echo.bidirectional()
      // The same connection: what went before is there.
      _ = try await harness.echo.unary(.init())
      #expect(relay.count == 0)
      var answers = call.makeAsyncIterator()
      for size in [0, 3, 100_000, 1] {
        try await call.send(.init(payload: Array(repeating: 7, count: size)))
        #expect(try await answers.next()?.payload.count == size)
      }
      #expect(relay.count == 1)
      call.finish()
      #expect(try await answers.next() == nil)

      // No message at all.
      let empty = harness.echo.clientStream()
      empty.finish()
      #expect(try await empty.response.requestCount == 0)
      #expect(relay.count == 2)
    }
  }

  /// Reads in a task of its own, which it cancels while it waits.
  private struct Impatient: Interop.EchoService {
    func bidirectional(
      _ stream: RequestStream<Interop.EchoRequest>, _ out: ResponseWriter<Interop.EchoResponse>,
      _ context: ServerContext
    ) async throws {
      var requests = stream.makeAsyncIterator()
      _ = try await requests.next()
      let outcome = await withTaskGroup(of: StatusCode?.self) { group in
        group.addTask {
          var rest = stream.makeAsyncIterator()
          do {
            _ = try await rest.next()
            return nil
          } catch {
            return (error as? RPCError)?.code
          }
        }
        group.cancelAll()
        return await group.next() ?? nil
      }
      try await out.send(.init(index: Int32(outcome?.rawValue ?? -1)))
      // The handler's own task goes on reading.
      while let request = try await requests.next() {
        try await out.send(.init(payload: request.payload))
      }
    }
  }

  @Test func aTaskOfTheHandlersIsCancelledWhileItReads() async throws {
    try await withHarness(services: [Impatient()]) { harness in
      let call = harness.echo.bidirectional()
      var answers = call.makeAsyncIterator()
      try await call.send(.init())
      #expect(try await answers.next()?.index == Int32(StatusCode.cancelled.rawValue))
      try await call.send(.init(payload: [9]))
      #expect(try await answers.next()?.payload == [9])
      call.finish()
      #expect(try await answers.next() == nil)
    }
  }

  @Test func aHandlerStartsForMetadata() async throws {
    let relay = Relay(true, .pool)
    try await withHarness(services: [relay]) { harness in
      let call = harness.echo.bidirectional(.init(metadata: ["authorization": "none"]))
      let begins = try await eventually { relay.count == 1 }
      #expect(begins)
      call.cancel()
    }
  }

  @Test func withoutTheWishItStartsAtOnce() async throws {
    let relay = Relay(false, .pool)
    try await withHarness(services: [relay]) { harness in
      let call = harness.echo.bidirectional()
      let begins = try await eventually { relay.count == 1 }
      #expect(begins)
      call.cancel()
    }
  }

  @Test func aCallThatNeverBeganHasADeadlineAndAnEnd() async throws {
    let relay = Relay(true, .pool)
    var configuration = Harness.quick
    configuration.maxConcurrentCalls = 1
    try await withHarness(configuration: configuration, services: [relay]) { harness in
      let late = harness.echo.bidirectional(.init(timeout: .milliseconds(20)))
      let error = try await failure { for try await _ in late {} }
      #expect(error?.code == .deadlineExceeded)
      for _ in 0..<10 { harness.echo.bidirectional().cancel() }
      // None of them counts against a limit.
      _ = try await harness.echo.unary(.init())
      #expect(relay.count == 0)
    }
  }

  private struct PassOn: ServerInterceptor {
    func intercept(_ call: ServerInterception) async throws { try await call.proceed() }
  }

  @Test(arguments: [false, true])
  func watchersHearOfEveryChange(isIntercepted: Bool) async throws {
    let health = Health()
    var configuration = Harness.quick
    configuration.interceptors = isIntercepted ? [PassOn()] : []
    configuration.maxConcurrentCalls = 20
    try await withHarness(configuration: configuration, services: [Echo(), health]) { harness in
      let client = GRPCHealth.HealthClient(harness.channel)
      for _ in 0..<3 {
        var readers: [ResponseIterator<GRPCHealth.HealthCheckResponse>] = []
        // Those that ended give their places to the next, if not at once.
        let areThere = try await eventually {
          var reader = client.watch(.init(service: "one")).makeAsyncIterator()
          let refused = try await failure {
            let first = try await reader.next()
            #expect(first?.status == .serviceUnknown)
            readers.append(reader)
          }
          #expect(refused == nil || refused?.code == .resourceExhausted)
          return readers.count == 20
        }
        #expect(areThere)
        health.set(.serving, for: "other")
        for status in [GRPCHealth.HealthCheckResponse.ServingStatus.serving, .notServing] {
          health.set(status, for: "one")
          for index in readers.indices {
            #expect(try await readers[index].next()?.status == status)
          }
        }
        health.set(.serviceUnknown, for: "one")
      }
      let isRefused = try await eventually {
        let bytes = harness.channel.bytes("/grpc.health.v1.Health/Watch")
        try await bytes.send(EncodedMessage(serialized: [0xFF]))
        bytes.finish()
        let error = try await failure { while try await bytes.next() != nil {} }
        return error?.code == .internalError
      }
      #expect(isRefused)
      _ = try await harness.echo.unary(.init())
    }
  }
}
