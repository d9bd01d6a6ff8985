import Testing
import VencejoCrypto

@testable import VencejoStore

@Suite struct AuthTests {
  let scratch: Scratch
  let clock = ManualClock()
  let store: Store

  init() throws {
    let clock = self.clock
    scratch = try Scratch()
    store = try scratch.open { $0.clock = { clock.now } }
  }

  private func signUp(_ handle: String, email: String = "", requestID: String = "")
    async throws -> SignedIn
  {
    try await store.signUp(
      NewAccount(
        handle: handle, email: email, password: "password of \(handle.lowercased())",
        requestID: requestID))
  }

  @Test func theFirstAccountIsAdministratorAndOthersAreNot() async throws {
    let ana = try await signUp("Ana")
    let ben = try await signUp("ben")
    #expect(ana.account.handle == "ana")
    #expect(ana.account.role == .administrator)
    #expect(ben.account.role == .member)
    #expect(try await store.authenticate(ana.tokens.accessToken).userID == ana.account.id)
    try await store.write { try $0.grantAdministrator(handle: "BEN") }
    #expect(try await store.authenticate(ben.tokens.accessToken).role == .administrator)
  }

  /// A flood of sign-ins whose callers left must not keep one out who waits.
  @Test func nobodyHashesForCallersWhoLeft() async throws {
    let hasher = try PasswordHasher(.init(cost: 1 << 15, blockSize: 8, parallelism: 1))
    let flood = (0..<60).map { _ in
      Task { await reason { _ = try await hasher.hash("password") } }
    }
    for task in flood { task.cancel() }
    var dropped = 0
    for task in flood where await task.value == "CALL_GIVEN_UP" { dropped += 1 }
    // Two threads, and what they began before the last was cancelled.
    #expect(dropped >= 40)
    #expect(try await hasher.hash("password").hash.count == 32)
    hasher.close()
  }

  @Test func textsOfDevicesAreCut() {
    #expect(AccountRules.label("phone") == "phone")
    let marked = "e" + String(repeating: "\u{301}", count: 100_000)
    #expect(AccountRules.label(marked).utf8.count < 200)
  }

  @Test(arguments: [
    "a\u{1B}[2Jb", "a\nb", "a\u{2028}b", "a\u{85}b", "\u{202E}ana", "a\u{2066}b", "a\u{7F}",
  ])
  func namesAndTitlesKeepToTheirLine(_ text: String) async throws {
    #expect(
      await reason { _ = try AccountRules.displayName(text, handle: "ana") } == "BAD_DISPLAY_NAME")
    let token = try await signUp("ana").tokens.accessToken
    let ana = try await store.authenticate(token)
    #expect(
      await reason {
        try await store.write {
          _ = try $0.createChat(NewChat(kind: .group, title: text), by: ana.user)
        }
      } == "BAD_TITLE")
  }

  @Test func administratorsAreGrantedBesideARunningServer() async throws {
    _ = try await signUp("ana")
    let ben = try await signUp("ben")
    let granted = try Store.administer(directory: scratch.path) {
      try $0.grantAdministrator(handle: "Ben")
    }
    #expect(granted.id == ben.account.id)
    #expect(try await store.authenticate(ben.tokens.accessToken).role == .administrator)
    // The server's writer goes on.
    _ = try await signUp("cleo")
    #expect(
      await reason {
        _ = try Store.administer(directory: scratch.path) {
          try $0.grantAdministrator(handle: "nobody")
        }
      }
        == "USER_NOT_FOUND")
    #expect(
      await reason {
        _ = try Store.administer(directory: "/proc/nowhere") {
          try $0.grantAdministrator(handle: "ana")
        }
      }
        == "STORAGE_UNREADABLE")
  }

  @Test func aRemoteFirstAccountIsNoAdministrator() async throws {
    let ana = try await store.signUp(
      NewAccount(handle: "ana", password: "password", isLocal: false))
    #expect(ana.account.role == .member)
  }

  @Test(
    "Rule 29: handles are ASCII",
    arguments: [
      "", "a", ".ab", "-ab", "a b", "añb", "ab!", String(repeating: "a", count: 33), "日本",
      "K\u{212A}",
    ])
  func refusesHandle(_ handle: String) async throws {
    #expect(await reason { _ = try await signUp(handle) } == "BAD_HANDLE")
  }

  @Test(arguments: ["ab", "0a", "a._-", String(repeating: "Z", count: 32)])
  func takesHandle(_ handle: String) async throws {
    #expect(try await signUp(handle).account.handle == handle.lowercased())
  }

  @Test func refusesWhatIsTakenOrWeak() async throws {
    _ = try await signUp("ana", email: "Ana@Example.org")
    #expect(await reason { _ = try await signUp("ANA") } == "HANDLE_TAKEN")
    #expect(await reason { _ = try await signUp("ben", email: "ana@example.ORG") } == "EMAIL_TAKEN")
    #expect(await reason { _ = try await signUp("ben", email: "nonsense") } == "BAD_EMAIL")
    #expect(
      await reason {
        _ = try await store.signUp(NewAccount(handle: "ben", password: "short"))
      } == "WEAK_PASSWORD")
  }

  @Test func aRepeatedSignUpIsTheSameAccount() async throws {
    let first = try await signUp("ana", requestID: "r1")
    let again = try await signUp("ana", requestID: "r1")
    #expect(again.account == first.account)
    #expect(again.session.id != first.session.id)
    #expect(await reason { _ = try await signUp("ben", requestID: "r1") } == "REQUEST_ID_REUSED")
  }

  @Test func signsInByHandleOrAddressWithTheRightPasswordOnly() async throws {
    let ana = try await signUp("ana", email: "ana@example.org")
    for identifier in ["ana", " ANA ", "Ana@Example.ORG"] {
      let signedIn = try await store.signIn(
        identifier: identifier, password: "password of ana", device: Device())
      #expect(signedIn.account == ana.account)
    }
    for (identifier, password) in [
      ("ana", "wrong"), ("ana", ""), ("nobody", "password of ana"), ("", ""),
    ] {
      #expect(
        await reason {
          _ = try await store.signIn(identifier: identifier, password: password, device: Device())
        } == "BAD_CREDENTIAL")
    }
  }

  @Test func accessTokensExpireAndSessionsToo() async throws {
    let ana = try await signUp("ana")
    clock.advance(seconds: 15 * 60 - 1)
    _ = try await store.authenticate(ana.tokens.accessToken)
    clock.advance(seconds: 1)
    #expect(
      await reason { _ = try await store.authenticate(ana.tokens.accessToken) }
        == "ACCESS_TOKEN_EXPIRED")
    let renewed = try await store.refresh(ana.tokens.refreshToken)
    _ = try await store.authenticate(renewed.accessToken)
    clock.advance(seconds: 91 * 86_400)
    #expect(
      await reason { _ = try await store.refresh(renewed.refreshToken) } == "SESSION_EXPIRED")
  }

  @Test func aReplacedRefreshTokenIsForgivenForAMinute() async throws {
    let ana = try await signUp("ana")
    let first = try await store.refresh(ana.tokens.refreshToken)
    clock.advance(seconds: 60)
    let again = try await store.refresh(ana.tokens.refreshToken)
    #expect(again.refreshToken == first.refreshToken)
    _ = try await store.authenticate(first.accessToken)
    _ = try await store.authenticate(again.accessToken)
    clock.advance(seconds: 1)
    #expect(
      await reason { _ = try await store.refresh(ana.tokens.refreshToken) } == "SESSION_REVOKED")
    #expect(
      await reason { _ = try await store.refresh(first.refreshToken) } == "SESSION_REVOKED")
    #expect(
      await reason { _ = try await store.authenticate(again.accessToken) } == "SESSION_REVOKED")
  }

  @Test func reuseAfterTheSuccessorWasUsedRevokesAtOnce() async throws {
    let ana = try await signUp("ana")
    let first = try await store.refresh(ana.tokens.refreshToken)
    let second = try await store.refresh(first.refreshToken)
    #expect(second.refreshToken != first.refreshToken)
    #expect(
      await reason { _ = try await store.refresh(ana.tokens.refreshToken) } == "SESSION_REVOKED")
    #expect(
      await reason { _ = try await store.authenticate(second.accessToken) } == "SESSION_REVOKED")
  }

  @Test func signingOutEndsOneSessionOrAll() async throws {
    let ana = try await signUp("ana")
    let phone = try await store.signIn(
      identifier: "ana", password: "password of ana", device: Device(label: "phone"))
    let principal = try await store.authenticate(phone.tokens.accessToken)
    let revoked = Shared<[Int64]>([])
    store.observe { batch in
      for event in batch.transactions.joined() where event.kind == .sessionsRevoked {
        revoked.update { $0 += (event.payload as? RevokedSessions)?.sessions ?? [] }
      }
    }
    try await store.write { try $0.signOut(principal, allSessions: false) }
    #expect(revoked.value == [phone.session.key])
    #expect(
      await reason { _ = try await store.authenticate(phone.tokens.accessToken) }
        == "SESSION_REVOKED")
    let other = try await store.authenticate(ana.tokens.accessToken)
    try await store.write { try $0.signOut(other, allSessions: true) }
    #expect(
      await reason { _ = try await store.refresh(ana.tokens.refreshToken) } == "SESSION_REVOKED")
  }

  @Test(arguments: ["", "x", "Bearer", String(repeating: "a", count: 4096), "💥"])
  func nonsenseIsNoToken(_ token: String) async throws {
    #expect(await reason { _ = try await store.authenticate(token) } == "BAD_CREDENTIAL")
    #expect(await reason { _ = try await store.refresh(token) } == "BAD_CREDENTIAL")
  }

  @Test func noSecretLiesInTheFiles() async throws {
    let ana = try await signUp("ana")
    store.close()
    let bytes = try scratch.read("vencejo.sqlite")
    for secret in ["password of ana", ana.tokens.accessToken, ana.tokens.refreshToken] {
      #expect(!bytes.contains(Array(secret.utf8)))
    }
    #expect(bytes.contains(Array("ana".utf8)))
  }
}
