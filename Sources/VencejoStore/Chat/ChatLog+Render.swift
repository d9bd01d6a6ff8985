import VencejoCrypto
import VencejoSQLite

/// How an entry of the log becomes what one user sees, from the rows of this snapshot.
extension ReadTransaction {
  func render(_ event: Scanned, for user: Int64, _ only: Set<UUID>?, _ hidesReceipts: Bool)
    throws(StoreError) -> ChatEvent?
  {
    var keys = KeysetReader(event.keys)
    if let chat = event.chatID {
      guard only?.contains(chat) ?? true else { return nil }
      return try render(event, chat, &keys, for: user, hidesReceipts)
    }
    return try renderOwn(event, &keys, for: user, only)
  }

  /// An event of a chat.
  private func render(
    _ event: Scanned, _ chat: UUID, _ keys: inout KeysetReader, for user: Int64,
    _ hidesReceipts: Bool
  ) throws(StoreError) -> ChatEvent? {
    switch event.kind {
    case .messageUpdated:
      guard let sequence = keys.int(), let fields = keys.int() else { return nil }
      return try visible(sequence, event.chat, chat, user).map {
        .messageUpdated($0, MessageFields(rawValue: fields))
      }
    case .messagesDeleted:
      guard let scope = keys.int().flatMap(DeletionScope.init(rawValue:)), let actor = keys.raw()
      else { return nil }
      return .messagesDeleted(
        Deletion(
          chat: chat, ranges: ranges(&keys), scope: scope, actor: UUID(bytes: actor)))
    case .reactionChanged:
      guard let sequence = keys.int(), let actor = keys.int() else { return nil }
      return try reaction(to: sequence, of: actor, event.chat, chat, user)
    case .chatUpserted:
      guard let sequence = keys.int() else { return nil }
      return try view(event.chat, for: user, asOf: sequence).map { .chatUpserted($0) }
    case .chatRemoved:
      return .chatRemoved(chat: chat, .deleted)
    case .memberChanged:
      guard let member = keys.int() else { return nil }
      return try memberChanged(member, event.chat, chat)
    case .receiptMoved:
      guard let reader = keys.raw().flatMap(UUID.init(bytes:)), var read = keys.int() else {
        return nil
      }
      let delivered = keys.int() ?? read
      if hidesReceipts, try userID(user) != reader { read = 0 }
      return .receiptMoved(
        ReceiptMarker(chat: chat, user: reader, read: read, delivered: delivered))
    case .unreadRecounted:
      guard let last = keys.int(), let gone = keys.int(),
        let read = try first(
          "SELECT read_seq FROM member WHERE chat_id = ? AND user_id = ?", event.chat, user,
          read: { $0.int(0) }), read < gone
      else { return nil }
      return .unreadChanged(
        chat: chat, try unread(event.chat, user, after: read, to: last),
        total: try totalUnread(of: user), read: min(read, last))
    default:
      return nil
    }
  }

  /// An event of one user.
  private func renderOwn(
    _ event: Scanned, _ keys: inout KeysetReader, for user: Int64, _ only: Set<UUID>?
  ) throws(StoreError) -> ChatEvent? {
    if event.kind == .profileChanged {
      guard let of = keys.int() else { return nil }
      return try profile(key: of, for: user).map { .profileChanged($0) }
    }
    if event.kind == .notificationCreated {
      guard let key = keys.int(), let notification = try notification(key, for: user),
        only?.contains(notification.chat) ?? true
      else { return nil }
      return .notificationCreated(notification)
    }
    if event.kind == .notificationsRead {
      guard let id = try userID(user) else { return nil }
      var read: [UUID] = []
      while let bytes = keys.raw() { read += UUID(bytes: bytes).map { [$0] } ?? [] }
      return .notificationsRead(user: id, read, unread: try unreadNotifications(of: user))
    }
    let member = event.kind == .memberChanged ? keys.int() : nil
    guard let key = keys.int(),
      let found = try first("SELECT uuid FROM chat WHERE chat_id = ?", key, read: { $0.uuid(0) }),
      let chat = found, only?.contains(chat) ?? true
    else { return nil }
    switch event.kind {
    case .unreadChanged:
      guard let read = keys.int(), let last = keys.int() else { return nil }
      return .unreadChanged(
        chat: chat, try unread(key, user, after: read, to: last),
        total: try totalUnread(of: user), read: read)
    case .chatUpserted:
      guard let sequence = keys.int() else { return nil }
      return try view(key, for: user, asOf: sequence).map { .chatUpserted($0) }
    case .chatRemoved:
      guard let reason = keys.int().flatMap(RemovalReason.init(rawValue:)) else { return nil }
      return .chatRemoved(chat: chat, reason)
    case .memberChanged:
      return try member.flatMap { member throws(StoreError) in
        try memberChanged(member, key, chat)
      }
    case .messagesDeleted:
      return .messagesDeleted(
        Deletion(chat: chat, ranges: ranges(&keys), scope: .forMe, actor: try userID(user)))
    case .ownMessageUpdated:
      guard let sequence = keys.int() else { return nil }
      return try visible(sequence, key, chat, user).map { .messageUpdated($0, .starred) }
    case .settingsChanged:
      return .settingsChanged(chat: chat, try settings(key, user))
    default:
      return nil
    }
  }

  private func visible(_ sequence: Int64, _ key: Int64, _ chat: UUID, _ user: Int64)
    throws(StoreError) -> StoredMessage?
  {
    try messages(key, chat, reader: user, "AND m.seq = ?4", [sequence]).first
  }

  private func view(_ key: Int64, for user: Int64, asOf: Int64) throws(StoreError) -> ChatView? {
    try chats(
      "WHERE m.user_id = ? AND m.chat_id = ? AND c.delete_us IS NULL", [user, key], for: user,
      asOf: asOf
    ).first
  }

  private func reaction(
    to sequence: Int64, of actor: Int64, _ key: Int64, _ chat: UUID, _ user: Int64
  ) throws(StoreError) -> ChatEvent? {
    guard let message = try visible(sequence, key, chat, user), let id = try userID(actor) else {
      return nil
    }
    let emoji = try first(
      "SELECT emoji FROM reaction WHERE message_key = ? AND user_id = ?", message.key, actor
    ) { $0.text(0) }
    return .reactionChanged(
      ReactionChange(
        chat: chat, message: message.id, sequence: sequence, user: id, emoji: emoji ?? "",
        reactions: message.reactions))
  }

  private func memberChanged(_ member: Int64, _ key: Int64, _ chat: UUID) throws(StoreError)
    -> ChatEvent?
  {
    guard let membership = try membership(member, key, reader: nil),
      let count = try first(
        "SELECT member_count FROM chat WHERE chat_id = ?", key, read: { $0.int(0) })
    else { return nil }
    return .memberChanged(chat: chat, membership, memberCount: count)
  }

  private func ranges(_ keys: inout KeysetReader) -> [SequenceRange] {
    var ranges: [SequenceRange] = []
    while let first = keys.int(), let last = keys.int() {
      ranges.append(SequenceRange(first, last))
    }
    return ranges
  }
}
