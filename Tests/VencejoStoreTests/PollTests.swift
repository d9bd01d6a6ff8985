import Testing
import VencejoCrypto

@testable import VencejoStore

@Suite struct PollTests {
  let world: Conversation
  init() throws { world = try Conversation() }

  @Test func pollsCount() async throws {
    let people = try await world.users("ana", "ben")
    let (ana, ben) = (people[0], people[1])
    let chat = try await world.chat(.group, ana, [ben])
    func ask(several: Bool) async throws -> StoredMessage {
      let poll = Poll(
        question: "When?",
        options: [Poll.Option(id: 1, text: "Now"), Poll.Option(id: 7, text: "Later")],
        allowsSeveral: several)
      return try await world.write {
        try $0.sendMessage(
          OutgoingMessage(chat: chat.id, id: .v7(), body: .poll(poll)), by: ana.key
        ).message
      }
    }
    func vote(_ message: StoredMessage, _ options: [Int64], _ user: Account) async throws
      -> [(Int64, Bool)]
    {
      let voted = try await world.write {
        try $0.votePoll(message.id, in: chat.id, options: options, by: user.key)
      }
      guard case .poll(let poll) = voted.body else { return [] }
      return poll.options.map { ($0.votes, $0.isVoted) }
    }
    let one = try await ask(several: false)
    #expect(try await vote(one, [1], ben).map(\.0) == [1, 0])
    #expect(try await vote(one, [7], ben).map(\.0) == [0, 1])
    #expect(try await vote(one, [7], ana).map(\.1) == [false, true])
    #expect(try await vote(one, [], ben).map(\.0) == [0, 1])
    for bad in [[1, 7], [2]] as [[Int64]] {
      #expect(await reason { _ = try await vote(one, bad, ben) } == "BAD_VOTE")
    }
    let several = try await ask(several: true)
    #expect(try await vote(several, [1, 7, 1], ben).map(\.0) == [1, 1])
    let text = try await world.send("no poll", to: chat, by: ana)
    #expect(await reason { _ = try await vote(text, [1], ben) } == "NOT_A_POLL")
    #expect(
      try await world.store.read {
        try $0.searchMessages("later", for: ben.key).hits.map(\.message.sequence)
      } == [3, 2])
  }
}
