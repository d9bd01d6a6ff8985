public import VencejoCrypto
import VencejoSQLite

/// A message on its way in.
public struct OutgoingMessage: Sendable {
  public var chat: UUID
  /// Chosen by the sender; the key of de-duplication for ever.
  public var id: UUID
  public var body: MessageBody
  public var replyTo: UUID?
  /// When the sender pressed the key; never used for order.
  public var clientTime: Int64?
  /// Raises no notification.
  public var isSilent = false
  /// How often it was passed on; 0 for an original.
  var forwardHops: Int64 = 0

  public init(
    chat: UUID, id: UUID, body: MessageBody, replyTo: UUID? = nil, clientTime: Int64? = nil
  ) {
    self.chat = chat
    self.id = id
    self.body = body
    self.replyTo = replyTo
    self.clientTime = clientTime
  }

  public init(
    chat: UUID, id: UUID, text: String, replyTo: UUID? = nil, clientTime: Int64? = nil
  ) {
    self.init(chat: chat, id: id, body: .text(text), replyTo: replyTo, clientTime: clientTime)
  }
}

extension WriteTransaction {
  /// Stores a message; a repeat of its id answers the stored one.
  ///
  /// - Throws: `EMPTY_MESSAGE` and what else ``MessageBody`` refuses, `CHAT_NOT_FOUND`,
  ///   `NOT_A_MEMBER`, `ROLE_TOO_LOW`, `BLOCKED`, `SLOW_MODE`, `MESSAGE_NOT_FOUND` for what it
  ///   replies to, `MESSAGE_ID_TAKEN`.
  public func sendMessage(_ outgoing: OutgoingMessage, by user: Int64) throws(StoreError)
    -> (message: StoredMessage, isDuplicate: Bool)
  {
    try outgoing.body.validate()
    let place = try place(outgoing.chat, of: user)
    if let stored = try storedMessage(outgoing, place) { return (stored, true) }
    try place.require(place.kind.isShared ? place.policy.sendMessages : .reader)
    try refuseBlocked(place)
    try waitForSlowMode(place)
    var replied: Int64?
    if let id = outgoing.replyTo { replied = try message(id, place).sequence }
    // What was unread before is read now: the other devices of the sender must hear it.
    let hadUnread = try hasUnread(
      place.chat, user, after: place.readSequence, to: place.lastSequence)
    let message = try insertMessage(
      chat: place.chat, chatID: outgoing.chat, id: outgoing.id, sender: user,
      body: outgoing.body, reply: replied, hops: outgoing.forwardHops, ttl: place.ttl,
      clientTime: outgoing.clientTime, isSilent: outgoing.isSilent)
    if !outgoing.isSilent {
      try notify(of: message, chat: place.chat, reply: replied, by: user)
    }
    try run(
      """
      UPDATE member SET read_seq = max(read_seq, ?1), shown_seq = max(shown_seq, ?1),
        delivered_seq = max(delivered_seq, ?1), last_send_us = ?2
      WHERE chat_id = ?3 AND user_id = ?4
      """, message.sequence, now, place.chat, user)
    try unmarkUnread(place)
    if hadUnread {
      appendUnreadChanged(
        chat: place.chat, user: user, read: message.sequence, last: message.sequence)
    }
    return (message, false)
  }

  private func storedMessage(_ outgoing: OutgoingMessage, _ place: Place) throws(StoreError)
    -> StoredMessage?
  {
    let owner = try first("SELECT chat_id, sender_id FROM message WHERE uuid = ?", outgoing.id) {
      (chat: $0.int(0), sender: $0.optionalInt(1))
    }
    guard let owner else { return nil }
    guard owner.chat == place.chat, owner.sender == place.user else {
      throw StoreError(
        .alreadyExists, "MESSAGE_ID_TAKEN", "another message has this message_id: choose a new one",
        metadata: ["message_id": outgoing.id.description])
    }
    return try message(outgoing.id, place)
  }

  /// Whoever blocks somebody does not write to them either. The blocked one hears nothing of it.
  private func refuseBlocked(_ place: Place) throws(StoreError) {
    guard place.kind == .direct, try blocksPeer(place) else { return }
    throw StoreError(
      .permissionDenied, "BLOCKED", "you block this user: unblock them to write to them")
  }

  private func waitForSlowMode(_ place: Place) throws(StoreError) {
    guard place.policy.slowMode > 0, place.role < .admin else { return }
    let wait = place.policy.slowMode - max(0, now - place.lastSend)
    guard wait > 0 else { return }
    throw StoreError(
      .failedPrecondition, "SLOW_MODE", "this chat takes one message at a time from each member",
      details: [.retry(afterMilliseconds: wait / 1000 + 1)])
  }

  /// Gives a message its sequence and time and logs it.
  @discardableResult
  func insertMessage(
    chat: Int64, chatID: UUID, id: UUID, sender: Int64?, body: MessageBody, reply: Int64? = nil,
    hops: Int64 = 0, ttl: Int64? = nil, clientTime: Int64? = nil,
    isSilent: Bool = false
  ) throws(StoreError) -> StoredMessage {
    // Times grow with the sequence even when the clock goes back.
    let place = try first(
      """
      UPDATE chat SET last_seq = last_seq + 1, activity_us = max(?, activity_us + 1)
      WHERE chat_id = ? RETURNING last_seq, activity_us
      """, now, chat
    ) { (sequence: $0.int(0), time: $0.int(1)) }
    guard let place else {
      throw StoreError(.internalError, "STORAGE_FAILED", "the chat is gone")
    }
    let columns = BodyColumns(body)
    let expiry = ttl.map { now + $0 }
    try run(
      """
      INSERT INTO message(chat_id, seq, uuid, sender_id, kind, body, content, reply_seq, sent_us,
        client_us, version, expire_us, forward_hops, is_silent)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?)
      """, chat, place.sequence, id, sender, columns.kind, columns.words, columns.content, reply,
      place.time, clientTime, expiry, hops, isSilent)
    let key = lastInsertRowID
    try remember(body.mentions, chat: chat, sequence: place.sequence)
    if case .media(let media) = body, let sender {
      try hold(media.attachments, message: key, by: sender)
    }
    var senderID: UUID?
    if let sender { senderID = try userID(sender) }
    let stored = StoredMessage(
      key: key, chat: chatID, id: id, sequence: place.sequence, sender: senderID,
      senderKey: sender, sendTime: place.time, body: body,
      quote: try reply.flatMap { sequence throws(StoreError) in try quote(chat, sequence) },
      forwardHops: hops, editCount: 0, editTime: nil, deleteTime: nil, expireTime: expiry,
      isPinned: false, isStarred: false, isImported: false, version: 1)
    var keys = KeysetWriter()
    keys.int(place.sequence)
    try appendShared(
      .messageCreated, chat: chat, keys,
      SharedEvent(event: .messageCreated(stored), owner: sender, author: sender))
    return stored
  }

  /// One row for each member who is called, and one for all when everyone is.
  func remember(_ mentions: [Mention], chat: Int64, sequence: Int64) throws(StoreError) {
    for mention in mentions {
      if let user = mention.user {
        try run(
          """
          INSERT OR IGNORE INTO mention(chat_id, user_id, seq)
          SELECT m.chat_id, m.user_id, ? FROM user u JOIN member m USING (user_id)
          WHERE u.uuid = ? AND m.chat_id = ? AND m.state = 1
          """, sequence, user, chat)
      } else {
        try run(
          "INSERT OR IGNORE INTO mention(chat_id, user_id, seq) VALUES (?, 0, ?)", chat, sequence)
      }
    }
  }

  func forget(_ mentions: [Mention], chat: Int64, sequence: Int64) throws(StoreError) {
    for mention in mentions {
      try run(
        """
        DELETE FROM mention WHERE chat_id = ? AND seq = ?
          AND user_id = ifnull((SELECT user_id FROM user WHERE uuid = ?), 0)
        """, chat, sequence, mention.user)
    }
  }

  /// Says something in the system's name.
  @discardableResult
  func note(_ note: SystemNote, chat: Int64, chatID: UUID) throws(StoreError) -> StoredMessage {
    try insertMessage(
      chat: chat, chatID: chatID, id: UUID.v7(milliseconds: now / 1000), sender: nil,
      body: .system(note))
  }

  /// Logs what all members of a chat hear alike.
  @discardableResult
  func appendShared(
    _ kind: EventKind, chat: Int64, _ keys: KeysetWriter, _ payload: SharedEvent?
  ) throws(StoreError) -> Int64 {
    let position = append(kind, chat: chat, keys: keys.bytes, payload: payload)
    try run("UPDATE chat SET last_pos = ? WHERE chat_id = ?", position, chat)
    return position
  }
}

extension ReadTransaction {
  func userID(_ key: Int64) throws(StoreError) -> UUID? {
    try first("SELECT uuid FROM user WHERE user_id = ?", key) { $0.uuid(0) } ?? nil
  }

  /// Whether the user of a direct chat blocks the other one.
  func blocksPeer(_ place: Place) throws(StoreError) -> Bool {
    guard place.kind == .direct else { return false }
    return try first(
      """
      SELECT 1 FROM member m JOIN block b ON b.user_id = ?1 AND b.blocked_id = m.user_id
      WHERE m.chat_id = ?2 AND m.user_id <> ?1 AND b.to_key IS NULL
      """, place.user, place.chat
    ) { _ in true } ?? false
  }
}
