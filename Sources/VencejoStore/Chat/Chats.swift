public import VencejoCrypto
import VencejoSQLite

/// A page of the chat list.
public struct ChatPage: Sendable {
  public let chats: [ChatView]
  public let nextPageToken: String
  /// Of the snapshot the page was read from.
  public let resumeToken: String
}

/// A chat with its newest messages.
public struct ChatSnapshot: Sendable {
  public let chat: ChatView
  public let messages: [StoredMessage]
  public let hasOlderMessages: Bool
}

extension ReadTransaction {
  static let chatColumns = """
    SELECT c.chat_id, c.uuid, c.kind, c.title, c.member_count, c.create_us, c.update_us,
      c.activity_us, c.last_seq, c.version, m.role, m.join_us, m.visible_from, m.visible_to,
      m.read_seq, m.version,
      CASE c.kind WHEN 1 THEN (
        SELECT u.uuid FROM member o JOIN user u USING (user_id)
        WHERE o.chat_id = c.chat_id AND o.user_id <> m.user_id) END
    FROM member m JOIN chat c USING (chat_id)
    """

  /// A chat as `user` sees it.
  ///
  /// - Throws: `CHAT_NOT_FOUND`.
  public func chat(_ id: UUID, for user: Int64) throws(StoreError) -> ChatView {
    let place = try place(id, of: user)
    return try chat(key: place.chat, id, for: user, asOf: nil)
  }

  /// A chat by its key; `asOf` hides what came after that sequence.
  func chat(key: Int64, _ id: UUID, for user: Int64, asOf: Int64?) throws(StoreError) -> ChatView {
    let found = try chats(
      "WHERE m.user_id = ? AND m.chat_id = ?", [user, key], for: user, asOf: asOf
    ).first
    guard let found else {
      throw .notFound("CHAT_NOT_FOUND", type: "vencejo.chat.v1.Chat", name: "chats/\(id)")
    }
    return found
  }

  func chats(
    _ clause: String, _ values: [any SQLiteBindable], for user: Int64, asOf: Int64? = nil
  ) throws(StoreError) -> [ChatView] {
    struct Bare {
      let key: Int64, id: UUID, kind: ChatKind, title: String, members: Int64
      let created: Int64, updated: Int64, active: Int64, last: Int64, version: Int64
      let membership: Membership, peer: UUID?
    }
    var bare: [Bare] = []
    try each(dynamic: "\(Self.chatColumns) \(clause)", values) { row in
      guard let id = row.uuid(1) else { return true }
      let last = min(row.int(8), asOf ?? .max)
      let membership = Membership(
        role: MemberRole(rawValue: row.int(10)) ?? .member, joinTime: row.int(11),
        visibleFrom: row.int(12), visibleTo: row.optionalInt(13),
        readSequence: min(row.int(14), asOf ?? .max), version: row.int(15))
      bare.append(
        Bare(
          key: row.int(0), id: id, kind: ChatKind(rawValue: row.int(2)) ?? .group,
          title: row.text(3), members: row.int(4), created: row.int(5), updated: row.int(6),
          active: row.int(7), last: min(last, membership.visibleTo ?? .max),
          version: row.int(9), membership: membership, peer: row.uuid(16)))
      return true
    }
    var result: [ChatView] = []
    result.reserveCapacity(bare.count)
    for chat in bare {
      let from = chat.membership.visibleFrom
      let newest = try messages(
        chat.id, "WHERE m.chat_id = ? AND m.seq = ?",
        [chat.key, chat.last >= from ? chat.last : -1])
      let unread = try unread(
        chat.key, user, after: max(chat.membership.readSequence, from - 1), to: chat.last)
      result.append(
        ChatView(
          key: chat.key, id: chat.id, kind: chat.kind, title: chat.title, peer: chat.peer,
          memberCount: chat.members, createTime: chat.created, updateTime: chat.updated,
          activityTime: asOf == nil ? chat.active : newest.first?.sendTime ?? chat.created,
          lastSequence: chat.last,
          lastMessage: try marked(
            newest, chat: chat.key, reader: user, memberCount: chat.members
          ).first,
          membership: chat.membership, unread: unread, version: chat.version))
    }
    return result
  }

  /// The chat list, latest activity first.
  ///
  /// - Throws: `BAD_PAGE_SIZE`, `BAD_PAGE_TOKEN`, `PAGE_TOKEN_MISMATCH`.
  public func listChats(pageSize: Int32 = 0, pageToken: String = "", for user: Int64)
    throws(StoreError) -> ChatPage
  {
    let size = try ChatLimits.page(pageSize)
    var arguments = KeysetWriter()
    arguments.text("ListChats")
    arguments.int(user)
    var bound: (activity: Int64, key: Int64) = (.max, .max)
    if !pageToken.isEmpty {
      var keyset = try tokens.keyset(ofPageToken: pageToken, arguments: arguments)
      guard let activity = keyset.int(), let key = keyset.int() else {
        throw TokenAuthority.badPageToken
      }
      bound = (activity, key)
    }
    let found = try chats(
      """
      WHERE m.user_id = ? AND m.state = 1 AND (c.activity_us, c.chat_id) < (?, ?)
      ORDER BY c.activity_us DESC, c.chat_id DESC LIMIT ?
      """, [user, bound.activity, bound.key, size + 1], for: user)
    let page = Array(found.prefix(size))
    var next = ""
    if found.count > size, let last = page.last {
      var keyset = KeysetWriter()
      keyset.int(last.activityTime)
      keyset.int(last.key)
      next = tokens.pageToken(keyset: keyset, arguments: arguments)
    }
    return ChatPage(
      chats: page, nextPageToken: next,
      resumeToken: tokens.resumeToken(.chat, position: try head(), now: now))
  }

  /// The most recent chats with their newest messages, most recent first.
  public func snapshot(
    chatLimit: Int, messagesPerChat: Int, chats only: Set<UUID>?, for user: Int64
  ) throws(StoreError) -> [ChatSnapshot] {
    guard chatLimit > 0 else { return [] }
    let found = try chats(
      """
      WHERE m.user_id = ? AND m.state = 1 ORDER BY c.activity_us DESC, c.chat_id DESC LIMIT ?
      """, [user, only == nil ? chatLimit : 10_000], for: user)
    var result: [ChatSnapshot] = []
    for chat in found where only?.contains(chat.id) ?? true {
      guard result.count < chatLimit else { break }
      let messages =
        try messagesPerChat > 0
        ? newestMessages(chat, messagesPerChat, for: user) : []
      let oldest = messages.first?.sequence ?? chat.lastSequence + 1
      result.append(
        ChatSnapshot(
          chat: chat, messages: messages, hasOlderMessages: oldest > chat.membership.visibleFrom))
    }
    return result
  }
}
