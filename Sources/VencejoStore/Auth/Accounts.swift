public import VencejoCrypto
import VencejoSQLite

extension ReadTransaction {
  /// The account with this id.
  ///
  /// - Throws: `USER_NOT_FOUND`.
  public func account(id: UUID) throws(StoreError) -> Account {
    let found = try accounts("WHERE uuid = ?", [id]).first
    guard let found else {
      throw .notFound("USER_NOT_FOUND", type: "vencejo.auth.v1.User", name: "users/\(id)")
    }
    return found
  }

  /// As ``account(id:)``, but not where its end has begun.
  func reachable(_ id: UUID) throws(StoreError) -> Account {
    let account = try account(id: id)
    guard account.state != .deleted else {
      throw .notFound("USER_NOT_FOUND", type: "vencejo.auth.v1.User", name: "users/\(id)")
    }
    return account
  }

  func account(key: Int64) throws(StoreError) -> Account? {
    try accounts("WHERE user_id = ?", [key]).first
  }

  func account(handle: String) throws(StoreError) -> Account? {
    try accounts("WHERE handle = ?", [AccountRules.lowercasedASCII(handle)]).first
  }

  func accounts(_ clause: String, _ values: [any SQLiteBindable]) throws(StoreError) -> [Account] {
    var result: [Account] = []
    try each(
      dynamic: """
        SELECT user_id, uuid, handle, email, display_name, role, create_us, update_us, version,
          kind, state, (SELECT o.uuid FROM user o WHERE o.user_id = user.owner_id), purge_us
        FROM user \(clause)
        """, values
    ) { row in
      if let id = row.uuid(1) {
        result.append(
          Account(
            key: row.int(0), id: id, handle: row.text(2), email: row.text(3),
            displayName: row.text(4), role: ServerRole(rawValue: row.int(5)) ?? .member,
            kind: AccountKind(rawValue: row.int(9)) ?? .human,
            state: AccountState(rawValue: row.int(10)) ?? .suspended, owner: row.uuid(11),
            purgeTime: row.optionalInt(12), createTime: row.int(6), updateTime: row.int(7),
            version: row.int(8)))
      }
      return true
    }
    return result
  }

  /// The stored password of a handle or an e-mail address.
  func credential(_ identifier: String) throws(StoreError)
    -> (account: Int64, password: PasswordHash)?
  {
    let text = AccountRules.trimmed(identifier)
    let isEmail = text.contains("@")
    var result: (account: Int64, password: PasswordHash)?
    try each(
      dynamic: """
        SELECT user_id, salt, hash, cost, block_size, parallelism FROM user
        WHERE \(isEmail ? "email_key" : "handle") = ? AND kind = 1
        """, [isEmail ? text.lowercased() : AccountRules.lowercasedASCII(text)]
    ) { row in
      let parameters = Scrypt.Parameters(
        cost: Int(row.int(3)), blockSize: Int(row.int(4)), parallelism: Int(row.int(5)))
      result = (
        row.int(0), PasswordHash(salt: row.blob(1), parameters: parameters, hash: row.blob(2))
      )
      return false
    }
    return result
  }
}

extension WriteTransaction {
  func insertAccount(
    handle: String, email: String, displayName: String, password: PasswordHash, isLocal: Bool
  ) throws(StoreError) -> Account {
    guard try account(handle: handle) == nil else {
      throw StoreError(
        .alreadyExists, "HANDLE_TAKEN", "the handle \(handle) is taken",
        metadata: ["handle": handle],
        details: [.resource(type: "vencejo.auth.v1.User", name: handle)])
    }
    let emailKey: String? = email.isEmpty ? nil : email.lowercased()
    if let emailKey,
      try first("SELECT 1 FROM user WHERE email_key = ?", emailKey, read: { _ in 1 }) != nil
    {
      throw StoreError(
        .alreadyExists, "EMAIL_TAKEN", "another account has this e-mail address",
        details: [.resource(type: "vencejo.auth.v1.User", name: email)])
    }
    let isFirst = try first("SELECT 1 FROM user LIMIT 1", read: { _ in 1 }) == nil
    let role: ServerRole = isFirst && isLocal ? .administrator : .member
    try run(
      """
      INSERT INTO user(uuid, handle, email, email_key, display_name, display_key, role, create_us,
        update_us, version, salt, hash, cost, block_size, parallelism)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?)
      """, UUID.v7(milliseconds: now / 1000), handle, email, emailKey, displayName,
      displayName.lowercased(), role.rawValue, now, now, password.salt, password.hash,
      password.parameters.cost, password.parameters.blockSize, password.parameters.parallelism)
    guard let account = try account(key: lastInsertRowID) else {
      throw StoreError(.internalError, "STORAGE_FAILED", "the account was not stored")
    }
    return account
  }

  /// Makes a user administrator of the server.
  ///
  /// - Throws: `USER_NOT_FOUND`.
  @discardableResult
  public func grantAdministrator(handle: String) throws(StoreError) -> Account {
    guard let found = try account(handle: handle) else {
      throw .notFound("USER_NOT_FOUND", type: "vencejo.auth.v1.User", name: handle)
    }
    try run(
      "UPDATE user SET role = ?, update_us = ?, version = version + 1 WHERE user_id = ?",
      ServerRole.administrator.rawValue, now, found.key)
    return try account(id: found.id)
  }
}
