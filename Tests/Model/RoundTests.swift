import Glibc
import Testing

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
}
