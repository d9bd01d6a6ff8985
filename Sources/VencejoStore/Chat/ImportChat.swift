public import VencejoCrypto
import VencejoSQLite

/// A message from elsewhere, with the time it was sent there.
public struct ImportedMessage: Sendable {
  /// What tells it from the others of its source, as its id there.
  public var key: [UInt8]
  /// Nil for what a system said.
  public var sender: UUID?
  public var body: MessageBody
  /// Microseconds since the Unix epoch.
  public var time: Int64
  /// ``key`` of the message it replies to.
  public var replyTo: [UInt8]?
  public var editCount: Int64 = 0
  public var editTime: Int64?
  public var deleteTime: Int64?
  public var expireTime: Int64?
  public var forwardHops: Int64 = 0
  /// Of users of this server.
  public var reactions: [Reaction] = []

  public init(key: [UInt8], sender: UUID?, body: MessageBody, time: Int64) {
    self.key = key
    self.sender = sender
    self.body = body
    self.time = time
  }
}

/// What a chat that is imported is made from.
public struct ImportedChat: Sendable {
  public var title: String
  public var description = ""
  public var owner: UUID
  public var members: [UUID]
  /// What makes two imports the same.
  public var source: [UInt8]

  public init(title: String, owner: UUID, members: [UUID], source: [UInt8]) {
    self.title = title
    self.owner = owner
    self.members = members
    self.source = source
  }
}

extension WriteTransaction {
  /// The group that an import from this source made, or a new one.
  ///
  /// - Throws: `BAD_TITLE`, `BAD_DESCRIPTION`, `USER_NOT_FOUND`.
  public func chat(of new: ImportedChat) throws(StoreError) -> UUID {
    let title = AccountRules.trimmed(new.title)
    try Self.checkTitle(title)
    guard new.description.utf8.count <= ChatLimits.descriptionBytes else {
      throw .invalid(
        "chat.description", "BAD_DESCRIPTION",
        "a description has at most \(ChatLimits.descriptionBytes) bytes")
    }
    let owner = try account(id: new.owner)
    var members = [owner]
    for id in new.members where !members.contains(where: { $0.id == id }) {
      members.append(try account(id: id))
    }
    let id = Self.derived(new.source + Array("chat".utf8))
    if try first("SELECT 1 FROM chat WHERE uuid = ?", id, read: { _ in true }) != nil { return id }
    let position = try head() + 1
    try run(
      """
      INSERT INTO chat(uuid, kind, title, description, member_count, last_seq, last_pos, create_us,
        update_us, activity_us, version, shows_history)
      VALUES (?, 2, ?, ?, ?, 0, ?, ?, ?, 0, 1, 1)
      """, id, title, new.description, members.count, position, now, now)
    let key = lastInsertRowID
    for member in members {
      try run(
        """
        INSERT INTO member(chat_id, user_id, role, state, join_us, read_seq, shown_seq,
          visible_from, visible_to, from_pos, to_pos, version)
        VALUES (?, ?, ?, 1, ?, 0, 0, 1, NULL, ?, NULL, 1)
        """, key, member.key, member.key == owner.key ? 4 : 2, now, position)
    }
    return id
  }

  /// Adds messages from elsewhere to a chat nobody wrote in but imports; those that are there
  /// already are passed over. They keep their times and are read by everybody.
  ///
  /// Whoever holds the attachments of the messages is `importer`. Tell the members with
  /// ``announceImport(_:)`` when all are there.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `CHAT_NOT_EMPTY`, `USER_NOT_FOUND`, `ATTACHMENT_NOT_FOUND` and what
  ///   ``MessageBody`` refuses.
  public func importMessages(
    _ messages: [ImportedMessage], to chat: UUID, source: [UInt8], by importer: Int64
  ) throws(StoreError) -> (imported: Int, skipped: Int) {
    let found = try first(
      "SELECT chat_id FROM chat WHERE uuid = ? AND delete_us IS NULL", chat
    ) { $0.int(0) }
    guard let key = found else {
      throw .notFound("CHAT_NOT_FOUND", type: "vencejo.chat.v1.Chat", name: "chats/\(chat)")
    }
    let own = try first(
      """
      SELECT 1 FROM message WHERE chat_id = ? AND is_imported = 0 AND sender_id IS NOT NULL LIMIT 1
      """, key
    ) { _ in true }
    guard own == nil else {
      throw StoreError(
        .failedPrecondition, "CHAT_NOT_EMPTY",
        "messages are imported into a chat of their own: order follows time in it")
    }
    var senders: [UUID: Int64] = [:]
    var imported = 0
    var (last, time) = try newest(key)
    for message in messages {
      let id = Self.derived(source + [0] + message.key)
      if try first("SELECT 1 FROM message WHERE uuid = ?", id, read: { _ in true }) != nil {
        continue
      }
      switch message.body {
      case .text(let text, _):
        // An empty one is no fault here: what it was about may be lost.
        guard text.utf8.count <= ChatLimits.textBytes else {
          throw .invalid("text", "MESSAGE_TOO_LONG", "a message has at most 64 KiB")
        }
      case .system, .deleted: break
      default: try message.body.validate()
      }
      var sender: Int64?
      if let user = message.sender {
        if senders[user] == nil { senders[user] = try account(id: user).key }
        sender = senders[user]
      }
      last += 1
      // Times grow with the sequence, here too.
      time = max(time + 1, message.time)
      var reply: Int64?
      if let target = message.replyTo {
        reply = try first(
          "SELECT seq FROM message WHERE uuid = ? AND chat_id = ?",
          Self.derived(source + [0] + target), key
        ) { $0.int(0) }
      }
      let columns = BodyColumns(message.deleteTime == nil ? message.body : .deleted)
      try run(
        """
        INSERT INTO message(chat_id, seq, uuid, sender_id, kind, body, content, reply_seq, sent_us,
          version, is_imported, edit_count, edit_us, delete_us, expire_us, forward_hops)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 1, ?, ?, ?, ?, ?)
        """, key, last, id, sender, columns.kind, columns.words, columns.content, reply, time,
        message.editCount, message.editTime, message.deleteTime, message.expireTime,
        message.forwardHops)
      if message.deleteTime == nil {
        let row = lastInsertRowID
        try remember(message.body.mentions, chat: key, sequence: last)
        if case .media(let media) = message.body {
          try hold(media.attachments, message: row, by: importer)
        }
        for reaction in message.reactions where Self.isReaction(reaction.emoji) {
          try run(
            """
            INSERT OR IGNORE INTO reaction(message_key, user_id, emoji, react_us)
            VALUES (?, ?, ?, ?)
            """, row, try account(id: reaction.user).key, reaction.emoji, reaction.time)
        }
      }
      imported += 1
    }
    guard imported > 0 else { return (0, messages.count) }
    try run(
      "UPDATE chat SET last_seq = ?, activity_us = max(activity_us, ?) WHERE chat_id = ?", last,
      time, key)
    try run(
      """
      UPDATE member SET read_seq = ?1, shown_seq = ?1, delivered_seq = ?1
      WHERE chat_id = ?2 AND state = 1
      """, last, key)
    return (imported, messages.count - imported)
  }

  /// Tells the members of a chat that it holds more: they fetch it afresh, since they are told of
  /// another time of joining.
  public func announceImport(_ chat: UUID) throws(StoreError) {
    let found = try first("SELECT chat_id, last_seq FROM chat WHERE uuid = ?", chat) {
      (key: $0.int(0), last: $0.int(1))
    }
    guard let found else { return }
    let members = try all("SELECT user_id FROM member WHERE chat_id = ? AND state = 1", found.key) {
      $0.int(0)
    }
    try run("UPDATE member SET join_us = join_us + 1 WHERE chat_id = ? AND state = 1", found.key)
    var keys = KeysetWriter()
    keys.int(found.last)
    let position = append(
      .chatUpserted, chat: found.key, keys: keys.bytes, payload: ChatMembers(users: members))
    try run("UPDATE chat SET last_pos = ? WHERE chat_id = ?", position, found.key)
  }

  private func newest(_ chat: Int64) throws(StoreError) -> (sequence: Int64, time: Int64) {
    try first(
      """
      SELECT last_seq, ifnull((SELECT sent_us FROM message m WHERE m.chat_id = c.chat_id
        AND m.seq = c.last_seq), 0) FROM chat c WHERE chat_id = ?
      """, chat
    ) { ($0.int(0), $0.int(1)) } ?? (0, 0)
  }

  /// The upload of a file of a source: the same when it is brought again.
  public static func uploadID(_ source: [UInt8], _ name: String) -> UUID {
    derived(source + Array("file \(name)".utf8))
  }

  /// A UUID that follows from bytes (RFC 9562, version 8).
  static func derived(_ bytes: [UInt8]) -> UUID {
    var digest = Array(SHA256.digest(bytes).prefix(16))
    digest[6] = digest[6] & 0x0f | 0x80
    digest[8] = digest[8] & 0x3f | 0x80
    return UUID(bytes: digest) ?? UUID.v7()
  }
}

extension ReadTransaction {
  /// The account with a handle, for those who hold the data folder.
  ///
  /// - Throws: `USER_NOT_FOUND`.
  public func account(named handle: String) throws(StoreError) -> Account {
    guard let account = try account(handle: handle) else {
      throw .notFound("USER_NOT_FOUND", type: "vencejo.auth.v1.User", name: handle)
    }
    return account
  }

  /// Who is or was in a chat and may be known to one of them: the senders of what they see, and
  /// who reacted to it.
  ///
  /// - Throws: `CHAT_NOT_FOUND`.
  public func people(of chat: UUID, for user: Int64) throws(StoreError) -> [Profile] {
    let place = try place(chat, of: user)
    let keys = try all(
      """
      SELECT sender_id FROM message
      WHERE chat_id = ?1 AND sender_id IS NOT NULL AND seq BETWEEN ?2 AND ?3
      UNION
      SELECT r.user_id FROM message m JOIN reaction r USING (message_key)
      WHERE m.chat_id = ?1 AND m.seq BETWEEN ?2 AND ?3
      ORDER BY 1 LIMIT 10000
      """, place.chat, place.visibleFrom, place.upperEnd
    ) { $0.int(0) }
    return try keys.compactMapThrowing { key throws(StoreError) in
      try profile(key: key, for: user)
    }
  }
}

extension Array {
  /// As `compactMap`, with the type of the error kept.
  func compactMapThrowing<T, E: Error>(_ transform: (Element) throws(E) -> T?) throws(E) -> [T] {
    var result: [T] = []
    for element in self {
      if let value = try transform(element) { result.append(value) }
    }
    return result
  }
}
