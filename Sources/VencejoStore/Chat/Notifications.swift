public import VencejoCrypto
import VencejoSQLite

/// Why a user is notified; raw values as on the wire.
public enum NotificationKind: Int64, Sendable, Hashable {
  /// Only pushed.
  case message = 1
  case mention = 2
  case reply = 3
  case reaction = 4
  case addedToChat = 5
}

/// What calls for a user's attention, as it is now.
public struct UserNotification: Sendable, Hashable {
  /// Internal key; 0 of what is only pushed.
  public let key: Int64
  public let id: UUID
  public let user: UUID
  public let kind: NotificationKind
  public let chat: UUID
  /// Nil where it is about the chat.
  public var message: StoredMessage?
  public let actor: UUID?
  public let excerpt: String
  public let createTime: Int64
  public let readTime: Int64?
}

public struct NotificationPage: Sendable {
  public let notifications: [UserNotification]
  public let nextPageToken: String
  /// Exact up to 999.
  public let unread: Int
}

extension ChatLimits {
  /// Users who are notified because everyone is called, or because a chat is made.
  static let notifiedAtOnce = 256
  /// Microseconds after which notifications are forgotten.
  static let notificationLife: Int64 = 90 * 86_400_000_000
  /// Notifications looked through for one page: those that show nothing any more are passed over.
  static let notificationScan = 2000
}

extension ReadTransaction {
  /// What one user may see of a notification; nil when there is nothing left to be seen of it.
  func notification(_ key: Int64, for user: Int64) throws(StoreError) -> UserNotification? {
    let found = try first(
      """
      SELECT n.uuid, n.kind, n.chat_id, n.seq, n.actor_id, n.create_us, n.read_us, c.uuid, a.uuid,
        me.uuid
      FROM notification n JOIN chat c USING (chat_id) JOIN user me ON me.user_id = n.user_id
        LEFT JOIN user a ON a.user_id = n.actor_id
      WHERE n.notification_id = ? AND n.user_id = ? AND c.delete_us IS NULL
      """, key, user
    ) { row in
      (
        id: row.uuid(0), kind: NotificationKind(rawValue: row.int(1)), chat: row.int(2),
        sequence: row.int(3), actorKey: row.optionalInt(4), created: row.int(5),
        read: row.optionalInt(6), chatID: row.uuid(7), actor: row.uuid(8), me: row.uuid(9)
      )
    }
    guard let found, let id = found.id, let kind = found.kind, let chat = found.chatID,
      let me = found.me
    else { return nil }
    return try notification(
      key: key, id, user, me, kind, found.chat, chat, found.sequence, found.actorKey, found.actor,
      created: found.created, read: found.read)
  }

  /// The one place where it is decided what is left to be seen.
  func notification(
    key: Int64, _ id: UUID, _ user: Int64, _ userID: UUID, _ kind: NotificationKind, _ chat: Int64,
    _ chatID: UUID, _ sequence: Int64, _ actorKey: Int64?, _ actor: UUID?, created: Int64,
    read: Int64?
  ) throws(StoreError) -> UserNotification? {
    var message: StoredMessage?
    var excerpt = ""
    if kind == .addedToChat {
      let isMember = try first(
        "SELECT 1 FROM member WHERE chat_id = ? AND user_id = ? AND state = 1", chat, user
      ) { _ in true }
      guard isMember != nil else { return nil }
    } else {
      message = try messages(chat, chatID, reader: user, "AND m.seq = ?4", [sequence]).first
      guard let message, message.deleteTime == nil else { return nil }
      excerpt = message.body.excerpt
    }
    if kind == .reaction {
      let emoji = try first(
        "SELECT emoji FROM reaction WHERE message_key = ? AND user_id = ?", message?.key ?? 0,
        actorKey ?? 0
      ) { $0.text(0) }
      guard let emoji else { return nil }
      excerpt = emoji
    }
    let isBlocked = try first(
      "SELECT 1 FROM block WHERE user_id = ? AND blocked_id = ? AND to_key IS NULL", user, actorKey
    ) { _ in true }
    guard isBlocked == nil else { return nil }
    return UserNotification(
      key: key, id: id, user: userID, kind: kind, chat: chatID, message: message, actor: actor,
      excerpt: excerpt, createTime: created, readTime: read)
  }

  /// The caller's notifications, newest first.
  ///
  /// - Throws: `BAD_PAGE_SIZE`, `BAD_PAGE_TOKEN`, `PAGE_TOKEN_MISMATCH`.
  public func listNotifications(
    unreadOnly: Bool, pageSize: Int32 = 0, pageToken: String = "", for user: Int64
  ) throws(StoreError) -> NotificationPage {
    let size = try ChatLimits.page(pageSize)
    let (arguments, token) = try keyset(
      unreadOnly ? "ListNotifications-" : "ListNotifications", nil, user, pageToken)
    var before = token == 0 ? Int64.max : token
    var result: [UserNotification] = []
    var looked = 0
    var isEnd = false
    while result.count < size, looked < ChatLimits.notificationScan, !isEnd {
      let keys = try all(
        """
        SELECT notification_id FROM notification
        WHERE user_id = ? AND notification_id < ? AND (? = 0 OR read_us IS NULL)
        ORDER BY notification_id DESC LIMIT 100
        """, user, before, unreadOnly
      ) { $0.int(0) }
      isEnd = keys.count < 100
      for key in keys {
        guard result.count < size else {
          isEnd = false
          break
        }
        before = key
        looked += 1
        if let notification = try notification(key, for: user) { result.append(notification) }
      }
    }
    return NotificationPage(
      notifications: result, nextPageToken: isEnd ? "" : self.token(before, arguments),
      unread: try unreadNotifications(of: user))
  }

  /// Unread notifications that still show something; exact up to 999.
  public func unreadNotifications(of user: Int64) throws(StoreError) -> Int {
    let keys = try all(
      """
      SELECT notification_id FROM notification WHERE user_id = ? AND read_us IS NULL
      ORDER BY notification_id DESC LIMIT 999
      """, user
    ) { $0.int(0) }
    var count = 0
    for key in keys where try notification(key, for: user) != nil { count += 1 }
    return count
  }
}

extension WriteTransaction {
  /// Notes whom a new message calls: those it mentions, and whom it replies to. Whoever blocks
  /// the sender hears nothing.
  func notify(of message: StoredMessage, chat: Int64, reply: Int64?, by sender: Int64)
    throws(StoreError)
  {
    var told: Set<Int64> = [sender]
    for mention in message.body.mentions {
      for user in try called(by: mention, in: chat) where told.insert(user).inserted {
        try notify(user, .mention, chat, message.sequence, by: sender)
      }
    }
    guard let reply else { return }
    let author = try first(
      """
      SELECT m.user_id FROM message r JOIN member m ON m.chat_id = r.chat_id
        AND m.user_id = r.sender_id
      WHERE r.chat_id = ? AND r.seq = ? AND m.state = 1
      """, chat, reply
    ) { $0.int(0) }
    if let author, told.insert(author).inserted {
      try notify(author, .reply, chat, message.sequence, by: sender)
    }
  }

  /// Nobody where everyone is called in a chat too big for it.
  private func called(by mention: Mention, in chat: Int64) throws(StoreError) -> [Int64] {
    if let user = mention.user {
      return try all(
        """
        SELECT m.user_id FROM user u JOIN member m USING (user_id)
        WHERE u.uuid = ? AND m.chat_id = ? AND m.state = 1
        """, user, chat
      ) { $0.int(0) }
    }
    return try all(
      """
      SELECT m.user_id FROM chat c JOIN member m USING (chat_id)
      WHERE c.chat_id = ? AND m.state = 1 AND c.member_count <= ?
      """, chat, ChatLimits.notifiedAtOnce
    ) { $0.int(0) }
  }

  /// Notes that somebody reacted; once for each of them, however often they change their mind.
  func notifyReaction(to message: StoredMessage, chat: Int64, by actor: Int64) throws(StoreError) {
    guard let author = message.senderKey, author != actor,
      try first(
        "SELECT 1 FROM member WHERE chat_id = ? AND user_id = ? AND state = 1", chat, author,
        read: { _ in true }) != nil,
      try first(
        """
        SELECT 1 FROM notification
        WHERE chat_id = ? AND seq = ? AND user_id = ? AND kind = 4 AND actor_id = ?
        """, chat, message.sequence, author, actor, read: { _ in true }) == nil
    else { return }
    try notify(author, .reaction, chat, message.sequence, by: actor)
  }

  func notify(
    _ user: Int64, _ kind: NotificationKind, _ chat: Int64, _ sequence: Int64, by actor: Int64
  ) throws(StoreError) {
    let isBlocked = try first(
      "SELECT 1 FROM block WHERE user_id = ? AND blocked_id = ? AND to_key IS NULL", user, actor
    ) { _ in true }
    guard isBlocked == nil else { return }
    try run(
      """
      INSERT INTO notification(uuid, user_id, kind, chat_id, seq, actor_id, create_us)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      """, UUID.v7(milliseconds: now / 1000), user, kind.rawValue, chat, sequence, actor, now)
    var keys = KeysetWriter()
    keys.int(lastInsertRowID)
    append(.notificationCreated, user: user, keys: keys.bytes)
  }

  /// Marks the caller's notifications as read, all of them when none is named; answers how many
  /// are unread then.
  ///
  /// - Throws: `LIMIT_EXCEEDED` above 200.
  public func markNotificationsRead(_ ids: [UUID], by user: Int64) throws(StoreError) -> Int {
    guard ids.count <= ChatLimits.pageMaximum else {
      throw ChatLimits.exceeded("names", Int64(ChatLimits.pageMaximum))
    }
    var keys = KeysetWriter()
    var changed = 0
    if ids.isEmpty {
      changed = try run(
        "UPDATE notification SET read_us = ? WHERE user_id = ? AND read_us IS NULL", now, user)
    }
    for id in ids {
      let count = try run(
        "UPDATE notification SET read_us = ? WHERE user_id = ? AND uuid = ? AND read_us IS NULL",
        now, user, id)
      if count > 0 { keys.raw(id.bytes) }
      changed += count
    }
    if changed > 0 { append(.notificationsRead, user: user, keys: keys.bytes) }
    return try unreadNotifications(of: user)
  }

  /// Forgets up to 1,000 notifications past their time; answers whether there may be more.
  @discardableResult
  public func sweepNotifications() throws(StoreError) -> Bool {
    try run(
      """
      DELETE FROM notification WHERE notification_id IN
        (SELECT notification_id FROM notification WHERE create_us < ? ORDER BY create_us LIMIT 1000)
      """, now - ChatLimits.notificationLife) == 1000
  }
}
