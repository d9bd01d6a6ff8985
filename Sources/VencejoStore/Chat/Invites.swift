public import VencejoCrypto
import VencejoSQLite

/// A secret that lets people into a chat.
public struct Invite: Sendable, Hashable {
  public let key: Int64
  public let id: UUID
  public let chat: UUID
  public let code: String
  public let createTime: Int64
  public let expireTime: Int64?
  /// 0 for as many as like.
  public let maxUses: Int64
  public let useCount: Int64
  public let needsApproval: Bool
}

public struct InvitePage: Sendable {
  public let invites: [Invite]
  public let nextPageToken: String
}

/// Somebody waits to be let in.
public struct JoinRequest: Sendable, Hashable {
  public let chat: UUID
  public let user: UUID
  public let invite: UUID
  public let createTime: Int64
}

public struct JoinRequestPage: Sendable {
  public let requests: [JoinRequest]
  public let nextPageToken: String
}

extension ReadTransaction {
  private func invites(_ clause: String, _ values: [any SQLiteBindable]) throws(StoreError)
    -> [(chat: Int64, invite: Invite)]
  {
    var result: [(Int64, Invite)] = []
    try each(
      dynamic: """
        SELECT i.invite_id, i.uuid, c.uuid, i.code, i.create_us, i.expire_us, i.max_uses,
          i.use_count, i.needs_approval, i.chat_id
        FROM invite i JOIN chat c USING (chat_id) \(clause)
        """, values
    ) { row in
      if let id = row.uuid(1), let chat = row.uuid(2) {
        result.append(
          (
            row.int(9),
            Invite(
              key: row.int(0), id: id, chat: chat, code: row.text(3), createTime: row.int(4),
              expireTime: row.optionalInt(5), maxUses: row.int(6), useCount: row.int(7),
              needsApproval: row.bool(8))
          ))
      }
      return true
    }
    return result
  }

  fileprivate func invite(code: String, now: Int64) throws(StoreError) -> (
    chat: Int64, invite: Invite
  )? {
    try invites(
      """
      WHERE i.code = ? AND i.revoke_us IS NULL AND c.delete_us IS NULL
        AND (i.expire_us IS NULL OR i.expire_us > ?)
        AND (i.max_uses = 0 OR i.use_count < i.max_uses)
      """, [code, now]
    ).first
  }

  fileprivate func invite(id: UUID, _ place: Place) throws(StoreError) -> Invite {
    let found = try invites(
      "WHERE i.uuid = ? AND i.chat_id = ? AND i.revoke_us IS NULL", [id, place.chat]
    ).first
    guard let found else {
      throw .notFound(
        "INVITE_NOT_FOUND", type: "vencejo.chat.v1.Invite",
        name: "chats/\(place.chatID)/invites/\(id)")
    }
    return found.invite
  }

  /// The invites of a chat that are neither revoked nor expired; for its administrators.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `NOT_A_MEMBER`, `ROLE_TOO_LOW`, `BAD_PAGE_SIZE`,
  ///   `BAD_PAGE_TOKEN`, `PAGE_TOKEN_MISMATCH`.
  public func listInvites(
    _ chat: UUID, pageSize: Int32 = 0, pageToken: String = "", for user: Int64
  ) throws(StoreError) -> InvitePage {
    let size = try ChatLimits.page(pageSize)
    let place = try place(chat, of: user)
    try place.require(.admin)
    let (arguments, after) = try keyset("ListInvites", chat, user, pageToken)
    let found = try invites(
      """
      WHERE i.chat_id = ? AND i.invite_id > ? AND i.revoke_us IS NULL
        AND (i.expire_us IS NULL OR i.expire_us > ?) ORDER BY i.invite_id LIMIT ?
      """, [place.chat, after, now, size + 1]
    ).map(\.invite)
    let page = Array(found.prefix(size))
    return InvitePage(
      invites: page,
      nextPageToken: found.count > size ? token(page.last?.key ?? 0, arguments) : "")
  }

  /// Who waits to be let in; for administrators of the chat.
  ///
  /// - Throws: as ``listInvites(_:pageSize:pageToken:for:)``.
  public func listJoinRequests(
    _ chat: UUID, pageSize: Int32 = 0, pageToken: String = "", for user: Int64
  ) throws(StoreError) -> JoinRequestPage {
    let size = try ChatLimits.page(pageSize)
    let place = try place(chat, of: user)
    try place.require(.admin)
    let (arguments, after) = try keyset("ListJoinRequests", chat, user, pageToken)
    let found = try all(
      """
      SELECT r.user_id, u.uuid, i.uuid, r.create_us
      FROM join_request r JOIN user u USING (user_id) JOIN invite i USING (invite_id)
      WHERE r.chat_id = ? AND r.user_id > ? ORDER BY r.user_id LIMIT ?
      """, place.chat, after, size + 1
    ) { row -> (key: Int64, request: JoinRequest)? in
      guard let user = row.uuid(1), let invite = row.uuid(2) else { return nil }
      return (
        row.int(0),
        JoinRequest(chat: chat, user: user, invite: invite, createTime: row.int(3))
      )
    }.compactMap(\.self)
    let page = found.prefix(size)
    return JoinRequestPage(
      requests: page.map(\.request),
      nextPageToken: found.count > size ? token(page.last?.key ?? 0, arguments) : "")
  }

  /// For listings that go by one key.
  func keyset(_ rpc: String, _ chat: UUID?, _ user: Int64, _ pageToken: String)
    throws(StoreError) -> (arguments: KeysetWriter, after: Int64)
  {
    var arguments = KeysetWriter()
    arguments.text(rpc)
    arguments.int(user)
    arguments.raw(chat?.bytes ?? [])
    guard !pageToken.isEmpty else { return (arguments, 0) }
    var keyset = try tokens.keyset(ofPageToken: pageToken, arguments: arguments)
    guard let after = keyset.int() else { throw TokenAuthority.badPageToken }
    return (arguments, after)
  }

  func token(_ key: Int64, _ arguments: KeysetWriter) -> String {
    var keyset = KeysetWriter()
    keyset.int(key)
    return tokens.pageToken(keyset: keyset, arguments: arguments)
  }
}

/// What using an invite came to.
public enum JoinOutcome: Sendable {
  case joined(ChatView)
  /// An administrator of the chat has to agree first.
  case waits
}

extension WriteTransaction {
  /// Makes an invite.
  ///
  /// - Parameters:
  ///   - expireTime: Microseconds since the Unix epoch, or nil for never.
  ///   - maxUses: 0 for as many as like.
  /// - Throws: `CHAT_NOT_FOUND`, `NOT_A_MEMBER`, `ROLE_TOO_LOW`, `WRONG_CHAT_KIND`, `BAD_INVITE`,
  ///   `TOO_MANY_INVITES`, `REQUEST_ID_REUSED`.
  public func createInvite(
    to chat: UUID, expireTime: Int64?, maxUses: Int64, needsApproval: Bool,
    requestID: String = "", by user: Int64
  ) throws(StoreError) -> Invite {
    let place = try place(chat, of: user)
    try place.requireShared()
    try place.require(.admin)
    guard maxUses >= 0, maxUses <= 1_000_000, expireTime.map({ $0 > now }) ?? true else {
      throw .invalid(
        "invite", "BAD_INVITE", "an invite expires in the future and has at most 1000000 uses")
    }
    var request = KeysetWriter()
    request.raw(chat.bytes)
    request.int(expireTime ?? 0)
    request.int(maxUses)
    request.int(needsApproval ? 1 : 0)
    let hash = SHA256.digest(request.bytes)
    let known = try rememberedAnswer(
      user: user, rpc: "CreateInvite", requestID: requestID, bodyHash: hash)
    if let known, let id = UUID(bytes: known) { return try invite(id: id, place) }
    let count = try first(
      """
      SELECT count(*) FROM invite WHERE chat_id = ? AND revoke_us IS NULL
        AND (expire_us IS NULL OR expire_us > ?)
      """, place.chat, now
    ) { $0.int(0) }
    guard (count ?? 0) < ChatLimits.invites else {
      throw StoreError(
        .failedPrecondition, "TOO_MANY_INVITES",
        "a chat has at most \(ChatLimits.invites) invites: revoke some",
        metadata: ["limit": String(ChatLimits.invites)])
    }
    let id = UUID.v7(milliseconds: now / 1000)
    try run(
      """
      INSERT INTO invite(uuid, chat_id, creator_id, code, create_us, expire_us, max_uses,
        needs_approval)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """, id, place.chat, user, Base64URL.encode(SecureRandom.bytes(16)), now, expireTime,
      maxUses, needsApproval)
    try rememberAnswer(
      user: user, rpc: "CreateInvite", requestID: requestID, bodyHash: hash, answer: id.bytes)
    return try invite(id: id, place)
  }

  /// Makes an invite worthless; requests that came by it still wait for their answer.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `INVITE_NOT_FOUND`, `NOT_A_MEMBER`, `ROLE_TOO_LOW`.
  public func revokeInvite(_ id: UUID, in chat: UUID, by user: Int64) throws(StoreError) {
    let place = try place(chat, of: user)
    try place.require(.admin)
    let invite = try invite(id: id, place)
    try run("UPDATE invite SET revoke_us = ? WHERE invite_id = ?", now, invite.key)
  }

  /// Joins a chat by an invite, or asks to. An invite to a chat that all have left leads nowhere.
  ///
  /// - Throws: `INVITE_NOT_FOUND`, `USER_BANNED`, `CHAT_FULL`.
  public func joinChat(code: String, by user: Int64) throws(StoreError) -> JoinOutcome {
    guard code.utf8.count <= 64, let account = try account(key: user),
      let known = try first(
        "SELECT chat_id FROM invite WHERE code = ?", code, read: { $0.int(0) })
    else { throw Self.inviteNotFound }
    let old = try membership(user, known, reader: user)
    if old?.state == .joined, let id = try chatID(known) {
      // A repeat, also of the last use there was.
      return .joined(try chat(key: known, id, for: user, asOf: nil))
    }
    guard let (key, invite) = try invite(code: code, now: now) else { throw Self.inviteNotFound }
    guard old?.state != .banned else {
      throw StoreError(.permissionDenied, "USER_BANNED", "you were banned from this chat")
    }
    // A chat that all have left is nobody's to let people into, or to be asked.
    let lives = try first("SELECT 1 FROM member WHERE chat_id = ? AND state = 1", key) { _ in true }
    guard lives == true else { throw Self.inviteNotFound }
    if invite.needsApproval {
      try run(
        """
        INSERT OR IGNORE INTO join_request(chat_id, user_id, invite_id, create_us)
        VALUES (?, ?, ?, ?)
        """, key, user, invite.key, now)
      return .waits
    }
    try letIn(account, key, invite.chat, actor: user)
    try run("UPDATE invite SET use_count = use_count + 1 WHERE invite_id = ?", invite.key)
    return .joined(try chat(key: key, invite.chat, for: user, asOf: nil))
  }

  private static let inviteNotFound = StoreError.notFound(
    "INVITE_NOT_FOUND", type: "vencejo.chat.v1.Invite", name: "invite")

  private func letIn(_ account: Account, _ chat: Int64, _ id: UUID, actor: Int64)
    throws(StoreError)
  {
    // As an owner sees the chat: one is always there.
    let owner = try first(
      "SELECT user_id FROM member WHERE chat_id = ? AND state = 1 ORDER BY role DESC LIMIT 1", chat
    ) { $0.int(0) }
    guard let owner else { throw Self.inviteNotFound }
    let place = try place(id, of: owner)
    try refuseFull(place, adding: 1)
    try join(
      [account], chat, id, kind: place.kind, policy: place.policy,
      role: place.kind == .channel ? .reader : .member, actor: actor)
  }

  private func chatID(_ key: Int64) throws(StoreError) -> UUID? {
    try first("SELECT uuid FROM chat WHERE chat_id = ? AND delete_us IS NULL", key) { $0.uuid(0) }
      ?? nil
  }

  /// Lets somebody in who asked to be, or does not.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `NOT_A_MEMBER`, `ROLE_TOO_LOW`, `JOIN_REQUEST_NOT_FOUND`,
  ///   `CHAT_FULL`.
  public func answerJoinRequest(
    of requester: UUID, in chat: UUID, approve: Bool, by user: Int64
  ) throws(StoreError) -> Membership? {
    let place = try place(chat, of: user)
    try place.require(.admin)
    let account = try account(id: requester)
    let invite = try first(
      "SELECT invite_id FROM join_request WHERE chat_id = ? AND user_id = ?", place.chat,
      account.key
    ) { $0.int(0) }
    guard let invite else {
      // A repeat of an approval finds them inside.
      if approve, let member = try membership(account.key, place.chat, reader: user),
        member.state == .joined
      {
        return member
      }
      throw .notFound(
        "JOIN_REQUEST_NOT_FOUND", type: "vencejo.chat.v1.JoinRequest",
        name: "chats/\(chat)/joinRequests/\(requester)")
    }
    guard approve else {
      try run(
        "DELETE FROM join_request WHERE chat_id = ? AND user_id = ?", place.chat, account.key)
      return nil
    }
    try letIn(account, place.chat, chat, actor: user)
    try run("UPDATE invite SET use_count = use_count + 1 WHERE invite_id = ?", invite)
    return try membership(account.key, place.chat, reader: user)
  }
}
