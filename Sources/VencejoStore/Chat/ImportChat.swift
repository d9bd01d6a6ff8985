public import VencejoCrypto
import VencejoSQLite

/// A message from elsewhere, with the time it was sent there.
public struct ImportedMessage: Sendable {
  /// Nil for what a system said.
  public var sender: UUID?
  public var text: String
  /// Microseconds since the Unix epoch.
  public var time: Int64

  public init(sender: UUID?, text: String, time: Int64) {
    self.sender = sender
    self.text = text
    self.time = time
  }
}

/// What an import came to.
public struct ImportOutcome: Sendable, Hashable {
  public let chat: UUID
  public let imported: Int
  /// Were there already, from the same source.
  public let skipped: Int
}

extension WriteTransaction {
  /// Makes a chat of messages from elsewhere, or adds to the one an import from the same source
  /// made: what is there already is skipped.
  ///
  /// Messages keep their times, and are read by everybody. `source` is what makes two imports the
  /// same: bytes that the caller derives from it.
  ///
  /// - Throws: `BAD_TITLE`, `USER_NOT_FOUND`, `MESSAGE_TOO_LONG`.
  public func importChat(
    title: String, owner: UUID, source: [UInt8], _ messages: [ImportedMessage]
  ) throws(StoreError) -> ImportOutcome {
    let title = AccountRules.trimmed(title)
    try Self.checkTitle(title)
    let owner = try account(id: owner)
    var senders: [UUID: Account] = [owner.id: owner]
    for message in messages {
      guard let sender = message.sender, senders[sender] == nil else { continue }
      senders[sender] = try account(id: sender)
    }
    let (key, id) = try importedChat(title, owner, Array(senders.values), source)
    var imported = 0
    var (last, time) = try newest(key)
    for (index, message) in messages.enumerated() {
      guard message.text.utf8.count <= ChatLimits.textBytes else {
        throw .invalid("text", "MESSAGE_TOO_LONG", "a message has at most 64 KiB")
      }
      let name = Self.derived(source + Array("message \(index)".utf8))
      let known = try first("SELECT 1 FROM message WHERE uuid = ?", name) { _ in true }
      if known == true { continue }
      last += 1
      // Times grow with the sequence, here too.
      time = max(time + 1, message.time)
      try run(
        """
        INSERT INTO message(chat_id, seq, uuid, sender_id, kind, body, sent_us, version,
          is_imported)
        VALUES (?, ?, ?, ?, ?, ?, ?, 1, 1)
        """, key, last, name, message.sender.flatMap { senders[$0]?.key }, BodyColumns.text,
        message.text, time)
      imported += 1
    }
    guard imported > 0 else { return ImportOutcome(chat: id, imported: 0, skipped: messages.count) }
    try run(
      "UPDATE chat SET last_seq = ?, activity_us = max(activity_us, ?) WHERE chat_id = ?", last,
      time, key)
    try run(
      """
      UPDATE member SET read_seq = ?1, shown_seq = ?1, delivered_seq = ?1
      WHERE chat_id = ?2 AND state = 1
      """, last, key)
    // Clients fetch the chat afresh: they are told of another time of joining.
    try run("UPDATE member SET join_us = join_us + 1 WHERE chat_id = ? AND state = 1", key)
    var keys = KeysetWriter()
    keys.int(last)
    let position = append(
      .chatUpserted, chat: key, keys: keys.bytes,
      payload: ChatMembers(users: senders.values.map(\.key)))
    try run("UPDATE chat SET last_pos = ? WHERE chat_id = ?", position, key)
    return ImportOutcome(chat: id, imported: imported, skipped: messages.count - imported)
  }

  private func newest(_ chat: Int64) throws(StoreError) -> (sequence: Int64, time: Int64) {
    try first(
      """
      SELECT last_seq, ifnull((SELECT sent_us FROM message m WHERE m.chat_id = c.chat_id
        AND m.seq = c.last_seq), 0) FROM chat c WHERE chat_id = ?
      """, chat
    ) { ($0.int(0), $0.int(1)) } ?? (0, 0)
  }

  private func importedChat(
    _ title: String, _ owner: Account, _ members: [Account], _ source: [UInt8]
  ) throws(StoreError) -> (Int64, UUID) {
    let id = Self.derived(source + Array("chat".utf8))
    if let known = try first(
      "SELECT chat_id FROM chat WHERE uuid = ?", id, read: { $0.int(0) })
    {
      return (known, id)
    }
    let position = try head() + 1
    try run(
      """
      INSERT INTO chat(uuid, kind, title, member_count, last_seq, last_pos, create_us, update_us,
        activity_us, version, shows_history)
      VALUES (?, 2, ?, ?, 0, ?, ?, ?, 0, 1, 1)
      """, id, title, members.count, position, now, now)
    let key = lastInsertRowID
    for member in members {
      try run(
        """
        INSERT INTO member(chat_id, user_id, role, state, join_us, read_seq, shown_seq,
          visible_from, visible_to, from_pos, to_pos, version)
        VALUES (?, ?, ?, 1, ?, 0, 0, 1, NULL, ?, NULL, 1)
        """, key, member.key, member.key == owner.key ? 4 : 2, now, position)
    }
    return (key, id)
  }

  /// A UUID that follows from bytes (RFC 9562, version 8).
  private static func derived(_ bytes: [UInt8]) -> UUID {
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
}
