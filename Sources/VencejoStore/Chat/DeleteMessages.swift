public import VencejoCrypto
import VencejoSQLite

extension WriteTransaction {
  /// Deletes messages for everyone, or for the caller alone; all or none. Answers how many.
  ///
  /// - Throws: `BAD_RANGE`, `LIMIT_EXCEEDED`, `BAD_SCOPE`, `CHAT_NOT_FOUND`, `NOT_A_MEMBER`,
  ///   `NOT_THE_SENDER`, `DELETE_WINDOW_CLOSED`.
  public func deleteMessages(
    _ ranges: [SequenceRange], in chat: UUID, scope: DeletionScope, by user: Int64
  ) throws(StoreError) -> Int {
    try Self.check(ranges)
    let place = try place(chat, of: user)
    var messages: [StoredMessage] = []
    for range in ranges {
      messages += try self.messages(
        place.chat, chat, reader: user, in: .between, "", [range.first - 1, range.last])
    }
    switch scope {
    case .forMe:
      guard !messages.isEmpty else { return 0 }
      let hidden = ranges.map {
        SequenceRange(max($0.first, place.visibleFrom), min($0.last, place.upperEnd))
      }.filter { $0.first <= $0.last }
      try hide(hidden, place)
      return messages.count
    case .forEveryone:
      try place.requireMember()
      messages.removeAll { $0.deleteTime != nil }
      for message in messages { try mayDelete(message, place) }
      try deleteForEveryone(messages, place)
      return messages.count
    case .expired:
      throw .invalid("scope", "BAD_SCOPE", "choose FOR_ME or FOR_EVERYONE")
    }
  }

  private static func check(_ ranges: [SequenceRange]) throws(StoreError) {
    var count: Int64 = 0
    guard !ranges.isEmpty else {
      throw .invalid("ranges", "BAD_RANGE", "say which messages")
    }
    for range in ranges {
      guard range.first >= 1, range.last >= range.first else {
        throw .invalid("ranges", "BAD_RANGE", "a range begins at 1 or later, and ends after that")
      }
      let length = range.last - range.first
      guard length < ChatLimits.deletedAtOnce, count + length < ChatLimits.deletedAtOnce else {
        throw ChatLimits.exceeded("messages", ChatLimits.deletedAtOnce)
      }
      count += length + 1
    }
  }

  private func mayDelete(_ message: StoredMessage, _ place: Place) throws(StoreError) {
    if message.senderKey != nil, place.kind.isShared, place.role >= .admin { return }
    guard message.senderKey == place.user else { throw Self.notTheSender }
    let window = place.policy.deleteWindow ?? ChatLimits.deleteWindow
    guard now - message.sendTime <= window else {
      throw StoreError(
        .failedPrecondition, "DELETE_WINDOW_CLOSED",
        "the time in which it can be deleted for everyone is over",
        metadata: ["window_seconds": String(window / 1_000_000)])
    }
  }

  private func deleteForEveryone(_ messages: [StoredMessage], _ place: Place) throws(StoreError) {
    guard let first = messages.first, let actor = try userID(place.user) else { return }
    for message in messages { try strip(message, chat: place.chat, deleteTime: now) }
    let ranges = Self.ranges(messages.map(\.sequence))
    var keys = KeysetWriter()
    keys.int(DeletionScope.forEveryone.rawValue)
    keys.raw(actor.bytes)
    for range in ranges {
      keys.int(range.first)
      keys.int(range.last)
    }
    try appendShared(
      .messagesDeleted, chat: place.chat, keys,
      SharedEvent(
        event: .messagesDeleted(
          Deletion(chat: first.chat, ranges: ranges, scope: .forEveryone, actor: actor))))
    try appendRecount(place.chat, upTo: ranges.last?.last ?? 0)
  }

  /// Takes everything out of a message but its place.
  func strip(_ message: StoredMessage, chat: Int64, deleteTime: Int64?) throws(StoreError) {
    try forget(message.body.mentions, chat: chat, sequence: message.sequence)
    try run(
      """
      UPDATE message SET body = '', content = NULL, delete_us = ?, reply_seq = NULL,
        forward_hops = 0, version = version + 1
      WHERE message_key = ?
      """, deleteTime, message.key)
    try letGo(ofMessage: message.key)
    try run("DELETE FROM reaction WHERE message_key = ?", message.key)
    try run("DELETE FROM poll_vote WHERE message_key = ?", message.key)
    try run("DELETE FROM pin WHERE chat_id = ? AND seq = ?", chat, message.sequence)
  }

  /// Ascending sequences as ranges.
  static func ranges(_ sequences: [Int64]) -> [SequenceRange] {
    var ranges: [SequenceRange] = []
    for sequence in sequences.sorted() {
      if let last = ranges.last, sequence <= last.last + 1 {
        ranges[ranges.count - 1].last = max(last.last, sequence)
      } else {
        ranges.append(SequenceRange(sequence, sequence))
      }
    }
    return ranges
  }

  /// Those who had not read what went away hear their new count; in chats above the limit of
  /// receipts they learn it when they look next.
  func appendRecount(_ chat: Int64, upTo sequence: Int64) throws(StoreError) {
    let behind = try all(
      """
      SELECT m.user_id FROM member m JOIN chat c USING (chat_id)
      WHERE m.chat_id = ? AND m.state = 1 AND m.read_seq < ? AND c.member_count <= ?
      """, chat, sequence, ChatLimits.receiptMembers
    ) { $0.int(0) }
    guard !behind.isEmpty else { return }
    let last = try first("SELECT last_seq FROM chat WHERE chat_id = ?", chat) { $0.int(0) } ?? 0
    var keys = KeysetWriter()
    keys.int(last)
    keys.int(sequence)
    let position = append(
      .unreadRecounted, chat: chat, keys: keys.bytes, payload: ChatMembers(users: behind))
    try run("UPDATE chat SET last_pos = ? WHERE chat_id = ?", position, chat)
  }

  // MARK: For one user alone

  /// Hides ranges of a chat from its reader, and tells their devices.
  func hide(_ ranges: [SequenceRange], _ place: Place) throws(StoreError) {
    guard !ranges.isEmpty else { return }
    for range in ranges { try hide(range, chat: place.chat, user: place.user) }
    var keys = KeysetWriter()
    keys.int(place.chat)
    for range in ranges {
      keys.int(range.first)
      keys.int(range.last)
    }
    append(.messagesDeleted, user: place.user, keys: keys.bytes)
    // Always: a replay no longer shows messages of one's own that moved the marker.
    appendUnreadChanged(
      chat: place.chat, user: place.user, read: place.readSequence, last: place.upperEnd)
  }

  /// Ranges that touch become one.
  func hide(_ range: SequenceRange, chat: Int64, user: Int64) throws(StoreError) {
    let joined = try first(
      """
      SELECT min(first_seq), max(last_seq) FROM message_hidden
      WHERE user_id = ? AND chat_id = ? AND first_seq <= ? AND last_seq >= ?
      """, user, chat, range.last + 1, range.first - 1
    ) { row -> SequenceRange? in row.isNull(0) ? nil : SequenceRange(row.int(0), row.int(1)) }
    var merged = range
    if let joined, let joined {
      merged = SequenceRange(min(range.first, joined.first), max(range.last, joined.last))
      try run(
        """
        DELETE FROM message_hidden
        WHERE user_id = ? AND chat_id = ? AND first_seq >= ? AND last_seq <= ?
        """, user, chat, merged.first, merged.last)
    }
    try run(
      "INSERT INTO message_hidden(user_id, chat_id, first_seq, last_seq) VALUES (?, ?, ?, ?)",
      user, chat, merged.first, merged.last)
  }

  /// Hides the history up to a sequence from the caller.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `BAD_SEQUENCE`, `REQUEST_ID_REUSED`.
  public func clearChat(
    _ chat: UUID, upTo sequence: Int64, keepStarred: Bool, requestID: String = "", by user: Int64
  ) throws(StoreError) -> ChatView {
    guard sequence >= 0 else {
      throw .invalid("up_to_sequence", "BAD_SEQUENCE", "a sequence is not negative")
    }
    let place = try place(chat, of: user)
    var request = KeysetWriter()
    request.raw(chat.bytes)
    request.int(sequence)
    request.int(keepStarred ? 1 : 0)
    if try isNew("ClearChat", requestID, request, by: user) {
      // 0: all there is.
      let last = sequence == 0 ? place.upperEnd : min(sequence, place.upperEnd)
      var ranges: [SequenceRange] = []
      var next = place.visibleFrom
      let kept =
        try keepStarred
        ? all(
          "SELECT seq FROM star WHERE user_id = ? AND chat_id = ? AND seq <= ? ORDER BY seq", user,
          place.chat, last
        ) { $0.int(0) } : []
      for star in kept where star >= next {
        if star > next { ranges.append(SequenceRange(next, star - 1)) }
        next = star + 1
      }
      if next <= last { ranges.append(SequenceRange(next, last)) }
      if !ranges.isEmpty { try hide(ranges, place) }
    }
    return try self.chat(key: place.chat, chat, for: user, asOf: nil)
  }
}
