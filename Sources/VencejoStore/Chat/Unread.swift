import VencejoSQLite

/// What is unread over all chats.
public struct UnreadSummary: Sendable, Hashable {
  public let chats: Int
  public let messages: Int
  public let mentions: Int
}

extension ReadTransaction {
  private static let unreadQuery = """
    SELECT count(*), min(seq) FROM (
      SELECT m.seq \(visibleMessages(.between))
        AND m.sender_id IS NOT NULL AND m.sender_id <> ?1
        AND \(Mutation.countDeleted.isOn ? "1" : "m.delete_us IS NULL")
      ORDER BY m.seq LIMIT 1000)
    """

  private static let mentionQuery = """
    SELECT count(*) FROM (
      SELECT m.seq \(visibleMessages(.between))
        AND m.sender_id IS NOT NULL AND m.sender_id <> ?1 AND m.delete_us IS NULL
        AND m.seq IN (SELECT seq FROM mention
          WHERE chat_id = ?2 AND user_id IN (0, ?1) AND seq > ?4 AND seq <= ?5)
      LIMIT 999)
    """

  private static let anyUnreadQuery = """
    SELECT 1 \(visibleMessages(.between)) AND m.sender_id IS NOT NULL
      AND m.sender_id <> ?1 AND m.delete_us IS NULL LIMIT 1
    """

  /// Whether ``unread(_:_:after:to:)`` would count anything.
  func hasUnread(_ chat: Int64, _ user: Int64, after marker: Int64, to last: Int64)
    throws(StoreError) -> Bool
  {
    guard marker < last else { return false }
    var found = false
    try each(dynamic: Self.anyUnreadQuery, [user, chat, now, marker, last]) { _ in
      found = true
      return false
    }
    return found
  }

  /// What is unread after a marker and up to a sequence: always counted from the messages,
  /// never kept, so that it cannot drift.
  func unread(_ chat: Int64, _ user: Int64, after marker: Int64, to last: Int64)
    throws(StoreError) -> UnreadState
  {
    guard marker < last else { return .none }
    let values: [any SQLiteBindable] = [user, chat, now, marker, last]
    var found: (count: Int, first: Int64) = (0, 0)
    try each(dynamic: Self.unreadQuery, values) {
      found = (Int($0.int(0)), $0.int(1))
      return false
    }
    guard found.count > 0 else { return .none }
    var state = UnreadState(
      count: min(found.count, UnreadState.cap), isCapped: found.count > UnreadState.cap,
      firstSequence: found.first)
    try each(dynamic: Self.mentionQuery, values) {
      state.mentions = Int($0.int(0))
      return false
    }
    return state
  }

  /// Unread messages of all the user's chats together, up to ``UnreadState/cap``: it is counted
  /// anew with each marker that moves, and ends there, however many there are.
  public func totalUnread(of user: Int64) throws(StoreError) -> Int {
    var count = 0
    try each(dynamic: Self.totalQuery, [user, now]) {
      count = Int($0.int(0))
      return false
    }
    return count
  }

  /// The counts of all the user's chats together, in one query: with a query for each chat the
  /// queries themselves cost most.
  public func unreadSummary(of user: Int64) throws(StoreError) -> UnreadSummary {
    var summary = (chats: 0, messages: 0, mentions: 0)
    try each(dynamic: Self.summaryQuery, [user, now]) {
      summary = (Int($0.int(0)), Int($0.int(1)), Int($0.int(2)))
      return false
    }
    return UnreadSummary(
      chats: summary.chats, messages: summary.messages, mentions: summary.mentions)
  }

  private static let totalQuery = """
    SELECT count(*) FROM (
      SELECT 1 FROM member me CROSS JOIN chat c USING (chat_id) CROSS JOIN message m
      WHERE me.user_id = ?1 AND me.state = 1 AND c.last_seq > me.read_seq AND c.delete_us IS NULL
        AND \(isUnread) LIMIT \(UnreadState.cap))
    """

  /// What is unread of the chat of `me` and `c`.
  private static func unreadOf(_ condition: String) -> String {
    "SELECT 1 FROM message m WHERE \(isUnread) \(condition) LIMIT \(UnreadState.cap)"
  }

  /// The same rule as ``visibleMessages(_:)``, with ?2 for the time.
  private static let isUnread = """
    m.chat_id = me.chat_id AND m.seq > max(me.read_seq, me.visible_from - 1)
      AND m.seq <= c.last_seq AND m.sender_id IS NOT NULL AND m.sender_id <> ?1
      AND \(Mutation.countDeleted.isOn ? "1" : "m.delete_us IS NULL")
      AND (m.expire_us IS NULL OR m.expire_us > ?2)
      AND NOT EXISTS (SELECT 1 FROM message_hidden h WHERE h.user_id = ?1
        AND h.chat_id = m.chat_id AND h.first_seq <= m.seq AND h.last_seq >= m.seq)
      AND NOT EXISTS (SELECT 1 FROM block b WHERE \(Mutation.skipBlock.isOn ? "0 AND" : "") b.user_id = ?1 AND b.blocked_id = m.sender_id
        AND b.from_key < m.message_key AND (b.to_key IS NULL OR b.to_key >= m.message_key))
    """

  private static let summaryQuery = """
    SELECT ifnull(sum(n > 0), 0), ifnull(sum(n), 0), ifnull(sum(mentions), 0) FROM (
      SELECT (SELECT count(*) FROM (\(unreadOf("")))) AS n,
        CASE WHEN EXISTS (SELECT 1 FROM mention WHERE chat_id = me.chat_id
          AND user_id IN (0, ?1) AND seq > me.read_seq)
        THEN (SELECT count(*) FROM (\(unreadOf("""
          AND EXISTS (SELECT 1 FROM mention t WHERE t.chat_id = m.chat_id
            AND t.user_id IN (0, ?1) AND t.seq = m.seq)
          """)))) ELSE 0 END AS mentions
      FROM member me JOIN chat c USING (chat_id)
      WHERE me.user_id = ?1 AND me.state = 1 AND c.last_seq > me.read_seq AND c.delete_us IS NULL)
    """
}

extension WriteTransaction {
  /// Logs that a user's count changed. The event carries the marker and the newest sequence of
  /// its moment, so that a replay tells the count as it was then: a client that goes on adding
  /// the messages after it ends with the right one.
  func appendUnreadChanged(chat: Int64, user: Int64, read: Int64, last: Int64) {
    var keys = KeysetWriter()
    keys.int(chat)
    keys.int(read)
    keys.int(last)
    append(.unreadChanged, user: user, keys: keys.bytes)
  }
}
