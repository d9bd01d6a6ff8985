public import VencejoCrypto
import VencejoSQLite

extension WriteTransaction {
  /// Replaces the text of a message of the caller's.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `MESSAGE_NOT_FOUND`, `NOT_A_MEMBER`, `NOT_THE_SENDER`,
  ///   `MESSAGE_DELETED`, `EDIT_WINDOW_CLOSED`, `ETAG_MISMATCH`, `BAD_CONTENT`,
  ///   `REQUEST_ID_REUSED`.
  public func editMessage(
    _ id: UUID, in chat: UUID, body: MessageBody, etag: String = "", requestID: String = "",
    by user: Int64
  ) throws(StoreError) -> StoredMessage {
    try body.validate()
    let place = try place(chat, of: user)
    let message = try message(id, place)
    var request = KeysetWriter()
    request.raw(id.bytes)
    request.raw(BodyColumns(body).content ?? [])
    request.text(BodyColumns(body).words)
    guard try isNew("EditMessage", requestID, request, by: user) else { return message }
    try place.requireMember()
    guard message.senderKey == user else { throw Self.notTheSender }
    try refuseDeleted(message)
    guard case .text = message.body, case .text = body else {
      throw .invalid("content", "BAD_CONTENT", "only a text can be edited, and stays a text")
    }
    let window = place.policy.editWindow ?? ChatLimits.editWindow
    guard now - message.sendTime <= window else {
      throw StoreError(
        .failedPrecondition, "EDIT_WINDOW_CLOSED", "the time in which it can be edited is over",
        metadata: ["window_seconds": String(window / 1_000_000)])
    }
    try check(etag, message.version)
    guard body != message.body else { return message }
    let columns = BodyColumns(body)
    try forget(message.body.mentions, chat: place.chat, sequence: message.sequence)
    try run(
      """
      UPDATE message SET body = ?, content = ?, edit_count = edit_count + 1, edit_us = ?,
        version = version + 1
      WHERE message_key = ?
      """, columns.words, columns.content, now, message.key)
    try remember(body.mentions, chat: place.chat, sequence: message.sequence)
    return try updated(message.sequence, place, .content)
  }

  /// Logs that a message changed, and answers it as it is now.
  func updated(_ sequence: Int64, _ place: Place, _ fields: MessageFields) throws(StoreError)
    -> StoredMessage
  {
    guard let message = try message(sequence: sequence, place) else {
      throw StoreError(.internalError, "STORAGE_FAILED", "the message is gone")
    }
    var keys = KeysetWriter()
    keys.int(sequence)
    keys.int(fields.rawValue)
    try appendShared(
      .messageUpdated, chat: place.chat, keys,
      SharedEvent(
        event: .messageUpdated(message, fields), owner: place.user, author: message.senderKey))
    return try marked(
      [message], chat: place.chat, reader: place.user, memberCount: place.memberCount
    ).first ?? message
  }

  static let notTheSender = StoreError(
    .permissionDenied, "NOT_THE_SENDER", "only who sent the message may do this")

  func refuseDeleted(_ message: StoredMessage) throws(StoreError) {
    guard message.deleteTime == nil else {
      throw StoreError(.failedPrecondition, "MESSAGE_DELETED", "the message was deleted")
    }
  }

  /// - Throws: `ETAG_MISMATCH` (AIP-154).
  func check(_ etag: String, _ version: Int64) throws(StoreError) {
    guard etag.isEmpty || etag == String(version) else {
      throw StoreError(
        .aborted, "ETAG_MISMATCH", "it was changed meanwhile: read it again",
        metadata: ["etag": String(version)])
    }
  }

  // MARK: Reactions and votes

  /// Sets or, with an empty emoji, takes back what the caller thinks of a message.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `MESSAGE_NOT_FOUND`, `NOT_A_MEMBER`, `MESSAGE_DELETED`,
  ///   `BAD_EMOJI`.
  public func setReaction(_ emoji: String, on id: UUID, in chat: UUID, by user: Int64)
    throws(StoreError) -> StoredMessage
  {
    guard emoji.isEmpty || Self.isReaction(emoji) else {
      throw .invalid(
        "emoji", "BAD_EMOJI",
        "one character of at most \(ChatLimits.reactionBytes) bytes, or none to take it back")
    }
    let place = try place(chat, of: user)
    let message = try message(id, place)
    try place.requireMember()
    try refuseDeleted(message)
    guard message.senderKey != nil else {
      throw .invalid("message", "BAD_CONTENT", "nobody reacts to what the system says")
    }
    let changed =
      emoji.isEmpty
      ? try run(
        "DELETE FROM reaction WHERE message_key = ? AND user_id = ?", message.key, user)
      : try run(
        """
        INSERT INTO reaction(message_key, user_id, emoji, react_us) VALUES (?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET emoji = excluded.emoji, react_us = excluded.react_us
        WHERE emoji <> excluded.emoji
        """, message.key, user, emoji, now)
    guard changed > 0, let actor = try userID(user) else { return message }
    if !emoji.isEmpty { try notifyReaction(to: message, chat: place.chat, by: user) }
    var keys = KeysetWriter()
    keys.int(message.sequence)
    keys.int(user)
    let reactions = try reactions(message.key, reader: 0)
    try appendShared(
      .reactionChanged, chat: place.chat, keys,
      SharedEvent(
        event: .reactionChanged(
          ReactionChange(
            chat: chat, message: id, sequence: message.sequence, user: actor, emoji: emoji,
            reactions: reactions)), author: message.senderKey))
    return try self.message(id, place)
  }

  /// One character, of any number of code points.
  static func isReaction(_ emoji: String) -> Bool {
    emoji.count == 1 && emoji.utf8.count <= ChatLimits.reactionBytes
      && !AccountRules.isBlank(emoji)
  }

  /// Replaces the caller's votes; none withdraws them.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `MESSAGE_NOT_FOUND`, `NOT_A_MEMBER`, `NOT_A_POLL`, `BAD_VOTE`.
  public func votePoll(_ id: UUID, in chat: UUID, options: [Int64], by user: Int64)
    throws(StoreError) -> StoredMessage
  {
    let place = try place(chat, of: user)
    let message = try message(id, place)
    try place.requireMember()
    try refuseDeleted(message)
    guard case .poll(let poll) = message.body else {
      throw StoreError(.failedPrecondition, "NOT_A_POLL", "this message is no poll")
    }
    let chosen = Set(options)
    guard chosen.isSubset(of: poll.options.map(\.id)), poll.allowsSeveral || chosen.count <= 1
    else {
      throw .invalid(
        "option_ids", "BAD_VOTE",
        poll.allowsSeveral
          ? "only options of the poll" : "one option of the poll, or none to withdraw")
    }
    guard chosen != Set(poll.options.filter(\.isVoted).map(\.id)) else { return message }
    try run("DELETE FROM poll_vote WHERE message_key = ? AND user_id = ?", message.key, user)
    for option in chosen {
      try run(
        "INSERT INTO poll_vote(message_key, option_id, user_id) VALUES (?, ?, ?)", message.key,
        option, user)
    }
    return try updated(message.sequence, place, .content)
  }

  // MARK: Pins and stars

  /// Pins a message for all members, or takes its pin away.
  ///
  /// - Parameter ttl: Microseconds until the pin goes by itself.
  /// - Throws: `CHAT_NOT_FOUND`, `MESSAGE_NOT_FOUND`, `NOT_A_MEMBER`, `ROLE_TOO_LOW`,
  ///   `MESSAGE_DELETED`, `TOO_MANY_PINS`, `BAD_TTL`.
  public func setPinned(
    _ id: UUID, in chat: UUID, _ isPinned: Bool, ttl: Int64? = nil, by user: Int64
  ) throws(StoreError) -> ChatView {
    if let ttl, !ChatLimits.ttl.contains(ttl) {
      throw .invalid("ttl", "BAD_TTL", "a pin stays from a second to a year")
    }
    let place = try place(chat, of: user)
    let message = try message(id, place)
    try place.require(place.kind.isShared ? place.policy.pinMessages : .reader)
    try refuseDeleted(message)
    if isPinned {
      let count = try first("SELECT count(*) FROM pin WHERE chat_id = ?", place.chat) { $0.int(0) }
      guard message.isPinned || (count ?? 0) < ChatLimits.pinnedMessages else {
        throw StoreError(
          .failedPrecondition, "TOO_MANY_PINS",
          "a chat has at most \(ChatLimits.pinnedMessages) pinned messages",
          metadata: ["limit": String(ChatLimits.pinnedMessages)])
      }
      try run(
        "INSERT OR REPLACE INTO pin(chat_id, seq, pin_us, until_us) VALUES (?, ?, ?, ?)",
        place.chat, message.sequence, now, ttl.map { now + $0 })
    } else {
      try run("DELETE FROM pin WHERE chat_id = ? AND seq = ?", place.chat, message.sequence)
    }
    if isPinned != message.isPinned {
      _ = try updated(message.sequence, place, .pinned)
      if isPinned, place.kind.isShared, let actor = try userID(user) {
        try note(SystemNote(.messagePinned, actor: actor), chat: place.chat, chatID: chat)
      }
    }
    return try self.chat(key: place.chat, chat, for: user, asOf: nil)
  }

  /// Stars a message for the caller, or takes the star away.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `MESSAGE_NOT_FOUND`.
  public func setStarred(_ id: UUID, in chat: UUID, _ isStarred: Bool, by user: Int64)
    throws(StoreError) -> StoredMessage
  {
    let place = try place(chat, of: user)
    let message = try message(id, place)
    let changed =
      isStarred
      ? try run(
        "INSERT OR IGNORE INTO star(user_id, chat_id, seq) VALUES (?, ?, ?)", user, place.chat,
        message.sequence)
      : try run(
        "DELETE FROM star WHERE user_id = ? AND chat_id = ? AND seq = ?", user, place.chat,
        message.sequence)
    if changed > 0 {
      var keys = KeysetWriter()
      keys.int(place.chat)
      keys.int(message.sequence)
      append(.ownMessageUpdated, user: user, keys: keys.bytes)
    }
    return try self.message(id, place)
  }
}

/// What one user thinks of a message.
public struct Reaction: Sendable, Hashable {
  public let user: UUID
  public let emoji: String
  public let time: Int64

  public init(user: UUID, emoji: String, time: Int64) {
    self.user = user
    self.emoji = emoji
    self.time = time
  }
}

public struct ReactionPage: Sendable {
  public let reactions: [Reaction]
  public let nextPageToken: String
}

extension ReadTransaction {
  /// Who thinks what of a message.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `MESSAGE_NOT_FOUND`, `BAD_PAGE_SIZE`, `BAD_PAGE_TOKEN`,
  ///   `PAGE_TOKEN_MISMATCH`.
  public func listReactions(
    _ id: UUID, in chat: UUID, pageSize: Int32 = 0, pageToken: String = "", for user: Int64
  ) throws(StoreError) -> ReactionPage {
    let size = try ChatLimits.page(pageSize)
    let message = try message(id, in: chat, for: user)
    let (arguments, after) = try keyset("ListReactions", id, user, pageToken)
    let found = try all(
      """
      SELECT r.user_id, u.uuid, r.emoji, r.react_us FROM reaction r JOIN user u USING (user_id)
      WHERE r.message_key = ? AND r.user_id > ? ORDER BY r.user_id LIMIT ?
      """, message.key, after, size + 1
    ) { row -> (key: Int64, reaction: Reaction)? in
      row.uuid(1).map {
        (row.int(0), Reaction(user: $0, emoji: row.text(2), time: row.int(3)))
      }
    }.compactMap(\.self)
    let page = found.prefix(size)
    return ReactionPage(
      reactions: page.map(\.reaction),
      nextPageToken: found.count > size ? token(page.last?.key ?? 0, arguments) : "")
  }

  /// The chat's key where others may hear that the caller types there; nil where nobody would.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `NOT_A_MEMBER`, `ROLE_TOO_LOW`.
  public func typingPlace(_ chat: UUID, by user: Int64) throws(StoreError) -> Int64? {
    let place = try place(chat, of: user)
    try place.require(place.kind.isShared ? place.policy.sendMessages : .reader)
    guard place.kind == .direct || place.kind == .group,
      place.memberCount <= ChatLimits.receiptMembers
    else { return nil }
    return try blocksPeer(place) ? nil : place.chat
  }
}
