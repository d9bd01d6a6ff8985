public import VencejoCrypto
import VencejoSQLite

/// A transaction of the log, as far as one user may see it.
public struct LogEntry: Sendable, Hashable {
  /// Position after the transaction.
  public let position: Int64
  public let commitTime: Int64
  public let events: [ChatEvent]
  /// Of one event that others are told alike: what they made of it.
  package let shared: SharedEntry?

  public static func == (left: Self, right: Self) -> Bool {
    left.position == right.position && left.commitTime == right.commitTime
      && left.events == right.events
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(position) }
}

/// A stretch of the log for one user.
public struct LogPage: Sendable {
  public let entries: [LogEntry]
  /// The log has been looked through up to here, whether or not anything concerned the user.
  public let position: Int64
  /// Nothing was behind ``position`` in this snapshot.
  public let isAtHead: Bool
  /// Whom the user blocks and whether they hide receipts, at this snapshot; when ``isAtHead``.
  public let blocked: Set<Int64>
  /// Whom the user blocks or ever blocked: some of their messages are not there.
  public let everBlocked: Set<Int64>
  /// The user's chats at this snapshot by internal key, when ``isAtHead``: what a live stream
  /// listens to from ``position`` on. Each with the sequence from which on nothing is kept from
  /// the user.
  public let chats: [Int64: Int64]
  public let hidesReceipts: Bool
}

extension ReadTransaction {
  /// Events looked at in one page; a page ends with the transaction in which it reaches this.
  static let scanLimit = 2000

  /// What happened after `position` in the chats of `user`, or in `only` those of them.
  ///
  /// Events are rendered from the rows of this snapshot and filtered by the interval of
  /// positions in which the user was a member, not by today's membership.
  public func chatLog(
    for user: Int64, after position: Int64, limit: Int, chats only: Set<UUID>? = nil
  ) throws(StoreError) -> LogPage {
    let head = try head()
    // The way to the next event costs a look into each chat: with very many it is taken only once
    // there was nothing for a while.
    let skips = try !isInMany(user)
    let start = try skips ? firstRelevant(for: user, after: position, head: head) : position
    var (scanned, last) = try scan(for: user, after: start, limit: limit)
    if !skips, last < head, !scanned.contains(where: \.isVisible) {
      let start = try firstRelevant(for: user, after: last, head: head)
      (scanned, last) = try scan(for: user, after: start, limit: limit)
    }

    let hidesReceipts = try hidesReceipts(user)
    let everBlocked = try everBlocked(by: user)
    var reading = sharedEntries.map { SharedReading(entries: $0, everBlocked: everBlocked) }
    var entries: [LogEntry] = []
    var pending: [ChatEvent] = []
    var shared: SharedEntry?
    for event in scanned {
      if event.isVisible {
        if event.kind == .messageCreated {
          if let (message, entry) = try newMessage(event, for: user, only, &reading) {
            pending.append(.messageCreated(message))
            shared = entry
          }
        } else if let rendered = try render(event, for: user, only, hidesReceipts) {
          pending.append(rendered)
        }
      }
      guard event.isLast else { continue }
      if !pending.isEmpty {
        entries.append(
          LogEntry(
            position: event.position, commitTime: event.commitTime, events: pending,
            shared: pending.count == 1 ? shared : nil))
      }
      pending = []
      shared = nil
    }
    let isAtHead = last >= head
    let live = isAtHead ? try liveChats(of: user, only) : [:]
    return LogPage(
      entries: entries, position: last, isAtHead: isAtHead,
      blocked: isAtHead ? try blocked(by: user) : [],
      everBlocked: isAtHead ? everBlocked : [], chats: live,
      hidesReceipts: hidesReceipts)
  }

  struct Scanned {
    let position: Int64, commitTime: Int64, isLast: Bool, isVisible: Bool
    let kind: EventKind, keys: [UInt8], chat: Int64, chatID: UUID?
  }

  private func isInMany(_ user: Int64) throws(StoreError) -> Bool {
    try first(
      "SELECT count(*) FROM (SELECT 1 FROM member WHERE user_id = ? LIMIT 1001)", user
    ) { $0.int(0) } ?? 0 > 1000
  }

  /// Where to start: other people's events at the beginning of a long way are skipped by the
  /// indexes over chats and users.
  private func firstRelevant(for user: Int64, after position: Int64, head: Int64)
    throws(StoreError) -> Int64
  {
    guard head - position > 500 else { return position }
    let next = try first(
      """
      SELECT min(p) FROM (
        SELECT (SELECT min(e.pos) FROM event e WHERE e.chat_id = m.chat_id AND e.pos > ?1) AS p
        FROM member m JOIN chat c USING (chat_id) WHERE m.user_id = ?2 AND c.last_pos > ?1
        UNION ALL
        SELECT min(pos) FROM event WHERE user_id = ?2 AND pos > ?1)
      """, position, user
    ) { $0.optionalInt(0) }
    guard let next, let next else { return head }
    return next - 1
  }

  private func scan(for user: Int64, after position: Int64, limit: Int) throws(StoreError)
    -> (events: [Scanned], last: Int64)
  {
    var scanned: [Scanned] = []
    var last = position
    var looked = 0
    var visible = 0
    try each(
      """
      SELECT e.pos, e.commit_us, e.last, e.kind, e.keys, e.chat_id, c.uuid,
        e.user_id IS ?1
          OR (m.from_pos IS NOT NULL AND e.pos >= m.from_pos
              AND (m.to_pos IS NULL OR e.pos <= m.to_pos)
              -- Of a deleted chat only its end is told: kind 17 is chatRemoved.
              AND (c.delete_us IS NULL OR e.kind = 17))
      FROM event e LEFT JOIN member m ON m.chat_id = e.chat_id AND m.user_id = ?1
        LEFT JOIN chat c ON c.chat_id = e.chat_id
      WHERE e.pos > ?2 ORDER BY e.pos
      """, [user, position]
    ) { row in
      let isVisible = row.bool(7)
      let isLast = row.bool(2)
      scanned.append(
        Scanned(
          position: row.int(0), commitTime: row.int(1), isLast: isLast, isVisible: isVisible,
          kind: EventKind(rawValue: row.int(3)), keys: isVisible ? row.blob(4) : [],
          chat: row.int(5), chatID: row.uuid(6)))
      looked += 1
      if isVisible { visible += 1 }
      guard isLast else { return true }
      last = row.int(0)
      return looked < Self.scanLimit && visible < limit
    }
    return (scanned, last)
  }

  /// The chats a live stream listens to, with the sequence from which on nothing is hidden.
  ///
  /// One may be in ten thousand: so little as can be is asked of each.
  private func liveChats(of user: Int64, _ only: Set<UUID>?) throws(StoreError) -> [Int64: Int64] {
    var result: [Int64: Int64] = [:]
    try each(
      """
      SELECT chat_id, visible_from FROM member
      WHERE user_id = ? AND state = 1
        AND chat_id NOT IN (SELECT chat_id FROM chat WHERE delete_us IS NOT NULL)
      """, [user]
    ) {
      result[$0.int(0)] = $0.int(1)
      return true
    }
    if let only {
      var wanted: [Int64: Int64] = [:]
      for id in only {
        let key = try first("SELECT chat_id FROM chat WHERE uuid = ?", id) { $0.int(0) }
        if let key { wanted[key] = result[key] }
      }
      result = wanted
    }
    try each(
      """
      SELECT chat_id, max(last_seq) + 1 FROM message_hidden WHERE user_id = ? GROUP BY chat_id
      """, [user]
    ) {
      let chat = $0.int(0)
      if let from = result[chat] { result[chat] = max(from, $0.int(1)) }
      return true
    }
    return result
  }
}
