public import VencejoCrypto
import VencejoSQLite

public struct HookPage: Sendable {
  public let hooks: [Hook]
  public let nextPageToken: String
}

extension ReadTransaction {
  func hooks(_ clause: String, _ values: [any SQLiteBindable]) throws(StoreError) -> [Hook] {
    var result: [Hook] = []
    try each(
      dynamic: """
        SELECT h.hook_id, h.uuid, h.user_id, u.uuid, h.purpose, h.subject, h.uri, h.secret,
          h.format, h.flags, h.create_us, h.state, h.fault, h.success_us,
          -- Bounded by HookLimits.waiting.
          (SELECT count(*) FROM hook_delivery d WHERE d.hook_id = h.hook_id)
        FROM hook h JOIN user u USING (user_id) \(clause)
        """, values
    ) { row in
      if let id = row.uuid(1), let user = row.uuid(3),
        let purpose = HookPurpose(rawValue: row.int(4))
      {
        result.append(
          Hook(
            key: row.int(0), id: id, user: row.int(2), userID: user, purpose: purpose,
            subject: row.blob(5), uri: row.text(6), secret: row.blob(7),
            format: HookFormat(rawValue: row.int(8)) ?? .json,
            flags: HookFlags(rawValue: row.int(9)), createTime: row.int(10),
            isActive: row.int(11) == 1, fault: row.text(12), lastSuccessTime: row.optionalInt(13),
            waiting: row.int(14)))
      }
      return true
    }
    return result
  }

  /// The caller's hooks of a purpose, oldest first.
  ///
  /// - Throws: `BAD_PAGE_SIZE`, `BAD_PAGE_TOKEN`, `PAGE_TOKEN_MISMATCH`.
  public func listHooks(
    _ purpose: HookPurpose, pageSize: Int32 = 0, pageToken: String = "", by user: Int64
  ) throws(StoreError) -> HookPage {
    let size = try ChatLimits.page(pageSize)
    var arguments = KeysetWriter()
    arguments.text("ListHooks")
    arguments.int(user)
    arguments.int(purpose.rawValue)
    var after: Int64 = 0
    if !pageToken.isEmpty {
      var keyset = try tokens.keyset(ofPageToken: pageToken, arguments: arguments)
      guard let key = keyset.int() else { throw TokenAuthority.badPageToken }
      after = key
    }
    let found = try hooks(
      "WHERE h.user_id = ? AND h.purpose = ? AND h.hook_id > ? ORDER BY h.hook_id LIMIT ?",
      [user, purpose.rawValue, after, size + 1])
    let page = Array(found.prefix(size))
    var next = KeysetWriter()
    next.int(page.last?.key ?? 0)
    return HookPage(
      hooks: page,
      nextPageToken: found.count > size ? tokens.pageToken(keyset: next, arguments: arguments) : "")
  }

  /// A hook by its id; nil where there is none.
  public func hook(_ id: UUID) throws(StoreError) -> Hook? {
    try hooks("WHERE h.uuid = ?", [id]).first
  }

  /// The hooks of a subject, in the order in which they were made.
  public func hooks(_ purpose: HookPurpose, of subject: [UInt8]) throws(StoreError) -> [Hook] {
    try hooks(
      "WHERE h.purpose = ? AND h.subject = ? ORDER BY h.hook_id", [purpose.rawValue, subject])
  }
}

extension WriteTransaction {
  /// Makes a hook of the caller's; nil in a repeat of the request whose hook was deleted since.
  ///
  /// - Throws: `TOO_MANY_HOOKS`, `REQUEST_ID_REUSED`, `BAD_REQUEST_ID`.
  public func createHook(_ new: NewHook, requestID: String = "", by user: Int64)
    throws(StoreError) -> Hook?
  {
    var request = KeysetWriter()
    request.int(new.purpose.rawValue)
    request.raw(new.subject)
    request.text(new.uri)
    request.int(new.format.rawValue)
    request.int(new.flags.rawValue)
    let hash = SHA256.digest(request.bytes)
    if let known = try rememberedAnswer(
      user: user, rpc: "CreateHook", requestID: requestID, bodyHash: hash)
    {
      guard let id = UUID(bytes: known) else { return nil }
      return try hook(id)
    }
    let count = try first(
      "SELECT count(*) FROM hook WHERE user_id = ? AND purpose = ?", user, new.purpose.rawValue
    ) { $0.int(0) }
    guard (count ?? 0) < HookLimits.perUser else {
      throw StoreError(
        .failedPrecondition, "TOO_MANY_HOOKS", "at most \(HookLimits.perUser): delete some",
        metadata: ["limit": String(HookLimits.perUser)])
    }
    let id = UUID.v7(milliseconds: now / 1000)
    // Nobody was to be told of what happened before: the log need not be looked through for it.
    if new.purpose == .push,
      try first(
        "SELECT 1 FROM hook WHERE purpose = 1 AND state = 1 LIMIT 1", read: { _ in true }) == nil
    {
      try run("UPDATE push_cursor SET pos = max(pos, ?)", try head())
    }
    try run(
      """
      INSERT INTO hook(uuid, user_id, purpose, subject, uri, secret, format, flags, from_pos,
        create_us, state)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)
      """, id, user, new.purpose.rawValue, new.subject, new.uri, new.secret, new.format.rawValue,
      new.flags.rawValue, try head(), now)
    try rememberAnswer(
      user: user, rpc: "CreateHook", requestID: requestID, bodyHash: hash, answer: id.bytes)
    return try hook(id)
  }

  /// Deletes a hook of the caller's with what waits for it; answers whether there was one.
  @discardableResult
  public func deleteHook(_ id: UUID, _ purpose: HookPurpose, by user: Int64)
    throws(StoreError) -> Bool
  {
    guard let hook = try hook(id), hook.user == user, hook.purpose == purpose else { return false }
    try delete(hook: hook.key)
    return true
  }

  /// Deletes the hooks of a subject.
  public func deleteHooks(_ purpose: HookPurpose, of subject: [UInt8]) throws(StoreError) {
    for hook in try hooks(purpose, of: subject) { try delete(hook: hook.key) }
  }

  func deleteHooks(ofUser user: Int64) throws(StoreError) {
    for hook in try hooks("WHERE h.user_id = ?", [user]) { try delete(hook: hook.key) }
  }

  private func delete(hook: Int64) throws(StoreError) {
    try run("DELETE FROM hook_delivery WHERE hook_id = ?", hook)
    try run("DELETE FROM hook WHERE hook_id = ?", hook)
  }
}
