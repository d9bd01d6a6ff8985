public import VencejoCrypto
import VencejoSQLite

/// A page of people.
public struct ProfilePage: Sendable {
  public let profiles: [Profile]
  public let nextPageToken: String
}

/// What is to change in one's own profile; nil leaves it.
public struct ProfileChanges: Sendable {
  public var displayName: String?
  public var statusText: String?
  public var hidesLastSeen: Bool?
  public var hidesReceipts: Bool?
  public var refusesGroupAdds: Bool?

  public init() {}
}

extension ReadTransaction {
  /// What `reader` may see of a user.
  ///
  /// - Throws: `USER_NOT_FOUND`.
  public func profile(_ user: UUID, for reader: Int64) throws(StoreError) -> Profile {
    let found = try profiles("WHERE u.uuid = ?2", [user], for: reader).first
    guard let found else {
      throw .notFound("USER_NOT_FOUND", type: "vencejo.auth.v1.User", name: "users/\(user)")
    }
    return found
  }

  func profile(key: Int64, for reader: Int64) throws(StoreError) -> Profile? {
    try profiles("WHERE u.user_id = ?2", [key], for: reader).first
  }

  /// The clause's values begin at ?2.
  func profiles(_ clause: String, _ values: [any SQLiteBindable], for reader: Int64)
    throws(StoreError) -> [Profile]
  {
    var result: [Profile] = []
    let all: [any SQLiteBindable] = [reader] + values
    try each(
      dynamic: """
        SELECT u.user_id, u.uuid, u.handle, u.display_name, u.status_text, u.last_seen_us,
          u.hides_last_seen, u.hides_receipts, u.refuses_adds, u.update_us, u.version,
          EXISTS (SELECT 1 FROM block b WHERE b.user_id = u.user_id AND b.blocked_id = ?1
            AND b.to_key IS NULL), u.kind
        FROM user u \(clause)
        """, all
    ) { row in
      guard let id = row.uuid(1) else { return true }
      let isOwn = row.int(0) == reader
      var privacy = PrivacySettings()
      privacy.hidesLastSeen = row.bool(6)
      privacy.hidesReceipts = row.bool(7)
      privacy.refusesGroupAdds = row.bool(8)
      let shows = isOwn || !(privacy.hidesLastSeen || row.bool(11))
      result.append(
        Profile(
          key: row.int(0), user: id, handle: row.text(2), displayName: row.text(3),
          statusText: row.bool(11) ? "" : row.text(4),
          lastSeenTime: shows ? row.optionalInt(5) : nil, showsPresence: shows,
          privacy: isOwn ? privacy : nil, isServiceAccount: row.int(12) == 2,
          updateTime: row.int(9), version: row.int(10)))
      return true
    }
    return result
  }

  /// All or nothing (AIP-231), in the order asked for.
  ///
  /// - Throws: `LIMIT_EXCEEDED` above 200, `USER_NOT_FOUND`.
  public func profiles(_ users: [UUID], for reader: Int64) throws(StoreError) -> [Profile] {
    guard users.count <= 200 else { throw ChatLimits.exceeded("names", 200) }
    var result: [Profile] = []
    for user in users { result.append(try profile(user, for: reader)) }
    return result
  }

  /// People whose handle or display name begins with `query`, by handle.
  ///
  /// - Throws: `EMPTY_QUERY`, `BAD_PAGE_SIZE`, `BAD_PAGE_TOKEN`, `PAGE_TOKEN_MISMATCH`.
  public func searchProfiles(
    _ query: String, pageSize: Int32 = 0, pageToken: String = "", for reader: Int64
  ) throws(StoreError) -> ProfilePage {
    let size = try ChatLimits.page(pageSize)
    var text = AccountRules.trimmed(query).lowercased()
    if text.hasPrefix("@") { text.removeFirst() }
    guard !text.isEmpty, text.utf8.count <= 256 else {
      throw .invalid("query", "EMPTY_QUERY", "the query needs 1 to 256 bytes")
    }
    var arguments = KeysetWriter()
    arguments.text("SearchProfiles")
    arguments.text(text)
    var after = ""
    if !pageToken.isEmpty {
      var keyset = try tokens.keyset(ofPageToken: pageToken, arguments: arguments)
      guard let handle = keyset.text() else { throw TokenAuthority.badPageToken }
      after = handle
    }
    // Everything that begins with a text lies between it and it with the last scalar there is.
    let end = text + "\u{10FFFF}"
    let found = try profiles(
      """
      WHERE ((u.handle >= ?2 AND u.handle < ?3) OR (u.display_key >= ?2 AND u.display_key < ?3))
        AND u.handle > ?4 AND u.state <> 4 ORDER BY u.handle LIMIT ?5
      """, [text, end, after, size + 1], for: reader)
    let page = found.prefix(size)
    var next = ""
    if found.count > size, let last = page.last {
      var keyset = KeysetWriter()
      keyset.text(last.handle)
      next = tokens.pageToken(keyset: keyset, arguments: arguments)
    }
    return ProfilePage(profiles: Array(page), nextPageToken: next)
  }

  /// Whom the user blocks, in the order they came to the server.
  ///
  /// - Throws: `BAD_PAGE_SIZE`, `BAD_PAGE_TOKEN`, `PAGE_TOKEN_MISMATCH`.
  public func listBlocked(pageSize: Int32 = 0, pageToken: String = "", by user: Int64)
    throws(StoreError) -> ProfilePage
  {
    let size = try ChatLimits.page(pageSize)
    let (arguments, after) = try keyset("ListBlockedUsers", nil, user, pageToken)
    let found = try profiles(
      """
      WHERE u.user_id IN (SELECT blocked_id FROM block WHERE user_id = ?1 AND to_key IS NULL)
        AND u.user_id > ?2 ORDER BY u.user_id LIMIT ?3
      """, [after, size + 1], for: user)
    let page = Array(found.prefix(size))
    return ProfilePage(
      profiles: page, nextPageToken: found.count > size ? token(page.last?.key ?? 0, arguments) : ""
    )
  }

  /// Internal keys of those a user blocks now.
  public func blocked(by user: Int64) throws(StoreError) -> Set<Int64> {
    Set(
      try all("SELECT blocked_id FROM block WHERE user_id = ? AND to_key IS NULL", user) {
        $0.int(0)
      })
  }

  func everBlocked(by user: Int64) throws(StoreError) -> Set<Int64> {
    Set(try all("SELECT blocked_id FROM block WHERE user_id = ?", user) { $0.int(0) })
  }

  /// Users with a direct chat with this one: who hears of their profile and presence.
  public func peers(of user: Int64) throws(StoreError) -> [Int64] {
    try all(
      """
      SELECT o.user_id FROM member m JOIN chat c USING (chat_id)
        JOIN member o ON o.chat_id = c.chat_id AND o.user_id <> m.user_id
      WHERE m.user_id = ? AND c.kind = 1
      """, user
    ) { $0.int(0) }
  }
}

extension WriteTransaction {
  /// Changes one's own profile; peers of direct chats hear of it.
  ///
  /// - Throws: `BAD_DISPLAY_NAME`, `BAD_STATUS_TEXT`, `ETAG_MISMATCH`, `REQUEST_ID_REUSED`.
  public func updateProfile(
    _ changes: ProfileChanges, etag: String = "", requestID: String = "", by user: Int64
  ) throws(StoreError) -> Profile {
    guard let old = try profile(key: user, for: user), let account = try account(key: user) else {
      throw Store.badCredential
    }
    var request = KeysetWriter()
    request.text(changes.displayName ?? "\u{0}")
    request.text(changes.statusText ?? "\u{0}")
    for flag in [changes.hidesLastSeen, changes.hidesReceipts, changes.refusesGroupAdds] {
      request.int(flag.map { $0 ? 1 : 0 } ?? -1)
    }
    guard try isNew("UpdateProfile", requestID, request, by: user) else { return old }
    try check(etag, old.version)
    let name = try changes.displayName.map { text throws(StoreError) in
      try AccountRules.displayName(text, handle: account.handle)
    }
    if let status = changes.statusText {
      guard status.unicodeScalars.count <= 140, AccountRules.isOneLine(status) else {
        throw .invalid(
          "profile.status_text", "BAD_STATUS_TEXT", "a status has at most 140 characters, one line")
      }
    }
    let privacy = old.privacy ?? PrivacySettings()
    try run(
      """
      UPDATE user SET display_name = ?, display_key = ?, status_text = ?, hides_last_seen = ?,
        hides_receipts = ?, refuses_adds = ?, update_us = ?, version = version + 1
      WHERE user_id = ?
      """, name ?? old.displayName, (name ?? old.displayName).lowercased(),
      changes.statusText ?? old.statusText, changes.hidesLastSeen ?? privacy.hidesLastSeen,
      changes.hidesReceipts ?? privacy.hidesReceipts,
      changes.refusesGroupAdds ?? privacy.refusesGroupAdds, now, user)
    try appendProfile(user)
    if changes.hidesReceipts.map({ $0 != privacy.hidesReceipts }) ?? false {
      append(.viewChanged, user: user)
    }
    return try profile(key: user, for: user) ?? old
  }

  func appendProfile(_ user: Int64) throws(StoreError) {
    var keys = KeysetWriter()
    keys.int(user)
    for listener in try [user] + peers(of: user) {
      append(.profileChanged, user: listener, keys: keys.bytes)
    }
  }

  /// Messages of `blocked` no longer reach the caller, in whatever chat; a repeat changes
  /// nothing.
  ///
  /// - Throws: `USER_NOT_FOUND`, `BAD_USER`, `TOO_MANY_BLOCKS`.
  public func block(_ blocked: UUID, by user: Int64) throws(StoreError) {
    let account = try account(id: blocked)
    guard account.key != user else {
      throw .invalid("user", "BAD_USER", "nobody blocks themselves")
    }
    let count = try first(
      "SELECT count(*) FROM block WHERE user_id = ? AND to_key IS NULL", user
    ) { $0.int(0) }
    guard (count ?? 0) < ChatLimits.blocks else {
      throw StoreError(
        .failedPrecondition, "TOO_MANY_BLOCKS", "at most \(ChatLimits.blocks) users are blocked",
        metadata: ["limit": String(ChatLimits.blocks)])
    }
    guard try !isBlocked(account.key, by: user) else { return }
    try run(
      "INSERT OR REPLACE INTO block(user_id, blocked_id, from_key, to_key) VALUES (?, ?, ?, NULL)",
      user, account.key, try newestMessage())
    append(.viewChanged, user: user)
  }

  /// Messages of `blocked` from now on reach the caller again.
  ///
  /// - Throws: `USER_NOT_FOUND`.
  public func unblock(_ blocked: UUID, by user: Int64) throws(StoreError) {
    let account = try account(id: blocked)
    guard try isBlocked(account.key, by: user) else { return }
    try run(
      "UPDATE block SET to_key = ? WHERE user_id = ? AND blocked_id = ? AND to_key IS NULL",
      try newestMessage(), user, account.key)
    append(.viewChanged, user: user)
  }

  private func isBlocked(_ blocked: Int64, by user: Int64) throws(StoreError) -> Bool {
    try first(
      "SELECT 1 FROM block WHERE user_id = ? AND blocked_id = ? AND to_key IS NULL", user, blocked
    ) { _ in true } ?? false
  }

  /// Keys grow with time: rows of messages go only while a newer one stays.
  private func newestMessage() throws(StoreError) -> Int64 {
    try first("SELECT ifnull(max(message_key), 0) FROM message") { $0.int(0) } ?? 0
  }
}

extension ReadTransaction {
  /// Who may hear that the user comes and goes: peers of direct chats whom they do not block;
  /// nobody where they hide it.
  public func presenceListeners(of user: Int64) throws(StoreError) -> (
    users: [Int64], lastSeen: Int64?
  ) {
    let own = try first("SELECT hides_last_seen, last_seen_us FROM user WHERE user_id = ?", user) {
      (hides: $0.bool(0), lastSeen: $0.optionalInt(1))
    }
    guard let own, !own.hides else { return ([], nil) }
    let blocked = try blocked(by: user)
    return (try peers(of: user).filter { !blocked.contains($0) }, own.lastSeen)
  }
}

extension WriteTransaction {
  /// Notes that the user went away just now.
  public func setLastSeen(_ user: Int64) throws(StoreError) {
    try run("UPDATE user SET last_seen_us = ? WHERE user_id = ?", now, user)
  }
}
