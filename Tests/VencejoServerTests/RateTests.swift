import Testing
import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoStore

@testable import VencejoServer

/// The limits of the protocol page that the server itself keeps, named as in its table.
@Suite struct RateTests {
  /// At the limit, one past it, and again once the clock has gone on as told.
  private func check(
    _ act: RateLimits.Act, _ limit: RateLimit, burst: Double, perSecond: Double
  ) throws {
    // As the page says.
    #expect(limit == RateLimit(burst: burst, perSecond: perSecond))
    let limits = RateLimits([act: limit])
    var now: Int64 = 1_800_000_000_000_000
    for _ in 0..<Int(burst) { try limits.spend(act, "ana", now: now) }
    func refused() -> StoreError? {
      do throws(StoreError) {
        try limits.spend(act, "ana", now: now)
        return nil
      } catch { return error }
    }
    let refusal = refused()
    #expect(refusal?.reason == "RATE_LIMITED")
    // Nobody else waits for it.
    try limits.spend(act, "ben", now: now)
    // A tick before the time it was told it is still too early; then it is not.
    let wait = Int64((1_000_000 / perSecond).rounded(.up))
    now += wait / 2
    #expect(refused()?.reason == "RATE_LIMITED")
    now += wait - wait / 2
    #expect(refused() == nil)
    #expect(refused()?.reason == "RATE_LIMITED")
    // After a long rest all of it is there again, and no more.
    now += Int64(burst / perSecond * 1_000_000) + 1_000_000
    for _ in 0..<Int(burst) { try limits.spend(act, "ana", now: now) }
    #expect(refused()?.reason == "RATE_LIMITED")
  }

  private let configuration = Backend.Configuration(directory: "")

  @Test("Limit: calls of a user, of them changes")
  func calls() throws {
    try check(.call, configuration.callLimit, burst: 20_000, perSecond: 2000)
    try check(.change, configuration.changeLimit, burst: 10_000, perSecond: 1000)
  }

  @Test("Limit: changes of one device")
  func deviceChanges() throws {
    try check(.deviceChange, configuration.deviceChangeLimit, burst: 5000, perSecond: 500)
  }

  @Test("Limit: attempts to sign in from one address")
  func attempts() throws {
    try check(.attempt, configuration.attemptLimit, burst: 30, perSecond: 0.5)
  }

  @Test("Limit: calls of a user, of them changes: over the wire, with a RetryInfo that is true")
  func overTheWire() async throws {
    let clock = TestClock()
    try await withWorld({
      $0.store.clock = { clock.now }
      $0.changeLimit = RateLimit(burst: 5, perSecond: 1)
      $0.callLimit = RateLimit(burst: 9, perSecond: 1)
    }) { world in
      let ana = try await world.person("ana")
      let chat = try await ana.createChat(.selfValue)
      for index in 0..<4 { try await ana.send("\(index)", to: chat) }
      // Changes are used up, other calls are not.
      await expect(.resourceExhausted, "RATE_LIMITED") { try await ana.send("5", to: chat) }
      for _ in 0..<3 { _ = try await ana.chat.listChats(.init(), ana.options) }
      do {
        _ = try await ana.chat.listChats(.init(), ana.options)
        Issue.record("a call too many was answered")
      } catch let error as RPCError {
        let delay = try #require(error.detail(GoogleRPC.RetryInfo.self)?.retryDelay)
        clock.advance(seconds: delay.seconds + 1)
      }
      _ = try await ana.chat.listChats(.init(), ana.options)
    }
  }

  @Test("Limit: one request")
  func requests() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let chat = try await ana.createChat(.selfValue)
      func send(_ bytes: Int) async throws {
        var request = Chat.SendMessageRequest.with {
          $0.parent = chat.name
          $0.messageId = "\(UUID.v7())"
          $0.content = .with { $0.kind = .text(.with { $0.text = "" }) }
        }
        var text = bytes - request.serializedBytes().count
        while true {
          request.content = .with {
            $0.kind = .text(.with { $0.text = String(repeating: "x", count: text) })
          }
          let surplus = request.serializedBytes().count - bytes
          guard surplus > 0 else { break }
          text -= surplus
        }
        #expect(request.serializedBytes().count == bytes)
        _ = try await ana.chat.sendMessage(request, ana.options)
      }
      // Four MiB are read, and are too long a text.
      await expect(.invalidArgument, "MESSAGE_TOO_LONG") { try await send(4 << 20) }
      do {
        try await send(4 << 20 + 1)
        Issue.record("a request of more than 4 MiB was read")
      } catch let error as RPCError {
        #expect(error.code == .resourceExhausted)
      }
      // The connection goes on.
      try await ana.send("x", to: chat)
    }
  }
}
