import TestSupport
import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC

/// What people do now and then: each of these comes at least once in a round, so that a round calls
/// every method there is.
enum Errand: CaseIterable {
  case session, password, reset, account, guest, machine
  case people, chat, message, request, delivered, file, notifications, endpoint, report, bring
}

extension Round {
  /// Which errands are run before which operation: each of them once or twice.
  static func schedule(_ operations: Int, _ random: inout SeededGenerator) -> [Int: [Errand]] {
    var schedule: [Int: [Errand]] = [:]
    for errand in Errand.allCases {
      for _ in 0..<Int.random(in: 1...2, using: &random) {
        // Not before there is anything to look at.
        schedule[Int.random(in: operations / 10..<operations, using: &random), default: []]
          .append(errand)
      }
    }
    return schedule
  }

  func run(_ errand: Errand) async throws {
    let user = pick(0..<people.count)
    switch errand {
    case .session: try await signInElsewhere(user)
    case .password: try await changePassword(user)
    case .reset: try await resetPassword(user)
    case .account: try await lookAtAccount(user)
    case .guest: try await seeGuestOff(user)
    case .machine: try await useMachine(user)
    case .people: try await lookAtPeople(user)
    case .chat: try await lookAtChat(user)
    case .message: try await lookAtMessage(user)
    case .request: try await askToJoin(user)
    case .delivered: try await receive(user)
    case .file: try await fetchFile(user)
    case .notifications: try await readNotifications(user)
    case .endpoint: try await makeEndpoint(user)
    case .report: try await report(user)
    case .bring: try await bringChat()
    }
  }

  /// Does something that must end with `expected`; answers whether it was done.
  ///
  /// Where the server died meanwhile, `again` are the other ways in which a repeat may end.
  func must(
    _ what: String, _ expected: String? = nil, again: Set<String> = [],
    _ body: (Chat.ChatClient) async throws -> Void
  ) async throws -> Bool {
    let before = restarts
    let reason = try await attempt(what, body)
    if reason == expected { return reason == nil }
    if restarts > before, let reason, again.contains(reason) { return true }
    fault("\(what): \(reason ?? "done"), should \(expected ?? "be done")")
    return false
  }

  func auth(_ client: Chat.ChatClient) -> Auth.AuthClient { Auth.AuthClient(client.channel) }

  /// The devices of a user, with the token they have now.
  func reconnect(_ user: Int) async {
    for device in devices where device.user == user {
      await device.disconnect()
      device.connect(client, options(user))
    }
  }

  // MARK: Sessions and passwords

  private func signInElsewhere(_ user: Int) async throws {
    let handle = people[user].handle
    var (tokens, session) = (Auth.TokenPair(), "")
    guard
      try await must(
        "\(user) signs in elsewhere", nil, again: [],
        { client in
          let response = try await self.auth(client).signIn(
            .with {
              $0.credential = .password(
                .with {
                  $0.identifier = handle
                  $0.password = self.people[user].password
                })
              $0.deviceLabel = "elsewhere"
            })
          tokens = response.tokens ?? tokens
          session = response.session?.name ?? ""
        })
    else { return }
    let refresh = tokens.refreshToken
    guard
      try await must(
        "\(user) refreshes that session", nil, again: [],
        { client in
          tokens =
            try await self.auth(client).refreshSession(.with { $0.refreshToken = refresh }).tokens
            ?? tokens
        })
    else { return }
    let elsewhere = CallOptions.bearer(tokens.accessToken)
    var sessions: [Auth.Session] = []
    _ = try await must("\(user) lists sessions") { client in
      sessions = try await self.auth(client).listSessions(
        .with {
          $0.parent = self.people[user].name
          $0.pageSize = 200
        }, elsewhere
      ).sessions
    }
    if sessions.first(where: { $0.name == session })?.current != true {
      fault("\(user)'s session \(session) is not listed as the current one: \(sessions)")
    }
    if pick(0..<2) == 0 {
      _ = try await must("\(user) signs out elsewhere", nil, again: ["SESSION_REVOKED"]) {
        _ = try await self.auth($0).signOut(.init(), elsewhere)
      }
    } else {
      _ = try await must("\(user) ends that session", nil, again: ["SESSION_NOT_FOUND"]) {
        _ = try await self.auth($0).revokeSession(.with { $0.name = session }, self.options(user))
      }
    }
    _ = try await must("\(user) calls from there", "SESSION_REVOKED") {
      _ = try await $0.listChats(.init(), elsewhere)
    }
    _ = try await must("\(user) refreshes there", "SESSION_REVOKED") {
      _ = try await self.auth($0).refreshSession(.with { $0.refreshToken = tokens.refreshToken })
    }
  }

  private func changePassword(_ user: Int) async throws {
    _ = try await must("\(user) changes the password with a wrong one", "BAD_CREDENTIAL") {
      _ = try await self.auth($0).changePassword(
        .with {
          $0.currentPassword = "not the password"
          $0.newPassword = "password of a stranger"
        }, self.options(user))
    }
    let new = unique("password")
    let revokes = pick(0..<2) == 0
    people[user].nextPassword = new
    let old = people[user].password
    guard
      try await must(
        "\(user) changes the password", nil, again: ["BAD_CREDENTIAL"],
        {
          _ = try await self.auth($0).changePassword(
            .with {
              $0.currentPassword = old
              $0.newPassword = new
              $0.revokeOtherSessions = revokes
            }, self.options(user))
        })
    else { return }
    people[user].password = new
    people[user].nextPassword = nil
    // Streams of older sessions have ended with them.
    if revokes { await reconnect(user) }
  }

  private func resetPassword(_ user: Int) async throws {
    for handle in [people[user].handle, "nobody"] {
      _ = try await must("\(handle) forgot the password") {
        _ = try await self.auth($0).requestPasswordReset(.with { $0.identifier = handle })
      }
    }
    _ = try await must("\(user) guesses a code", "BAD_RESET_CODE") {
      _ = try await self.auth($0).resetPassword(
        .with {
          $0.resetCode = "0123456789"
          $0.newPassword = "password of a stranger"
        })
    }
    let code = try world.admin("reset-password", people[user].handle)
    let new = unique("password")
    people[user].nextPassword = new
    guard
      try await must(
        "\(user) sets a new password", nil, again: ["BAD_RESET_CODE"],
        {
          _ = try await self.auth($0).resetPassword(
            .with {
              $0.resetCode = code
              $0.newPassword = new
            })
        })
    else { return }
    people[user].password = new
    people[user].nextPassword = nil
    // All sessions are over.
    _ = try await must("\(user) signs in anew") { client in
      self.people[user].token = try await self.signIn(user, client)
    }
    await reconnect(user)
  }

  // MARK: Accounts

  private func lookAtAccount(_ user: Int) async throws {
    let email = "\(unique("mail"))@example.org"
    _ = try await must("\(user) has an address") {
      _ = try await self.auth($0).updateUser(
        .with {
          $0.user = .with {
            $0.name = "users/me"
            $0.email = email
          }
          $0.updateMask = Google.FieldMask("email")
        }, self.options(user))
    }
    for reader in people.indices {
      var seen = Auth.User()
      _ = try await must("\(reader) looks at the account of \(user)") {
        seen =
          try await self.auth($0).getUser(
            .with { $0.name = self.people[user].name }, self.options(reader)
          ).user ?? seen
      }
      // For oneself and administrators, of whom 0 is the only one.
      let should = reader == user || reader == 0 ? email : ""
      if seen.handle != people[user].handle || seen.email != should {
        fault("\(reader) sees the account of \(user) as \(seen), should \(should)")
      }
    }
    var listed: [Auth.User] = []
    _ = try await must("\(user) lists accounts", user == 0 ? nil : "NOT_AN_ADMINISTRATOR") {
      listed = try await self.auth($0).listUsers(
        .with { $0.pageSize = 200 }, self.options(user)
      ).users
    }
    if user == 0, !Set(listed.map(\.name)).isSuperset(of: people.map(\.name)) {
      fault("the administrator sees \(listed.map(\.handle))")
    }
    var info = Auth.GetServerInfoResponse()
    _ = try await must("\(user) asks what server it is") {
      info = try await self.auth($0).getServerInfo(.init())
    }
    if !info.packages.contains("vencejo.chat.v1") { fault("the server speaks \(info.packages)") }
  }

  /// Somebody comes, is suspended, let in again, and goes for good.
  private func seeGuestOff(_ user: Int) async throws {
    let (handle, request) = (unique("guest"), unique("request"))
    var (name, token) = ("", "")
    guard
      try await must(
        "\(handle) signs up", nil, again: [],
        { client in
          let response = try await self.auth(client).signUp(
            .with {
              $0.requestId = request
              $0.handle = handle
              $0.password = "password"
            })
          name = response.user?.name ?? ""
          token = response.tokens?.accessToken ?? ""
        })
    else { return }
    var found: [String] = []
    _ = try await must("\(user) looks for \(handle)") {
      found = try await $0.searchProfiles(
        .with { $0.query = handle }, self.options(user)
      ).profiles.map(\.user)
    }
    if found != [name] { fault("\(user) finds \(found) for \(handle), should \(name)") }
    let stranger = pick(1..<people.count)
    _ = try await must("\(stranger) suspends \(handle)", "NOT_AN_ADMINISTRATOR") {
      try await self.set(name, .suspended, by: stranger, $0)
    }
    _ = try await must("\(handle) is suspended") { try await self.set(name, .suspended, by: 0, $0) }
    _ = try await must("\(handle) calls", "SESSION_REVOKED") {
      _ = try await $0.listChats(.init(), .bearer(token))
    }
    let password = Auth.SignInRequest.with {
      $0.credential = .password(
        .with {
          $0.identifier = handle
          $0.password = "password"
        })
    }
    _ = try await must("\(handle) signs in, suspended", "ACCOUNT_SUSPENDED") {
      _ = try await self.auth($0).signIn(password)
    }
    _ = try await must("\(handle) is let in again") {
      try await self.set(name, .active, by: 0, $0)
    }
    _ = try await must("\(handle) signs in") {
      token = try await self.auth($0).signIn(password).tokens?.accessToken ?? ""
    }
    var gone = Auth.User()
    let isDone = try await must(
      "\(handle) deletes the account", nil,
      again: ["SESSION_REVOKED", "BAD_CREDENTIAL", "ACCOUNT_SUSPENDED"]
    ) {
      gone =
        try await self.auth($0).deleteUser(.with { $0.name = name }, .bearer(token)).user ?? gone
    }
    if isDone, !gone.name.isEmpty, gone.state != .deleted || gone.purgeTime == nil {
      fault("a deleted account is \(gone)")
    }
    _ = try await must("\(user) looks for \(handle), who went") {
      found = try await $0.searchProfiles(
        .with { $0.query = handle }, self.options(user)
      ).profiles.map(\.user)
    }
    if !found.isEmpty { fault("\(user) finds \(found), who is gone") }
  }

  private func set(
    _ name: String, _ state: Auth.UserState, by user: Int, _ client: Chat.ChatClient
  ) async throws {
    _ = try await auth(client).setUserState(
      .with {
        $0.name = name
        $0.state = state
      }, options(user))
  }

  private func useMachine(_ user: Int) async throws {
    let (handle, first, second) = (unique("robot"), unique("request"), unique("request"))
    var robot = ""
    guard
      try await must(
        "\(user) makes \(handle)", nil, again: [],
        {
          robot =
            try await self.auth($0).createServiceAccount(
              .with {
                $0.requestId = first
                $0.handle = handle
              }, self.options(user)
            ).user?.name ?? ""
        })
    else { return }
    var made = Auth.CreateApiKeyResponse()
    guard
      try await must(
        "\(user) makes a key for \(handle)", nil, again: [],
        {
          made = try await self.auth($0).createApiKey(
            .with {
              $0.requestId = second
              $0.parent = robot
              $0.apiKey = .with { $0.scopes = ["chat.read"] }
            }, self.options(user))
        })
    else { return }
    let key = made.apiKey?.name ?? ""
    var listed: [String] = []
    _ = try await must("\(user) lists the keys of \(handle)") {
      listed = try await self.auth($0).listApiKeys(
        .with { $0.parent = robot }, self.options(user)
      ).apiKeys.map(\.name)
    }
    if listed != [key] { fault("the keys of \(handle) are \(listed), should \(key)") }
    // The secret is told once: a repeat after a crash lacks it.
    if !made.secret.isEmpty {
      let secret = CallOptions.bearer(made.secret)
      _ = try await must("\(handle) reads") { _ = try await $0.listChats(.init(), secret) }
      _ = try await must("\(handle) writes", "SCOPE_MISSING") {
        _ = try await $0.createChat(.with { $0.chat = .with { $0.kind = .selfValue } }, secret)
      }
    }
    _ = try await must("\(user) revokes the key of \(handle)", nil, again: ["KEY_NOT_FOUND"]) {
      _ = try await self.auth($0).revokeApiKey(.with { $0.name = key }, self.options(user))
    }
    if !made.secret.isEmpty {
      _ = try await must("\(handle) reads with a dead key", "BAD_CREDENTIAL") {
        _ = try await $0.listChats(.init(), .bearer(made.secret))
      }
    }
  }

  func signIn(_ user: Int, _ client: Chat.ChatClient) async throws -> String {
    // A change of the password may have been answered to nobody.
    var passwords = [people[user].password]
    if let next = people[user].nextPassword { passwords.append(next) }
    while true {
      let password = passwords.removeFirst()
      do {
        let response = try await auth(client).signIn(
          .with {
            $0.credential = .password(
              .with {
                $0.identifier = people[user].handle
                $0.password = password
              })
          })
        return response.tokens?.accessToken ?? ""
      } catch {
        let reason = error.detail(GoogleRPC.ErrorInfo.self)?.reason
        guard reason == "BAD_CREDENTIAL", !passwords.isEmpty else { throw error }
      }
    }
  }
}
