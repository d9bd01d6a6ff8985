public import VencejoCrypto
import VencejoSQLite

/// A chat through the eyes of one who is or was in it; internal.
struct Place {
  let chat: Int64
  let chatID: UUID
  let kind: ChatKind
  let memberCount: Int64
  let lastSequence: Int64
  let isMember: Bool
  let readSequence: Int64
  let visibleFrom: Int64
  let visibleTo: Int64?

  /// The last sequence to be seen from here.
  var upperEnd: Int64 { min(lastSequence, visibleTo ?? .max) }
}

extension ReadTransaction {
  static let messageColumns = """
    SELECT m.uuid, m.seq, m.sender_id, u.uuid, m.kind, m.body, m.content, m.sent_us, m.version,
      q.uuid, qu.uuid, q.body
    FROM message m LEFT JOIN user u ON u.user_id = m.sender_id
      LEFT JOIN message q ON q.chat_id = m.chat_id AND q.seq = m.reply_seq
      LEFT JOIN user qu ON qu.user_id = q.sender_id
    """

  /// The caller's place in a chat. Who is not in it hears that it does not exist.
  func place(_ chat: UUID, of user: Int64) throws(StoreError) -> Place {
    let found = try first(
      """
      SELECT c.chat_id, c.kind, c.member_count, c.last_seq, m.state, m.read_seq, m.visible_from,
        m.visible_to
      FROM chat c JOIN member m USING (chat_id) WHERE c.uuid = ? AND m.user_id = ?
      """, chat, user
    ) { row in
      Place(
        chat: row.int(0), chatID: chat, kind: ChatKind(rawValue: row.int(1)) ?? .group,
        memberCount: row.int(2), lastSequence: row.int(3), isMember: row.int(4) == 1,
        readSequence: row.int(5), visibleFrom: row.int(6), visibleTo: row.optionalInt(7))
    }
    guard let found else {
      throw .notFound("CHAT_NOT_FOUND", type: "vencejo.chat.v1.Chat", name: "chats/\(chat)")
    }
    return found
  }

  func messages(_ chat: UUID, _ clause: String, _ values: [any SQLiteBindable])
    throws(StoreError) -> [StoredMessage]
  {
    var result: [StoredMessage] = []
    try each(dynamic: "\(Self.messageColumns) \(clause)", values) { row in
      if let message = Self.message(chat, row) { result.append(message) }
      return true
    }
    return result
  }

  private static func message(_ chat: UUID, _ row: Row) -> StoredMessage? {
    guard let id = row.uuid(0) else { return nil }
    let body: MessageBody
    if row.int(4) == MessageKind.text {
      body = .text(row.text(5))
    } else {
      var keys = KeysetReader(row.blob(6))
      guard let actor = keys.raw().flatMap(UUID.init(bytes:)) else { return nil }
      var subjects: [UUID] = []
      while let bytes = keys.raw() {
        if let subject = UUID(bytes: bytes) { subjects.append(subject) }
      }
      body = .chatCreated(actor: actor, subjects: subjects)
    }
    let quote = row.uuid(9).map {
      Quote(id: $0, sender: row.uuid(10), excerpt: String(row.text(11).prefix(100)))
    }
    return StoredMessage(
      chat: chat, id: id, sequence: row.int(1), sender: row.uuid(3),
      senderKey: row.optionalInt(2), sendTime: row.int(7), body: body, quote: quote,
      version: row.int(8))
  }

  /// Marks the caller's own messages that every other member has read.
  func marked(_ messages: [StoredMessage], chat: Int64, reader: Int64, memberCount: Int64)
    throws(StoreError) -> [StoredMessage]
  {
    guard memberCount > 1, memberCount <= ChatLimits.receiptMembers,
      messages.contains(where: { $0.senderKey == reader })
    else { return messages }
    let least = try first(
      "SELECT min(shown_seq) FROM member WHERE chat_id = ? AND user_id <> ? AND state = 1", chat,
      reader
    ) { $0.int(0) }
    guard let least else { return messages }
    return messages.map { message in
      var message = message
      message.isReadByAll = message.senderKey == reader && message.sequence <= least
      return message
    }
  }

  /// One message by its id.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `MESSAGE_NOT_FOUND`.
  public func message(_ id: UUID, in chat: UUID, for user: Int64) throws(StoreError)
    -> StoredMessage
  {
    let place = try place(chat, of: user)
    let found = try messages(
      chat, "WHERE m.uuid = ? AND m.chat_id = ? AND m.seq BETWEEN ? AND ?",
      [id, place.chat, place.visibleFrom, place.upperEnd])
    guard
      let message = try marked(
        found, chat: place.chat, reader: user, memberCount: place.memberCount
      ).first
    else {
      throw .notFound(
        "MESSAGE_NOT_FOUND", type: "vencejo.chat.v1.Message", name: "chats/\(chat)/messages/\(id)")
    }
    return message
  }
}

/// How a message is kept.
enum MessageKind {
  static let text: Int64 = 1
  static let system: Int64 = 6
}

/// A message on its way in.
public struct OutgoingMessage: Sendable {
  public var chat: UUID
  /// Chosen by the sender; the key of de-duplication for ever.
  public var id: UUID
  public var text: String
  public var replyTo: UUID?
  /// When the sender pressed the key; never used for order.
  public var clientTime: Int64?

  public init(
    chat: UUID, id: UUID, text: String, replyTo: UUID? = nil, clientTime: Int64? = nil
  ) {
    self.chat = chat
    self.id = id
    self.text = text
    self.replyTo = replyTo
    self.clientTime = clientTime
  }
}

extension WriteTransaction {
  /// Stores a message; a repeat of its id answers the stored one.
  ///
  /// - Throws: `EMPTY_MESSAGE`, `MESSAGE_TOO_LONG`, `CHAT_NOT_FOUND`, `NOT_A_MEMBER`,
  ///   `MESSAGE_NOT_FOUND` for what it replies to, `MESSAGE_ID_TAKEN`.
  public func sendMessage(_ outgoing: OutgoingMessage, by user: Int64) throws(StoreError)
    -> (message: StoredMessage, isDuplicate: Bool)
  {
    guard outgoing.text.utf8.count <= ChatLimits.textBytes else {
      throw StoreError(
        .invalidArgument, "MESSAGE_TOO_LONG",
        "a message has at most \(ChatLimits.textBytes) bytes",
        metadata: ["limit_bytes": String(ChatLimits.textBytes)],
        details: [.field("content.text.text", description: "too long")])
    }
    guard !AccountRules.isBlank(outgoing.text) else {
      throw .invalid("content.text.text", "EMPTY_MESSAGE", "a message needs some text")
    }
    let place = try place(outgoing.chat, of: user)
    if let stored = try storedMessage(outgoing, place, user) { return (stored, true) }
    guard place.isMember else {
      throw StoreError(.permissionDenied, "NOT_A_MEMBER", "you are no longer in this chat")
    }
    var replied: Int64?
    if let id = outgoing.replyTo {
      replied = try message(id, in: outgoing.chat, for: user).sequence
    }
    // What was unread before is read now: the other devices of the sender must hear it.
    let before = try unread(
      place.chat, user, after: place.readSequence, to: place.lastSequence)
    let message = try insertMessage(
      chat: place.chat, chatID: outgoing.chat, id: outgoing.id, sender: user,
      kind: MessageKind.text, body: outgoing.text, reply: replied, clientTime: outgoing.clientTime)
    try run(
      """
      UPDATE member SET read_seq = max(read_seq, ?), shown_seq = max(shown_seq, ?)
      WHERE chat_id = ? AND user_id = ?
      """, message.sequence, message.sequence, place.chat, user)
    if before.count > 0 {
      appendUnreadChanged(
        chat: place.chat, user: user, read: message.sequence, last: message.sequence)
    }
    return (message, false)
  }

  private func storedMessage(_ outgoing: OutgoingMessage, _ place: Place, _ user: Int64)
    throws(StoreError) -> StoredMessage?
  {
    let owner = try first("SELECT chat_id, sender_id FROM message WHERE uuid = ?", outgoing.id) {
      (chat: $0.int(0), sender: $0.optionalInt(1))
    }
    guard let owner else { return nil }
    guard owner.chat == place.chat, owner.sender == user else {
      throw StoreError(
        .alreadyExists, "MESSAGE_ID_TAKEN", "another message has this message_id: choose a new one",
        metadata: ["message_id": outgoing.id.description])
    }
    return try message(outgoing.id, in: outgoing.chat, for: user)
  }

  /// Gives a message its sequence and time and logs it.
  func insertMessage(
    chat: Int64, chatID: UUID, id: UUID, sender: Int64?, kind: Int64, body: String,
    content: [UInt8]? = nil, reply: Int64? = nil, clientTime: Int64? = nil
  ) throws(StoreError) -> StoredMessage {
    let position = try head() + 1
    // Times grow with the sequence even when the clock goes back.
    let place = try first(
      """
      UPDATE chat SET last_seq = last_seq + 1, last_pos = ?,
        activity_us = max(?, activity_us + 1)
      WHERE chat_id = ? RETURNING last_seq, activity_us
      """, position, now, chat
    ) { (sequence: $0.int(0), time: $0.int(1)) }
    guard let place else {
      throw StoreError(.internalError, "STORAGE_FAILED", "the chat is gone")
    }
    try run(
      """
      INSERT INTO message(chat_id, seq, uuid, sender_id, kind, body, content, reply_seq, sent_us,
        client_us, version)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)
      """, chat, place.sequence, id, sender, kind, body, content, reply, place.time, clientTime)
    let stored = try messages(chatID, "WHERE m.message_key = ?", [lastInsertRowID]).first
    guard let stored else {
      throw StoreError(.internalError, "STORAGE_FAILED", "the message was not stored")
    }
    var keys = KeysetWriter()
    keys.int(place.sequence)
    append(.messageCreated, chat: chat, keys: keys.bytes, payload: stored)
    return stored
  }
}
