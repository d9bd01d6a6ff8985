import Glibc
import TestSupport
import Testing
import VencejoAPI
import VencejoProtobuf
import VencejoRPC

/// Rounds of random acts against a model that shares nothing with the server.
///
/// `VENCEJO_MODEL_ROUNDS` says how many rounds (3 without), `VENCEJO_MODEL_SEED` from which seed
/// on. A fault names its seed: the same seed does the same again.
@Suite struct RoundTests {
  private static func number(_ name: String, _ otherwise: UInt64) -> UInt64 {
    getenv(name).flatMap { UInt64(String(cString: $0)) } ?? otherwise
  }

  @Test func everybodyAgreesInTheEnd() async throws {
    let first = Self.number("VENCEJO_MODEL_SEED", 1)
    let rounds = Self.number("VENCEJO_MODEL_ROUNDS", 3)
    for seed in first..<first + rounds {
      let round = try Round(seed: seed, users: 6)
      try await round.run(operations: 300)
      guard round.faults.isEmpty else {
        for fault in round.faults.prefix(6) { Issue.record("\(fault)") }
        print("seed \(seed), the last acts:\n  " + round.journal.joined(separator: "\n  "))
        return
      }
    }
    // A few rounds may have had no luck.
    guard rounds >= 10 else { return }
    #expect(try MethodsCalled.shared.missing() == [], "methods that no round called")
  }

  /// Against a program that does not do as it is told every round would be luck: time would not
  /// pass, nothing would die.
  @Test func theServerDoesAsItIsTold() async throws {
    var template = Array("/tmp/vencejo-model-XXXXXX".utf8CString)
    let root = String(cString: try #require(mkdtemp(&template)))
    defer { TemporaryFolder.remove(root) }
    let clock = try SharedClock(path: "\(root)/clock")
    for word in ["nonsense=1", "cost", "cost=much", "crash=after-commit", "clock=\(root)/none"] {
      #expect(throws: ProcessWorld.NoServer.self, "\(word)") {
        _ = try ProcessWorld(root: root, clock: clock, settings: word)
      }
    }
    // The first commit that logs something, which is the first chat, is its end.
    let world = try ProcessWorld(root: root, clock: clock, crash: ("after-commit", 1))
    let client = Auth.AuthClient(try world.channel())
    let before = try await client.getServerInfo(.init()).serverTime?.seconds ?? 0
    clock.advance(seconds: 1_000_000)
    let after = try await client.getServerInfo(.init()).serverTime?.seconds ?? 0
    #expect(after - before >= 1_000_000 && after - before < 1_001_000)
    let user = try await client.signUp(
      .with {
        $0.handle = "user"
        $0.password = "password"
      })
    #expect(!world.hasCrashed)
    await #expect(throws: RPCError.self) {
      try await Chat.ChatClient(try world.channel()).createChat(
        .with { $0.chat = .with { $0.kind = .selfValue } },
        .bearer(user.tokens?.accessToken ?? ""))
    }
    let deadline = ContinuousClock.now + .seconds(20)
    while !world.hasCrashed, ContinuousClock.now < deadline { await Task.yield() }
    #expect(world.hasCrashed)
    await world.end()
  }
}
