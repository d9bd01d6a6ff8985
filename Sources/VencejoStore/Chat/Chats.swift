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
        WHERE o.chat_id = c.chat_id AND o.user_id <> m.user_id) END,
      m.state, m.delivered_seq, c.description, c.ttl_us,
      c.send_role, c.add_role, c.edit_role, c.pin_role, c.shows_history, c.edit_window_us,
      c.delete_window_us, c.slow_us,
      s.mute_us, s.is_archived, s.pin_rank, s.is_marked_unread, s.mentions_only, s.draft_kind,
      s.draft_body, s.draft_content, s.draft_reply, s.draft_us, s.version, m.user_id
    FROM member m JOIN chat c USING (chat_id)
      LEFT JOIN chat_setting s ON s.chat_id = m.chat_id AND s.user_id = m.user_id
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
      "WHERE m.user_id = ? AND m.chat_id = ? AND c.delete_us IS NULL", [user, key], for: user,
      asOf: asOf
    ).first
    guard let found else {
      throw .notFound("CHAT_NOT_FOUND", type: "vencejo.chat.v1.Chat", name: "chats/\(id)")
    }
    return found
  }

  func chats(
    _ clause: String, _ values: [any SQLiteBindable], for user: Int64, asOf: Int64? = nil
  ) throws(StoreError) -> [ChatView] {
    let userID = try userID(user) ?? UUID.v7(milliseconds: 0)
    var bare: [ChatView] = []
    try each(dynamic: "\(Self.chatColumns) \(clause)", values) { row in
      if let chat = Self.view(row, userID, asOf: asOf) { bare.append(chat) }
      return true
    }
    var result: [ChatView] = []
    result.reserveCapacity(bare.count)
    for chat in bare { result.append(try completed(chat, user, asOf: asOf)) }
    return result
  }

  /// What the row itself holds.
  private static func view(_ row: Row, _ user: UUID, asOf: Int64?) -> ChatView? {
    guard let id = row.uuid(1) else { return nil }
    let visibleTo = row.optionalInt(13)
    let read = min(row.int(14), asOf ?? .max)
    let membership = Membership(
      user: user, role: MemberRole(rawValue: row.int(10)) ?? .member,
      state: MemberState(rawValue: row.int(17)) ?? .left, joinTime: row.int(11),
      visibleFrom: row.int(12), visibleTo: visibleTo, readSequence: read,
      deliveredSequence: max(read, min(row.int(18), asOf ?? .max)), version: row.int(15))
    return ChatView(
      key: row.int(0), id: id, kind: ChatKind(rawValue: row.int(2)) ?? .group,
      title: row.text(3), description: row.text(19), peer: row.uuid(16), memberCount: row.int(4),
      createTime: row.int(5), updateTime: row.int(6), activityTime: row.int(7),
      lastSequence: min(row.int(8), asOf ?? .max, visibleTo ?? .max), lastMessage: nil,
      messageTTL: row.optionalInt(20), policy: ChatPolicy(row, 21), membership: membership,
      settings: ChatSettings(row, 29), unread: .none, pinned: [], version: row.int(9))
  }

  /// With what other tables hold.
  private func completed(_ chat: ChatView, _ user: Int64, asOf: Int64?) throws(StoreError)
    -> ChatView
  {
    let newest = try messages(
      chat.key, chat.id, reader: user, in: .upTo, "ORDER BY m.seq DESC LIMIT 1",
      [chat.lastSequence])
    var chat = chat
    chat.lastMessage = try marked(
      newest, chat: chat.key, reader: user, memberCount: chat.memberCount
    ).first
    if asOf != nil { chat.activityTime = newest.first?.sendTime ?? chat.createTime }
    chat.unread = try unread(
      chat.key, user, after: chat.membership.readSequence, to: chat.lastSequence)
    // CROSS, for the order: pins are few, and messages many.
    chat.pinned = try all(
      """
      SELECT p.seq FROM pin p CROSS JOIN message m ON m.chat_id = p.chat_id AND m.seq = p.seq
      WHERE p.chat_id = ? AND p.seq BETWEEN ? AND ? AND (p.until_us IS NULL OR p.until_us > ?4)
        AND (m.expire_us IS NULL OR m.expire_us > ?4)
      ORDER BY p.pin_us DESC, p.seq DESC
      """, chat.key, chat.membership.visibleFrom, chat.lastSequence, now
    ) { $0.int(0) }
    return chat
  }

  /// The chat list: pinned first by rank, then latest activity first.
  ///
  /// - Throws: `BAD_PAGE_SIZE`, `BAD_PAGE_TOKEN`, `PAGE_TOKEN_MISMATCH`.
  public func listChats(pageSize: Int32 = 0, pageToken: String = "", for user: Int64)
    throws(StoreError) -> ChatPage
  {
    let size = try ChatLimits.page(pageSize)
    var arguments = KeysetWriter()
    arguments.text("ListChats")
    arguments.int(user)
    // Unpinned chats come after all ranks.
    var bound: (rank: Int64, activity: Int64, key: Int64) = (-1, .max, .max)
    if !pageToken.isEmpty {
      var keyset = try tokens.keyset(ofPageToken: pageToken, arguments: arguments)
      guard let rank = keyset.int(), let activity = keyset.int(), let key = keyset.int() else {
        throw TokenAuthority.badPageToken
      }
      bound = (rank, activity, key)
    }
    // Sorted by what sorts them alone: whole rows of all the user's chats would be carried along.
    let found = try chats(
      """
      WHERE m.user_id = ?1 AND m.chat_id IN (
          SELECT c.chat_id FROM member m JOIN chat c USING (chat_id)
            LEFT JOIN chat_setting s ON s.chat_id = m.chat_id AND s.user_id = m.user_id
          WHERE m.user_id = ?1 AND m.state = 1 AND c.delete_us IS NULL AND (\(Self.rank) > ?2
            OR (\(Self.rank) = ?2 AND (c.activity_us, c.chat_id) < (?3, ?4)))
          ORDER BY \(Self.rank), c.activity_us DESC, c.chat_id DESC LIMIT ?5)
      ORDER BY \(Self.rank), c.activity_us DESC, c.chat_id DESC
      """, [user, bound.rank, bound.activity, bound.key, size + 1], for: user)
    let page = Array(found.prefix(size))
    var next = ""
    if found.count > size, let last = page.last {
      var keyset = KeysetWriter()
      keyset.int(last.settings.pinRank == 0 ? Self.unpinnedRank : last.settings.pinRank)
      keyset.int(last.activityTime)
      keyset.int(last.key)
      next = tokens.pageToken(keyset: keyset, arguments: arguments)
    }
    return ChatPage(
      chats: page, nextPageToken: next,
      resumeToken: tokens.resumeToken(.chat, position: try head(), now: now))
  }

  private static let unpinnedRank: Int64 = 1_000_000_000
  private static let rank = "ifnull(nullif(s.pin_rank, 0), \(unpinnedRank))"

  /// The most recent chats with their newest messages, most recent first.
  public func snapshot(
    chatLimit: Int, messagesPerChat: Int, chats only: Set<UUID>?, for user: Int64
  ) throws(StoreError) -> [ChatSnapshot] {
    guard chatLimit > 0 else { return [] }
    let found = try chats(
      """
      WHERE m.user_id = ?1 AND m.chat_id IN (
          SELECT c.chat_id FROM member m JOIN chat c USING (chat_id)
          WHERE m.user_id = ?1 AND m.state = 1 AND c.delete_us IS NULL
          ORDER BY c.activity_us DESC, c.chat_id DESC LIMIT ?2)
      ORDER BY c.activity_us DESC, c.chat_id DESC
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
