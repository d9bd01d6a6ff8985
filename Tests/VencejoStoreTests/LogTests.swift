import Testing
import VencejoCrypto

@testable import VencejoStore

@Suite struct LogTests {
  let scratch: Scratch
  let clock = ManualClock()
  let store: Store
  let ana: Account
  let ben: Account
  let chat: ChatView

  init() async throws {
    let clock = self.clock
    scratch = try Scratch()
    store = try scratch.open { $0.clock = { clock.now } }
    ana = try await store.signUp(NewAccount(handle: "ana", password: "password")).account
    ben = try await store.signUp(NewAccount(handle: "ben", password: "password")).account
    chat = try await store.write { [ana, ben] in
      try $0.createChat(NewChat(kind: .group, title: "G", members: [ben.id]), by: ana.key).chat
    }
  }

  func send(_ text: String) async throws -> StoredMessage {
    try await store.write { [chat, ana] in
      try $0.sendMessage(OutgoingMessage(chat: chat.id, id: .v7(), text: text), by: ana.key).message
    }
  }

  func log(_ user: Account, after position: Int64 = 0, limit: Int = 100, only: Set<UUID>? = nil)
    async throws -> LogPage
  {
    try await store.read {
      try $0.chatLog(for: user.key, after: position, limit: limit, chats: only)
    }
  }

  @Test func eventsOfOneTransactionStayTogether() async throws {
    let page = try await log(ben, limit: 1)
    #expect(page.entries.count == 1)
    #expect(page.entries[0].events.count == 3)
    #expect(page.entries[0].position == page.position)
    #expect(page.isAtHead)
    #expect(Set(page.chats.keys) == [chat.key])
  }

  @Test func onlyTheIntervalOfMembershipIsReplayed() async throws {
    let before = try await log(ben).position
    _ = try await send("seen")
    let left = try await log(ben).position
    try await store.write { [chat, ben] in
      try $0.run(
        "UPDATE member SET state = 3, visible_to = 2, to_pos = ? WHERE chat_id = ? AND user_id = ?",
        left, chat.key, ben.key)
    }
    _ = try await send("not seen")
    let page = try await log(ben, after: before)
    #expect(page.entries.map(\.position) == [left])
    #expect(page.isAtHead)
    #expect(page.position == left + 1)
    #expect(page.chats.isEmpty)
    #expect(try await log(ana, after: before).entries.count == 2)
  }

  @Test func aLongWayThroughOthersEventsIsSkipped() async throws {
    let start = try await log(ben).position
    let pair = try await store.write { [ana] in
      try $0.createChat(NewChat(kind: .own), by: ana.key).chat
    }
    for _ in 0..<5 {
      try await store.write { [ana] transaction in
        for _ in 0..<1000 {
          _ = try transaction.sendMessage(
            OutgoingMessage(chat: pair.id, id: .v7(), text: "x"), by: ana.key)
        }
      }
    }
    let message = try await send("for ben")
    // One page is enough though far more events lie between than one page looks at.
    let page = try await log(ben, after: start)
    #expect(page.entries.map(\.events) == [[.messageCreated(message)]])
    #expect(page.isAtHead)
    let none = try await log(ben, after: page.position)
    #expect(none.entries.isEmpty && none.isAtHead && none.position == page.position)
  }

  @Test func aStreamMayAskForSomeChatsOnly() async throws {
    let other = try await store.write { [ana] in
      try $0.createChat(NewChat(kind: .own), by: ana.key).chat
    }
    _ = try await send("x")
    let page = try await log(ana, only: [other.id])
    #expect(page.entries.count == 1)
    #expect(Set(page.chats.keys) == [other.key])
  }

  @Test func pruningMovesTheFloor() async throws {
    let head = try await log(ana).position
    clock.advance(seconds: 31 * 86_400)
    _ = try await send("new")
    try await store.write { try $0.pruneLog() }
    #expect(try await store.read { try $0.logFloor() } == head)
    #expect(try await log(ana, after: head).entries.count == 1)
  }

  @Test func livePayloadsAreWhatTheLogTells() async throws {
    let seen = Shared<[LoggedEvent]>([])
    store.observe { batch in seen.update { $0 += batch.transactions.joined() } }
    let start = try await log(ben).position
    let message = try await send("hello")
    _ = try await store.write { [chat, ben] in
      try $0.markRead(chat.id, upTo: 2, isPrivate: false, by: ben.key)
    }
    let page = try await log(ben, after: start)
    #expect(
      page.entries.map(\.events) == [
        [.messageCreated(message)],
        [
          .receiptMoved(ReceiptMarker(chat: chat.id, user: ben.id, read: 2, delivered: 2)),
          .unreadChanged(chat: chat.id, .none, total: 0, read: 2),
        ],
      ])
    let events = seen.value
    #expect(events.map(\.kind) == [.messageCreated, .receiptMoved, .unreadChanged])
    #expect(events.map(\.isLast) == [true, false, true])
    #expect((events[0].payload as? SharedEvent)?.event == .messageCreated(message))
    #expect(
      (events[1].payload as? SharedEvent)?.event
        == .receiptMoved(ReceiptMarker(chat: chat.id, user: ben.id, read: 2, delivered: 2)))
    #expect(events[2].user == ben.key)
  }

  @Test("Rule 4: what was answered is on the disk")
  func anAcknowledgedMessageSurvivesACrash() async throws {
    let image = Shared<Scratch?>(nil)
    store.observe { [scratch] _ in image.set(try? scratch.crashImage()) }
    let message = try await send("acknowledged")
    let reborn = try #require(image.value).open()
    defer { reborn.close() }
    let found = try await reborn.read { [chat, ben] in
      try $0.message(message.id, in: chat.id, for: ben.key)
    }
    #expect(found == message)
    #expect(try await reborn.read { try $0.head() } == store.read { try $0.head() })
  }
}
