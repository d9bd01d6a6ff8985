import Testing
import VencejoCrypto
import VencejoSQLite

@testable import VencejoStore

@Suite struct AccountTests {
  let world: Conversation
  init() throws { world = try Conversation() }

  private func signIn(_ handle: String, _ password: String = "password") async throws -> (
    Principal, TokenGrant
  ) {
    let signedIn = try await world.store.signIn(
      identifier: handle, password: password, device: Device())
    return (
      try await world.store.authenticate(signedIn.tokens.accessToken), signedIn.tokens
    )
  }

  @Test func aNewPasswordEndsOtherSessions() async throws {
    _ = try await world.user("ana")
    let (one, _) = try await signIn("ana")
    let (_, other) = try await signIn("ana")
    #expect(
      await reason {
        try await world.store.changePassword(
          from: "wrong password", to: "new password", revokeOthers: true, by: one)
      } == "BAD_CREDENTIAL")
    #expect(
      await reason {
        try await world.store.changePassword(
          from: "password", to: "short", revokeOthers: true, by: one)
      } == "WEAK_PASSWORD")
    try await world.store.changePassword(
      from: "password", to: "new password", revokeOthers: true, by: one)
    #expect(
      await reason { _ = try await world.store.authenticate(other.accessToken) }
        == "SESSION_REVOKED")
    #expect(await reason { _ = try await signIn("ana") } == "BAD_CREDENTIAL")
    let sessions = try await world.store.read { try $0.listSessions(of: one.userID, by: one) }
    #expect(sessions.sessions.map(\.id) == [one.sessionID])
    _ = try await signIn("ana", "new password")
  }

  @Test func codesResetAPasswordOnce() async throws {
    _ = try await world.user("ana")
    let (before, _) = try await signIn("ana")
    func code() async throws -> String {
      try await world.write { try $0.createResetCode(handle: "ana", lifetime: 60_000_000) }
    }
    func reset(_ code: String) async -> String? {
      await reason { try await world.store.resetPassword(code: code, to: "another password") }
    }
    let late = try await code()
    world.clock.advance(seconds: 60)
    #expect(await reset(late) == "BAD_RESET_CODE")
    let first = try await code()
    let second = try await code()
    #expect(await reset(first) == "BAD_RESET_CODE")  // a new code replaces the one before
    #expect(await reset(second) == nil)
    #expect(await reset(second) == "BAD_RESET_CODE")
    _ = try await signIn("ana", "another password")
    #expect(
      try await world.store.read { try $0.listSessions(of: before.userID, by: before) }
        .sessions.count == 1)
  }

  @Test func codesLetStrangersSignUp() async throws {
    _ = try await world.user("ana")
    let code = try await world.write { try $0.createSignUpCode(uses: 1, lifetime: 60_000_000) }
    func signUp(_ handle: String, _ code: String) async -> String? {
      var new = NewAccount(handle: handle, password: "password", isLocal: false)
      new.code = code
      return await reason { [new] in _ = try await world.store.signUp(new) }
    }
    #expect(await signUp("ben", "nonsense") == "BAD_INVITE_CODE")
    // A name that is taken costs no use.
    #expect(await signUp("ana", code) == "HANDLE_TAKEN")
    #expect(await signUp("ben", code) == nil)
    #expect(await signUp("cleo", code) == "BAD_INVITE_CODE")
    let late = try await world.write { try $0.createSignUpCode(uses: 9, lifetime: 60_000_000) }
    world.clock.advance(seconds: 60)
    #expect(await signUp("cleo", late) == "BAD_INVITE_CODE")
  }

  @Test func keysAreTheirOwnersHands() async throws {
    _ = try await world.user("ana")
    let ben = try await world.user("ben")
    let (ana, _) = try await signIn("ana")
    let (stranger, _) = try await signIn("ben")
    let bot = try await world.write {
      try $0.createServiceAccount(handle: "bot", displayName: "Bot", by: stranger)
    }
    #expect(bot.kind == .service && bot.owner == ben.id && bot.role == .member)
    #expect(await reason { _ = try await signIn("bot", "") } == "BAD_CREDENTIAL")
    let (key, secret) = try await world.write {
      try $0.createKey(
        for: bot.id, displayName: "k", scopes: ["chat.read"], expireTime: $0.now + 60_000_000,
        requestID: "1", by: stranger)
    }
    let again = try await world.write {
      try $0.createKey(
        for: bot.id, displayName: "k", scopes: ["chat.read"], expireTime: key.expireTime,
        requestID: "1", by: stranger)
    }
    #expect(again.key == key && again.secret == nil)
    let token = try #require(secret)
    #expect(token.hasPrefix(key.prefix) && token.utf8.count == 46)
    let machine = try await world.store.authenticate(token)
    #expect(machine.user == bot.key && machine.scopes == ["chat.read"] && machine.role == .member)
    #expect(
      await world.refused {
        _ = try $0.createKey(
          for: bot.id, displayName: "", scopes: ["root"], expireTime: nil, by: stranger)
      } == "BAD_SCOPE")
    // Whose it is not does not even know that it is there; administrators do.
    let cleo = try await world.user("cleo")
    let (other, _) = try await signIn("cleo")
    #expect(cleo.role == .member)
    #expect(
      await reason { _ = try await world.store.read { try $0.listKeys(of: bot.id, by: other) } }
        == "USER_NOT_FOUND")
    #expect(try await world.store.read { try $0.listKeys(of: bot.id, by: ana).keys } == [key])
    world.clock.advance(seconds: 60)
    #expect(await reason { _ = try await world.store.authenticate(token) } == "BAD_CREDENTIAL")
    let fresh = try await world.write {
      try $0.createKey(
        for: bot.id, displayName: "", scopes: ["chat.write"], expireTime: nil, by: stranger)
    }
    let freshToken = try #require(fresh.secret)
    _ = try await world.store.authenticate(freshToken)
    try await world.write { try $0.revokeKey(fresh.key.id, of: bot.id, by: stranger) }
    #expect(await reason { _ = try await world.store.authenticate(freshToken) } == "BAD_CREDENTIAL")
  }

  @Test func administratorsSuspendAndReinstate() async throws {
    _ = try await world.user("ana")
    let ben = try await world.user("ben")
    let (admin, _) = try await signIn("ana")
    let (member, tokens) = try await signIn("ben")
    func set(_ user: UUID, _ state: AccountState?, _ role: ServerRole?, by: Principal) async
      -> String?
    {
      await world.refused { _ = try $0.setAccount(user, state: state, role: role, by: by) }
    }
    #expect(await set(ben.id, .suspended, nil, by: member) == "NOT_AN_ADMINISTRATOR")
    #expect(await set(admin.userID, .suspended, nil, by: admin) == "LAST_ADMINISTRATOR")
    #expect(await set(admin.userID, nil, .member, by: admin) == "LAST_ADMINISTRATOR")
    #expect(await set(ben.id, .suspended, nil, by: admin) == nil)
    #expect(
      await reason { _ = try await world.store.authenticate(tokens.accessToken) }
        == "SESSION_REVOKED")
    #expect(await reason { _ = try await signIn("ben") } == "ACCOUNT_SUSPENDED")
    #expect(await set(ben.id, .active, .administrator, by: admin) == nil)
    #expect(try await signIn("ben").0.role == .administrator)
    let listed = try await world.store.read { try $0.listAccounts(by: admin).accounts }
    #expect(listed.map(\.handle) == ["ana", "ben"])
  }

  @Test func aDeletedAccountIsGoneAfterItsTime() async throws {
    let people = try await world.users("ana", "ben", "cleo")
    let (ana, ben, cleo) = (people[0], people[1], people[2])
    let chat = try await world.chat(.group, ben, [ana, cleo])
    let alone = try await world.chat(.group, ben)
    try await world.send("plugh", to: chat, by: ben)
    let liked = try await world.send("xyzzy", to: chat, by: cleo)
    let asked = try await world.write {
      try $0.sendMessage(
        OutgoingMessage(
          chat: chat.id, id: .v7(),
          body: .poll(
            Poll(
              question: "?", options: [.init(id: 1, text: "a"), .init(id: 2, text: "b")],
              allowsSeveral: false))), by: cleo.key
      ).message
    }
    try await world.write {
      _ = try $0.setReaction("👍", on: liked.id, in: chat.id, by: ben.key)
      _ = try $0.setReaction("👍", on: liked.id, in: chat.id, by: ana.key)
      _ = try $0.votePoll(asked.id, in: chat.id, options: [1], by: ben.key)
    }
    let direct = try await world.chat(.direct, ana, [ben])
    try await world.send("to ben", to: direct, by: ana)
    let (caller, _) = try await signIn("ben")
    let bot = try await world.write {
      try $0.createServiceAccount(handle: "bot", displayName: "", by: caller)
    }
    let deleted = try await world.write { try $0.deleteAccount(ben.id, by: caller) }
    #expect(deleted.state == .deleted)
    #expect(deleted.purgeTime == world.clock.now + 30 * 86_400_000_000)
    #expect(await reason { _ = try await signIn("ben") } == "ACCOUNT_SUSPENDED")
    #expect(try await world.store.read { try $0.account(id: bot.id).state } == .deleted)
    #expect(try await world.write { try $0.purgeAccounts() } == false)
    world.clock.advance(seconds: 30 * 86_400 - 1)
    #expect(try await world.write { try $0.purgeAccounts() } == false)
    world.clock.advance(seconds: 1)
    let start = try await world.head()
    while try await world.write({ try $0.purgeAccounts() }) {}
    let view = try await world.view(chat, ana)
    #expect(view.memberCount == 2 && view.membership.role == .owner)
    let texts = try await world.page(chat, cleo).messages
    #expect(texts[1].deleteTime != nil && texts[1].sender == ben.id)
    #expect(await reason { _ = try await world.view(alone, ben) } == "CHAT_NOT_FOUND")
    let profile = try await world.store.read { try $0.profile(ben.id, for: ana.key) }
    #expect(profile.displayName == "Deleted account" && profile.handle != "ben")
    // What others count without them, they hear of.
    let heard = try await world.events(of: ana, after: start)
    #expect(
      heard.contains {
        if case .reactionChanged(let change) = $0 {
          change.sequence == liked.sequence && change.user == ben.id && change.emoji.isEmpty
            && change.reactions.map(\.count) == [1]
        } else {
          false
        }
      })
    #expect(
      heard.contains {
        guard case .messageUpdated(let message, _) = $0, case .poll(let poll) = message.body
        else { return false }
        return message.id == asked.id && poll.options.allSatisfy { $0.votes == 0 }
      })
    #expect(
      heard.contains {
        if case .profileChanged(let profile) = $0 { profile.user == ben.id } else { false }
      })
    // Nothing of theirs is left but the row that says that they were.
    for table in [
      "api_key", "reset_code", "reset_request", "notification", "request_log", "chat_setting",
      "star", "message_hidden", "block", "join_request", "marker_move", "reaction", "poll_vote",
      "session", "hook",
    ] {
      let count = try await world.store.read { transaction in
        var count: Int64 = -1
        try transaction.each(
          dynamic: "SELECT count(*) FROM \(table) WHERE user_id = ?", [ben.key]
        ) {
          count = $0.int(0)
          return false
        }
        return count
      }
      #expect(count == 0, "\(table)")
    }
    let words = try await world.store.read {
      try $0.searchMessages("plugh", for: cleo.key).hits.count
    }
    #expect(words == 0)
    // The name is free again.
    _ = try await world.user("ben")
  }

  @Test("Rule 23: after a restore clients hear that the log went back")
  func theOperatorsTools() async throws {
    let ana = try await world.user("ana")
    let chat = try await world.chat(.own, ana)
    try await world.send("kept", to: chat, by: ana)
    let scratch = try Scratch()
    let file = scratch.path + "/backup"
    // Beside a running server.
    try Store.backUp(directory: world.scratch.path, to: file)
    #expect(
      await reason { try Store.backUp(directory: world.scratch.path, to: file) }
        == "BACKUP_EXISTS")
    try await world.send("after", to: chat, by: ana)
    #expect(try Store.examine(directory: world.scratch.path) == [])
    let statistics = try Store.statistics(directory: world.scratch.path)
    #expect(statistics.users == 1 && statistics.chats == 1 && statistics.messages == 2)
    let code = try Store.administer(directory: world.scratch.path) {
      try $0.createResetCode(handle: "ana", lifetime: 60_000_000_000)
    }
    #expect(!code.isEmpty)
    let token = world.store.tokens.resumeToken(.chat, position: 1, now: world.clock.now)
    world.store.close()
    #expect(
      await reason { try Store.restore(file, to: world.scratch.path) }
        == "DATA_FOLDER_NOT_EMPTY")
    let other = try Scratch()
    try Store.restore(file, to: other.path)
    let clock = world.clock
    let restored = try other.open { $0.clock = { clock.now } }
    defer { restored.close() }
    let texts = try await restored.read { try $0.listMessages(chat.id, for: ana.key).messages }
    #expect(texts.map(\.body) == [.text("kept")])
    // The log went back, and tokens tell it.
    #expect(throws: TokenAuthority.Refusal.otherHistory) {
      try restored.tokens.position(ofResumeToken: token, .chat, now: clock.now)
    }
    #expect(throws: StoreError.self) {
      try Store.restore(other.path + "/nothing", to: scratch.path)
    }
  }

  @Test func theDoctorFindsDamage() async throws {
    let people = try await world.users("ana", "ben")
    let chat = try await world.chat(.group, people[0], [people[1]])
    try await world.send("x", to: chat, by: people[0])
    try await world.write { transaction in
      try transaction.run("UPDATE chat SET member_count = 7")
      try transaction.run("UPDATE member SET read_seq = 9 WHERE user_id = 1")
      try transaction.run("DELETE FROM message WHERE seq = 2")
    }
    let faults = try Store.examine(directory: world.scratch.path)
    #expect(faults.count == 3, "\(faults)")
  }
}
