import VencejoCrypto
import VencejoSQLite

/// Something to be pushed, as found in the log.
public struct Push: Sendable, Hashable {
  let hook: Int64
  let kind: NotificationKind
  let chat: Int64
  let sequence: Int64
  let actor: Int64
  /// Key of the notification; 0 where the list has none.
  let notification: Int64
  let eventTime: Int64
  /// Whom it is for, by internal key.
  public let user: Int64
  /// Programs hear of everything, whether or not a stream of theirs is open.
  public let isForProgram: Bool
}

/// A stretch of the log, looked through for what is to be pushed.
public struct PushPage: Sendable {
  public let pushes: [Push]
  public let position: Int64
  public let isAtHead: Bool
}

extension ReadTransaction {
  /// Where the log is to be looked through from.
  public func pushCursor() throws(StoreError) -> Int64 {
    try first("SELECT pos FROM push_cursor") { $0.int(0) } ?? 0
  }

  /// What is to be pushed of what happened after a position.
  ///
  /// A message goes to the endpoints of every member who would want to hear it: not those who
  /// muted the chat or want mentions only, unless it calls them; not from a sender they block;
  /// not a silent one. Service accounts get every message of their chats.
  public func pushes(after position: Int64) throws(StoreError) -> PushPage {
    let head = try head()
    guard
      try first(
        "SELECT 1 FROM hook WHERE purpose = 1 AND state = 1 LIMIT 1", read: { _ in true }) != nil
    else { return PushPage(pushes: [], position: head, isAtHead: true) }
    var events:
      [(position: Int64, kind: EventKind, keys: [UInt8], chat: Int64, user: Int64, time: Int64)] =
        []
    var last = position
    var looked = 0
    try each(
      """
      SELECT pos, kind, keys, ifnull(chat_id, 0), ifnull(user_id, 0), commit_us FROM event
      WHERE pos > ? ORDER BY pos LIMIT 1000
      """, [position]
    ) { row in
      looked += 1
      last = row.int(0)
      let kind = EventKind(rawValue: row.int(1))
      if kind == .messageCreated || kind == .notificationCreated {
        events.append((last, kind, row.blob(2), row.int(3), row.int(4), row.int(5)))
      }
      return true
    }
    var result: [Push] = []
    for event in events {
      var keys = KeysetReader(event.keys)
      guard let key = keys.int() else { continue }
      if event.kind == .messageCreated {
        result += try pushes(ofMessage: key, event.chat, event.position, event.time)
      } else {
        result += try pushes(ofNotification: key, event.user, event.position, event.time)
      }
    }
    return PushPage(
      pushes: result, position: looked < 1000 ? max(last, head) : last, isAtHead: looked < 1000)
  }

  private func pushes(ofMessage sequence: Int64, _ chat: Int64, _ position: Int64, _ time: Int64)
    throws(StoreError) -> [Push]
  {
    // From the smaller side: the members of the chat, or all endpoints there are.
    let isBig = try first(
      """
      SELECT c.member_count > 1000 AND c.member_count > (SELECT count(*) FROM
        (SELECT 1 FROM hook WHERE purpose = 1 LIMIT 100000))
      FROM chat c WHERE c.chat_id = ?
      """, chat
    ) { $0.bool(0) }
    let from =
      isBig ?? false
      ? "hook h CROSS JOIN member m ON m.user_id = h.user_id"
      : "member m CROSS JOIN hook h ON h.user_id = m.user_id"
    var result: [Push] = []
    try each(
      dynamic: """
        SELECT h.hook_id, m.user_id, u.kind, x.sender_id, ifnull(n.kind, 1),
          ifnull(n.notification_id, 0)
        FROM \(from) JOIN user u ON u.user_id = m.user_id
          JOIN message x ON x.chat_id = m.chat_id AND x.seq = ?2
          LEFT JOIN chat_setting s ON s.user_id = m.user_id AND s.chat_id = m.chat_id
          LEFT JOIN notification n ON n.chat_id = m.chat_id AND n.seq = ?2
            AND n.user_id = m.user_id AND n.kind IN (2, 3)
        WHERE m.chat_id = ?1 AND m.state = 1 AND m.visible_from <= ?2
          AND h.purpose = 1 AND h.state = 1 AND h.from_pos < ?3
          AND x.sender_id IS NOT NULL AND x.sender_id <> m.user_id AND x.is_imported = 0
          AND (u.kind = 2 OR (x.is_silent = 0 AND (n.kind IS NOT NULL
            OR (ifnull(s.mentions_only, 0) = 0 AND ifnull(s.mute_us, 0) <= ?4))))
          AND NOT EXISTS (SELECT 1 FROM block b WHERE b.user_id = m.user_id
            AND b.blocked_id = x.sender_id AND b.from_key < x.message_key
            AND (b.to_key IS NULL OR b.to_key >= x.message_key))
        """, [chat, sequence, position, now]
    ) { row in
      result.append(
        Push(
          hook: row.int(0), kind: NotificationKind(rawValue: row.int(4)) ?? .message, chat: chat,
          sequence: sequence, actor: row.int(3), notification: row.int(5), eventTime: time,
          user: row.int(1), isForProgram: row.int(2) == AccountKind.service.rawValue))
      return true
    }
    return result
  }

  /// Mentions and replies go with their message.
  private func pushes(ofNotification key: Int64, _ user: Int64, _ position: Int64, _ time: Int64)
    throws(StoreError) -> [Push]
  {
    try all(
      """
      SELECT h.hook_id, n.kind, n.chat_id, n.seq, ifnull(n.actor_id, 0), u.kind
      FROM notification n JOIN hook h USING (user_id) JOIN user u USING (user_id)
        LEFT JOIN chat_setting s ON s.user_id = n.user_id AND s.chat_id = n.chat_id
      WHERE n.notification_id = ?1 AND n.kind IN (4, 5) AND h.purpose = 1 AND h.state = 1
        AND h.from_pos < ?2
        AND (u.kind = 2 OR (ifnull(s.mentions_only, 0) = 0 AND ifnull(s.mute_us, 0) <= ?3))
      """, key, position, now
    ) { row in
      Push(
        hook: row.int(0), kind: NotificationKind(rawValue: row.int(1)) ?? .message,
        chat: row.int(2), sequence: row.int(3), actor: row.int(4), notification: key,
        eventTime: time, user: user, isForProgram: row.int(5) == AccountKind.service.rawValue)
    }
  }

  /// What a delivery of ``HookKind/notification`` shows now: nil when nothing is left of it.
  public func notification(of delivery: HookDelivery) throws(StoreError) -> UserNotification? {
    var keys = KeysetReader(delivery.keys)
    guard let kind = keys.int().flatMap(NotificationKind.init(rawValue:)), let chat = keys.int(),
      let sequence = keys.int(), let actor = keys.int(), let key = keys.int()
    else { return nil }
    if key > 0 { return try notification(key, for: delivery.hook.user) }
    let found = try first(
      "SELECT uuid FROM chat WHERE chat_id = ? AND delete_us IS NULL", chat
    ) { $0.uuid(0) }
    guard let found, let chatID = found else { return nil }
    return try notification(
      key: 0, delivery.id, delivery.hook.user, delivery.hook.userID, kind, chat, chatID, sequence,
      actor, try userID(actor), created: delivery.eventTime, read: nil)
  }

  /// What to call the chat and the actor of a notification.
  public func names(of notification: UserNotification) throws(StoreError)
    -> (chatTitle: String, actorName: String)
  {
    let title = try first("SELECT title FROM chat WHERE uuid = ?", notification.chat) { $0.text(0) }
    let actor = try notification.actor.flatMap { actor throws(StoreError) in
      try first("SELECT display_name FROM user WHERE uuid = ?", actor) { $0.text(0) }
    }
    return (title ?? "", actor ?? "")
  }
}

extension WriteTransaction {
  /// Lets pushes wait for their hooks and notes how far the log was looked through.
  public func enqueue(_ pushes: [Push], upTo position: Int64) throws(StoreError) {
    for push in pushes {
      var keys = KeysetWriter()
      keys.int(push.kind.rawValue)
      keys.int(push.chat)
      keys.int(push.sequence)
      keys.int(push.actor)
      keys.int(push.notification)
      try enqueue(.notification, keys, for: push.hook, eventTime: push.eventTime)
    }
    try run("UPDATE push_cursor SET pos = max(pos, ?)", position)
  }

  /// Lets something about the server as a whole wait for the administrators who want it.
  func enqueueServerEvent(_ kind: HookKind, _ keys: KeysetWriter) throws(StoreError) {
    let hooks = try all(
      """
      SELECT h.hook_id FROM hook h JOIN user u USING (user_id)
      WHERE h.purpose = 1 AND h.state = 1 AND h.flags & 2 AND u.state = 1 AND u.role = 2
      """
    ) { $0.int(0) }
    for hook in hooks { try enqueue(kind, keys, for: hook, eventTime: now) }
  }
}
