public import VencejoCrypto
import VencejoSQLite

/// A page of accounts.
public struct AccountPage: Sendable {
  public let accounts: [Account]
  public let nextPageToken: String
}

/// A page of sessions.
public struct SessionPage: Sendable {
  public let account: Account
  public let sessions: [Session]
  public let nextPageToken: String
}

/// Time between the deletion of an account and the end of its data, in microseconds.
public let accountGrace: Int64 = 30 * 86_400_000_000

extension ReadTransaction {
  /// All accounts by handle; for administrators.
  ///
  /// - Throws: `NOT_AN_ADMINISTRATOR`, `BAD_PAGE_SIZE`, `BAD_PAGE_TOKEN`, `PAGE_TOKEN_MISMATCH`.
  public func listAccounts(
    pageSize: Int32 = 0, pageToken: String = "", by caller: Principal
  ) throws(StoreError) -> AccountPage {
    try requireAdministrator(caller)
    let size = try ChatLimits.page(pageSize)
    var arguments = KeysetWriter()
    arguments.text("ListUsers")
    arguments.int(caller.user)
    var after = ""
    if !pageToken.isEmpty {
      var keyset = try tokens.keyset(ofPageToken: pageToken, arguments: arguments)
      guard let handle = keyset.text() else { throw TokenAuthority.badPageToken }
      after = handle
    }
    let found = try accounts("WHERE handle > ? ORDER BY handle LIMIT ?", [after, size + 1])
    let page = Array(found.prefix(size))
    var next = ""
    if found.count > size, let last = page.last {
      var keyset = KeysetWriter()
      keyset.text(last.handle)
      next = tokens.pageToken(keyset: keyset, arguments: arguments)
    }
    return AccountPage(accounts: page, nextPageToken: next)
  }

  /// The sessions of the caller, or for administrators of anybody.
  ///
  /// - Throws: `USER_NOT_FOUND`, `BAD_PAGE_SIZE`, `BAD_PAGE_TOKEN`, `PAGE_TOKEN_MISMATCH`.
  public func listSessions(
    of user: UUID, pageSize: Int32 = 0, pageToken: String = "", by caller: Principal
  ) throws(StoreError) -> SessionPage {
    let size = try ChatLimits.page(pageSize)
    let account = try managed(user, by: caller)
    let (arguments, after) = try keyset("ListSessions", user, caller.user, pageToken)
    let found = try sessions(ofUser: account.key).filter { $0.key > after }
    let page = Array(found.prefix(size))
    return SessionPage(
      account: account, sessions: page,
      nextPageToken: found.count > size ? token(page.last?.key ?? 0, arguments) : "")
  }
}

extension WriteTransaction {
  /// Ends a session.
  ///
  /// - Throws: `USER_NOT_FOUND`, `SESSION_NOT_FOUND`.
  public func revokeSession(_ id: UUID, of user: UUID, by caller: Principal) throws(StoreError) {
    let account = try managed(user, by: caller)
    guard let session = try sessions(ofUser: account.key).first(where: { $0.id == id }) else {
      throw .notFound(
        "SESSION_NOT_FOUND", type: "vencejo.auth.v1.Session", name: "users/\(user)/sessions/\(id)")
    }
    try revoke(user: account.key, sessions: [session.key])
  }

  /// Changes how the caller signs in; nil leaves it.
  ///
  /// - Throws: `BAD_HANDLE`, `BAD_EMAIL`, `HANDLE_TAKEN`, `EMAIL_TAKEN`, `ETAG_MISMATCH`,
  ///   `USER_NOT_FOUND`.
  public func updateAccount(
    _ user: UUID, handle: String?, email: String?, etag: String = "", by caller: Principal
  ) throws(StoreError) -> Account {
    let old = try managed(user, by: caller)
    try check(etag, old.version)
    let handle = try handle.map { text throws(StoreError) in try AccountRules.handle(text) }
    let email = try email.map { text throws(StoreError) in try AccountRules.email(text) }
    if let handle, handle != old.handle, try account(handle: handle) != nil {
      throw StoreError(
        .alreadyExists, "HANDLE_TAKEN", "the handle \(handle) is taken",
        metadata: ["handle": handle],
        details: [.resource(type: "vencejo.auth.v1.User", name: handle)])
    }
    let key = (email ?? old.email).isEmpty ? nil : (email ?? old.email).lowercased()
    if let key,
      try first(
        "SELECT 1 FROM user WHERE email_key = ? AND user_id <> ?", key, old.key, read: { _ in 1 })
        != nil
    {
      throw StoreError(
        .alreadyExists, "EMAIL_TAKEN", "another account has this e-mail address",
        details: [.resource(type: "vencejo.auth.v1.User", name: email ?? "")])
    }
    guard handle ?? old.handle != old.handle || email ?? old.email != old.email else { return old }
    try run(
      """
      UPDATE user SET handle = ?, email = ?, email_key = ?, update_us = ?, version = version + 1
      WHERE user_id = ?
      """, handle ?? old.handle, email ?? old.email, key, now, old.key)
    if let handle, handle != old.handle { try appendProfile(old.key) }
    return try account(id: user)
  }

  /// Suspends or reinstates an account, grants or takes the role of administrator.
  ///
  /// - Throws: `NOT_AN_ADMINISTRATOR`, `USER_NOT_FOUND`, `LAST_ADMINISTRATOR`, `ETAG_MISMATCH`,
  ///   `BAD_STATE` for deleting, which is another method.
  public func setAccount(
    _ user: UUID, state: AccountState?, role: ServerRole?, etag: String = "", by caller: Principal
  ) throws(StoreError) -> Account {
    try requireAdministrator(caller)
    let old = try account(id: user)
    try check(etag, old.version)
    guard state != .deleted else {
      throw .invalid("state", "BAD_STATE", "choose ACTIVE or SUSPENDED")
    }
    guard old.kind == .human || role != .administrator else {
      throw .invalid("role", "BAD_ROLE", "service accounts are no administrators")
    }
    let state = state ?? old.state
    let role = role ?? old.role
    if old.role == .administrator, role != .administrator || state != .active {
      try keepAnAdministrator(old.key)
    }
    try run(
      """
      UPDATE user SET state = ?, role = ?, purge_us = CASE ? WHEN 4 THEN purge_us END,
        update_us = ?, version = version + 1
      WHERE user_id = ?
      """, state.rawValue, role.rawValue, state.rawValue, now, old.key)
    if state != .active { try endAccess(old.key) }
    return try account(id: user)
  }

  private func keepAnAdministrator(_ user: Int64) throws(StoreError) {
    let other = try first(
      "SELECT 1 FROM user WHERE role = 2 AND state = 1 AND user_id <> ?", user
    ) { _ in true }
    guard other == true else {
      throw StoreError(
        .failedPrecondition, "LAST_ADMINISTRATOR", "the server needs an administrator")
    }
  }

  /// Ends every session and, for streams, every key.
  func endAccess(_ user: Int64) throws(StoreError) {
    var sessions = try sessions(ofUser: user).map(\.key)
    sessions += try all(
      "SELECT key_id FROM api_key WHERE user_id = ? AND revoke_us IS NULL", user
    ) { -$0.int(0) }
    try revoke(user: user, sessions: sessions)
  }

  /// Begins the end of an account, and of its service accounts.
  ///
  /// - Throws: `USER_NOT_FOUND`, `LAST_ADMINISTRATOR`, `ETAG_MISMATCH`.
  public func deleteAccount(_ user: UUID, etag: String = "", by caller: Principal)
    throws(StoreError) -> Account
  {
    let account = try managed(user, by: caller)
    guard account.state != .deleted else { return account }
    try check(etag, account.version)
    if account.role == .administrator { try keepAnAdministrator(account.key) }
    let keys =
      try [account.key]
      + all("SELECT user_id FROM user WHERE owner_id = ? AND state <> 4", account.key) {
        $0.int(0)
      }
    for key in keys {
      try run(
        """
        UPDATE user SET state = 4, role = 1, purge_us = ?, update_us = ?, version = version + 1
        WHERE user_id = ?
        """, now + accountGrace, now, key)
      try endAccess(key)
    }
    return try self.account(id: user)
  }

  /// Takes the data of one account past its time: what others would miss of them becomes a stub.
  /// Answers whether there is more to do.
  @discardableResult
  public func purgeAccounts() throws(StoreError) -> Bool {
    let user = try first(
      "SELECT user_id FROM user WHERE purge_us <= ? ORDER BY purge_us LIMIT 1", now
    ) { $0.int(0) }
    guard let user else { return false }
    if try purgeMessages(of: user) { return true }
    if try purgeOpinions(of: user) { return true }
    if try purgeRecords(of: user) { return true }
    try leaveEverything(user)
    try deleteHooks(ofUser: user)
    for table in [
      "api_key", "reset_code", "reset_request", "notification", "request_log", "chat_setting",
      "star", "message_hidden", "block", "join_request", "marker_move",
    ] {
      try run(dynamic: "DELETE FROM \(table) WHERE user_id = ?", [user])
    }
    try run(
      """
      DELETE FROM access_token WHERE session_id IN (SELECT session_id FROM session WHERE user_id = ?)
      """, user)
    try run(
      """
      DELETE FROM refresh_token WHERE session_id IN (SELECT session_id FROM session WHERE user_id = ?)
      """, user)
    try run("DELETE FROM session WHERE user_id = ?", user)
    // The row stays, so that messages have a sender and nobody gets the name again by its key.
    try run(
      """
      UPDATE user SET handle = 'deleted-' || user_id, email = '', email_key = NULL,
        display_name = 'Deleted account', display_key = '', status_text = '', salt = x'',
        hash = x'', purge_us = NULL, last_seen_us = NULL, version = version + 1
      WHERE user_id = ?
      """, user)
    try appendProfile(user)
    return true
  }

  /// Takes back what they thought of up to 500 messages, and their votes; answers whether there is
  /// more. Whoever counts them hears of it.
  private func purgeOpinions(of user: Int64) throws(StoreError) -> Bool {
    let found = try all(
      """
      SELECT m.message_key, m.chat_id, m.seq, r.message_key IS NOT NULL
      FROM message m LEFT JOIN reaction r ON r.message_key = m.message_key AND r.user_id = ?1
      WHERE m.message_key IN (SELECT message_key FROM reaction WHERE user_id = ?1
        UNION SELECT message_key FROM poll_vote WHERE user_id = ?1) LIMIT 500
      """, user
    ) { (key: $0.int(0), chat: $0.int(1), sequence: $0.int(2), reacted: $0.bool(3)) }
    for opinion in found {
      var keys = KeysetWriter()
      keys.int(opinion.sequence)
      if opinion.reacted {
        keys.int(user)
        try run(
          "DELETE FROM reaction WHERE message_key = ? AND user_id = ?", opinion.key, user)
        _ = try appendShared(.reactionChanged, chat: opinion.chat, keys, nil)
      } else {
        keys.int(MessageFields.content.rawValue)
        try run(
          "DELETE FROM poll_vote WHERE message_key = ? AND user_id = ?", opinion.key, user)
        _ = try appendShared(.messageUpdated, chat: opinion.chat, keys, nil)
      }
    }
    return !found.isEmpty
  }

  /// Strips up to 500 messages; answers whether there are more.
  private func purgeMessages(of user: Int64) throws(StoreError) -> Bool {
    let found = try all(
      """
      SELECT m.chat_id, m.seq, c.uuid, m.message_key FROM message m JOIN chat c USING (chat_id)
      WHERE m.sender_id = ? AND m.delete_us IS NULL AND m.is_purged = 0 LIMIT 500
      """, user
    ) { (chat: $0.int(0), sequence: $0.int(1), id: $0.uuid(2), key: $0.int(3)) }
    guard let actor = try userID(user), !found.isEmpty else { return false }
    for (chat, messages) in Dictionary(grouping: found, by: \.chat).sorted(by: { $0.key < $1.key })
    {
      for message in messages {
        try run(
          """
          UPDATE message SET body = '', content = NULL, delete_us = ?, version = version + 1
          WHERE message_key = ?
          """, now, message.key)
        try letGo(ofMessage: message.key)
        try run("DELETE FROM reaction WHERE message_key = ?", message.key)
        try run("DELETE FROM poll_vote WHERE message_key = ?", message.key)
        try run("DELETE FROM mention WHERE chat_id = ? AND seq = ?", chat, message.sequence)
        try run("DELETE FROM pin WHERE chat_id = ? AND seq = ?", chat, message.sequence)
      }
      guard let id = messages.first?.id else { continue }
      let ranges = Self.ranges(messages.map(\.sequence))
      var keys = KeysetWriter()
      keys.int(DeletionScope.forEveryone.rawValue)
      keys.raw(actor.bytes)
      for range in ranges {
        keys.int(range.first)
        keys.int(range.last)
      }
      try appendShared(
        .messagesDeleted, chat: chat, keys,
        SharedEvent(
          event: .messagesDeleted(
            Deletion(chat: id, ranges: ranges, scope: .forEveryone, actor: actor))))
      try appendRecount(chat, upTo: ranges.last?.last ?? 0)
    }
    return found.count == 500
  }

  /// Leaves groups and channels; the longest-serving of the highest rank inherits them.
  private func leaveEverything(_ user: Int64) throws(StoreError) {
    let chats = try all(
      """
      SELECT c.uuid FROM member m JOIN chat c USING (chat_id)
      WHERE m.user_id = ? AND m.state = 1 AND c.kind IN (2, 3) AND c.delete_us IS NULL
      """, user
    ) { $0.uuid(0) }.compactMap(\.self)
    for chat in chats {
      let place = try place(chat, of: user)
      guard place.memberCount > 1 else {
        try deleteChat(key: place.chat)
        continue
      }
      var heir: UUID?
      if place.role == .owner {
        heir =
          try first(
            """
            SELECT u.uuid FROM member m JOIN user u USING (user_id)
            WHERE m.chat_id = ? AND m.user_id <> ? AND m.state = 1 AND u.state = 1
            ORDER BY m.role DESC, m.join_us, m.user_id LIMIT 1
            """, place.chat, user
          ) { $0.uuid(0) } ?? nil
        if heir == nil {
          try deleteChat(key: place.chat)
          continue
        }
      }
      try leaveChat(chat, newOwner: heir, by: user)
    }
  }
}
