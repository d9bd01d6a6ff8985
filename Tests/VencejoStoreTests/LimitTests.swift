import Testing
import VencejoCrypto
import VencejoSQLite

@testable import VencejoStore

/// The limits of the protocol page, named as in its table: at the limit, one past it, and after
/// that. `Scripts/check-house` looks for a test of each.
@Suite struct LimitTests {
  private let world: Conversation

  init() throws { world = try Conversation() }

  private func x(_ count: Int) -> String { String(repeating: "x", count: count) }

  @Test("Limit: handle")
  func handles() async throws {
    #expect(await reason { _ = try await world.user("a") } == "BAD_HANDLE")
    #expect(await reason { _ = try await world.user(x(33)) } == "BAD_HANDLE")
    #expect(try await world.user("ab").handle == "ab")
    #expect(try await world.user(x(32)).handle == x(32))
  }

  @Test("Limit: password")
  func passwords() async throws {
    func signUp(_ handle: String, _ password: String) async -> String? {
      await reason {
        _ = try await world.store.signUp(NewAccount(handle: handle, password: password))
      }
    }
    #expect(await signUp("ana", x(7)) == "WEAK_PASSWORD")
    #expect(await signUp("ana", x(1025)) == "BAD_PASSWORD")
    #expect(await signUp("ana", x(8)) == nil)
    #expect(await signUp("ben", x(1024)) == nil)
  }

  @Test("Limit: display name, title")
  func names() async throws {
    let (ana, ben) = (try await world.user("ana"), try await world.user("ben"))
    func call(_ name: String) async -> String? {
      await world.refused {
        var changes = ProfileChanges()
        changes.displayName = name
        _ = try $0.updateProfile(changes, by: ana.key)
      }
    }
    #expect(await call(x(65)) == "BAD_DISPLAY_NAME")
    #expect(await call(x(64)) == nil)
    func title(_ title: String) async -> String? {
      await world.refused {
        _ = try $0.createChat(
          NewChat(kind: .group, title: title, members: [ben.id]), by: ana.key)
      }
    }
    #expect(await title(x(129)) == "BAD_TITLE")
    #expect(await title(x(128)) == nil)
  }

  @Test("Limit: description of a chat")
  func descriptions() async throws {
    let ana = try await world.user("ana")
    let chat = try await world.chat(.group, ana)
    func describe(_ text: String) async -> String? {
      await world.refused {
        var changes = ChatChanges()
        changes.description = text
        _ = try $0.updateChat(chat.id, changes, by: ana.key)
      }
    }
    #expect(await describe(x(4097)) == "BAD_DESCRIPTION")
    #expect(await describe(x(4096)) == nil)
  }

  @Test("Limit: `request_id`")
  func requestIDs() async throws {
    let ana = try await world.user("ana")
    func invite(_ request: String) async -> String? {
      await world.refused {
        _ = try $0.createChat(
          NewChat(kind: .group, title: "G", requestID: request), by: ana.key)
      }
    }
    #expect(await invite(x(65)) == "BAD_REQUEST_ID")
    #expect(await invite(x(64)) == nil)
  }

  @Test("Limit: text of a message")
  func texts() async throws {
    let ana = try await world.user("ana")
    let chat = try await world.chat(.own, ana)
    #expect(
      await reason { try await world.send(x(65_537), to: chat, by: ana) } == "MESSAGE_TOO_LONG")
    #expect(try await world.send(x(65_536), to: chat, by: ana).sequence == 1)
  }

  @Test("Limit: mentions in one message")
  func mentions() async throws {
    let ana = try await world.user("ana")
    let chat = try await world.chat(.own, ana)
    func send(_ count: Int) async -> String? {
      await reason {
        try await world.send(
          String(repeating: "@ana", count: count), to: chat, by: ana,
          mentions: (0..<count).map { Mention(user: ana.id, start: Int64(4 * $0), length: 4) })
      }
    }
    #expect(await send(101) == "BAD_MENTION")
    #expect(await send(100) == nil)
  }

  @Test("Limit: members when a chat is made, of a group, of a channel")
  func members() async throws {
    let ana = try await world.user("ana")
    // More accounts than anything takes, without passwords to be hashed.
    let keys = try await crowd(1025)
    func create(_ count: Int) async -> String? {
      await world.refused {
        _ = try $0.createChat(
          NewChat(kind: .group, title: "G", members: keys.prefix(count).map(\.id)), by: ana.key)
      }
    }
    // With who makes it.
    #expect(await create(1000) == "LIMIT_EXCEEDED")
    #expect(await create(999) == nil)

    let group = try await world.chat(.group, ana, [])
    try await join(group, keys.prefix(1022).map(\.key))
    func add(_ chat: ChatView, _ users: ArraySlice<(key: Int64, id: UUID)>) async -> String? {
      let ids = users.map(\.id)
      return await world.refused {
        _ = try $0.addMembers(ids, role: nil, to: chat.id, by: ana.key)
      }
    }
    #expect(await add(group, keys[1022..<1024]) == "CHAT_FULL")
    #expect(await add(group, keys[1022..<1023]) == nil)
    #expect(try await world.view(group, ana).memberCount == 1024)
    #expect(await add(group, keys[1023..<1024]) == "CHAT_FULL")
    try await world.write {
      try $0.removeMember(keys[0].id, from: group.id, ban: false, by: ana.key)
    }
    #expect(await add(group, keys[1023..<1024]) == nil)

    let channel = try await world.chat(.channel, ana, [])
    try await world.write {
      _ = try $0.run("UPDATE chat SET member_count = 199998 WHERE chat_id = ?", channel.key)
    }
    #expect(await add(channel, keys[0..<3]) == "CHAT_FULL")
    #expect(await add(channel, keys[0..<2]) == nil)
    #expect(await add(channel, keys[2..<3]) == "CHAT_FULL")
  }

  @Test("Limit: users added at once")
  func addedAtOnce() async throws {
    let ana = try await world.user("ana")
    let keys = try await crowd(201)
    let chat = try await world.chat(.group, ana, [])
    func add(_ count: Int) async -> String? {
      await world.refused {
        _ = try $0.addMembers(keys.prefix(count).map(\.id), role: nil, to: chat.id, by: ana.key)
      }
    }
    #expect(await add(201) == "LIMIT_EXCEEDED")
    #expect(await add(200) == nil)
    #expect(try await world.view(chat, ana).memberCount == 201)
  }

  @Test("Limit: editing, deleting for everyone")
  func windows() async throws {
    let (ana, ben) = (try await world.user("ana"), try await world.user("ben"))
    let chat = try await world.chat(.direct, ana, [ben])
    let message = try await world.send("x", to: chat, by: ana)
    func edit(_ text: String) async -> String? {
      await world.refused {
        _ = try $0.editMessage(message.id, in: chat.id, body: .text(text), by: ana.key)
      }
    }
    func delete(_ sequence: Int64) async -> String? {
      await world.refused {
        _ = try $0.deleteMessages(
          [SequenceRange(sequence, sequence)], in: chat.id, scope: .forEveryone, by: ana.key)
      }
    }
    world.clock.advance(seconds: 15 * 60)
    #expect(await edit("at the end of the window") == nil)
    world.clock.advance(seconds: 1)
    #expect(await edit("past it") == "EDIT_WINDOW_CLOSED")
    let second = try await world.send("y", to: chat, by: ana)
    world.clock.advance(seconds: 48 * 3600)
    #expect(await delete(message.sequence) == "DELETE_WINDOW_CLOSED")
    #expect(await delete(second.sequence) == nil)
  }

  @Test("Limit: messages deleted at once")
  func deletedAtOnce() async throws {
    let ana = try await world.user("ana")
    let chat = try await world.chat(.own, ana)
    func delete(_ last: Int64) async -> String? {
      await world.refused {
        _ = try $0.deleteMessages(
          [SequenceRange(1, last)], in: chat.id, scope: .forMe, by: ana.key)
      }
    }
    #expect(await delete(501) == "LIMIT_EXCEEDED")
    #expect(await delete(500) == nil)
  }

  @Test("Limit: messages forwarded at once, to how many chats")
  func forwards() async throws {
    let (ana, ben) = (try await world.user("ana"), try await world.user("ben"))
    let own = try await world.chat(.own, ana)
    let first = try await world.send("x", to: own, by: ana)
    var chats: [ChatView] = []
    for index in 0..<6 {
      chats.append(try await world.chat(.group, ana, [ben]) { $0.title = "\(index)" })
    }
    func forward(_ message: StoredMessage, _ count: Int, _ targets: [ChatView]) async -> String? {
      await world.refused {
        _ = try $0.forwardMessages(
          Array(repeating: (message.chat, message.id), count: count), to: targets.map(\.id),
          ids: (0..<count * targets.count).map { _ in UUID.v7() }, by: ana.key)
      }
    }
    #expect(await forward(first, 101, [chats[0]]) == "LIMIT_EXCEEDED")
    #expect(await forward(first, 100, [chats[0]]) == nil)
    #expect(await forward(first, 1, chats) == "LIMIT_EXCEEDED")
    #expect(await forward(first, 1, Array(chats.prefix(5))) == nil)
    var message = first
    for _ in 0..<4 { message = try await hop(message, to: own, by: ana) }
    #expect(await forward(message, 1, Array(chats.prefix(2))) == nil)
    message = try await hop(message, to: own, by: ana)
    #expect(await forward(message, 1, Array(chats.prefix(2))) == "FORWARDED_MANY_TIMES")
    #expect(await forward(message, 1, [chats[0]]) == nil)
  }

  private func hop(_ message: StoredMessage, to chat: ChatView, by user: Account) async throws
    -> StoredMessage
  {
    try #require(
      try await world.write {
        try $0.forwardMessages(
          [(message.chat, message.id)], to: [chat.id], ids: [.v7()], by: user.key)
      }.first)
  }

  @Test("Limit: a reaction")
  func reactions() async throws {
    let ana = try await world.user("ana")
    let chat = try await world.chat(.own, ana)
    let message = try await world.send("x", to: chat, by: ana)
    func react(_ emoji: String) async -> String? {
      await world.refused {
        _ = try $0.setReaction(emoji, on: message.id, in: chat.id, by: ana.key)
      }
    }
    #expect(await react("👍👍") == "BAD_EMOJI")
    // One character each: a letter and its accents of two bytes each.
    #expect(await react("\u{E9}" + String(repeating: "\u{301}", count: 16)) == "BAD_EMOJI")
    #expect(await react("\u{E9}" + String(repeating: "\u{301}", count: 15)) == nil)
    #expect(await react("👩‍❤️‍💋‍👨") == nil)
  }

  @Test("Limit: options of a poll")
  func polls() async throws {
    let ana = try await world.user("ana")
    let chat = try await world.chat(.own, ana)
    func ask(_ count: Int) async -> String? {
      await world.refused {
        _ = try $0.sendMessage(
          OutgoingMessage(
            chat: chat.id, id: .v7(),
            body: .poll(
              Poll(
                question: "?",
                options: (0..<count).map { .init(id: Int64($0 + 1), text: "o\($0)") },
                allowsSeveral: false))),
          by: ana.key)
      }
    }
    for count in [0, 1, 21] { #expect(await ask(count) == "BAD_POLL") }
    for count in [2, 20] { #expect(await ask(count) == nil) }
  }

  @Test("Limit: pinned messages, invites of a chat")
  func pins() async throws {
    let (ana, ben) = (try await world.user("ana"), try await world.user("ben"))
    let chat = try await world.chat(.group, ana, [ben])
    var sent: [StoredMessage] = []
    for index in 0..<101 { sent.append(try await world.send("\(index)", to: chat, by: ana)) }
    func pin(_ index: Int, _ isPinned: Bool = true) async -> String? {
      await world.refused { [id = sent[index].id] in
        _ = try $0.setPinned(id, in: chat.id, isPinned, by: ana.key)
      }
    }
    for index in 0..<100 { #expect(await pin(index) == nil) }
    #expect(await pin(100) == "TOO_MANY_PINS")
    #expect(await pin(0, false) == nil)
    #expect(await pin(100) == nil)

    func invite(expires: Int64? = nil) async -> String? {
      await world.refused {
        _ = try $0.createInvite(
          to: chat.id, expireTime: expires, maxUses: 0, needsApproval: false, by: ana.key)
      }
    }
    #expect(await invite(expires: world.clock.now + 60_000_000) == nil)
    for _ in 0..<99 { #expect(await invite() == nil) }
    #expect(await invite() == "TOO_MANY_INVITES")
    world.clock.advance(seconds: 61)
    #expect(await invite() == nil)
    #expect(await invite() == "TOO_MANY_INVITES")
  }

  @Test("Limit: page")
  func pages() async throws {
    let ana = try await world.user("ana")
    let chat = try await world.chat(.own, ana)
    for index in 0..<201 { try await world.send("\(index)", to: chat, by: ana) }
    func count(_ size: Int32) async throws -> Int {
      try await world.store.read {
        try $0.listMessages(chat.id, pageSize: size, for: ana.key).messages.count
      }
    }
    #expect(try await count(0) == 50)
    #expect(try await count(200) == 200)
    #expect(try await count(201) == 200)
    #expect(try await count(.max) == 200)
    #expect(await reason { _ = try await count(-1) } == "BAD_PAGE_SIZE")
  }

  @Test("Limit: `message_ttl`")
  func lifetimes() async throws {
    let ana = try await world.user("ana")
    let chat = try await world.chat(.own, ana)
    func last(_ microseconds: Int64) async -> String? {
      await world.refused {
        var changes = ChatChanges()
        changes.messageTTL = microseconds
        _ = try $0.updateChat(chat.id, changes, by: ana.key)
      }
    }
    let year: Int64 = 365 * 86_400_000_000
    for bad in [-1, 999_999, year + 1] { #expect(await last(bad) == "BAD_TTL", "\(bad)") }
    for good in [0, 1_000_000, year] { #expect(await last(good) == nil) }
  }

  @Test("Limit: words to search for")
  func words() async throws {
    let ana = try await world.user("ana")
    let chat = try await world.chat(.own, ana)
    try await world.send((1...16).map { "w\($0)" }.joined(separator: " "), to: chat, by: ana)
    func search(_ query: String) async throws -> Int {
      try await world.store.read { try $0.searchMessages(query, for: ana.key).hits.count }
    }
    let sixteen = (1...16).map { "w\($0)" }.joined(separator: " ")
    #expect(try await search(sixteen) == 1)
    #expect(await reason { _ = try await search(sixteen + " w17") } == "LIMIT_EXCEEDED")
    #expect(await reason { _ = try await search(sixteen + " -w17") } == "LIMIT_EXCEEDED")
    #expect(await reason { _ = try await search(x(513)) } == "LIMIT_EXCEEDED")
    #expect(try await search(x(512)) == 0)
  }

  @Test("Limit: users one blocks")
  func blocks() async throws {
    let ana = try await world.user("ana")
    let crowd = try await crowd(2)
    try await world.write {
      _ = try $0.run(
        """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
        INSERT INTO block(user_id, blocked_id, from_key) SELECT ?, 1000000 + i, 0 FROM n
        """, ana.key)
    }
    func block(_ index: Int) async -> String? {
      await world.refused { try $0.block(crowd[index].id, by: ana.key) }
    }
    #expect(await block(0) == nil)
    #expect(await block(1) == "TOO_MANY_BLOCKS")
    try await world.write { try $0.unblock(crowd[0].id, by: ana.key) }
    #expect(await block(1) == nil)
  }

  // MARK: Many at once

  private func crowd(_ count: Int) async throws -> [(key: Int64, id: UUID)] {
    try await world.write { transaction in
      var made: [(key: Int64, id: UUID)] = []
      for index in 0..<count {
        let id = UUID.v7()
        try transaction.run(
          """
          INSERT INTO user(uuid, handle, email, display_name, display_key, role, create_us,
            update_us, version, salt, hash, cost, block_size, parallelism)
          VALUES (?, ?, '', 'x', 'x', 1, 0, 0, 1, x'', x'', 2, 1, 1)
          """, id, "crowd\(index)")
        made.append((transaction.lastInsertRowID, id))
      }
      return made
    }
  }

  private func join(_ chat: ChatView, _ users: [Int64]) async throws {
    try await world.write { transaction in
      for user in users {
        try transaction.run(
          """
          INSERT INTO member(chat_id, user_id, role, state, join_us, read_seq, shown_seq,
            visible_from, from_pos, version) VALUES (?, ?, 2, 1, 0, 0, 0, 1, 1, 1)
          """, chat.key, user)
      }
      try transaction.run(
        "UPDATE chat SET member_count = member_count + ? WHERE chat_id = ?", users.count,
        chat.key)
    }
  }
}
