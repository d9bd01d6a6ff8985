import Testing
import VencejoCrypto

@testable import VencejoStore

@Suite struct ChatTests {
  let scratch: Scratch
  let clock = ManualClock()
  let store: Store

  init() throws {
    let clock = self.clock
    scratch = try Scratch()
    store = try scratch.open { $0.clock = { clock.now } }
  }

  func user(_ handle: String, name: String = "") async throws -> Account {
    try await store.signUp(
      NewAccount(handle: handle, password: "password", displayName: name)
    ).account
  }

  func chat(_ kind: ChatKind, _ creator: Account, _ members: [Account] = []) async throws
    -> ChatView
  {
    try await store.write { [members = members.map(\.id)] in
      try $0.createChat(
        NewChat(kind: kind, title: kind == .group ? "Group" : "", members: members),
        by: creator.key
      ).chat
    }
  }

  @discardableResult
  func send(
    _ text: String, to chat: ChatView, by user: Account, id: UUID = .v7(), reply: UUID? = nil
  )
    async throws -> StoredMessage
  {
    try await store.write {
      try $0.sendMessage(
        OutgoingMessage(chat: chat.id, id: id, text: text, replyTo: reply), by: user.key
      ).message
    }
  }

  func view(_ chat: ChatView, _ user: Account) async throws -> ChatView {
    try await store.read { try $0.chat(chat.id, for: user.key) }
  }

  @Test func aPairHasOneDirectChat() async throws {
    let (ana, ben) = (try await user("ana"), try await user("ben"))
    let first = try await chat(.direct, ana, [ben])
    let second = try await store.write {
      try $0.createChat(NewChat(kind: .direct, members: [ana.id]), by: ben.key)
    }
    #expect(!second.isNew)
    #expect(second.chat.id == first.id)
    #expect(first.peer == ben.id)
    #expect(second.chat.peer == ana.id)
    let own = try await chat(.own, ana)
    #expect(try await chat(.own, ana).id == own.id)
    #expect(own.peer == nil)
  }

  @Test func refusesImpossibleChats() async throws {
    let (ana, ben) = (try await user("ana"), try await user("ben"))
    func refused(_ new: NewChat) async -> String? {
      await reason { try await store.write { _ = try $0.createChat(new, by: ana.key) } }
    }
    #expect(await refused(NewChat(kind: .direct)) == "BAD_MEMBERS")
    #expect(await refused(NewChat(kind: .direct, members: [ana.id])) == "BAD_MEMBERS")
    #expect(await refused(NewChat(kind: .direct, members: [ben.id, ben.id])) == "BAD_MEMBERS")
    #expect(await refused(NewChat(kind: .direct, members: [.v7()])) == "USER_NOT_FOUND")
    #expect(await refused(NewChat(kind: .own, members: [ben.id])) == "BAD_MEMBERS")
    #expect(await refused(NewChat(kind: .group, title: " ", members: [ben.id])) == "BAD_TITLE")
    let many = (0..<1000).map { _ in UUID.v7() }
    #expect(await refused(NewChat(kind: .group, title: "x", members: many)) == "LIMIT_EXCEEDED")
  }

  @Test func aGroupNamesWhomItCouldNotAdd() async throws {
    let (ana, ben) = (try await user("ana"), try await user("ben"))
    let stranger = UUID.v7()
    let made = try await store.write {
      try $0.createChat(
        NewChat(kind: .group, title: " Trip ", members: [ben.id, stranger, ben.id]), by: ana.key)
    }
    #expect(made.chat.title == "Trip")
    #expect(made.chat.memberCount == 2)
    #expect(made.failures.mapValues(\.reason) == [stranger: "USER_NOT_FOUND"])
    #expect(made.chat.membership.role == .owner)
    #expect(
      made.chat.lastMessage?.body
        == .system(SystemNote(.chatCreated, actor: ana.id, subjects: [ben.id])))
    #expect(try await view(made.chat, ben).unread == .none)
  }

  @Test func aRequestIDMakesOneChat() async throws {
    let ana = try await user("ana")
    let new = NewChat(kind: .group, title: "A", requestID: "1")
    let first = try await store.write { try $0.createChat(new, by: ana.key).chat }
    #expect(try await store.write { try $0.createChat(new, by: ana.key).chat.id } == first.id)
    let other = NewChat(kind: .group, title: "B", requestID: "1")
    #expect(
      await reason { try await store.write { _ = try $0.createChat(other, by: ana.key) } }
        == "REQUEST_ID_REUSED")
    clock.advance(seconds: 86_401)
    #expect(try await store.write { try $0.createChat(other, by: ana.key).chat.id } != first.id)
  }

  @Test("Rule 1: order is the sequence, given under the chat in the same transaction")
  func sequencesAreContiguousAndTimesNeverGoBack() async throws {
    let (ana, ben) = (try await user("ana"), try await user("ben"))
    let chat = try await chat(.direct, ana, [ben])
    var messages: [StoredMessage] = []
    for index in 0..<10 {
      if index == 5 { clock.advance(seconds: -3600) }
      messages.append(try await send("\(index)", to: chat, by: index % 2 == 0 ? ana : ben))
    }
    #expect(messages.map(\.sequence) == Array(1...10))
    #expect(zip(messages, messages.dropFirst()).allSatisfy { $0.sendTime < $1.sendTime })
  }

  @Test("Rule 4: a repeat of an id is answered with what is stored")
  func aMessageIDIsStoredOnceForEver() async throws {
    let (ana, ben) = (try await user("ana"), try await user("ben"))
    let chat = try await chat(.direct, ana, [ben])
    let own = try await self.chat(.own, ben)
    let id = UUID.v7()
    let first = try await send("hello", to: chat, by: ana, id: id)
    let again = try await store.write {
      try $0.sendMessage(OutgoingMessage(chat: chat.id, id: id, text: "other"), by: ana.key)
    }
    #expect(again.isDuplicate)
    #expect(again.message == first)
    #expect(await reason { try await send("x", to: chat, by: ben, id: id) } == "MESSAGE_ID_TAKEN")
    #expect(await reason { try await send("x", to: own, by: ben, id: id) } == "MESSAGE_ID_TAKEN")
    #expect(try await view(chat, ana).lastSequence == 1)
  }

  @Test(arguments: [
    "", " ", "\n\t\r", "\u{200B}", "\u{00A0}\u{2003}", "\u{FEFF}\u{2060}", "\u{3164}", "\u{2800}",
    "\u{200D}\u{FE0F}", "\u{0}",
  ])
  func blankTextIsRefused(_ text: String) async throws {
    let ana = try await user("ana")
    let chat = try await chat(.own, ana)
    #expect(await reason { try await send(text, to: chat, by: ana) } == "EMPTY_MESSAGE")
  }

  @Test func textHasALimitInBytes() async throws {
    let ana = try await user("ana")
    let chat = try await chat(.own, ana)
    let text = String(repeating: "é", count: 32_768)
    #expect(try await send(text, to: chat, by: ana).body == .text(text))
    #expect(await reason { try await send(text + "x", to: chat, by: ana) } == "MESSAGE_TOO_LONG")
  }

  @Test func strangersSeeNothing() async throws {
    let (ana, ben, eve) = (try await user("ana"), try await user("ben"), try await user("eve"))
    let chat = try await chat(.direct, ana, [ben])
    let message = try await send("secret", to: chat, by: ana)
    #expect(await reason { _ = try await view(chat, eve) } == "CHAT_NOT_FOUND")
    #expect(await reason { try await send("x", to: chat, by: eve) } == "CHAT_NOT_FOUND")
    #expect(
      await reason {
        _ = try await store.read { try $0.message(message.id, in: chat.id, for: eve.key) }
      } == "CHAT_NOT_FOUND")
    #expect(
      await reason { _ = try await store.read { try $0.listMessages(chat.id, for: eve.key) } }
        == "CHAT_NOT_FOUND")
    #expect(
      await reason {
        _ = try await store.write {
          try $0.markRead(chat.id, upTo: 1, isPrivate: false, by: eve.key)
        }
      } == "CHAT_NOT_FOUND")
    let log = try await store.read { try $0.chatLog(for: eve.key, after: 0, limit: 100) }
    #expect(log.entries.isEmpty)
    #expect(log.isAtHead)
  }

  @Test func repliesQuoteAndCannotPointElsewhere() async throws {
    let (ana, ben) = (try await user("ana"), try await user("ben"))
    let chat = try await chat(.direct, ana, [ben])
    let other = try await self.chat(.own, ana)
    let question = try await send("What?", to: chat, by: ana)
    let elsewhere = try await send("private", to: other, by: ana)
    let answer = try await send("That.", to: chat, by: ben, reply: question.id)
    #expect(answer.quote == Quote(id: question.id, sender: ana.id, excerpt: "What?"))
    #expect(
      await reason { try await send("x", to: chat, by: ana, reply: elsewhere.id) }
        == "MESSAGE_NOT_FOUND")
  }

  @Test("Rule 6: unread is derived from a marker that only moves forward")
  func markersMoveForwardOnlyAndUnreadFollows() async throws {
    let (ana, ben) = (try await user("ana"), try await user("ben"))
    let chat = try await chat(.direct, ana, [ben])
    for index in 1...5 { try await send("\(index)", to: chat, by: ana) }
    #expect(
      try await view(chat, ben).unread == UnreadState(count: 5, isCapped: false, firstSequence: 1))
    #expect(try await view(chat, ana).unread == .none)
    func mark(_ sequence: Int64, isPrivate: Bool = false) async throws -> (UnreadState, Int64) {
      try await store.write {
        try $0.markRead(chat.id, upTo: sequence, isPrivate: isPrivate, by: ben.key)
      }
    }
    #expect(try await mark(3) == (UnreadState(count: 2, isCapped: false, firstSequence: 4), 3))
    #expect(try await mark(1) == (UnreadState(count: 2, isCapped: false, firstSequence: 4), 3))
    #expect(try await mark(.max) == (.none, 5))
    #expect(try await store.read { try $0.totalUnread(of: ben.key) } == 0)
    #expect(await reason { _ = try await mark(-1) } == "BAD_SEQUENCE")
  }

  @Test func sendersSeeWhoReadButNotWhoReadInPrivate() async throws {
    let (ana, ben) = (try await user("ana"), try await user("ben"))
    let chat = try await chat(.direct, ana, [ben])
    let message = try await send("hello", to: chat, by: ana)
    func isRead() async throws -> Bool {
      try await store.read {
        try $0.message(message.id, in: chat.id, for: ana.key).delivery == .read
      }
    }
    _ = try await store.write {
      try $0.markRead(chat.id, upTo: 1, isPrivate: true, by: ben.key)
    }
    #expect(try await !isRead())
    #expect(try await view(chat, ben).unread == .none)
    _ = try await store.write {
      try $0.markRead(chat.id, upTo: 1, isPrivate: false, by: ben.key)
    }
    #expect(try await isRead())
  }

  @Test func unreadIsCappedAt999() async throws {
    let (ana, ben) = (try await user("ana"), try await user("ben"))
    let chat = try await chat(.direct, ana, [ben])
    try await store.write { transaction in
      for _ in 0..<1001 {
        _ = try transaction.sendMessage(
          OutgoingMessage(chat: chat.id, id: .v7(), text: "x"), by: ana.key)
      }
    }
    #expect(
      try await view(chat, ben).unread == UnreadState(count: 999, isCapped: true, firstSequence: 1))
    #expect(try await store.read { try $0.totalUnread(of: ben.key) } == 999)
    _ = try await store.write {
      try $0.markRead(chat.id, upTo: 2, isPrivate: false, by: ben.key)
    }
    #expect(
      try await view(chat, ben).unread == UnreadState(count: 999, isCapped: false, firstSequence: 3)
    )
  }

  @Test func chatsComeByActivityInPages() async throws {
    let ana = try await user("ana")
    var chats: [ChatView] = []
    for index in 0..<7 {
      clock.advance(seconds: 1)
      chats.append(try await chat(.direct, ana, [try await user("u\(index)")]))
    }
    clock.advance(seconds: 1)
    try await send("up", to: chats[2], by: ana)
    let expected = [2, 6, 5, 4, 3, 1, 0].map { chats[$0].id }
    var found: [UUID] = []
    var token = ""
    repeat {
      let page = try await store.read { [token] in
        try $0.listChats(pageSize: 3, pageToken: token, for: ana.key)
      }
      found += page.chats.map(\.id)
      token = page.nextPageToken
    } while !token.isEmpty
    #expect(found == expected)
    #expect(
      await reason { _ = try await store.read { try $0.listChats(pageSize: -1, for: 1) } }
        == "BAD_PAGE_SIZE")
    #expect(
      await reason { _ = try await store.read { try $0.listChats(pageToken: "x", for: 1) } }
        == "BAD_PAGE_TOKEN")
  }

  @Test func findsPeopleByTheBeginningOfTheirNames() async throws {
    for (handle, name) in [("ana", "Ana Ruiz"), ("anton", "Toni"), ("zoe", "Ännchen"), ("x_", "")] {
      _ = try await user(handle, name: name)
    }
    func search(_ query: String) async throws -> [String] {
      try await store.read { try $0.searchProfiles(query, for: 0).profiles.map(\.handle) }
    }
    #expect(try await search("an") == ["ana", "anton"])
    #expect(try await search("@ANA") == ["ana"])
    #expect(try await search("toni") == ["anton"])
    #expect(try await search("änn") == ["zoe"])
    #expect(try await search("%") == [])
    #expect(await reason { _ = try await search(" ") } == "EMPTY_QUERY")
    let page = try await store.read { try $0.searchProfiles("a", pageSize: 1, for: 0) }
    let rest = try await store.read {
      try $0.searchProfiles("a", pageSize: 5, pageToken: page.nextPageToken, for: 0)
    }
    #expect(page.profiles.map(\.handle) + rest.profiles.map(\.handle) == ["ana", "anton"])
  }
}
