import Testing
import VencejoCrypto

@testable import VencejoStore

@Suite struct SearchTests {
  let world: Conversation
  init() throws { world = try Conversation() }

  @Test(
    arguments: [
      ("cafe", [1]), ("CAFÉ", [1]), ("café mañana", [1]), ("caf*", [3, 1]), ("caf", []),
      ("\"mañana café\"", []), ("\"un café\"", [1]), ("cafe*  -con", [3]), ("-cafe", nil),
      ("", nil),
      ("*", nil), ("\"", nil), ("\"\"", nil), ("NOT", [2]), ("body:x", []), ("a AND b", []),
      ("naive", [2]), ("strasse", []), ("straße", [2]), ("%", nil), ("\u{0}", nil),
      ("(cafe", [1]), ("cafe)", [1]), ("^cafe", [1]), ("scope:c1", []), ("c1", []),
    ] as [(String, [Int64]?)])
  func findsWords(_ query: String, _ expected: [Int64]?) async throws {
    let ana = try await world.user("ana")
    let chat = try await world.chat(.own, ana)
    try await world.send("Un café con leche, mañana", to: chat, by: ana)
    try await world.send("naïve, NOT in the Straße", to: chat, by: ana)
    try await world.send("cafeteria", to: chat, by: ana)
    let found = await reason {
      let hits = try await world.store.read { try $0.searchMessages(query, for: ana.key).hits }
      #expect(hits.map(\.message.sequence) == expected)
    }
    #expect(found == (expected == nil ? "EMPTY_QUERY" : nil))
  }

  @Test func marksTheMatchAndPages() async throws {
    let people = try await world.users("ana", "ben", "eve")
    let (ana, ben, eve) = (people[0], people[1], people[2])
    let chat = try await world.chat(.direct, ana, [ben])
    let other = try await world.chat(.own, ana)
    for index in 1...5 { try await world.send("the Needle \(index)", to: chat, by: ben) }
    try await world.send("needle of her own", to: other, by: ana)
    let hit = try await world.store.read { try $0.searchMessages("needle", for: ben.key).hits[0] }
    #expect(hit.snippet == "the \u{2}Needle\u{3} 5")
    var found: [Int64] = []
    var token = ""
    var pages = 0
    repeat {
      let page = try await world.store.read { [token] in
        try $0.searchMessages("needle", pageSize: 2, pageToken: token, for: ana.key)
      }
      found += page.hits.map(\.message.key)
      token = page.nextPageToken
      pages += 1
    } while !token.isEmpty
    #expect(found.count == 6 && found == found.sorted(by: >) && pages == 3)
    let narrowed = try await world.store.read {
      try $0.searchMessages("needle", chats: [other.id], for: ana.key).hits
    }
    #expect(narrowed.map(\.message.chat) == [other.id])
    #expect(
      try await world.store.read { try $0.searchMessages("needle", for: eve.key).hits.isEmpty })
    #expect(
      await reason {
        _ = try await world.store.read {
          try $0.searchMessages("needle", chats: [chat.id], for: eve.key)
        }
      } == "CHAT_NOT_FOUND")
  }

  @Test func reportsReachAdministrators() async throws {
    let people = try await world.users("admin", "ben", "eve")
    let (ana, ben, eve) = (people[0], people[1], people[2])
    let chat = try await world.chat(.direct, ben, [eve])
    let message = try await world.send("spam", to: chat, by: eve)
    let signedIn = try await world.store.signIn(
      identifier: "admin", password: "password", device: Device())
    let admin = try await world.store.authenticate(signedIn.tokens.accessToken)
    #expect(admin.role == .administrator && admin.user == ana.key)
    let other = try await world.store.signIn(
      identifier: "ben", password: "password", device: Device())
    let member = try await world.store.authenticate(other.tokens.accessToken)
    for _ in 0..<2 {
      try await world.write {
        try $0.report(message.id, in: chat.id, reason: "spam", requestID: "1", by: ben.key)
      }
    }
    #expect(
      await world.refused {
        try $0.report(message.id, in: chat.id, reason: "x", by: ana.key)
      } == "CHAT_NOT_FOUND")
    #expect(
      await reason {
        _ = try await world.store.read { try $0.listReports(includeResolved: true, by: member) }
      } == "NOT_AN_ADMINISTRATOR")
    let open = try await world.store.read {
      try $0.listReports(includeResolved: false, by: admin).reports
    }
    #expect(open.map(\.reporter) == [ben.id] && open.map(\.reason) == ["spam"])
    let id = try #require(open.first?.id)
    let resolved = try await world.write {
      try $0.resolveReport(id, resolution: "warned", by: admin)
    }
    #expect(resolved.resolveTime != nil && resolved.resolution == "warned")
    #expect(
      try await world.store.read {
        try $0.listReports(includeResolved: false, by: admin).reports.isEmpty
      })
  }
}
