import Testing
import VencejoCrypto

@testable import VencejoStore

@Suite struct TokenTests {
  static let day: Int64 = 86_400_000_000
  let now: Int64 = 1_800_000_000_000_000
  let authority = TokenAuthority(
    keys: [.init(id: 2, secret: [2]), .init(id: 1, secret: [1])], root: [1], history: [7, 7])

  private func refusal(
    _ token: String, _ kind: TokenAuthority.ResumeKind = .chat,
    now: Int64? = nil, binding: [UInt8] = [], by other: TokenAuthority? = nil
  ) -> TokenAuthority.Refusal? {
    do throws(TokenAuthority.Refusal) {
      _ = try (other ?? authority).position(
        ofResumeToken: token, kind, now: now ?? self.now, binding: binding)
      return nil
    } catch { return error }
  }

  @Test func resumeTokensCarryAPosition() throws {
    for position: Int64 in [0, 1, 127, 128, 1 << 40, .max] {
      let token = authority.resumeToken(.record, position: position, now: now, binding: [1, 2])
      #expect(
        try authority.position(ofResumeToken: token, .record, now: now, binding: [1, 2])
          == position)
    }
  }

  @Test func everyChangedLetterIsNoticed() {
    let token = authority.resumeToken(.chat, position: 77, now: now)
    #expect(refusal(token) == nil)
    for index in token.indices {
      for letter in ["A", "b", "_"] where String(token[index]) != letter {
        var forged = token
        forged.replaceSubrange(index...index, with: letter)
        #expect(refusal(forged) == .forged, "\(forged)")
      }
    }
    for text in ["", "A", "AAAA", token + "A", String(token.dropLast()), "💥", token + token] {
      #expect(refusal(text) == .forged)
    }
    #expect(refusal(String(repeating: "A", count: 100_000)) == .forged)
  }

  @Test func tellsWhyATokenIsNotHonoured() {
    let token = authority.resumeToken(.chat, position: 5, now: now)
    #expect(refusal(token, .record) == .mismatch)
    #expect(refusal(token, binding: [1]) == .mismatch)
    #expect(refusal(token, now: now + 14 * Self.day) == nil)
    #expect(refusal(token, now: now + 15 * Self.day) == .expired)
    let restored = TokenAuthority(keys: authority.keys, root: [], history: [8, 8])
    #expect(refusal(token, by: restored) == .otherHistory)
  }

  @Test func thePreviousKeyStillOpens() {
    let before = TokenAuthority(keys: [.init(id: 1, secret: [1])], root: [1], history: [7, 7])
    let token = before.resumeToken(.chat, position: 5, now: now)
    #expect(refusal(token) == nil)
    let later = TokenAuthority(
      keys: [.init(id: 3, secret: [3]), .init(id: 2, secret: [2])], root: [1], history: [7, 7])
    #expect(refusal(token, by: later) == .forged)
  }

  @Test("Rule 19: a page token belongs to the other arguments")
  func pageTokensBelongToTheirArguments() async throws {
    var keyset = KeysetWriter()
    keyset.int(-5)
    keyset.text("ä")
    var arguments = KeysetWriter()
    arguments.text("ListChats")
    let token = authority.pageToken(keyset: keyset, arguments: arguments)
    var reader = try authority.keyset(ofPageToken: token, arguments: arguments)
    #expect(reader.int() == -5)
    #expect(reader.text() == "ä")
    #expect(reader.isAtEnd)
    arguments.int(1)
    #expect(
      await reason { _ = try authority.keyset(ofPageToken: token, arguments: arguments) }
        == "PAGE_TOKEN_MISMATCH")
    let resume = authority.resumeToken(.chat, position: 5, now: now)
    #expect(
      await reason { _ = try authority.keyset(ofPageToken: resume, arguments: arguments) }
        == "BAD_PAGE_TOKEN")
    #expect(refusal(token) == .mismatch)
  }

  @Test func keysRotateOnlyAfterALifetime() async throws {
    let scratch = try Scratch()
    let clock = ManualClock()
    func ring() throws -> [Int64] {
      let store = try scratch.open { $0.clock = { clock.now } }
      defer { store.close() }
      return store.tokens.keys.map(\.id)
    }
    #expect(try ring() == [1])
    #expect(try ring() == [1])
    clock.advance(seconds: 15 * 86_400)
    #expect(try ring() == [2, 1])
    clock.advance(seconds: 15 * 86_400)
    #expect(try ring() == [3, 2])
  }
}
