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
      SELECT m.seq \(visibleMessages) AND m.seq > ?4 AND m.seq <= ?5
        AND m.sender_id IS NOT NULL AND m.sender_id <> ?1
        AND \(Mutation.countDeleted.isOn ? "1" : "m.delete_us IS NULL")
      ORDER BY m.seq LIMIT 1000)
    """

  private static let mentionQuery = """
    SELECT count(*) FROM (
      SELECT m.seq \(visibleMessages) AND m.seq > ?4 AND m.seq <= ?5
        AND m.sender_id IS NOT NULL AND m.sender_id <> ?1 AND m.delete_us IS NULL
        AND m.seq IN (SELECT seq FROM mention
          WHERE chat_id = ?2 AND user_id IN (0, ?1) AND seq > ?4 AND seq <= ?5)
      LIMIT 999)
    """

  private static let anyUnreadQuery = """
    SELECT 1 \(visibleMessages) AND m.seq > ?4 AND m.seq <= ?5 AND m.sender_id IS NOT NULL
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

  /// Unread messages of all the user's chats together.
  public func totalUnread(of user: Int64) throws(StoreError) -> Int {
    try unreadSummary(of: user).messages
  }

  /// The counts of all the user's chats together.
  public func unreadSummary(of user: Int64) throws(StoreError) -> UnreadSummary {
    let behind = try all(
      """
      SELECT c.chat_id, m.read_seq, c.last_seq FROM member m JOIN chat c USING (chat_id)
      WHERE m.user_id = ? AND m.state = 1 AND c.last_seq > m.read_seq AND c.delete_us IS NULL
      """, user
    ) { ($0.int(0), $0.int(1), $0.int(2)) }
    var (chats, messages, mentions) = (0, 0, 0)
    for (chat, read, last) in behind {
      let state = try unread(chat, user, after: read, to: last)
      if state.count > 0 { chats += 1 }
      messages += state.count
      mentions += state.mentions
    }
    return UnreadSummary(chats: chats, messages: messages, mentions: mentions)
  }
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
