import Glibc
import Testing

/// Rounds of random acts of the record store, told by the same variables as ``RoundTests``.
@Suite struct RecordRoundTests {
  private static func number(_ name: String, _ otherwise: UInt64) -> UInt64 {
    getenv(name).flatMap { UInt64(String(cString: $0)) } ?? otherwise
  }

  @Test func everyFeedEndsWhereTheServerIs() async throws {
    let first = Self.number("VENCEJO_MODEL_SEED", 1)
    let rounds = Self.number("VENCEJO_MODEL_ROUNDS", 30)
    for seed in first..<first + rounds {
      let round = try RecordRound(seed: seed, users: 4)
      try await round.run(operations: 240)
      guard round.faults.isEmpty else {
        for fault in round.faults.prefix(6) { Issue.record("\(fault)") }
        print("seed \(seed), the last acts:\n  " + round.journal.joined(separator: "\n  "))
        return
      }
    }
  }
}
