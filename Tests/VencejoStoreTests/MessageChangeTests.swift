import Testing
import VencejoCrypto
import VencejoSQLite

@testable import VencejoStore

@Suite struct MessageChangeTests {
  let world: Conversation
  init() throws { world = try Conversation() }

  private func pair() async throws -> (Account, Account, ChatView) {
    let people = try await world.users("ana", "ben")
    return (people[0], people[1], try await world.chat(.direct, people[0], [people[1]]))
  }

  @Test func editsHaveAWindowAndAnEtag() async throws {
    let (ana, ben, chat) = try await pair()
    let message = try await world.send("helo", to: chat, by: ana)
    let start = try await world.head()
    func edit(_ text: String, by user: Account, etag: String = "") async -> String? {
      await world.refused {
        _ = try $0.editMessage(
          message.id, in: chat.id, body: .text(text), etag: etag, by: user.key)
      }
    }
    #expect(await edit("x", by: ben) == "NOT_THE_SENDER")
    #expect(await edit(" ", by: ana) == "EMPTY_MESSAGE")
    #expect(await edit("hello", by: ana, etag: "1") == nil)
    #expect(await edit("hullo", by: ana, etag: "1") == "ETAG_MISMATCH")
    // The same text again is no edit.
    #expect(await edit("hello", by: ana) == nil)
    let seen = try await world.page(chat, ben).messages
    #expect(seen.map(\.body) == [.text("hello")])
    #expect(seen.map(\.editCount) == [1] && seen.map(\.version) == [2])
    let heard = try await world.events(of: ben, after: start)
    guard heard.count == 1, case .messageUpdated(let updated, let fields) = heard[0] else {
      Issue.record("\(heard)")
      return
    }
    #expect(updated.body == .text("hello") && fields == .content)
    // At the limit, one past it, and with a chat's own window.
    world.clock.advance(seconds: 15 * 60)
    #expect(await edit("hello!", by: ana) == nil)
    world.clock.advance(seconds: 1)
    #expect(await edit("hello?", by: ana) == "EDIT_WINDOW_CLOSED")
  }

  @Test("Rule 26: an edit reaches search and quotes at once, a deletion too")
  func searchAndQuotesFollow() async throws {
    let (ana, ben, chat) = try await pair()
    let message = try await world.send("the quick fox", to: chat, by: ana)
    let reply = try await world.send("which?", to: chat, by: ben, reply: message.id)
    func search(_ query: String) async throws -> [Int64] {
      try await world.store.read {
        try $0.searchMessages(query, for: ben.key).hits.map(\.message.sequence)
      }
    }
    func quote() async throws -> Quote? {
      try await world.store.read { try $0.message(reply.id, in: chat.id, for: ana.key).quote }
    }
    #expect(try await search("fox") == [1])
    _ = try await world.write {
      try $0.editMessage(message.id, in: chat.id, body: .text("the slow hound"), by: ana.key)
    }
    #expect(try await search("fox") == [])
    #expect(try await search("hound") == [1])
    #expect(try await quote()?.excerpt == "the slow hound")
    _ = try await world.write {
      try $0.deleteMessages(
        [SequenceRange(1, 1)], in: chat.id, scope: .forEveryone, by: ana.key)
    }
    #expect(try await search("hound") == [])
    #expect(
      try await quote() == Quote(id: message.id, sender: ana.id, excerpt: "", isDeleted: true))
  }

  @Test("Rule 7: deleting an unread message lowers the count, and says so")
  func deletionForEveryone() async throws {
    let people = try await world.users("ana", "ben", "cleo")
    let (ana, ben, cleo) = (people[0], people[1], people[2])
    let chat = try await world.chat(.group, ana, [ben, cleo])
    for text in ["2", "3", "4"] { try await world.send(text, to: chat, by: ana) }
    _ = try await world.write { try $0.markRead(chat.id, upTo: 4, isPrivate: false, by: cleo.key) }
    let start = try await world.head()
    func delete(_ first: Int64, _ last: Int64, by user: Account) async -> String? {
      await world.refused {
        _ = try $0.deleteMessages(
          [SequenceRange(first, last)], in: chat.id, scope: .forEveryone, by: user.key)
      }
    }
    #expect(await delete(2, 3, by: ben) == "NOT_THE_SENDER")
    #expect(await delete(1, 2, by: ana) == "NOT_THE_SENDER")  // the note is the system's
    #expect(await delete(2, 3, by: ana) == nil)
    #expect(await delete(2, 3, by: ana) == nil)
    for user in people {
      let page = try await world.page(chat, user).messages
      #expect(page.map(\.sequence) == [1, 2, 3, 4])
      #expect(page.map { $0.deleteTime != nil } == [false, true, true, false])
      #expect(page[1].body == .deleted)
    }
    #expect(
      try await world.view(chat, ben).unread
        == UnreadState(count: 1, isCapped: false, firstSequence: 4))
    let heard = try await world.events(of: ben, after: start)
    #expect(
      heard == [
        .messagesDeleted(
          Deletion(
            chat: chat.id, ranges: [SequenceRange(2, 3)], scope: .forEveryone, actor: ana.id)),
        .unreadChanged(
          chat: chat.id, UnreadState(count: 1, isCapped: false, firstSequence: 4), total: 1,
          read: 0),
      ])
    // Who had read them hears of no count.
    #expect(try await world.events(of: cleo, after: start).count == 1)
    world.clock.advance(seconds: 48 * 3600 + 1)
    // An administrator of the chat is bound to no window.
    let late = try await world.send("5", to: chat, by: ben)
    world.clock.advance(seconds: 48 * 3600 + 1)
    #expect(await delete(late.sequence, late.sequence, by: ben) == "DELETE_WINDOW_CLOSED")
    #expect(await delete(late.sequence, late.sequence, by: ana) == nil)
    // The text is not on the disk any more.
    #expect(
      try await world.store.read {
        try $0.first("SELECT count(*) FROM message WHERE body <> '' AND delete_us IS NOT NULL") {
          $0.int(0)
        }
      } == 0)
  }

  @Test("Rule 20: holes in the sequence are explained")
  func deletionForMe() async throws {
    let (ana, ben, chat) = try await pair()
    for text in 1...9 { try await world.send("\(text)", to: chat, by: ana) }
    let start = try await world.head()
    func hide(_ first: Int64, _ last: Int64) async throws -> Int {
      try await world.write {
        try $0.deleteMessages([SequenceRange(first, last)], in: chat.id, scope: .forMe, by: ben.key)
      }
    }
    #expect(try await hide(3, 4) == 2)
    #expect(try await hide(3, 4) == 0)
    #expect(try await hide(6, 7) == 2)
    #expect(try await hide(5, 5) == 1)
    #expect(try await hide(9, 30) == 1)
    #expect(try await world.sequences(chat, ana) == Array(1...9))
    let page = try await world.page(chat, ben)
    #expect(page.messages.map(\.sequence) == [1, 2, 8])
    #expect(page.deletedRanges == [SequenceRange(3, 7), SequenceRange(9, 9)])
    #expect(try await world.view(chat, ben).unread.count == 3)
    #expect(try await world.view(chat, ben).lastMessage?.sequence == 8)
    // One row: ranges that touch are one.
    #expect(
      try await world.store.read {
        try $0.first("SELECT count(*) FROM message_hidden", read: { $0.int(0) })
      } == 2)
    // In pages of one, every hole is told and nothing twice.
    var seen: [Int64] = []
    var holes: [SequenceRange] = []
    var token = ""
    repeat {
      let page = try await world.store.read { [token] in
        try $0.listMessages(chat.id, pageSize: 1, pageToken: token, for: ben.key)
      }
      seen += page.messages.map(\.sequence)
      holes += page.deletedRanges
      token = page.olderToken
    } while !token.isEmpty
    #expect(seen == [8, 2, 1])
    #expect(holes == [SequenceRange(9, 9), SequenceRange(3, 7)])
    // Nobody else hears of it.
    #expect(try await world.events(of: ana, after: start).isEmpty)
    let heard = try await world.events(of: ben, after: start)
    guard case .messagesDeleted(let first) = heard.first else {
      Issue.record("\(heard)")
      return
    }
    #expect(first.ranges == [SequenceRange(3, 4)] && first.scope == .forMe)
    // A new message still arrives.
    try await world.send("10", to: chat, by: ana)
    #expect(try await world.view(chat, ben).unread.count == 4)
  }

  @Test func deletionIsBounded() async throws {
    let (ana, _, chat) = try await pair()
    func delete(_ ranges: [SequenceRange]) async -> String? {
      await world.refused {
        _ = try $0.deleteMessages(ranges, in: chat.id, scope: .forMe, by: ana.key)
      }
    }
    #expect(await delete([]) == "BAD_RANGE")
    #expect(await delete([SequenceRange(0, 1)]) == "BAD_RANGE")
    #expect(await delete([SequenceRange(2, 1)]) == "BAD_RANGE")
    #expect(await delete([SequenceRange(1, 500)]) == nil)
    #expect(await delete([SequenceRange(1, 501)]) == "LIMIT_EXCEEDED")
    #expect(await delete([SequenceRange(1, .max)]) == "LIMIT_EXCEEDED")
    #expect(await delete([SequenceRange(1, 250), SequenceRange(300, 550)]) == "LIMIT_EXCEEDED")
  }

  @Test func clearingKeepsStars() async throws {
    let (ana, ben, chat) = try await pair()
    var messages: [StoredMessage] = []
    for text in 1...5 { messages.append(try await world.send("\(text)", to: chat, by: ana)) }
    let third = messages[2].id
    let starred = try await world.write {
      try $0.setStarred(third, in: chat.id, true, by: ben.key)
    }
    #expect(starred.isStarred)
    #expect(
      try await world.store.read { try $0.message(third, in: chat.id, for: ana.key).isStarred }
        == false)
    let cleared = try await world.write {
      try $0.clearChat(chat.id, upTo: 4, keepStarred: true, by: ben.key)
    }
    #expect(try await world.sequences(chat, ben) == [3, 5])
    #expect(cleared.unread.count == 2)
    _ = try await world.write {
      try $0.clearChat(chat.id, upTo: 0, keepStarred: false, by: ben.key)
    }
    let page = try await world.page(chat, ben)
    #expect(page.messages.isEmpty && page.olderToken.isEmpty && page.newerToken.isEmpty)
    #expect(page.deletedRanges == [SequenceRange(1, 5)])
    #expect(try await world.view(chat, ben).lastMessage == nil)
    #expect(try await world.sequences(chat, ana) == Array(1...5))
  }

  @Test(
    "Rule 29: a reaction is one character",
    arguments: [
      ("👍", true), ("👨‍👩‍👧‍👦", true), ("🇪🇸", true), ("é", true), ("", true), ("ab", false), (" ", false),
      ("👍👍", false), ("\u{200B}", false),
      // One character of more than 32 bytes.
      ("e" + String(repeating: "\u{301}", count: 16), false),
    ])
  func reactionsAreOneCharacter(_ emoji: String, _ isGood: Bool) async throws {
    let (ana, ben, chat) = try await pair()
    let message = try await world.send("x", to: chat, by: ana)
    let refused = await world.refused {
      _ = try $0.setReaction(emoji, on: message.id, in: chat.id, by: ben.key)
    }
    #expect(refused == (isGood ? nil : "BAD_EMOJI"))
  }

  @Test func oneReactionPerUser() async throws {
    let (ana, ben, chat) = try await pair()
    let message = try await world.send("x", to: chat, by: ana)
    let start = try await world.head()
    func react(_ emoji: String, _ user: Account) async throws -> [ReactionSummary] {
      try await world.write {
        try $0.setReaction(emoji, on: message.id, in: chat.id, by: user.key).reactions
      }
    }
    #expect(try await react("👍", ben) == [ReactionSummary(emoji: "👍", count: 1, isMine: true)])
    #expect(try await react("👍", ben).count == 1)
    world.clock.advance(seconds: 1)
    #expect(
      try await react("❤️", ana) == [
        ReactionSummary(emoji: "👍", count: 1, isMine: false),
        ReactionSummary(emoji: "❤️", count: 1, isMine: true),
      ])
    #expect(try await react("❤️", ben) == [ReactionSummary(emoji: "❤️", count: 2, isMine: true)])
    let listed = try await world.store.read {
      try $0.listReactions(message.id, in: chat.id, for: ben.key).reactions
    }
    #expect(listed.map(\.user) == [ana.id, ben.id] && listed.map(\.emoji) == ["❤️", "❤️"])
    #expect(try await react("", ana) == [ReactionSummary(emoji: "❤️", count: 1, isMine: false)])
    // Four changes; the repeat was none.
    let heard = try await world.events(of: ben, after: start)
    #expect(heard.count == 4)
    guard case .reactionChanged(let last) = heard.last else { return }
    #expect(last.user == ana.id && last.emoji.isEmpty)
    _ = try await world.write {
      try $0.deleteMessages([SequenceRange(1, 1)], in: chat.id, scope: .forEveryone, by: ana.key)
    }
    #expect(
      await world.refused {
        _ = try $0.setReaction("👍", on: message.id, in: chat.id, by: ben.key)
      } == "MESSAGE_DELETED")
    #expect(try await world.page(chat, ben).messages.map(\.reactions) == [[]])
  }

  @Test func mentionsAreCounted() async throws {
    let people = try await world.users("ana", "ben", "cleo")
    let (ana, ben, cleo) = (people[0], people[1], people[2])
    let chat = try await world.chat(.group, ana, [ben, cleo])
    let toBen = [Mention(user: ben.id, start: 0, length: 4)]
    let message = try await world.send("@ben look", to: chat, by: ana, mentions: toBen)
    try await world.send(
      "@all look", to: chat, by: ana, mentions: [Mention(user: nil, start: 0, length: 4)])
    #expect(try await world.view(chat, ben).unread.mentions == 2)
    #expect(try await world.view(chat, cleo).unread.mentions == 1)
    #expect(try await world.view(chat, ana).unread.mentions == 0)
    // An edit that no longer calls takes the mention away.
    _ = try await world.write {
      try $0.editMessage(message.id, in: chat.id, body: .text("look"), by: ana.key)
    }
    #expect(try await world.view(chat, ben).unread.mentions == 1)
    let summary = try await world.store.read { try $0.unreadSummary(of: ben.key) }
    #expect(summary == UnreadSummary(chats: 1, messages: 2, mentions: 1))
    for (start, length) in [(-1, 1), (0, 0), (0, 5), (4, 1), (1, Int64.max)] {
      let refused = await reason {
        try await world.send(
          "1234", to: chat, by: ana,
          mentions: [Mention(user: nil, start: Int64(start), length: length)])
      }
      #expect(refused == "BAD_MENTION")
    }
  }

  @Test func pinsForAll() async throws {
    let people = try await world.users("ana", "ben")
    let (ana, ben) = (people[0], people[1])
    let chat = try await world.chat(.group, ana, [ben])
    let first = try await world.send("2", to: chat, by: ana)
    let second = try await world.send("3", to: chat, by: ana)
    _ = try await world.write { try $0.setPinned(first.id, in: chat.id, true, by: ben.key) }
    world.clock.advance(seconds: 1)
    let view = try await world.write {
      try $0.setPinned(second.id, in: chat.id, true, ttl: 60_000_000, by: ben.key)
    }
    #expect(view.pinned == [3, 2])
    #expect(view.lastMessage?.body == .system(SystemNote(.messagePinned, actor: ben.id)))
    let start = try await world.head()
    world.clock.advance(seconds: 60)
    #expect(try await world.view(chat, ana).pinned == [2])
    #expect(try await world.write { try $0.sweepPins() } == false)
    let heard = try await world.events(of: ana, after: start)
    guard heard.count == 1, case .messageUpdated(let updated, .pinned) = heard[0] else {
      Issue.record("\(heard)")
      return
    }
    #expect(updated.sequence == 3 && !updated.isPinned)
    let none = try await world.write {
      try $0.setPinned(first.id, in: chat.id, false, by: ana.key)
    }
    #expect(none.pinned.isEmpty)
  }

  @Test func forwardsCountTheirHops() async throws {
    let (ana, ben, chat) = try await pair()
    let own = try await world.chat(.own, ana)
    var message = try await world.send("news", to: chat, by: ben)
    #expect(message.forwardHops == 0)
    for hop in 1...5 {
      let source = message
      message = try await world.write {
        try $0.forwardMessages(
          [(source.chat, source.id)], to: [own.id], ids: [.v7()], by: ana.key)
      }[0]
      #expect(message.forwardHops == Int64(hop) && message.body == .text("news"))
    }
    func forward(_ count: Int, to targets: [UUID], ids: [UUID]? = nil) async -> String? {
      await world.refused { [message] in
        _ = try $0.forwardMessages(
          Array(repeating: (message.chat, message.id), count: count), to: targets,
          ids: ids ?? (0..<count * targets.count).map { _ in UUID.v7() }, by: ana.key)
      }
    }
    #expect(await forward(1, to: [own.id, chat.id]) == "FORWARDED_MANY_TIMES")
    #expect(await forward(1, to: [own.id]) == nil)
    #expect(await forward(101, to: [own.id]) == "LIMIT_EXCEEDED")
    #expect(await forward(1, to: Array(repeating: own.id, count: 6)) == "LIMIT_EXCEEDED")
    #expect(await forward(1, to: [own.id], ids: []) == "BAD_MESSAGE_ID")
    #expect(await forward(1, to: [.v7()]) == "CHAT_NOT_FOUND")
  }
}
