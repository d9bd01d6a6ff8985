public import VencejoCrypto
import VencejoSQLite

/// A chat through the eyes of one who is or was in it; internal.
struct Place {
  let chat: Int64
  let chatID: UUID
  let kind: ChatKind
  let memberCount: Int64
  let lastSequence: Int64
  let user: Int64
  let role: MemberRole
  let isMember: Bool
  let readSequence: Int64
  let shownSequence: Int64
  let deliveredSequence: Int64
  let visibleFrom: Int64
  let visibleTo: Int64?
  let ttl: Int64?
  let lastSend: Int64
  let policy: ChatPolicy
  let version: Int64

  /// The last sequence to be seen from here.
  var upperEnd: Int64 { min(lastSequence, visibleTo ?? .max) }

  /// - Throws: `NOT_A_MEMBER`.
  func requireMember() throws(StoreError) {
    guard isMember else {
      throw StoreError(.permissionDenied, "NOT_A_MEMBER", "you are no longer in this chat")
    }
  }

  /// - Throws: `NOT_A_MEMBER`, `ROLE_TOO_LOW`.
  func require(_ least: MemberRole) throws(StoreError) {
    try requireMember()
    guard role >= least else {
      throw StoreError(
        .permissionDenied, "ROLE_TOO_LOW", "this needs the role \(least.name) in the chat",
        metadata: ["required_role": least.name])
    }
  }

  /// - Throws: `WRONG_CHAT_KIND`, for what only groups and channels have.
  func requireShared() throws(StoreError) {
    guard kind.isShared else {
      throw StoreError(
        .failedPrecondition, "WRONG_CHAT_KIND", "only groups and channels have this")
    }
  }
}

/// A stretch of a chat's sequences. It becomes one bound on either side: of several bounds SQLite
/// takes one into the index, and reads all rows that the others leave out.
enum MessageRange {
  case all
  /// Below ?4.
  case before
  /// Up to ?4.
  case upTo
  /// Above ?4.
  case after
  /// Above ?4 and up to ?5.
  case between

  fileprivate var low: String {
    switch self {
    case .all, .before, .upTo: "me.visible_from"
    case .after, .between: "max(me.visible_from, ?4 + 1)"
    }
  }

  fileprivate var high: String {
    let last =
      Mutation.skipMembership.isOn
      ? "9223372036854775807" : "ifnull(me.visible_to, 9223372036854775807)"
    return switch self {
    case .all, .after: last
    case .before: "min(\(last), ?4 - 1)"
    case .upTo: "min(\(last), ?4)"
    case .between: "min(\(last), ?5)"
    }
  }
}

extension ReadTransaction {
  /// The one filter over messages: what the reader ?1 may see of the chat ?2 at the time ?3.
  /// Every path goes through it, answers and events alike.
  static func visibleMessages(_ range: MessageRange) -> String {
    """
    FROM message m JOIN member me ON me.chat_id = m.chat_id AND me.user_id = ?1
    WHERE m.chat_id = ?2 AND m.seq >= \(range.low) AND m.seq <= \(range.high)
      AND (m.expire_us IS NULL OR m.expire_us > ?3)
      AND NOT EXISTS (SELECT 1 FROM message_hidden h WHERE h.user_id = ?1
        AND h.chat_id = m.chat_id AND h.first_seq <= m.seq AND h.last_seq >= m.seq)
      AND NOT EXISTS (SELECT 1 FROM block b WHERE \(Mutation.skipBlock.isOn ? "0 AND" : "") b.user_id = ?1 AND b.blocked_id = m.sender_id
        AND b.from_key < m.message_key AND (b.to_key IS NULL OR b.to_key >= m.message_key))
    """
  }

  private static let messageColumns = """
    SELECT m.message_key, m.uuid, m.seq, m.sender_id,
      (SELECT uuid FROM user WHERE user_id = m.sender_id), m.kind, m.body, m.content, m.sent_us,
      m.version, m.edit_count, m.edit_us, m.delete_us, m.expire_us, m.forward_hops,
      m.is_imported, m.reply_seq,
      EXISTS (SELECT 1 FROM reaction r WHERE r.message_key = m.message_key),
      EXISTS (SELECT 1 FROM pin p WHERE p.chat_id = m.chat_id AND p.seq = m.seq
        AND (p.until_us IS NULL OR p.until_us > ?3)),
      EXISTS (SELECT 1 FROM star s WHERE s.user_id = ?1 AND s.chat_id = m.chat_id
        AND s.seq = m.seq)
    """

  private static let everyMessage = "\(messageColumns) \(visibleMessages(.all)) "
  private static let messagesBefore = "\(messageColumns) \(visibleMessages(.before)) "
  private static let messagesUpTo = "\(messageColumns) \(visibleMessages(.upTo)) "
  private static let messagesAfter = "\(messageColumns) \(visibleMessages(.after)) "
  private static let messagesBetween = "\(messageColumns) \(visibleMessages(.between)) "

  private static func messageQuery(_ range: MessageRange) -> String {
    switch range {
    case .all: everyMessage
    case .before: messagesBefore
    case .upTo: messagesUpTo
    case .after: messagesAfter
    case .between: messagesBetween
    }
  }

  /// The caller's place in a chat. Who is not in it hears that it does not exist.
  func place(_ chat: UUID, of user: Int64) throws(StoreError) -> Place {
    let found = try first(
      """
      SELECT c.chat_id, c.kind, c.member_count, c.last_seq, m.state, m.read_seq, m.visible_from,
        m.visible_to, m.role, m.delivered_seq, c.ttl_us, m.last_send_us, c.send_role, c.add_role,
        c.edit_role, c.pin_role, c.shows_history, c.edit_window_us, c.delete_window_us, c.slow_us,
        m.shown_seq, c.version
      FROM chat c JOIN member m USING (chat_id)
      WHERE c.uuid = ? AND m.user_id = ? AND c.delete_us IS NULL
      """, chat, user
    ) { row in
      Place(
        chat: row.int(0), chatID: chat, kind: ChatKind(rawValue: row.int(1)) ?? .group,
        memberCount: row.int(2), lastSequence: row.int(3), user: user,
        role: MemberRole(rawValue: row.int(8)) ?? .reader, isMember: row.int(4) == 1,
        readSequence: row.int(5), shownSequence: row.int(20), deliveredSequence: row.int(9),
        visibleFrom: row.int(6), visibleTo: row.optionalInt(7), ttl: row.optionalInt(10),
        lastSend: row.int(11), policy: ChatPolicy(row, 12), version: row.int(21))
    }
    guard let found else {
      throw .notFound("CHAT_NOT_FOUND", type: "vencejo.chat.v1.Chat", name: "chats/\(chat)")
    }
    return found
  }

  /// Messages of a chat that `reader` may see; `clause` goes on after `WHERE …`, with values
  /// from ?4 on, the range's first.
  func messages(
    _ chat: Int64, _ chatID: UUID, reader: Int64, in range: MessageRange = .all, _ clause: String,
    _ values: [any SQLiteBindable]
  ) throws(StoreError) -> [StoredMessage] {
    var result: [StoredMessage] = []
    var replies: [(index: Int, sequence: Int64)] = []
    var reacted: [Int] = []
    var polls: [Int] = []
    let all: [any SQLiteBindable] = [reader, chat, now] + values
    try each(dynamic: Self.messageQuery(range) + clause, all) { row in
      guard let message = Self.message(chatID, row) else { return true }
      if let reply = row.optionalInt(16) { replies.append((result.count, reply)) }
      if row.bool(17) { reacted.append(result.count) }
      if case .poll = message.body { polls.append(result.count) }
      result.append(message)
      return true
    }
    for index in reacted {
      result[index].reactions = try reactions(result[index].key, reader: reader)
    }
    for index in polls { try countVotes(&result[index], reader: reader) }
    for (index, sequence) in replies {
      result[index].quote = try quote(chat, sequence)
    }
    return result
  }

  private static func message(_ chat: UUID, _ row: Row) -> StoredMessage? {
    guard let id = row.uuid(1) else { return nil }
    let columns = BodyColumns(kind: row.int(5), words: row.text(6), content: row.optionalBlob(7))
    let deleted = row.optionalInt(12)
    guard let body = deleted == nil ? columns.body : .deleted else { return nil }
    return StoredMessage(
      key: row.int(0), chat: chat, id: id, sequence: row.int(2), sender: row.uuid(4),
      senderKey: row.optionalInt(3), sendTime: row.int(8), body: body, quote: nil,
      forwardHops: row.int(14), editCount: row.int(10), editTime: row.optionalInt(11),
      deleteTime: deleted, expireTime: row.optionalInt(13), isPinned: row.bool(18),
      isStarred: row.bool(19), isImported: row.bool(15), version: row.int(9))
  }

  /// What a reply shows of its message: the text as it is now, for all readers alike. Whoever
  /// replies shows it on purpose, also to those who joined later.
  func quote(_ chat: Int64, _ sequence: Int64) throws(StoreError) -> Quote? {
    let found = try first(
      """
      SELECT m.uuid, u.uuid, m.kind, m.body, m.content, m.delete_us IS NOT NULL
        OR (m.expire_us IS NOT NULL AND m.expire_us <= ?)
      FROM message m LEFT JOIN user u ON u.user_id = m.sender_id
      WHERE m.chat_id = ? AND m.seq = ?
      """, now, chat, sequence
    ) { row -> Quote? in
      guard let id = row.uuid(0) else { return nil }
      let isGone = row.bool(5)
      let columns = BodyColumns(kind: row.int(2), words: row.text(3), content: row.optionalBlob(4))
      return Quote(
        id: id, sender: row.uuid(1), excerpt: isGone ? "" : columns.body?.excerpt ?? "",
        isDeleted: isGone)
    }
    return found ?? nil
  }

  /// Who chose what, most chosen first.
  func reactions(_ message: Int64, reader: Int64) throws(StoreError) -> [ReactionSummary] {
    try all(
      """
      SELECT emoji, count(*), max(user_id = ?) FROM reaction WHERE message_key = ?
      GROUP BY emoji ORDER BY 2 DESC, min(react_us), emoji
      """, reader, message
    ) { ReactionSummary(emoji: $0.text(0), count: $0.int(1), isMine: $0.bool(2)) }
  }

  private func countVotes(_ message: inout StoredMessage, reader: Int64) throws(StoreError) {
    guard case .poll(var poll) = message.body else { return }
    var votes: [Int64: (Int64, Bool)] = [:]
    try each(
      """
      SELECT option_id, count(*), max(user_id = ?) FROM poll_vote WHERE message_key = ?
      GROUP BY option_id
      """, [reader, message.key]
    ) {
      votes[$0.int(0)] = ($0.int(1), $0.bool(2))
      return true
    }
    for index in poll.options.indices {
      guard let (count, isMine) = votes[poll.options[index].id] else { continue }
      poll.options[index].votes = count
      poll.options[index].isVoted = isMine
    }
    message.body = .poll(poll)
  }

  /// Says of the caller's own messages how far they got: the least marker of the others.
  ///
  /// Above ``ChatLimits/receiptMembers`` nobody's marker is looked at.
  func marked(_ messages: [StoredMessage], chat: Int64, reader: Int64, memberCount: Int64)
    throws(StoreError) -> [StoredMessage]
  {
    guard memberCount > 1, memberCount <= ChatLimits.receiptMembers,
      messages.contains(where: { $0.senderKey == reader })
    else { return messages }
    let least = try first(
      """
      SELECT min(max(m.delivered_seq, m.shown_seq)),
        min(CASE WHEN u.hides_receipts = 0 THEN m.shown_seq END),
        (SELECT hides_receipts FROM user WHERE user_id = ?2)
      FROM member m JOIN user u USING (user_id)
      WHERE m.chat_id = ?1 AND m.user_id <> ?2 AND m.state = 1
      """, chat, reader
    ) { (delivered: $0.int(0), read: $0.bool(2) ? nil : $0.optionalInt(1)) }
    guard let least else { return messages }
    return messages.map { message in
      guard message.senderKey == reader else { return message }
      var message = message
      if let read = least.read, message.sequence <= read {
        message.delivery = .read
      } else if message.sequence <= least.delivered {
        message.delivery = .delivered
      }
      return message
    }
  }

  /// One message by its id.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `MESSAGE_NOT_FOUND`.
  public func message(_ id: UUID, in chat: UUID, for user: Int64) throws(StoreError)
    -> StoredMessage
  {
    try message(id, try place(chat, of: user))
  }

  func message(_ id: UUID, _ place: Place) throws(StoreError) -> StoredMessage {
    let found = try messages(
      place.chat, place.chatID, reader: place.user, "AND m.uuid = ?4", [id])
    guard
      let message = try marked(
        found, chat: place.chat, reader: place.user, memberCount: place.memberCount
      ).first
    else {
      throw .notFound(
        "MESSAGE_NOT_FOUND", type: "vencejo.chat.v1.Message",
        name: "chats/\(place.chatID)/messages/\(id)")
    }
    return message
  }

  func message(sequence: Int64, _ place: Place) throws(StoreError) -> StoredMessage? {
    try messages(
      place.chat, place.chatID, reader: place.user, "AND m.seq = ?4", [sequence]
    ).first
  }
}

extension ChatPolicy {
  /// From eight columns of a row, in the order of the schema.
  init(_ row: Row, _ at: Int) {
    self.init()
    sendMessages = MemberRole(rawValue: row.int(at)) ?? .member
    addMembers = MemberRole(rawValue: row.int(at + 1)) ?? .member
    editInfo = MemberRole(rawValue: row.int(at + 2)) ?? .member
    pinMessages = MemberRole(rawValue: row.int(at + 3)) ?? .member
    showsHistory = row.bool(at + 4)
    editWindow = row.optionalInt(at + 5)
    deleteWindow = row.optionalInt(at + 6)
    slowMode = row.int(at + 7)
  }
}
