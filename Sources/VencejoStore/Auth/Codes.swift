import VencejoCrypto
import VencejoSQLite

/// Codes that open a door once, and new passwords.
extension WriteTransaction {
  /// A code that lets strangers make accounts.
  public func createSignUpCode(uses: Int64, lifetime: Int64) throws(StoreError) -> String {
    let code = Base64URL.encode(SecureRandom.bytes(12))
    try run("DELETE FROM sign_up_code WHERE expire_us <= ? OR uses_left <= 0", now)
    try run(
      "INSERT INTO sign_up_code(hash, create_us, expire_us, uses_left) VALUES (?, ?, ?, ?)",
      SHA256.digest(code), now, now + lifetime, uses)
    return code
  }

  func spendSignUpCode(_ code: String) throws(StoreError) {
    let spent =
      code.utf8.count > 64
      ? 0
      : try run(
        """
        UPDATE sign_up_code SET uses_left = uses_left - 1
        WHERE hash = ? AND expire_us > ? AND uses_left > 0
        """, SHA256.digest(code), now)
    guard spent == 1 else {
      throw StoreError(
        .permissionDenied, "BAD_INVITE_CODE", "this server takes new accounts by invitation only")
    }
  }

  /// A code that sets a new password, once.
  ///
  /// - Throws: `USER_NOT_FOUND`.
  public func createResetCode(handle: String, lifetime: Int64, replacesOthers: Bool = true)
    throws(StoreError) -> String
  {
    guard let account = try account(handle: handle), account.kind == .human else {
      throw .notFound("USER_NOT_FOUND", type: "vencejo.auth.v1.User", name: handle)
    }
    let code = Base64URL.encode(SecureRandom.bytes(18))
    try run(
      "DELETE FROM reset_code WHERE expire_us <= ? OR (? AND user_id = ?)", now, replacesOthers,
      account.key)
    try run(
      "INSERT INTO reset_code(hash, user_id, expire_us) VALUES (?, ?, ?)", SHA256.digest(code),
      account.key, now + lifetime)
    return code
  }

  /// Hands a reset code to the administrators' hooks, at most three times an hour for each account:
  /// nobody's mailbox is flooded by strangers. Who asks hears nothing of what came of it.
  public func requestPasswordReset(identifier: String) throws(StoreError) {
    let text = AccountRules.trimmed(identifier)
    guard text.utf8.count <= 320 else { return }
    let found = try accounts(
      "WHERE \(text.contains("@") ? "email_key" : "handle") = ? AND kind = 1 AND state = 1",
      [text.contains("@") ? text.lowercased() : AccountRules.lowercasedASCII(text)]
    ).first
    guard let found else { return }
    try run("DELETE FROM reset_request WHERE request_us <= ?", now - 3_600_000_000)
    let recent = try first("SELECT count(*) FROM reset_request WHERE user_id = ?", found.key) {
      $0.int(0)
    }
    guard (recent ?? 0) < Self.resetRequestsPerHour else { return }
    try run("INSERT INTO reset_request(user_id, request_us) VALUES (?, ?)", found.key, now)
    // A stranger who asks does not spoil the code that somebody holds already.
    let code = try createResetCode(
      handle: found.handle, lifetime: Self.resetCodeLifetime, replacesOthers: false)
    var keys = KeysetWriter()
    keys.raw(found.id.bytes)
    keys.text(code)
    keys.int(now + Self.resetCodeLifetime)
    try enqueueServerEvent(.passwordReset, keys)
  }

  static let resetRequestsPerHour: Int64 = 3
  static let resetCodeLifetime: Int64 = 3_600_000_000

  func setPassword(_ password: PasswordHash, of user: Int64, keeping session: Int64?)
    throws(StoreError)
  {
    try run(
      """
      UPDATE user SET salt = ?, hash = ?, cost = ?, block_size = ?, parallelism = ?,
        update_us = ?, version = version + 1
      WHERE user_id = ?
      """, password.salt, password.hash, password.parameters.cost,
      password.parameters.blockSize, password.parameters.parallelism, now, user)
    try run("DELETE FROM reset_code WHERE user_id = ?", user)
    if let session {
      let others = try sessions(ofUser: user).map(\.key).filter { $0 != session }
      try revoke(user: user, sessions: others)
    }
  }
}

extension Store {
  /// Changes the caller's password; other sessions end unless told otherwise.
  ///
  /// - Throws: `BAD_CREDENTIAL`, `WEAK_PASSWORD`, `BAD_PASSWORD`, `TOO_MANY_SIGN_INS`.
  public func changePassword(
    from current: String, to new: String, revokeOthers: Bool, by caller: Principal
  ) async throws(StoreError) {
    try AccountRules.password(new)
    guard current.utf8.count <= 1024 else { throw Self.badCredential }
    let found = try await read { try $0.credential(user: caller.user) }
    guard try await hashing.verify(current, found) else { throw Self.badCredential }
    let hash = try await hashing.hash(new)
    try await write {
      try $0.setPassword(hash, of: caller.user, keeping: revokeOthers ? caller.session : nil)
    }
  }

  /// Sets a new password by a code; every session ends.
  ///
  /// - Throws: `BAD_RESET_CODE`, `WEAK_PASSWORD`, `BAD_PASSWORD`, `TOO_MANY_SIGN_INS`.
  public func resetPassword(code: String, to new: String) async throws(StoreError) {
    let bad = StoreError(
      .permissionDenied, "BAD_RESET_CODE", "the code is wrong, was used or is too old")
    guard code.utf8.count <= 64 else { throw bad }
    try AccountRules.password(new)
    let hash = SHA256.digest(code)
    // Looked at first, so that nobody makes us hash by guessing.
    guard try await read({ try $0.resetCodeOwner(hash) }) != nil else { throw bad }
    let password = try await hashing.hash(new)
    try await write { transaction in
      guard let user = try transaction.resetCodeOwner(hash) else { throw bad }
      try transaction.setPassword(password, of: user, keeping: 0)
    }
  }
}

/// A password somebody wants to be reset.
public struct PasswordResetRequest: Sendable {
  public let account: Account
  public let code: String
  public let expireTime: Int64
}

extension ReadTransaction {
  /// What a delivery of ``HookKind/passwordReset`` tells; nil once its time is over.
  public func passwordReset(of delivery: HookDelivery) throws(StoreError) -> PasswordResetRequest? {
    var keys = KeysetReader(delivery.keys)
    guard let id = keys.raw().flatMap(UUID.init(bytes:)), let code = keys.text(),
      let end = keys.int(), end > now
    else { return nil }
    return PasswordResetRequest(account: try account(id: id), code: code, expireTime: end)
  }

  func resetCodeOwner(_ hash: [UInt8]) throws(StoreError) -> Int64? {
    try first("SELECT user_id FROM reset_code WHERE hash = ? AND expire_us > ?", hash, now) {
      $0.int(0)
    }
  }

  func credential(user: Int64) throws(StoreError) -> PasswordHash? {
    let found = try first(
      "SELECT salt, hash, cost, block_size, parallelism FROM user WHERE user_id = ? AND kind = 1",
      user
    ) { row in
      PasswordHash(
        salt: row.blob(0),
        parameters: Scrypt.Parameters(
          cost: Int(row.int(2)), blockSize: Int(row.int(3)), parallelism: Int(row.int(4))),
        hash: row.blob(1))
    }
    return found
  }
}
