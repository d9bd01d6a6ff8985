public import VencejoCrypto
import VencejoSQLite

/// A page of a chat's members.
public struct MemberPage: Sendable {
  public let members: [Membership]
  public let nextPageToken: String
  public let total: Int64
}

/// Who was added, and who could not be.
public struct AddedMembers: Sendable {
  public let members: [Membership]
  public let failures: [(user: UUID, error: StoreError)]
}

extension ReadTransaction {
  private static let memberColumns = """
    SELECT u.uuid, m.role, m.state, m.join_us, m.visible_from, m.visible_to, m.shown_seq,
      m.delivered_seq, m.version, m.user_id, u.hides_receipts, m.read_seq
    FROM member m JOIN user u USING (user_id)
    """

  /// A member as `reader` may see them: the own markers in full, others' as far as they are
  /// told; nil for a member who never was.
  func membership(_ user: Int64, _ chat: Int64, reader: Int64?) throws(StoreError) -> Membership? {
    try memberships(
      "WHERE m.chat_id = ? AND m.user_id = ?", [chat, user], reader: reader
    ).first?.member
  }

  private func memberships(
    _ clause: String, _ values: [any SQLiteBindable], reader: Int64?
  ) throws(StoreError) -> [(key: Int64, member: Membership)] {
    let hides = try reader.map { key throws(StoreError) in try hidesReceipts(key) } ?? true
    var result: [(Int64, Membership)] = []
    try each(dynamic: "\(Self.memberColumns) \(clause)", values) { row in
      guard let id = row.uuid(0) else { return true }
      let isOwn = row.int(9) == reader
      let read = isOwn ? row.int(11) : hides || row.bool(10) ? 0 : row.int(6)
      result.append(
        (
          row.int(9),
          Membership(
            user: id, role: MemberRole(rawValue: row.int(1)) ?? .member,
            state: MemberState(rawValue: row.int(2)) ?? .left, joinTime: row.int(3),
            visibleFrom: row.int(4), visibleTo: row.optionalInt(5), readSequence: read,
            deliveredSequence: reader == nil ? 0 : max(read, row.int(7)), version: row.int(8))
        ))
      return true
    }
    return result
  }

  /// The members of a chat in the order they came. Readers of a channel do not see each other.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `NOT_A_MEMBER`, `ROLE_TOO_LOW`, `BAD_PAGE_SIZE`,
  ///   `BAD_PAGE_TOKEN`, `PAGE_TOKEN_MISMATCH`.
  public func listMembers(
    _ chat: UUID, pageSize: Int32 = 0, pageToken: String = "", for user: Int64
  ) throws(StoreError) -> MemberPage {
    let size = try ChatLimits.page(pageSize)
    let place = try place(chat, of: user)
    try place.require(place.kind == .channel ? .member : .reader)
    var arguments = KeysetWriter()
    arguments.text("ListMembers")
    arguments.int(user)
    arguments.raw(chat.bytes)
    var after: Int64 = 0
    if !pageToken.isEmpty {
      var keyset = try tokens.keyset(ofPageToken: pageToken, arguments: arguments)
      guard let key = keyset.int() else { throw TokenAuthority.badPageToken }
      after = key
    }
    var found = try memberships(
      "WHERE m.chat_id = ? AND m.state = 1 AND m.user_id > ? ORDER BY m.user_id LIMIT ?",
      [place.chat, after, size + 1], reader: user)
    if place.memberCount > ChatLimits.receiptMembers || place.kind == .channel {
      for index in found.indices where found[index].key != user {
        found[index].member.readSequence = 0
        found[index].member.deliveredSequence = 0
      }
    }
    var next = ""
    if found.count > size, let last = found.prefix(size).last {
      var keyset = KeysetWriter()
      keyset.int(last.key)
      next = tokens.pageToken(keyset: keyset, arguments: arguments)
    }
    return MemberPage(
      members: found.prefix(size).map(\.member), nextPageToken: next, total: place.memberCount)
  }
}

extension WriteTransaction {
  /// Adds users to a group or channel.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `NOT_A_MEMBER`, `ROLE_TOO_LOW`, `WRONG_CHAT_KIND`,
  ///   `LIMIT_EXCEEDED`, `CHAT_FULL`, `BAD_ROLE`, `REQUEST_ID_REUSED`; what concerns one user only
  ///   is in the answer.
  public func addMembers(
    _ users: [UUID], role: MemberRole?, to chat: UUID, requestID: String = "", by user: Int64
  ) throws(StoreError) -> AddedMembers {
    guard users.count <= ChatLimits.addedAtOnce else {
      throw ChatLimits.exceeded("users", Int64(ChatLimits.addedAtOnce))
    }
    let place = try place(chat, of: user)
    var request = KeysetWriter()
    request.raw(chat.bytes)
    request.int(role?.rawValue ?? 0)
    for user in users { request.raw(user.bytes) }
    let isNew = try isNew("AddMembers", requestID, request, by: user)
    try place.requireShared()
    try place.require(place.policy.addMembers)
    let role = try newRole(role, place)
    var fresh: [Account] = []
    var failures: [(user: UUID, error: StoreError)] = []
    var seen: Set<UUID> = []
    var members: [Membership] = []
    for id in users where seen.insert(id).inserted {
      do throws(StoreError) {
        let account = try reachable(id)
        let old = try membership(account.key, place.chat, reader: user)
        if let old, old.state == .joined {
          members.append(old)
        } else if isNew {
          try mayAdd(account, old, place)
          fresh.append(account)
        }
      } catch { failures.append((id, error)) }
    }
    try refuseFull(place, adding: fresh.count)
    guard !fresh.isEmpty else { return AddedMembers(members: members, failures: failures) }
    try join(
      fresh, place.chat, chat, kind: place.kind, policy: place.policy, role: role, actor: user)
    for account in fresh {
      if let member = try membership(account.key, place.chat, reader: user) {
        members.append(member)
      }
    }
    return AddedMembers(members: members, failures: failures)
  }

  private func newRole(_ role: MemberRole?, _ place: Place) throws(StoreError) -> MemberRole {
    let role = role ?? (place.kind == .channel ? .reader : .member)
    guard role != .owner, role != .reader || place.kind == .channel else {
      throw .invalid("role", "BAD_ROLE", "nobody is added with this role")
    }
    if role > (place.kind == .channel ? .reader : .member) { try place.require(.admin) }
    return role
  }

  /// - Throws: `USER_BANNED`, `REFUSES_GROUPS`, `USER_NOT_FOUND`.
  private func mayAdd(_ account: Account, _ old: Membership?, _ place: Place) throws(StoreError) {
    if let old, old.state == .banned, place.role < .admin {
      throw StoreError(.permissionDenied, "USER_BANNED", "this user was banned from the chat")
    }
    try mayAdd(account, by: place.user)
  }

  /// - Throws: `REFUSES_GROUPS`.
  func mayAdd(_ account: Account, by user: Int64) throws(StoreError) {
    let refuses = try first(
      """
      SELECT refuses_adds OR EXISTS (SELECT 1 FROM block
        WHERE user_id = ?1 AND blocked_id = ?2 AND to_key IS NULL)
      FROM user WHERE user_id = ?1
      """, account.key, user
    ) { $0.bool(0) }
    // Who blocks the caller answers as one who refuses everybody: a block is not told.
    guard refuses != true else {
      throw StoreError(
        .permissionDenied, "REFUSES_GROUPS", "this user joins groups by invites only")
    }
  }

  func refuseFull(_ place: Place, adding count: Int) throws(StoreError) {
    let limit = place.kind == .channel ? ChatLimits.channelMembers : ChatLimits.groupMembers
    guard place.memberCount + Int64(count) <= limit else {
      throw StoreError(
        .failedPrecondition, "CHAT_FULL", "the chat has at most \(limit) members",
        metadata: ["limit": String(limit)],
        details: [.quota(subject: "members", description: "at most \(limit)")])
    }
  }

  /// Makes users members, from the next message on unless the chat shows its history, and tells
  /// everybody.
  func join(
    _ users: [Account], _ chat: Int64, _ chatID: UUID, kind: ChatKind, policy: ChatPolicy,
    role: MemberRole, actor: Int64
  ) throws(StoreError) {
    let position = try head() + 1
    let last = try first("SELECT last_seq FROM chat WHERE chat_id = ?", chat) { $0.int(0) } ?? 0
    for user in users {
      let old = try membership(user.key, chat, reader: user.key)
      if !policy.showsHistory, let old, let end = old.visibleTo, end < last {
        // The time between is not theirs to see.
        try hide(SequenceRange(end + 1, last), chat: chat, user: user.key)
      }
      let from = policy.showsHistory ? 1 : min(old?.visibleFrom ?? .max, last + 1)
      try run(
        """
        INSERT INTO member(chat_id, user_id, role, state, join_us, read_seq, shown_seq,
          delivered_seq, visible_from, visible_to, from_pos, to_pos, version)
        VALUES (?1, ?2, ?3, 1, ?4, ?5, ?5, ?5, ?6, NULL, ?7, NULL, 1)
        ON CONFLICT DO UPDATE SET role = excluded.role, state = 1, join_us = excluded.join_us,
          read_seq = max(read_seq, excluded.read_seq), visible_from = excluded.visible_from,
          visible_to = NULL, from_pos = excluded.from_pos, to_pos = NULL, version = version + 1
        """, chat, user.key, role.rawValue, now, last, from, position)
    }
    try run(
      "UPDATE chat SET member_count = member_count + ?, version = version + 1 WHERE chat_id = ?",
      users.count, chat)
    for user in users {
      try run("DELETE FROM join_request WHERE chat_id = ? AND user_id = ?", chat, user.key)
      var keys = KeysetWriter()
      keys.int(chat)
      keys.int(last)
      append(.chatUpserted, user: user.key, keys: keys.bytes)
    }
    if kind == .group, let actorID = try userID(actor) {
      try note(
        SystemNote(.membersAdded, actor: actorID, subjects: users.map(\.id)), chat: chat,
        chatID: chatID)
    }
    for user in users { try appendMember(user.key, chat, chatID, kind) }
    for user in users where user.key != actor {
      try notify(user.key, .addedToChat, chat, 0, by: actor)
    }
  }

  /// Tells of a change of a member: everybody in a group, in a channel only them.
  func appendMember(_ user: Int64, _ chat: Int64, _ chatID: UUID, _ kind: ChatKind)
    throws(StoreError)
  {
    guard let member = try membership(user, chat, reader: nil),
      let count = try first(
        "SELECT member_count FROM chat WHERE chat_id = ?", chat, read: { $0.int(0) })
    else { return }
    var keys = KeysetWriter()
    guard kind != .channel else {
      keys.int(user)
      keys.int(chat)
      append(.memberChanged, user: user, keys: keys.bytes)
      return
    }
    keys.int(user)
    try appendShared(
      .memberChanged, chat: chat, keys,
      SharedEvent(event: .memberChanged(chat: chatID, member, memberCount: count)))
  }

  /// Changes a member's role.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `MEMBER_NOT_FOUND`, `NOT_A_MEMBER`, `ROLE_TOO_LOW`,
  ///   `WRONG_CHAT_KIND`, `BAD_ROLE`, `ETAG_MISMATCH`, `LAST_OWNER`, `REQUEST_ID_REUSED`.
  public func updateMember(
    _ member: UUID, role: MemberRole, in chat: UUID, etag: String = "", requestID: String = "",
    by user: Int64
  ) throws(StoreError) -> Membership {
    let place = try place(chat, of: user)
    var request = KeysetWriter()
    request.raw(chat.bytes)
    request.raw(member.bytes)
    request.int(role.rawValue)
    let isNew = try isNew("UpdateMember", requestID, request, by: user)
    let (key, old) = try joined(member, place)
    guard isNew, role != old.role else { return old }
    try place.requireShared()
    try place.require(.admin)
    try check(etag, old.version)
    guard role != .reader || place.kind == .channel else {
      throw .invalid("member.role", "BAD_ROLE", "only channels have readers")
    }
    // Up to one's own role, and nobody of the same rank but oneself; owners do as they like.
    if place.role != .owner {
      guard role <= place.role, old.role < place.role || key == user else {
        try place.require(.owner)
        return old
      }
    } else if key == user {
      try keepAnOwner(place)
    }
    try setRole(role, key, place)
    if place.kind == .group, let actor = try userID(user) {
      try note(
        SystemNote(.roleChanged, actor: actor, subjects: [member], text: role.name),
        chat: place.chat, chatID: chat)
    }
    try appendMember(key, place.chat, chat, place.kind)
    return try joined(member, place).member
  }

  func setRole(_ role: MemberRole, _ member: Int64, _ place: Place) throws(StoreError) {
    try run(
      "UPDATE member SET role = ?, version = version + 1 WHERE chat_id = ? AND user_id = ?",
      role.rawValue, place.chat, member)
  }

  func joined(_ user: UUID, _ place: Place) throws(StoreError)
    -> (key: Int64, member: Membership)
  {
    let missing = StoreError.notFound(
      "MEMBER_NOT_FOUND", type: "vencejo.chat.v1.Member",
      name: "chats/\(place.chatID)/members/\(user)")
    let key = try first("SELECT user_id FROM user WHERE uuid = ?", user) { $0.int(0) }
    guard let key, let member = try membership(key, place.chat, reader: place.user),
      member.state == .joined
    else { throw missing }
    return (key, member)
  }

  func keepAnOwner(_ place: Place) throws(StoreError) {
    let others = try first(
      """
      SELECT 1 FROM member WHERE chat_id = ? AND user_id <> ? AND state = 1 AND role = 4
      """, place.chat, place.user
    ) { _ in true }
    guard others == true else {
      throw StoreError(
        .failedPrecondition, "LAST_OWNER", "a chat needs an owner: name another one first")
    }
  }
}
