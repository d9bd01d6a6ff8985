import Testing
import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoStore

@testable import VencejoServer

@Suite struct SignInTests {
  @Test func guessingCostsTheGuesserOnly() {
    let guardian = SignInGuard()
    let second: Int64 = 1_000_000
    func wait(_ address: String, _ now: Int64) -> Int64? {
      do throws(StoreError) {
        try guardian.check("ana", address, now: now)
        return nil
      } catch {
        if case .retry(let milliseconds)? = error.details.first { return milliseconds }
        return -1
      }
    }
    for _ in 0..<4 { guardian.failed("ana", "a", now: 0) }
    #expect(wait("a", 0) == nil)
    guardian.failed("Ana", "a", now: 0)
    #expect(wait("a", 0) == 2000)
    #expect(wait("a", 2 * second - 1) == 1)
    #expect(wait("a", 2 * second) == nil)
    // From elsewhere the account is open.
    #expect(wait("b", 0) == nil)
    guardian.failed("ana", "a", now: 2 * second)
    #expect(wait("a", 2 * second) == 4000)
    for _ in 0..<100 { guardian.failed("ana", "a", now: 2 * second) }
    #expect(wait("a", 2 * second) == 900_000)
    guardian.succeeded("ana", "a")
    #expect(wait("a", 2 * second) == nil)
    // An hour without another failure, and all is forgotten.
    for _ in 0..<4 { guardian.failed("ana", "a", now: 0) }
    guardian.failed("ana", "a", now: 3601 * second)
    #expect(wait("a", 3601 * second) == nil)
  }

  @Test func bucketsFillAgain() {
    let limits = RateLimits([.call: RateLimit(burst: 3, perSecond: 2)])
    func spend(_ who: String, _ now: Int64) -> Int64? {
      do throws(StoreError) {
        try limits.spend(.call, who, now: now)
        return nil
      } catch {
        if case .retry(let milliseconds)? = error.details.first { return milliseconds }
        return -1
      }
    }
    #expect((0..<4).map { _ in spend("a", 0) } == [nil, nil, nil, 501])
    #expect(spend("b", 0) == nil)
    #expect(spend("a", 499_000) == 2)
    #expect(spend("a", 500_000) == nil)
    #expect(spend("a", 500_000) == 501)
    #expect((0..<4).map { _ in spend("a", 60_000_000) } == [nil, nil, nil, 501])
    // What has no limit is free.
    try? limits.spend(.attempt, "a", now: 0)
  }

  @Test func aCallerWhoDoesTooMuchIsToldToWait() async throws {
    try await withWorld({ $0.changeLimit = RateLimit(burst: 2, perSecond: 0.001) }) { world in
      let ana = try await world.person("ana")
      let chat = try await ana.createChat(.selfValue)
      try await ana.send("1", to: chat)
      do {
        try await ana.send("2", to: chat)
        Issue.record("sent")
      } catch let error as RPCError {
        #expect(error.code == .resourceExhausted)
        #expect(error.detail(GoogleRPC.ErrorInfo.self)?.reason == "RATE_LIMITED")
        #expect((error.detail(GoogleRPC.RetryInfo.self)?.retryDelay?.seconds ?? 0) > 900)
      }
      // Looking is still allowed.
      _ = try await ana.chat.listChats(.init(), ana.options)
    }
  }

  @Test func aLockedOutGuesserHearsWhen() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      func signIn(_ password: String) async -> RPCError? {
        do {
          _ = try await ana.auth.signIn(
            .with {
              $0.credential = .password(
                .with {
                  $0.identifier = "ana"
                  $0.password = password
                })
            })
          return nil
        } catch { return error }
      }
      for _ in 0..<5 { #expect(await signIn("wrong one")?.code == .unauthenticated) }
      let error = try #require(await signIn("password of ana"))
      #expect(error.code == .resourceExhausted)
      #expect(error.detail(GoogleRPC.ErrorInfo.self)?.reason == "TOO_MANY_FAILURES")
      #expect(error.detail(GoogleRPC.RetryInfo.self) != nil)
    }
  }

  @Test func keysAreHeldToTheirScopes() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let bot = try #require(
        try await ana.auth.createServiceAccount(.with { $0.handle = "bot" }, ana.options).user)
      #expect(bot.kind == .serviceAccount && bot.owner == ana.name)
      func key(_ scopes: [String]) async throws -> Auth.CreateApiKeyResponse {
        try await ana.auth.createApiKey(
          .with {
            $0.parent = bot.name
            $0.apiKey = .with { $0.scopes = scopes }
          }, ana.options)
      }
      let reader = try await key(["chat.read"])
      let writer = try await key(["chat.write"])
      let client = ana.chat
      _ = try await client.listChats(.init(), .bearer(reader.secret))
      _ = try await client.listChats(.init(), .bearer(writer.secret))
      await expect(.permissionDenied, "SCOPE_MISSING") {
        _ = try await client.createChat(
          .with { $0.chat = .with { $0.kind = .selfValue } }, .bearer(reader.secret))
      }
      await expect(.permissionDenied, "SCOPE_MISSING", "auth.vencejo") {
        _ = try await ana.auth.getUser(
          .with { $0.name = "users/me" }, .bearer(writer.secret))
      }
      let chat = try await client.createChat(
        .with { $0.chat = .with { $0.kind = .selfValue } }, .bearer(writer.secret))
      #expect(chat.created)
      // A stream of a key that is revoked ends at once.
      var frames = client.subscribe(.init(), .bearer(reader.secret)).makeAsyncIterator()
      while let frame = try await frames.next(), !frame.isCaughtUp {}
      let name = try #require(reader.apiKey?.name)
      _ = try await ana.auth.revokeApiKey(.with { $0.name = name }, ana.options)
      #expect(
        try await frames.next()?.event == .closing(.with { $0.reason = .sessionRevoked }))
      await expect(.unauthenticated, "BAD_CREDENTIAL") {
        _ = try await client.listChats(.init(), .bearer(reader.secret))
      }
    }
  }

  @Test func behindAProxyNobodyIsLocal() async throws {
    try await withWorld({ $0.trustsLoopback = false }) { world in
      let channel = try world.channel()
      await expect(.permissionDenied, "SIGN_UP_CLOSED", "auth.vencejo") {
        _ = try await Auth.AuthClient(channel).signUp(
          .with {
            $0.handle = "ana"
            $0.password = "password"
          })
      }
      let code = try await world.backend.store.write {
        try $0.createSignUpCode(uses: 1, lifetime: 60_000_000)
      }
      let response = try await Auth.AuthClient(channel).signUp(
        .with {
          $0.handle = "ana"
          $0.password = "password"
          $0.inviteCode = code
        })
      #expect(response.user?.role == .member)
    }
  }

  @Test func theProxyNamesWhoGuesses() async throws {
    try await withWorld({ $0.trustsLoopback = false }) { world in
      let code = try await world.backend.store.write {
        try $0.createSignUpCode(uses: 1, lifetime: 60_000_000)
      }
      let client = Auth.AuthClient(try world.channel())
      _ = try await client.signUp(
        .with {
          $0.handle = "ana"
          $0.password = "password"
          $0.inviteCode = code
        })
      func signIn(_ password: String, from address: String) async -> StatusCode? {
        var options = CallOptions()
        options.metadata["x-forwarded-for"] = "1.1.1.1, \(address)"
        do {
          _ = try await client.signIn(
            .with {
              $0.credential = .password(
                .with {
                  $0.identifier = "ana"
                  $0.password = password
                })
            }, options)
          return nil
        } catch { return error.code }
      }
      for _ in 0..<5 { #expect(await signIn("wrong", from: "6.6.6.6") == .unauthenticated) }
      #expect(await signIn("password", from: "6.6.6.6") == .resourceExhausted)
      #expect(await signIn("password", from: "7.7.7.7") == nil)
    }
  }

  @Test func sessionsAreListedAndRevoked() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let other = try await ana.auth.signIn(
        .with {
          $0.credential = .password(
            .with {
              $0.identifier = "ana"
              $0.password = "password of ana"
            })
          $0.deviceLabel = "phone"
        })
      let listed = try await ana.auth.listSessions(.with { $0.parent = "users/me" }, ana.options)
      #expect(listed.sessions.map(\.current) == [true, false])
      #expect(listed.sessions.map(\.deviceLabel) == ["", "phone"])
      _ = try await ana.auth.revokeSession(
        .with { $0.name = listed.sessions[1].name }, ana.options)
      await expect(.unauthenticated, "SESSION_REVOKED") {
        _ = try await ana.chat.listChats(.init(), .bearer(other.tokens?.accessToken ?? ""))
      }
    }
  }
}
