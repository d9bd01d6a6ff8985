public import VencejoCrypto
import VencejoSQLite

/// A key for programs.
public struct APIKey: Sendable, Hashable {
  public let key: Int64
  public let id: UUID
  public let user: UUID
  public let displayName: String
  /// The first letters of the secret, to recognise it in a list.
  public let prefix: String
  public let scopes: [String]
  public let createTime: Int64
  public let lastUsedTime: Int64?
  public let expireTime: Int64?

  /// What secrets begin with, so that scanners find leaked ones.
  static let mark = "vk_"
  /// What keys may be good for.
  public static let knownScopes: Set<String> = [
    "chat.read", "chat.write", "record.read", "record.write",
  ]
  /// Service accounts of one owner, and keys of one user.
  public static let accountsPerOwner: Int64 = 20
  public static let keysPerUser: Int64 = 50
}

public struct APIKeyPage: Sendable {
  public let keys: [APIKey]
  public let nextPageToken: String
}

extension ReadTransaction {
  func principal(key secret: String) throws(StoreError) -> Principal {
    let found = try first(
      """
      SELECT k.key_id, k.uuid, k.scopes, k.expire_us, k.revoke_us, u.user_id, u.uuid, u.role,
        u.state
      FROM api_key k JOIN user u USING (user_id) WHERE k.hash = ?
      """, SHA256.digest(secret)
    ) { row -> (isRevoked: Bool, isActive: Bool, Principal)? in
      guard let id = row.uuid(1), let user = row.uuid(6) else { return nil }
      let expiry = row.optionalInt(3) ?? .max
      return (
        !row.isNull(4), row.int(8) == AccountState.active.rawValue,
        Principal(
          user: row.int(5), session: -row.int(0), userID: user, sessionID: id,
          // A key has its owner's chats and records, never the administrator's hands.
          role: .member, scopes: Set(row.text(2).split(separator: " ").map(String.init)),
          accessExpireTime: expiry, sessionExpireTime: expiry)
      )
    }
    guard let found, let (isRevoked, isActive, principal) = found, !isRevoked else {
      throw Store.badCredential
    }
    guard isActive else { throw StoreError.accountSuspended }
    guard principal.accessExpireTime > now else { throw Store.badCredential }
    return principal
  }

  private func keys(_ clause: String, _ values: [any SQLiteBindable]) throws(StoreError)
    -> [APIKey]
  {
    var result: [APIKey] = []
    try each(
      dynamic: """
        SELECT k.key_id, k.uuid, u.uuid, k.display_name, k.prefix, k.scopes, k.create_us,
          k.last_used_us, k.expire_us
        FROM api_key k JOIN user u USING (user_id) \(clause)
        """, values
    ) { row in
      if let id = row.uuid(1), let user = row.uuid(2) {
        result.append(
          APIKey(
            key: row.int(0), id: id, user: user, displayName: row.text(3), prefix: row.text(4),
            scopes: row.text(5).split(separator: " ").map(String.init), createTime: row.int(6),
            lastUsedTime: row.optionalInt(7), expireTime: row.optionalInt(8)))
      }
      return true
    }
    return result
  }

  /// The keys of a user that are not revoked.
  ///
  /// - Throws: `USER_NOT_FOUND`, `BAD_PAGE_SIZE`, `BAD_PAGE_TOKEN`, `PAGE_TOKEN_MISMATCH`.
  public func listKeys(
    of user: UUID, pageSize: Int32 = 0, pageToken: String = "", by caller: Principal
  ) throws(StoreError) -> APIKeyPage {
    let size = try ChatLimits.page(pageSize)
    let account = try managed(user, by: caller)
    let (arguments, after) = try keyset("ListApiKeys", user, caller.user, pageToken)
    let found = try keys(
      "WHERE k.user_id = ? AND k.key_id > ? AND k.revoke_us IS NULL ORDER BY k.key_id LIMIT ?",
      [account.key, after, size + 1])
    let page = Array(found.prefix(size))
    return APIKeyPage(
      keys: page, nextPageToken: found.count > size ? token(page.last?.key ?? 0, arguments) : "")
  }

  /// The account, where it is the caller's own, one of their service accounts, or the caller is
  /// administrator. Others hear that there is none.
  func managed(_ user: UUID, by caller: Principal) throws(StoreError) -> Account {
    let account = try account(id: user)
    guard
      account.key == caller.user || account.owner == caller.userID
        || caller.role == .administrator
    else {
      throw .notFound("USER_NOT_FOUND", type: "vencejo.auth.v1.User", name: "users/\(user)")
    }
    return account
  }

  fileprivate func key(_ id: UUID) throws(StoreError) -> APIKey? {
    try keys("WHERE k.uuid = ? AND k.revoke_us IS NULL", [id]).first
  }
}

extension WriteTransaction {
  /// Makes an account without a password, the caller's own to manage.
  ///
  /// - Throws: `BAD_HANDLE`, `BAD_DISPLAY_NAME`, `HANDLE_TAKEN`, `TOO_MANY_ACCOUNTS`,
  ///   `REQUEST_ID_REUSED`.
  public func createServiceAccount(
    handle: String, displayName: String, requestID: String = "", by caller: Principal
  ) throws(StoreError) -> Account {
    let handle = try AccountRules.handle(handle)
    let displayName = try AccountRules.displayName(displayName, handle: handle)
    var request = KeysetWriter()
    request.text(handle)
    request.text(displayName)
    guard try isNew("CreateServiceAccount", requestID, request, by: caller.user) else {
      guard let known = try account(handle: handle) else { throw Store.badCredential }
      return known
    }
    let count = try first("SELECT count(*) FROM user WHERE owner_id = ?", caller.user) {
      $0.int(0)
    }
    guard (count ?? 0) < APIKey.accountsPerOwner else {
      throw StoreError(
        .failedPrecondition, "TOO_MANY_ACCOUNTS",
        "at most \(APIKey.accountsPerOwner) service accounts per owner",
        metadata: ["limit": String(APIKey.accountsPerOwner)])
    }
    let none = PasswordHash(
      salt: [], parameters: Scrypt.Parameters(cost: 2, blockSize: 1, parallelism: 1), hash: [])
    let account = try insertAccount(
      handle: handle, email: "", displayName: displayName, password: none, isLocal: false)
    try run(
      "UPDATE user SET kind = 2, owner_id = ? WHERE user_id = ?", caller.user, account.key)
    return try self.account(id: account.id)
  }

  /// Makes a key; its secret is told once.
  ///
  /// - Throws: `USER_NOT_FOUND`, `BAD_SCOPE`, `BAD_KEY`, `TOO_MANY_KEYS`, `REQUEST_ID_REUSED`.
  public func createKey(
    for user: UUID, displayName: String, scopes: [String], expireTime: Int64?,
    requestID: String = "", by caller: Principal
  ) throws(StoreError) -> (key: APIKey, secret: String?) {
    let account = try managed(user, by: caller)
    guard !scopes.isEmpty, scopes.allSatisfy(APIKey.knownScopes.contains) else {
      throw .invalid(
        "api_key.scopes", "BAD_SCOPE",
        "choose of \(APIKey.knownScopes.sorted().joined(separator: ", "))")
    }
    guard displayName.utf8.count <= 256, AccountRules.isOneLine(displayName),
      expireTime.map({ $0 > now }) ?? true
    else {
      throw .invalid("api_key", "BAD_KEY", "a name of at most 256 bytes, and an end in the future")
    }
    var request = KeysetWriter()
    request.raw(user.bytes)
    request.text(displayName)
    request.text(scopes.joined(separator: " "))
    request.int(expireTime ?? 0)
    let hash = SHA256.digest(request.bytes)
    let known = try rememberedAnswer(
      user: caller.user, rpc: "CreateApiKey", requestID: requestID, bodyHash: hash)
    if let known, let id = UUID(bytes: known), let key = try key(id) { return (key, nil) }
    let count = try first(
      "SELECT count(*) FROM api_key WHERE user_id = ? AND revoke_us IS NULL", account.key
    ) { $0.int(0) }
    guard (count ?? 0) < APIKey.keysPerUser else {
      throw StoreError(
        .failedPrecondition, "TOO_MANY_KEYS", "at most \(APIKey.keysPerUser) keys: revoke some",
        metadata: ["limit": String(APIKey.keysPerUser)])
    }
    let id = UUID.v7(milliseconds: now / 1000)
    let secret = APIKey.mark + Base64URL.encode(SecureRandom.bytes(32))
    try run(
      """
      INSERT INTO api_key(uuid, user_id, hash, prefix, display_name, scopes, create_us, expire_us)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """, id, account.key, SHA256.digest(secret), String(secret.prefix(9)), displayName,
      Set(scopes).sorted().joined(separator: " "), now, expireTime)
    try rememberAnswer(
      user: caller.user, rpc: "CreateApiKey", requestID: requestID, bodyHash: hash,
      answer: id.bytes)
    guard let key = try key(id) else {
      throw StoreError(.internalError, "STORAGE_FAILED", "the key was not stored")
    }
    return (key, secret)
  }

  /// Makes a key worthless at once; its streams end.
  ///
  /// - Throws: `USER_NOT_FOUND`, `KEY_NOT_FOUND`.
  public func revokeKey(_ id: UUID, of user: UUID, by caller: Principal) throws(StoreError) {
    let account = try managed(user, by: caller)
    guard let key = try key(id), key.user == user else {
      throw .notFound(
        "KEY_NOT_FOUND", type: "vencejo.auth.v1.ApiKey", name: "users/\(user)/apiKeys/\(id)")
    }
    try run("UPDATE api_key SET revoke_us = ? WHERE key_id = ?", now, key.key)
    try revoke(user: account.key, sessions: [-key.key])
  }

  /// Notes that keys were used.
  public func noteUse(ofKeys sessions: [Int64]) throws(StoreError) {
    for session in sessions where session < 0 {
      try run("UPDATE api_key SET last_used_us = ? WHERE key_id = ?", now, -session)
    }
  }
}
