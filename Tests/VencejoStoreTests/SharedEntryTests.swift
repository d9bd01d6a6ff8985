import Testing
import VencejoCrypto

@testable import VencejoStore

/// What readers of the log share, and what of it they must not.
@Suite struct SharedEntryTests {
  let world: Conversation
  let people: [Account]
  let chat: ChatView
  let start: Int64

  init() async throws {
    world = try Conversation()
    people = try await world.users("ana", "ben", "cleo", "dan")
    chat = try await world.chat(.group, people[0], Array(people.dropFirst()))
    start = try await world.head()
  }

  private func entries(_ user: Account) async throws -> [LogEntry] {
    try await world.store.read { [start] in
      try $0.chatLog(for: user.key, after: start, limit: 100).entries
    }
  }

  /// The messages that are new in the log for a user, each as the user would be shown it.
  private func created(_ user: Account) async throws -> [StoredMessage] {
    var result: [StoredMessage] = []
    for entry in try await entries(user) {
      for case .messageCreated(let message) in entry.events {
        let chat = self.chat
        let now = try await world.store.read {
          try $0.message(message.id, in: chat.id, for: user.key)
        }
        #expect(message == now)
        // What the system says of them is none of theirs.
        if message.senderKey != nil { result.append(message) }
      }
    }
    return result
  }

  @Test func readersOfOneStretchShareIt() async throws {
    try await world.send("one", to: chat, by: people[0])
    try await world.send("two", to: chat, by: people[0])
    let (ben, cleo) = (try await entries(people[1]), try await entries(people[2]))
    #expect(ben == cleo && ben.count == 2)
    for (one, other) in zip(ben, cleo) {
      #expect(one.shared != nil && one.shared === other.shared)
      var count = 0
      for _ in 0..<2 {
        #expect(
          one.shared?.made(true) {
            count += 1
            return count
          } == 1)
      }
      #expect(other.shared?.made(false) { 2 } == 2)
    }
    // The sender's own devices are told that it is theirs.
    #expect(try await entries(people[0]).allSatisfy { $0.shared == nil })
    // For a minute: what is made of it has tokens in it.
    world.clock.advance(seconds: 61)
    #expect(try await entries(people[3]).first?.shared !== ben[0].shared)
  }

  @Test func whatHappensInTheChatEndsIt() async throws {
    let message = try await world.send("one", to: chat, by: people[0])
    let (chat, ana) = (self.chat, people[0])
    let first = try await entries(people[1])
    try await world.write {
      _ = try $0.editMessage(message.id, in: chat.id, body: .text("uno"), by: ana.key)
    }
    for user in people { #expect(try await created(user).map(\.body) == [.text("uno")]) }
    #expect(try await entries(people[1])[0].shared !== first[0].shared)
    _ = try await world.write { [people] in
      try $0.setReaction("👍", on: message.id, in: chat.id, by: people[2].key)
    }
    for user in people { #expect(try await created(user).count == 1) }
    #expect(try await entries(people[1])[0].shared == nil)
    try await world.write {
      _ = try $0.deleteMessages(
        [SequenceRange(message.sequence, message.sequence)], in: chat.id, scope: .forEveryone,
        by: ana.key)
    }
    for user in people { #expect(try await created(user).map(\.body) == [.deleted]) }
  }

  @Test func whatOneReaderHasOfTheirOwnIsNotShared() async throws {
    let (ana, ben, cleo, dan) = (people[0], people[1], people[2], people[3])
    var messages: [StoredMessage] = []
    for text in ["one", "two", "three"] {
      messages.append(try await world.send(text, to: chat, by: ana))
    }
    _ = try await created(ben)
    let chat = self.chat
    let second = messages[1]
    try await world.write {
      _ = try $0.setStarred(second.id, in: chat.id, true, by: ben.key)
      _ = try $0.deleteMessages(
        [SequenceRange(second.sequence, second.sequence)], in: chat.id, scope: .forMe, by: cleo.key)
      try $0.block(ana.id, by: dan.key)
    }
    try await world.send("four", to: chat, by: ana)
    #expect(try await created(ben).map(\.isStarred) == [false, true, false, false])
    #expect(try await created(cleo).map(\.sequence).contains(second.sequence) == false)
    #expect(try await created(cleo).count == 3)
    #expect(try await created(dan).count == 3)
    #expect(try await created(ana).count == 4)
    // One who left and one who came later.
    try await world.write { try $0.leaveChat(chat.id, by: ben.key) }
    try await world.send("five", to: chat, by: ana)
    #expect(try await created(cleo).count == 4)
  }

  @Test func whatTheClockChangesIsNotShared() async throws {
    let (chat, ana) = (self.chat, people[0])
    _ = try await world.write {
      var changes = ChatChanges()
      changes.messageTTL = 60_000_000
      return try $0.updateChat(chat.id, changes, by: ana.key)
    }
    let message = try await world.send("one", to: chat, by: ana)
    #expect(try await created(people[1]).map(\.id).contains(message.id))
    #expect(try await created(people[2]).map(\.id).contains(message.id))
    world.clock.advance(seconds: 61)
    #expect(try await created(people[1]).map(\.id).contains(message.id) == false)
  }
}
