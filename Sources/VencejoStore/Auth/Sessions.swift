import VencejoCrypto
import VencejoSQLite

/// How long secrets live, in microseconds.
enum Lifetime {
  static let access: Int64 = 15 * 60 * 1_000_000
  /// From the last refresh.
  static let session: Int64 = 90 * TokenAuthority.microsecondsPerDay
  /// A replaced refresh token is forgiven for so long.
  static let grace: Int64 = 60 * 1_000_000
}

extension ReadTransaction {
  func principal(_ accessToken: String) throws(StoreError) -> Principal {
    guard accessToken.utf8.count <= 128 else { throw Store.badCredential }
    if accessToken.hasPrefix(APIKey.mark) { return try principal(key: accessToken) }
    let found = try first(
      """
      SELECT t.expire_us, s.session_id, s.uuid, s.revoke_us, s.expire_us, u.user_id, u.uuid, u.role,
        u.state
      FROM access_token t JOIN session s USING (session_id) JOIN user u USING (user_id)
      WHERE t.hash = ?
      """, SHA256.digest(accessToken)
    ) { row -> (isRevoked: Bool, isActive: Bool, Principal)? in
      guard let session = row.uuid(2), let user = row.uuid(6) else { return nil }
      return (
        !row.isNull(3), row.int(8) == AccountState.active.rawValue,
        Principal(
          user: row.int(5), session: row.int(1), userID: user, sessionID: session,
          role: ServerRole(rawValue: row.int(7)) ?? .member, scopes: nil,
          accessExpireTime: row.int(0),
          sessionExpireTime: row.int(4))
      )
    }
    guard let found, let (isRevoked, isActive, principal) = found else {
      throw Store.badCredential
    }
    if isRevoked { throw StoreError.sessionRevoked }
    guard isActive else { throw StoreError.accountSuspended }
    if principal.sessionExpireTime <= now { throw StoreError.sessionExpired }
    if principal.accessExpireTime <= now { throw StoreError.accessTokenExpired }
    return principal
  }

  /// The sessions of a user that are neither revoked nor expired.
  public func sessions(ofUser user: Int64) throws(StoreError) -> [Session] {
    try all(
      """
      SELECT session_id, uuid, device_id, device_label, client_version, create_us, last_seen_us,
        expire_us
      FROM session WHERE user_id = ? AND revoke_us IS NULL AND expire_us > ? ORDER BY session_id
      """, user, now
    ) { row in
      row.uuid(1).map {
        Session(
          key: row.int(0), id: $0, deviceID: row.text(2), deviceLabel: row.text(3),
          clientVersion: row.text(4), createTime: row.int(5), lastSeenTime: row.int(6),
          expireTime: row.int(7))
      }
    }.compactMap(\.self)
  }
}

extension StoreError {
  /// The access token is past its 15 minutes; refresh and try again.
  public static let accessTokenExpired = StoreError(
    .unauthenticated, "ACCESS_TOKEN_EXPIRED", "the access token has expired: refresh the session")
  /// The session was ended before its time.
  public static let sessionRevoked = StoreError(
    .unauthenticated, "SESSION_REVOKED", "the session was ended: sign in again")
  static let accountSuspended = StoreError(
    .unauthenticated, "ACCOUNT_SUSPENDED", "the account may not be used: ask an administrator")
  static let sessionExpired = StoreError(
    .unauthenticated, "SESSION_EXPIRED", "the session has expired: sign in again")
}

/// A refusal of a rotation must be committed: it may have revoked the session.
enum Rotation: Sendable {
  case granted(TokenGrant)
  case refused(StoreError)
}

extension WriteTransaction {
  func openSession(_ account: Account, _ device: Device) throws(StoreError) -> SignedIn {
    let id = UUID.v7(milliseconds: now / 1000)
    let expiry = now + Lifetime.session
    let device = Device(
      id: AccountRules.label(device.id), label: AccountRules.label(device.label),
      clientVersion: AccountRules.label(device.clientVersion))
    try run(
      """
      INSERT INTO session(uuid, user_id, device_id, device_label, client_version, create_us,
        last_seen_us, expire_us)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """, id, account.key, device.id, device.label, device.clientVersion, now, now, expiry)
    let key = lastInsertRowID
    let refreshToken = Base64URL.encode(SecureRandom.bytes(32))
    try run(
      "INSERT INTO refresh_token(hash, session_id) VALUES (?, ?)", SHA256.digest(refreshToken), key)
    return SignedIn(
      account: account,
      session: Session(
        key: key, id: id, deviceID: device.id, deviceLabel: device.label,
        clientVersion: device.clientVersion, createTime: now, lastSeenTime: now,
        expireTime: expiry),
      tokens: try grant(session: key, refreshToken: refreshToken, sessionExpiry: expiry))
  }

  private func grant(session: Int64, refreshToken: String, sessionExpiry: Int64)
    throws(StoreError) -> TokenGrant
  {
    let accessToken = Base64URL.encode(SecureRandom.bytes(32))
    try run("DELETE FROM access_token WHERE session_id = ? AND expire_us <= ?", session, now)
    try run(
      "INSERT INTO access_token(hash, session_id, expire_us) VALUES (?, ?, ?)",
      SHA256.digest(accessToken), session, now + Lifetime.access)
    return TokenGrant(
      accessToken: accessToken, accessExpireTime: now + Lifetime.access,
      refreshToken: refreshToken, refreshExpireTime: sessionExpiry)
  }

  func rotate(_ refreshToken: String) throws(StoreError) -> Rotation {
    guard refreshToken.utf8.count <= 128 else { return .refused(Store.badCredential) }
    let hash = SHA256.digest(refreshToken)
    let found = try first(
      """
      SELECT s.session_id, s.user_id, s.revoke_us, s.expire_us, r.replace_us, n.replace_us,
        n.hash IS NOT NULL
      FROM refresh_token r JOIN session s USING (session_id)
        LEFT JOIN refresh_token n ON n.hash = r.successor
      WHERE r.hash = ?
      """, hash
    ) {
      (
        session: $0.int(0), user: $0.int(1), isRevoked: !$0.isNull(2), expiry: $0.int(3),
        replaced: $0.optionalInt(4), successorUsed: !$0.isNull(5) || !$0.bool(6)
      )
    }
    guard let found else { return .refused(Store.badCredential) }
    if found.isRevoked { return .refused(.sessionRevoked) }
    if found.expiry <= now { return .refused(.sessionExpired) }
    // The successor follows from the token and a secret of ours: a repeat can be answered with
    // the same one though only hashes are stored.
    let successor = Base64URL.encode(
      HMACSHA256.authenticate(Array("refresh:\(refreshToken)".utf8), key: tokens.root))
    let expiry = now + Lifetime.session
    if let replaced = found.replaced {
      guard !found.successorUsed, now - replaced <= Lifetime.grace else {
        // Somebody else holds this token: nobody keeps the session.
        try revoke(user: found.user, sessions: [found.session])
        return .refused(.sessionRevoked)
      }
      return .granted(
        try grant(session: found.session, refreshToken: successor, sessionExpiry: found.expiry))
    }
    let successorHash = SHA256.digest(successor)
    try run(
      "UPDATE refresh_token SET replace_us = ?, successor = ? WHERE hash = ?", now, successorHash,
      hash)
    try run(
      "INSERT INTO refresh_token(hash, session_id) VALUES (?, ?)", successorHash, found.session)
    try run(
      "UPDATE session SET last_seen_us = ?, expire_us = ? WHERE session_id = ?", now, expiry,
      found.session)
    return .granted(
      try grant(session: found.session, refreshToken: successor, sessionExpiry: expiry))
  }

  /// Ends a session, or all of its user; streams of theirs end too.
  public func signOut(_ principal: Principal, allSessions: Bool) throws(StoreError) {
    let sessions =
      allSessions ? try sessions(ofUser: principal.user).map(\.key) : [principal.session]
    try revoke(user: principal.user, sessions: sessions)
  }

  func revoke(user: Int64, sessions: [Int64]) throws(StoreError) {
    guard !sessions.isEmpty else { return }
    for session in sessions where session > 0 {
      try run("UPDATE session SET revoke_us = ? WHERE session_id = ?", now, session)
      // Access tokens stay until they expire, so that a caller hears SESSION_REVOKED. Replaced
      // refresh tokens stay too: any of them, used again, hears the same.
    }
    append(
      .sessionsRevoked, user: user, payload: RevokedSessions(user: user, sessions: sessions))
  }
}
