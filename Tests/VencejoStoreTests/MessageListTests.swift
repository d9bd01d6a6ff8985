import Testing
import VencejoCrypto

@testable import VencejoStore

@Suite struct MessageListTests {
  let scratch: Scratch
  let clock = ManualClock()
  let store: Store
  let ana: Account
  let ben: Account
  let chat: ChatView

  /// 30 messages, a second apart, from Ana to Ben, who has read the first 12.
  init() async throws {
    let clock = self.clock
    scratch = try Scratch()
    store = try scratch.open { $0.clock = { clock.now } }
    ana = try await store.signUp(NewAccount(handle: "ana", password: "password")).account
    ben = try await store.signUp(NewAccount(handle: "ben", password: "password")).account
    chat = try await store.write { [ana, ben] in
      try $0.createChat(NewChat(kind: .direct, members: [ben.id]), by: ana.key).chat
    }
    for index in 1...30 {
      clock.advance(seconds: 1)
      try await store.write { [ana, chat] in
        _ = try $0.sendMessage(
          OutgoingMessage(chat: chat.id, id: .v7(), text: "\(index)"), by: ana.key)
      }
    }
    try await store.write { [ben, chat] in
      _ = try $0.markRead(chat.id, upTo: 12, isPrivate: false, by: ben.key)
    }
  }

  func page(_ anchor: MessageAnchor, _ size: Int32 = 6, token: String = "") async throws
    -> MessagePage
  {
    try await store.read { [chat, ben] in
      try $0.listMessages(
        chat.id, pageSize: size, pageToken: token, anchor: anchor, for: ben.key)
    }
  }

  @Test func anchors() async throws {
    let first = try await store.read { [chat, ana] in
      try $0.listMessages(chat.id, pageSize: 1, anchor: .after(0), for: ana.key).messages[0]
    }
    let expectations: [(MessageAnchor, ClosedRange<Int64>?)] = [
      (.newest, 25...30), (.before(10), 4...9), (.before(3), 1...2), (.before(1), nil),
      (.before(.min), nil), (.before(.max), 25...30), (.after(10), 11...16), (.after(28), 29...30),
      (.after(30), nil), (.after(.max), nil), (.after(.min), 1...6), (.around(15), 12...17),
      (.around(1), 1...6), (.around(30), 27...30), (.around(.max), 28...30),
      (.firstUnread, 11...16), (.time(first.sendTime), 1...6), (.time(first.sendTime + 1), 2...7),
      (.time(first.sendTime + 3_500_000), 5...10), (.time(.max), 25...30), (.time(.min), 1...6),
    ]
    for (anchor, range) in expectations {
      let found = try await page(anchor)
      #expect(found.messages.map(\.sequence) == range.map(Array.init) ?? [], "\(anchor)")
      let older =
        (range?.lowerBound ?? (anchor == .after(30) || anchor == .after(.max) ? 31 : 1)) > 1
      let newer =
        (range?.upperBound ?? (anchor == .after(30) || anchor == .after(.max) ? 30 : 0)) < 30
      #expect(!found.olderToken.isEmpty == older, "older of \(anchor)")
      #expect(!found.newerToken.isEmpty == newer, "newer of \(anchor)")
    }
  }

  @Test("Rule 19: pages stay in order whatever is written meanwhile")
  func tokensWalkTheWholeChatInEitherDirection() async throws {
    var page = try await page(.around(15), 4)
    var all = page.messages.map(\.sequence)
    var token = page.olderToken
    while !token.isEmpty {
      page = try await self.page(.newest, 7, token: token)
      all = page.messages.map(\.sequence) + all
      token = page.olderToken
    }
    token = try await self.page(.around(15), 4).newerToken
    while !token.isEmpty {
      page = try await self.page(.newest, 7, token: token)
      all += page.messages.map(\.sequence)
      token = page.newerToken
    }
    #expect(all == Array(1...30))
  }

  @Test func aTokenIsGoodForItsChatAndReaderOnly() async throws {
    let token = try await page(.newest).olderToken
    let refused = await reason {
      _ = try await store.read { [chat, ana] in
        try $0.listMessages(chat.id, pageToken: token, for: ana.key)
      }
    }
    #expect(refused == "PAGE_TOKEN_MISMATCH")
    #expect(await reason { _ = try await page(.newest, token: token + "A") } == "BAD_PAGE_TOKEN")
  }

  @Test func membersSeeTheirIntervalOnly() async throws {
    try await store.write { [chat, ben] in
      try $0.run(
        "UPDATE member SET visible_from = 5, visible_to = 20, state = 3 WHERE chat_id = ? AND user_id = ?",
        chat.key, ben.key)
    }
    #expect(try await page(.newest, 100).messages.map(\.sequence) == Array(5...20))
    #expect(try await page(.after(18)).messages.map(\.sequence) == [19, 20])
    #expect(try await page(.before(7)).messages.map(\.sequence) == [5, 6])
    #expect(try await page(.around(1)).messages.map(\.sequence) == Array(5...10))
    #expect(try await page(.around(30)).messages.map(\.sequence) == Array(18...20))
    #expect(try await page(.after(18)).newerToken.isEmpty)
    let view = try await store.read { [chat, ben] in try $0.chat(chat.id, for: ben.key) }
    #expect(view.lastSequence == 20)
    #expect(view.lastMessage?.sequence == 20)
    #expect(view.unread.count == 8)
    let refused = await reason {
      try await store.write { [chat, ben] in
        _ = try $0.sendMessage(OutgoingMessage(chat: chat.id, id: .v7(), text: "x"), by: ben.key)
      }
    }
    #expect(refused == "NOT_A_MEMBER")
  }
}
