import InteropEcho
import Synchronization
import Testing
import VencejoHTTP2

@testable import VencejoRPC

@Suite("Retries")
struct RetryTests {
  /// Fails so many times, then answers.
  private final class Flaky: Interop.EchoService {
    let calls = Atomic<Int>(0)
    let failures: Int
    let code: StatusCode
    let beginsFirst: Bool

    init(failures: Int, code: StatusCode = .unavailable, beginsFirst: Bool = false) {
      self.failures = failures
      self.code = code
      self.beginsFirst = beginsFirst
    }

    private func attempt(_ context: ServerContext) throws {
      let number = calls.add(1, ordering: .relaxed).newValue
      if beginsFirst { context.sendInitialMetadata(["begun": "1"]) }
      if number <= failures { throw RPCError(code, "attempt \(number)") }
    }

    func unary(
      _ request: Interop.EchoRequest, _ context: ServerContext
    ) async throws -> Interop.EchoResponse {
      try attempt(context)
      return .init(payload: request.payload)
    }

    func serverStream(
      _ request: Interop.EchoRequest, _ out: ResponseWriter<Interop.EchoResponse>,
      _ context: ServerContext
    ) async throws {
      try attempt(context)
      for index in 0..<3 { try await out.send(.init(index: Int32(index))) }
    }

    func clientStream(
      _ requests: RequestStream<Interop.EchoRequest>, _ context: ServerContext
    ) async throws -> Interop.EchoResponse {
      try attempt(context)
      return .init()
    }
  }

  private static let quick = RetryPolicy(
    maxAttempts: 4, initialBackoff: .milliseconds(1), maxBackoff: .milliseconds(4))

  @Test func aCallIsMadeAgainUntilItSucceeds() async throws {
    let flaky = Flaky(failures: 3)
    try await withHarness(services: [flaky]) { harness in
      let answer = try await harness.echo.unary(
        .init(payload: [1]), .init(retryPolicy: Self.quick))
      #expect(answer.payload == [1])
      #expect(flaky.calls.load(ordering: .relaxed) == 4)
    }
  }

  @Test func streamsAreTooBeforeTheyBegin() async throws {
    let flaky = Flaky(failures: 2)
    try await withHarness(services: [flaky]) { harness in
      var indices: [Int32] = []
      for try await answer in harness.echo.serverStream(.init(), .init(retryPolicy: Self.quick)) {
        indices.append(answer.index)
      }
      #expect(indices == [0, 1, 2])
    }
  }

  @Test func attemptsAreCounted() async throws {
    let flaky = Flaky(failures: 100)
    try await withHarness(services: [flaky]) { harness in
      let error = try await failure {
        _ = try await harness.echo.unary(.init(), .init(retryPolicy: Self.quick))
      }
      #expect(error?.message == "attempt 4")
      #expect(flaky.calls.load(ordering: .relaxed) == 4)
    }
  }

  @Test func otherStatusesAreNot() async throws {
    let flaky = Flaky(failures: 1, code: .internalError)
    try await withHarness(services: [flaky]) { harness in
      let error = try await failure {
        _ = try await harness.echo.unary(.init(), .init(retryPolicy: Self.quick))
      }
      #expect(error?.code == .internalError)
      #expect(flaky.calls.load(ordering: .relaxed) == 1)
    }
  }

  @Test func aCallThatBeganIsNot() async throws {
    let flaky = Flaky(failures: 1, beginsFirst: true)
    try await withHarness(services: [flaky]) { harness in
      let error = try await failure {
        _ = try await harness.echo.unary(.init(), .init(retryPolicy: Self.quick))
      }
      #expect(error?.code == .unavailable)
      #expect(flaky.calls.load(ordering: .relaxed) == 1)
    }
  }

  /// A call that reaches nobody is as good as one that was answered UNAVAILABLE.
  @Test func soIsACallThatReachesNobody() async throws {
    let attempts = Attempts()
    var configuration = Channel.Configuration()
    configuration.observers = [attempts]
    configuration.retryPolicy = Self.quick
    let channel = try Channel("127.0.0.1:1", configuration: configuration)
    let client = Interop.EchoClient(channel)
    let error = try await failure { _ = try await client.unary(.init()) }
    #expect(error?.code == .unavailable && error?.origin == .transport)
    #expect(attempts.count.load(ordering: .relaxed) == 4)
    let stream = client.clientStream()
    stream.finish()
    _ = try await failure { _ = try await stream.response }
    #expect(attempts.count.load(ordering: .relaxed) == 8)
    channel.close()
    let closed = try await failure { _ = try await client.unary(.init()) }
    #expect(closed?.code == .unavailable)
    #expect(attempts.count.load(ordering: .relaxed) == 9)
  }

  private final class Attempts: RPCObserver {
    let count = Atomic(0)
    func attemptBegan(_ call: CallReport) { count.add(1, ordering: .relaxed) }
  }

  @Test func soIsAStreamOfRequests() async throws {
    let flaky = Flaky(failures: 2)
    try await withHarness(services: [flaky]) { harness in
      let call = harness.echo.clientStream(.init(retryPolicy: Self.quick))
      try await call.send(.init(payload: [1]))
      call.finish()
      _ = try await call.response
      #expect(flaky.calls.load(ordering: .relaxed) == 3)
    }
  }

  @Test func theDeadlineEndsTheAttempts() async throws {
    let flaky = Flaky(failures: 100)
    let slow = RetryPolicy(
      maxAttempts: 5, initialBackoff: .seconds(600), maxBackoff: .seconds(600))
    try await withHarness(services: [flaky]) { harness in
      let error = try await failure {
        _ = try await harness.echo.unary(
          .init(), .init(timeout: .milliseconds(100), retryPolicy: slow))
      }
      #expect(error?.code == .deadlineExceeded)
      #expect(flaky.calls.load(ordering: .relaxed) == 1)
    }
  }

  // gRFC A6: half of ten tokens must be left; a failure takes one, a success gives a tenth.
  @Test func tooManyFailuresStopRetries() {
    var throttle = RetryThrottle(.init(maxTokens: 10, tokenRatio: 0.1))
    for _ in 0..<4 { throttle.failed() }
    #expect(throttle.allowsRetry)
    throttle.failed()
    #expect(!throttle.allowsRetry)
    for _ in 0..<11 { throttle.succeeded() }
    #expect(throttle.allowsRetry)
  }

  @Test func withoutAThrottleEveryCallIsMadeAgain() async throws {
    let flaky = Flaky(failures: .max)
    try await withHarness(services: [flaky]) { harness in
      for _ in 0..<20 {
        _ = try await failure {
          _ = try await harness.echo.unary(.init(), .init(retryPolicy: Self.quick))
        }
      }
      #expect(flaky.calls.load(ordering: .relaxed) == 20 * 4)
    }
  }

  // service_config.proto: random(0.8, 1.2) around the backoff.
  @Test func delaysAreNearTheirBackoff() {
    let policy = RetryPolicy(
      maxAttempts: 5, initialBackoff: .milliseconds(100), maxBackoff: .milliseconds(350),
      backoffMultiplier: 2)
    for (made, bound) in [(1, 100), (2, 200), (3, 350), (4, 350)] {
      for _ in 0..<100 {
        let delay = policy.delay(afterAttempts: made) / .milliseconds(bound)
        #expect(delay >= 0.799_999 && delay <= 1.200_001)
      }
    }
  }

  @Test(arguments: [("250", 250), ("0", 0), ("-1", -1), ("soon", -1)])
  func pushbackIsRead(_ text: String, _ milliseconds: Int64) {
    var head = ResponseHead()
    Array("grpc-retry-pushback-ms".utf8).withUnsafeBytes { name in
      Array(text.utf8).withUnsafeBytes { head.take(name, $0) }
    }
    #expect(head.retryPushback == milliseconds)
  }
}
