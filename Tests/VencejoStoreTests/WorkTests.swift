import Testing
import VencejoCrypto
import VencejoSQLite

@testable import VencejoStore

/// What reads cost, in steps of SQLite's machine: a number that does not depend on who else is at
/// work. It must not grow with what lies around that which is read.
@Suite struct WorkTests {
  let talk: Conversation
  let ana: Account
  let ben: Account

  init() async throws {
    talk = try Conversation()
    (ana, ben) = (try await talk.user("ana"), try await talk.user("ben"))
  }

  /// A chat of `count` messages of Ana's, of which Ben has read all but the last five.
  func chat(_ count: Int64) async throws -> ChatView {
    let chat = try await talk.chat(.group, ana, [ben])
    try await talk.store.write { [ana, ben] in
      for number in 1...count {
        _ = try $0.sendMessage(
          OutgoingMessage(chat: chat.id, id: .v7(), text: "number \(number)"), by: ana.key)
      }
      _ = try $0.markRead(chat.id, upTo: count + 1 - 5, isPrivate: true, by: ben.key)
    }
    return chat
  }

  func steps(_ body: @Sendable @escaping (ReadTransaction) throws -> Void) async throws -> Int {
    try await talk.store.read { transaction in
      // Once before, so that the statements are there.
      try body(transaction)
      let before = transaction.connection.stepCount
      try body(transaction)
      return transaction.connection.stepCount - before
    }
  }

  /// The same read of a short and of a long chat.
  func compare(
    _ name: String, _ body: @Sendable @escaping (ReadTransaction, ChatView) throws -> Void
  )
    async throws
  {
    let short = try await chat(60)
    let long = try await chat(1500)
    let few = try await steps { try body($0, short) }
    let many = try await steps { try body($0, long) }
    #expect(few > 0)
    // Trees grow by a level now and then.
    #expect(many <= few + few / 4, "\(name): \(few) steps in 60 messages, \(many) in 1500")
  }

  @Test func pageOfHistory() async throws {
    try await compare("the newest page") { [ben] in
      let page = try $0.listMessages($1.id, pageSize: 20, for: ben.key)
      #expect(page.messages.count == 20)
    }
    try await compare("a page in the middle") { [ben] in
      let middle = $1.lastSequence / 2
      let page = try $0.listMessages(
        $1.id, pageSize: 20, anchor: .before(30 + middle), for: ben.key)
      #expect(page.messages.count == 20)
    }
    try await compare("a page after the beginning") { [ben] in
      let page = try $0.listMessages($1.id, pageSize: 20, anchor: .after(10), for: ben.key)
      #expect(page.messages.count == 20)
    }
  }

  @Test func unread() async throws {
    try await compare("the count of unread messages") { [ben] in
      let unread = try $0.chat($1.id, for: ben.key).unread
      #expect(unread.count == 5)
    }
    try await compare("whether anything is unread") { [ben] in
      let last = try $0.chat($1.id, for: ben.key).lastSequence
      let isUnread = try $0.hasUnread($1.key, ben.key, after: last - 1, to: last)
      #expect(isUnread)
    }
  }

  /// Other people's events cost a reader of the log nothing.
  @Test func resume() async throws {
    let mine = try await chat(10)
    let start = try await talk.head()
    let (cleo, dan) = (try await talk.user("cleo"), try await talk.user("dan"))
    let theirs = try await talk.chat(.group, cleo, [dan])
    func talking(_ count: Int) async throws {
      try await talk.store.write {
        for number in 1...count {
          _ = try $0.sendMessage(
            OutgoingMessage(chat: theirs.id, id: .v7(), text: "\(number)"), by: cleo.key)
        }
      }
    }
    func resuming() async throws -> Int {
      try await steps { [ben] in
        let page = try $0.chatLog(for: ben.key, after: start, limit: 50)
        #expect(page.isAtHead && page.entries.isEmpty)
      }
    }
    try await talking(1000)
    let few = try await resuming()
    try await talking(4000)
    let many = try await resuming()
    #expect(many <= few + few / 4, "\(few) steps over 1000 events, \(many) over 5000")
    #expect(mine.lastSequence > 0)
  }

  /// The list sorts all chats by their keys, and fetches those it shows.
  @Test func chatList() async throws {
    try await talk.store.write { [ana, ben] in
      for _ in 1...50 {
        _ = try $0.createChat(NewChat(kind: .group, title: "few", members: [ben.id]), by: ana.key)
      }
    }
    let read: @Sendable (ReadTransaction) throws -> Void = { [ben] in
      let page = try $0.listChats(pageSize: 20, for: ben.key)
      #expect(page.chats.count == 20)
    }
    let few = try await steps(read)
    try await talk.store.write { [ana, ben] in
      for _ in 1...450 {
        _ = try $0.createChat(NewChat(kind: .group, title: "many", members: [ben.id]), by: ana.key)
      }
    }
    let many = try await steps(read)
    let each = Double(many - few) / 450
    #expect(each < 60, "\(each) steps for each chat that is not shown")
  }
}
