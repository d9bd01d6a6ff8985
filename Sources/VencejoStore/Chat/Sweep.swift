import VencejoCrypto
import VencejoSQLite

extension WriteTransaction {
  /// Takes the text of up to 500 expired messages from the disk and tells their readers; answers
  /// whether there may be more.
  ///
  /// Nobody saw them any more since their time came: every read looks at it.
  @discardableResult
  public func sweepExpired() throws(StoreError) -> Bool {
    let expired = try all(
      """
      SELECT m.message_key, m.chat_id, m.seq, c.uuid, m.kind, m.body, m.content, m.sender_id
      FROM message m JOIN chat c USING (chat_id)
      WHERE m.expire_us <= ? AND m.is_purged = 0 LIMIT 500
      """, now
    ) { row in
      (
        key: row.int(0), chat: row.int(1), sequence: row.int(2), id: row.uuid(3),
        columns: BodyColumns(kind: row.int(4), words: row.text(5), content: row.optionalBlob(6)),
        sender: row.optionalInt(7)
      )
    }
    var byChat: [Int64: (id: UUID?, sequences: [Int64])] = [:]
    // Whose own message moved their marker: a replay has lost it, and tells the marker instead.
    var markers: [Int64: [(user: Int64, read: Int64)]] = [:]
    for message in expired {
      try forget(
        message.columns.body?.mentions ?? [], chat: message.chat, sequence: message.sequence)
      try run(
        "UPDATE message SET body = '', content = NULL, is_purged = 1 WHERE message_key = ?",
        message.key)
      try letGo(ofMessage: message.key)
      try run("DELETE FROM reaction WHERE message_key = ?", message.key)
      try run("DELETE FROM poll_vote WHERE message_key = ?", message.key)
      try run("DELETE FROM pin WHERE chat_id = ? AND seq = ?", message.chat, message.sequence)
      byChat[message.chat, default: (message.id, [])].sequences.append(message.sequence)
      let isMarker = try first(
        "SELECT 1 FROM member WHERE chat_id = ? AND user_id = ? AND read_seq = ? AND state = 1",
        message.chat, message.sender, message.sequence
      ) { _ in true }
      if let sender = message.sender, isMarker == true {
        markers[message.chat, default: []].append((sender, message.sequence))
      }
    }
    for (chat, (id, sequences)) in byChat.sorted(by: { $0.key < $1.key }) {
      guard let id else { continue }
      let ranges = Self.ranges(sequences)
      var keys = KeysetWriter()
      keys.int(DeletionScope.expired.rawValue)
      keys.raw([])
      for range in ranges {
        keys.int(range.first)
        keys.int(range.last)
      }
      try appendShared(
        .messagesDeleted, chat: chat, keys,
        SharedEvent(
          event: .messagesDeleted(
            Deletion(chat: id, ranges: ranges, scope: .expired, actor: nil))))
      try appendRecount(chat, upTo: ranges.last?.last ?? 0)
      for (user, read) in markers[chat] ?? [] {
        let last = try first("SELECT last_seq FROM chat WHERE chat_id = ?", chat) { $0.int(0) }
        appendUnreadChanged(chat: chat, user: user, read: read, last: last ?? read)
      }
    }
    return expired.count == 500
  }

  /// Takes words out of the search index that no message holds any more: FTS5 keeps deleted ones
  /// until it merges its parts. It rewrites the index in steps of about `pages` pages, so that
  /// messages are sent between them; answers whether there is more to do. The first step of a
  /// round says so ("The 'merge' command": a negative number makes all parts one level).
  @discardableResult
  public func optimizeSearch(isFirst: Bool, pages: Int64 = 500) throws(StoreError) -> Bool {
    let before = connection.totalChanges
    try run(
      "INSERT INTO message_fts(message_fts, rank) VALUES ('merge', ?)", isFirst ? -pages : pages)
    // SQLite's documentation: less than two changes mean that nothing was left to merge.
    return connection.totalChanges - before >= 2
  }

  /// Takes pins away whose time is over; answers whether there may be more.
  @discardableResult
  public func sweepPins() throws(StoreError) -> Bool {
    let over = try all(
      """
      SELECT p.chat_id, p.seq, c.uuid FROM pin p JOIN chat c USING (chat_id)
      WHERE p.until_us <= ? LIMIT 100
      """, now
    ) { (chat: $0.int(0), sequence: $0.int(1), id: $0.uuid(2)) }
    for pin in over {
      try run("DELETE FROM pin WHERE chat_id = ? AND seq = ?", pin.chat, pin.sequence)
      let member = try first(
        "SELECT user_id FROM member WHERE chat_id = ? AND state = 1 LIMIT 1", pin.chat
      ) { $0.int(0) }
      guard let id = pin.id, let member else { continue }
      let place: Place
      do throws(StoreError) { place = try self.place(id, of: member) } catch { continue }
      if try message(sequence: pin.sequence, place) != nil {
        _ = try updated(pin.sequence, place, .pinned)
      }
    }
    return over.count == 100
  }

  /// Takes up to 500 messages of deleted chats from the disk; answers whether there may be more.
  ///
  /// The newest row of all stays: blocks go by keys, and SQLite would give its key again.
  @discardableResult
  public func purgeDeletedChats() throws(StoreError) -> Bool {
    let gone = try all(
      """
      SELECT m.message_key FROM chat c JOIN message m USING (chat_id)
      WHERE c.delete_us IS NOT NULL AND m.message_key < (SELECT max(message_key) FROM message)
      LIMIT 500
      """
    ) { $0.int(0) }
    for message in gone {
      try letGo(ofMessage: message)
      try run("DELETE FROM message WHERE message_key = ?", message)
    }
    return gone.count == 500
  }
}
