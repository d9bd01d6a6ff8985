/// What an entry of the log tells.
public struct EventKind: RawRepresentable, Sendable, Hashable {
  public let rawValue: Int64
  public init(rawValue: Int64) { self.rawValue = rawValue }
}

/// One entry of the event log, as it was committed.
public struct LoggedEvent: Sendable {
  /// Place in the log; one more than the entry before it. Never on the wire but in tokens.
  public let position: Int64
  /// The chat it belongs to, by internal key; at most one of the three targets is set.
  public let chat: Int64?
  /// The record zone it belongs to, by internal key.
  public let zone: Int64?
  /// The one user it is for, by internal key.
  public let user: Int64?
  public let kind: EventKind
  /// Keys of what it speaks of, in a form of its kind; never rendered text.
  public let keys: [UInt8]
  /// The last event of its transaction: after it, state is consistent.
  public let isLast: Bool
  /// Microseconds since the Unix epoch.
  public let commitTime: Int64
  /// In memory only: what the operation knows already, so that nobody reads it again. Nil for
  /// events read from the log.
  public let payload: (any Sendable)?
}

/// What one commit made true; handed to the observer in the order of commits.
public struct CommittedBatch: Sendable {
  /// Position of the log before this batch.
  public let base: Int64
  /// Position of the log after it.
  public let head: Int64
  /// Events of one operation together, in the order of their positions.
  public let transactions: [[LoggedEvent]]
}
