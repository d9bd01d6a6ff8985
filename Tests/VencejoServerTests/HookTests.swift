import TestSupport
import Testing
import VencejoAPI
import VencejoCrypto
import VencejoHTTPClient
import VencejoJSON
import VencejoProtobuf
import VencejoRPC
import VencejoStore

@testable import VencejoServer

private let here = NetworkPolicy(allowed: [NetworkRange("127.0.0.0/8")].compactMap(\.self))

private func payload(_ request: Receiver.Request) throws -> Chat.PushPayload {
  try Chat.PushPayload(jsonString: request.body)
}

extension Person {
  fileprivate func push(
    to uri: String, _ change: (inout Chat.PushEndpoint) -> Void = { _ in }
  ) async throws -> Chat.PushEndpoint {
    let response = try await chat.createPushEndpoint(
      .with {
        $0.pushEndpoint = .with {
          $0.target = .httpHook(.with { $0.uri = uri })
          change(&$0)
        }
      }, options)
    return try #require(response.pushEndpoint)
  }

  fileprivate func endpoint() async throws -> Chat.PushEndpoint {
    try #require(try await chat.listPushEndpoints(.init(), options).pushEndpoints.first)
  }
}

@Suite struct HookTests {
  @Test func aMessageIsPostedAndSigned() async throws {
    let receiver = try Receiver()
    defer { receiver.close() }
    try await withWorld({ $0.hookPolicy = here }) { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.direct, [ben])
      try await ana.send("before", to: chat)
      let endpoint = try await ben.push(to: receiver.uri)
      guard case .httpHook(let target)? = endpoint.target else { return }
      #expect(target.signingSecret.hasPrefix("whsec_"))
      let message = try await ana.send("hola, ñ", to: chat)
      var requests = receiver.requests()
      let request = try #require(await requests.next())
      let payload = try payload(request)
      #expect(request.path == "/hook" && request.headers["content-type"] == "application/json")
      #expect(payload.user == ben.name && payload.message?.name == message.name)
      #expect(payload.message?.text == "hola, ñ")
      #expect(payload.totalUnreadCount == 2 && payload.actorDisplayName == "ana")
      guard case .notification(let notification)? = payload.event else { return }
      #expect(notification.kind == .message && notification.name.isEmpty)
      // The signature of Standard Webhooks.
      let (id, time) = (
        try #require(request.headers["webhook-id"]),
        try #require(request.headers["webhook-timestamp"])
      )
      #expect(id == payload.eventId)
      let key = try HookSignature.key(target.signingSecret)
      let code = HMACSHA256.authenticate(Array("\(id).\(time).\(request.body)".utf8), key: key)
      #expect(request.headers["webhook-signature"] == "v1,\(HookSignature.base64(code))")
      // The list keeps the secret to itself.
      guard case .httpHook(let listed)? = try await ben.endpoint().target else { return }
      #expect(listed.signingSecret.isEmpty && listed.uri == receiver.uri)
    }
  }

  /// The vector of the specification, "Standard Webhooks", section "Verifying webhook authenticity".
  @Test func theSignatureIsTheSpecifications() throws {
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    let headers = HookSignature.headers(
      id: "msg_p5jXN8AQM9LWM0D4loKWxJek", seconds: 1_614_265_330,
      body: Array("{\"test\": 2432232314}".utf8), secret: try HookSignature.key(secret))
    #expect(headers.last?.value == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
  }

  @Test func whatFailsIsSentAgainWithTheSameID() async throws {
    let receiver = try Receiver(answers: [500, 302, 429])
    defer { receiver.close() }
    let clock = TestClock()
    try await withWorld({
      $0.hookPolicy = here
      $0.store.clock = { clock.now }
    }) { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.direct, [ben])
      _ = try await ben.push(to: receiver.uri)
      try await ana.send("one", to: chat)
      try await ana.send("two", to: chat)
      var requests = receiver.requests()
      var ids: [String] = []
      for attempt in 0..<5 {
        let request = try #require(await requests.next())
        ids.append(request.headers["webhook-id"] ?? "")
        guard attempt < 3 else { continue }
        // Noted when the next attempt is in the future; then the clock says it is time.
        while try await world.backend.store.read({ (try $0.nextDelivery() ?? 0) <= $0.now }) {
          try? await Task.sleep(for: .milliseconds(1))
        }
        #expect(try await ben.endpoint().fault.isEmpty == false)
        clock.advance(seconds: 60)
        world.backend.hooks.wake()
      }
      #expect(ids[0] == ids[1] && ids[1] == ids[2] && ids[2] == ids[3] && ids[3] != ids[4])
      while try await ben.endpoint().waitingCount > 0 {
        try? await Task.sleep(for: .milliseconds(1))
      }
      let endpoint = try await ben.endpoint()
      #expect(endpoint.state == .active && endpoint.fault.isEmpty)
      #expect(endpoint.lastSuccessTime != nil)
    }
  }

  @Test func aHookThatFailsForDaysIsDisabledAndSaysWhy() async throws {
    let receiver = try Receiver(answers: Array(repeating: 503, count: 10))
    defer { receiver.close() }
    let clock = TestClock()
    try await withWorld({
      $0.hookPolicy = here
      $0.store.clock = { clock.now }
    }) { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.direct, [ben])
      _ = try await ben.push(to: receiver.uri)
      try await ana.send("one", to: chat)
      var requests = receiver.requests()
      _ = await requests.next()
      while try await ben.endpoint().fault.isEmpty {
        // Between two looks.
        try? await Task.sleep(for: .milliseconds(1))
      }
      clock.advance(seconds: 3 * 86_400)
      world.backend.hooks.wake()
      _ = await requests.next()
      let options = try await world.signIn("ben")
      var endpoint = Chat.PushEndpoint()
      repeat {
        endpoint = try #require(
          try await ben.chat.listPushEndpoints(.init(), options).pushEndpoints.first)
      } while endpoint.state == .active
      #expect(endpoint.fault == "FAILED_TOO_LONG: answered with 503")
      #expect(endpoint.waitingCount == 0)
    }
  }

  @Test(arguments: [(410, "GONE: the receiver wants no more", Chat.PushEndpointState.disabled)])
  func aReceiverMayHaveEnough(_ status: Int, _ fault: String, _ state: Chat.PushEndpointState)
    async throws
  {
    let receiver = try Receiver(answers: [status])
    defer { receiver.close() }
    try await withWorld({ $0.hookPolicy = here }) { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.direct, [ben])
      _ = try await ben.push(to: receiver.uri)
      try await ana.send("one", to: chat)
      while try await ben.endpoint().fault.isEmpty {
        // Between two looks.
        try? await Task.sleep(for: .milliseconds(1))
      }
      let endpoint = try await ben.endpoint()
      #expect(endpoint.fault == fault && endpoint.state == state)
    }
  }

  @Test func privateAddressesAreNotReached() async throws {
    let receiver = try Receiver()
    defer { receiver.close() }
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.direct, [ben])
      for uri in [
        receiver.uri, "ftp://example.org/", "https://a:b@example.org/", "", "example.org",
      ] {
        await expect(.invalidArgument, "BAD_URI") { _ = try await ben.push(to: uri) }
      }
      // By name and by address: looked at when it is connected.
      for host in ["localhost", "127.0.0.1", "[::ffff:127.0.0.1]"] {
        let endpoint = try await ben.push(to: "https://\(host):\(receiver.port)/")
        try await ana.send("one", to: chat)
        while try await ben.endpoint().fault.isEmpty {
          try? await Task.sleep(for: .milliseconds(1))
        }
        #expect(try await ben.endpoint().fault.hasPrefix("ADDRESS_NOT_ALLOWED"))
        _ = try await ben.chat.deletePushEndpoint(.with { $0.name = endpoint.name }, ben.options)
      }
    }
  }

  @Test func whatWaitedGoesOutAfterARestart() async throws {
    let receiver = try Receiver(answers: [503])
    defer { receiver.close() }
    let clock = TestClock()
    var kept: Backend.Configuration?
    let world = try World {
      $0.hookPolicy = here
      $0.store.clock = { clock.now }
      kept = $0
    }
    defer { TemporaryFolder.remove(world.path) }
    let configuration = try #require(kept)
    let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
    let chat = try await ana.createChat(.direct, [ben])
    _ = try await ben.push(to: receiver.uri)
    try await ana.send("one", to: chat)
    var requests = receiver.requests()
    let first = await requests.next()
    while try await ben.endpoint().fault.isEmpty {
      // Between two looks.
      try? await Task.sleep(for: .milliseconds(1))
    }
    await world.server.shutdown()
    world.backend.close()
    clock.advance(seconds: 3600)
    let backend = try Backend(configuration: configuration)
    let second = await requests.next()
    #expect(first?.headers["webhook-id"] == second?.headers["webhook-id"])
    #expect(first?.headers["webhook-timestamp"] != second?.headers["webhook-timestamp"])
    backend.close()
  }

  @Test func rulesOfPushing() async throws {
    let receiver = try Receiver()
    defer { receiver.close() }
    try await withWorld({
      $0.hookPolicy = here
      $0.presenceDebounce = .zero
    }) { world in
      let (ana, ben, eve) = (
        try await world.person("ana"), try await world.person("ben"), try await world.person("eve")
      )
      let chat = try await ana.createChat(.group, [ben, eve], title: "G")
      _ = try await ben.push(to: receiver.uri) { $0.redactContent = true }
      var requests = receiver.requests()
      func settings(_ change: (inout Chat.ChatSettings) -> Void, _ path: String) async throws {
        _ = try await ben.chat.updateChatSettings(
          .with {
            $0.settings = .with {
              $0.name = chat.name + "/settings"
              change(&$0)
            }
            $0.updateMask = Google.FieldMask(path)
          }, ben.options)
      }
      func say(_ text: String, by who: Person, mention: Bool = false, silent: Bool = false)
        async throws
      {
        _ = try await who.chat.sendMessage(
          .with {
            $0.parent = chat.name
            $0.messageId = "\(UUID.v7())"
            $0.silent = silent
            $0.content = .with {
              $0.kind = .text(
                .with {
                  $0.text = text
                  if mention {
                    $0.mentions = [
                      .with {
                        $0.user = ben.name
                        $0.length = 1
                      }
                    ]
                  }
                })
            }
          }, who.options)
      }
      // Nothing of these is pushed; each is followed by one that is.
      try await say("own", by: ben)
      try await say("silent", by: ana, silent: true)
      try await say("heard", by: ana)
      var got = try payload(try #require(await requests.next()))
      #expect(got.message == nil && got.chatTitle == "G")
      guard case .notification(let first)? = got.event else { return }
      #expect(first.kind == .message && first.excerpt.isEmpty)
      try await settings({ $0.muteUntilTime = .init(seconds: 253_402_300_799) }, "mute_until_time")
      try await say("muted", by: ana)
      try await say("for you", by: ana, mention: true)
      got = try payload(try #require(await requests.next()))
      guard case .notification(let second)? = got.event else { return }
      #expect(second.kind == .mention && !second.name.isEmpty)
      _ = try await ben.chat.blockUser(.with { $0.user = eve.name }, ben.options)
      try await say("blocked", by: eve, mention: true)
      try await settings({ _ in }, "mute_until_time")
      try await settings({ $0.mentionsOnly = true }, "mentions_only")
      try await say("no mention", by: ana)
      // What follows the log asks for the settings as they are when it comes past a message.
      try await say("for you again", by: ana, mention: true)
      got = try payload(try #require(await requests.next()))
      guard case .notification(let third)? = got.event else { return }
      #expect(third.kind == .mention && third.name != second.name)
      try await settings({ _ in }, "mentions_only")
      // An app that somebody looks at gets the frame; no push.
      do {
        let stream = ben.subscribe { $0.includeEphemeral = true }
        var frames = stream.makeAsyncIterator()
        while let frame = try await frames.next(), !frame.isCaughtUp {}
        try await say("seen live", by: ana)
        while let frame = try await frames.next() {
          if case .messageCreated? = frame.event { break }
        }
        // The follower has looked at it when its cursor is past it.
        let head = try await world.backend.store.read { try $0.head() }
        while try await world.backend.store.read({ try $0.pushCursor() }) < head {
          try? await Task.sleep(for: .milliseconds(1))
        }
        stream.cancel()
      }
      while try await ana.chat.getProfile(.with { $0.name = ben.name }, ana.options).profile?
        .presence?.state == .online
      { try? await Task.sleep(for: .milliseconds(1)) }
      try await say("last", by: ana)
      got = try payload(try #require(await requests.next()))
      // silent, heard, muted, for you, no mention, for you again, seen live, last.
      #expect(got.totalUnreadCount == 8)
      let list = try await ben.chat.listNotifications(.init(), ben.options)
      #expect(list.notifications.map(\.kind) == [.mention, .mention, .addedToChat])
      #expect(list.unreadCount == 3)
    }
  }

  @Test func serviceAccountsHearEverything() async throws {
    let receiver = try Receiver()
    defer { receiver.close() }
    try await withWorld({ $0.hookPolicy = here }) { world in
      let ana = try await world.person("ana")
      let bot =
        try await ana.auth.createServiceAccount(
          .with { $0.handle = "bot" }, ana.options
        ).user ?? Auth.User()
      let key = try await ana.auth.createApiKey(
        .with {
          $0.parent = bot.name
          $0.apiKey = .with { $0.scopes = ["chat.write"] }
        }, ana.options)
      let robot = Person(
        channel: ana.channel, name: bot.name, tokens: .with { $0.accessToken = key.secret })
      let chat = try await ana.createChat(.group, [robot], title: "G")
      let endpoint = try await robot.push(to: receiver.uri) {
        $0.target = .httpHook(
          .with {
            $0.uri = receiver.uri
            $0.format = .binary
            $0.signingSecret = "0123456789abcdef"
          })
      }
      guard case .httpHook(let target)? = endpoint.target else { return }
      #expect(target.signingSecret == "0123456789abcdef")
      await expect(.permissionDenied, "NOT_AN_ADMINISTRATOR") {
        _ = try await robot.push(to: receiver.uri) { $0.serverEvents = true }
      }
      await expect(.invalidArgument, "BAD_SECRET") {
        _ = try await robot.push(to: receiver.uri) {
          $0.target = .httpHook(
            .with {
              $0.uri = receiver.uri
              $0.signingSecret = "too short"
            })
        }
      }
      try await ana.send("/help", to: chat)
      var requests = receiver.requests()
      let request = try #require(await requests.next())
      #expect(request.headers["content-type"] == "application/x-protobuf")
      let payload = try Chat.PushPayload(serializedBytes: request.bytes)
      #expect(payload.message?.text == "/help")
    }
  }

  @Test func aPasswordIsResetByAHook() async throws {
    let receiver = try Receiver()
    defer { receiver.close() }
    try await withWorld({ $0.hookPolicy = here }) { world in
      let ana = try await world.person("ana")
      let ben = try await world.person("ben")
      _ = try await ana.push(to: receiver.uri) { $0.serverEvents = true }
      // Strangers hear the same whoever they ask for.
      let stranger = Auth.AuthClient(try world.channel())
      _ = try await stranger.requestPasswordReset(.with { $0.identifier = "nobody" })
      _ = try await stranger.requestPasswordReset(.with { $0.identifier = "ben" })
      var requests = receiver.requests()
      let got = try payload(try #require(await requests.next()))
      guard case .passwordResetRequested(let event)? = got.event else {
        Issue.record("\(got)")
        return
      }
      #expect(event.handle == "ben" && event.user == ben.name)
      _ = try await stranger.resetPassword(
        .with {
          $0.resetCode = event.resetCode
          $0.newPassword = "password of ben again"
        })
      await expect(.unauthenticated, "SESSION_REVOKED", "auth.vencejo") {
        _ = try await ben.auth.getUser(.with { $0.name = "users/me" }, ben.options)
      }
      // A fourth within the hour is not sent: the report behind it is.
      for _ in 0..<5 {
        _ = try await stranger.requestPasswordReset(.with { $0.identifier = "ben" })
      }
      let chat = try await ana.createChat(.selfValue)
      let message = try await ana.send("x", to: chat)
      _ = try await ana.chat.reportMessage(
        .with {
          $0.name = message.name
          $0.reason = "spam"
        }, ana.options)
      var kinds: [String] = []
      while kinds.last != "report" {
        let next = try payload(try #require(await requests.next()))
        if case .reportCreated(let event)? = next.event {
          kinds.append("report")
          #expect(event.report?.reason == "spam")
        } else {
          kinds.append("reset")
        }
      }
      #expect(kinds == ["reset", "reset", "report"])
    }
  }
}

extension Chat.Message {
  fileprivate var text: String? {
    guard case .text(let text)? = content?.kind else { return nil }
    return text.text
  }
}
