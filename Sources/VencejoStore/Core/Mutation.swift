import Glibc

/// Faults put in on purpose, so that the model in Tests/Model can show that it finds them. In debug
/// builds the variable `VENCEJO_MUTATION` names one; release builds have none, but for those made
/// with `-DTESTING`.
package enum Mutation: String, Sendable, CaseIterable {
  /// A live event is not sent.
  case dropEvent = "drop-event"
  /// A live event is sent twice.
  case repeatEvent = "repeat-event"
  /// Messages are shown to those who left.
  case skipMembership = "skip-membership"
  /// Messages of the blocked are shown.
  case skipBlock = "skip-block"
  /// Deleted messages count as unread.
  case countDeleted = "count-deleted"
  /// A resume token is one position behind, or ahead.
  case tokenBehind = "token-behind"
  case tokenAhead = "token-ahead"
  /// Nobody hears of records that left a share.
  case dropLeaving = "drop-leaving"
  /// Tokens from before a share was given or taken still count.
  case keepTokens = "keep-tokens"
  /// What is below a record does not move with it.
  case skipSubtree = "skip-subtree"
  /// A change of a record fires twice.
  case fireTwice = "fire-twice"
  /// A page of a zone's changes ends one change late.
  case feedAhead = "feed-ahead"

  #if DEBUG || TESTING
    /// Those that this build knows.
    package static var names: [String] { allCases.map(\.rawValue) }
    private static let chosen = getenv("VENCEJO_MUTATION").flatMap {
      Mutation(rawValue: String(cString: $0))
    }
    package var isOn: Bool { Self.chosen == self }
  #else
    package static var names: [String] { [] }
    package var isOn: Bool { false }
  #endif
}
