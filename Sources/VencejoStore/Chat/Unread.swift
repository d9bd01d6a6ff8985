public import VencejoCrypto
import VencejoSQLite

extension ReadTransaction {
  /// What is unread after a marker and up to a sequence: always counted from the messages,
  /// never kept, so that it cannot drift.
  func unread(_ chat: Int64, _ user: Int64, after marker: Int64, to last: Int64)
    throws(StoreError) -> UnreadState
  {
    guard marker < last else { return .none }
    let found = try first(
      """
      SELECT count(*), min(seq) FROM (
        SELECT seq FROM message
        WHERE chat_id = ? AND seq > ? AND seq <= ? AND sender_id IS NOT NULL AND sender_id <> ?
        ORDER BY seq LIMIT 1000)
      """, chat, marker, last, user
    ) { (count: Int($0.int(0)), first: $0.int(1)) }
    guard let found else { return .none }
    return UnreadState(
      count: min(found.count, UnreadState.cap), isCapped: found.count > UnreadState.cap,
      firstSequence: found.first)
  }

  /// Unread messages of all the user's chats together.
  public func totalUnread(of user: Int64) throws(StoreError) -> Int {
    let total = try first(
      """
      SELECT sum((SELECT count(*) FROM (
          SELECT 1 FROM message x
          WHERE x.chat_id = m.chat_id AND x.seq > m.read_seq AND x.seq >= m.visible_from
            AND x.sender_id IS NOT NULL AND x.sender_id <> m.user_id
          LIMIT 999)))
      FROM member m JOIN chat c USING (chat_id)
      WHERE m.user_id = ? AND m.state = 1 AND c.last_seq > m.read_seq
      """, user
    ) { Int($0.int(0)) }
    return total ?? 0
  }
}

extension WriteTransaction {
  /// Moves the caller's marker forward, never back and never past the newest message.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `BAD_SEQUENCE`.
  public func markRead(_ chat: UUID, upTo sequence: Int64, isPrivate: Bool, by user: Int64)
    throws(StoreError) -> (unread: UnreadState, readSequence: Int64)
  {
    guard sequence >= 0 else {
      throw .invalid("up_to_sequence", "BAD_SEQUENCE", "a sequence is not negative")
    }
    let place = try place(chat, of: user)
    let target = max(place.readSequence, min(sequence, place.upperEnd))
    let moved = target > place.readSequence
    if moved {
      try run(
        "UPDATE member SET read_seq = ? WHERE chat_id = ? AND user_id = ?", target, place.chat,
        user)
    }
    // A marker moved in private may be shown later.
    let told =
      try isPrivate
      ? 0
      : run(
        "UPDATE member SET shown_seq = ? WHERE chat_id = ? AND user_id = ? AND shown_seq < ?",
        target, place.chat, user, target)
    if told > 0, place.kind != .own, place.memberCount <= ChatLimits.receiptMembers,
      let reader = try account(key: user)
    {
      var keys = KeysetWriter()
      keys.raw(reader.id.bytes)
      keys.int(target)
      let position = append(
        .receiptMoved, chat: place.chat, keys: keys.bytes,
        payload: ReadMarker(chat: chat, user: reader.id, sequence: target))
      try run("UPDATE chat SET last_pos = ? WHERE chat_id = ?", position, place.chat)
    }
    if moved {
      appendUnreadChanged(chat: place.chat, user: user, read: target, last: place.upperEnd)
    }
    return (
      try unread(place.chat, user, after: target, to: place.upperEnd), target
    )
  }

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
