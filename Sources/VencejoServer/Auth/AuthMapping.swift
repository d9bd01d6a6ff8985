import VencejoAPI
import VencejoProtobuf
import VencejoStore

extension Google.Timestamp {
  /// From the store's clock, microseconds since the Unix epoch.
  init(microseconds: Int64) {
    let (seconds, rest) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
    let borrow: Int64 = rest < 0 ? 1 : 0
    self.init(seconds: seconds - borrow, nanos: Int32((rest + borrow * 1_000_000) * 1000))
  }

  /// Microseconds since the Unix epoch, or the nearest number there is: it may come from a
  /// stranger.
  var microseconds: Int64 {
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
    if overflow { return seconds < 0 ? .min : .max }
    let (sum, carry) = product.addingReportingOverflow(Int64(nanos) / 1000)
    return carry ? (seconds < 0 ? .min : .max) : sum
  }
}

extension Auth.User {
  init(_ account: Account, showsEmail: Bool) {
    self.init()
    name = "users/\(account.id)"
    handle = account.handle
    email = showsEmail ? account.email : ""
    kind = account.kind == .human ? .human : .serviceAccount
    state = Auth.UserState(rawValue: Int32(clamping: account.state.rawValue))
    if let owner = account.owner { self.owner = "users/\(owner)" }
    purgeTime = account.purgeTime.map { Google.Timestamp(microseconds: $0) }
    role = account.role == .administrator ? .administrator : .member
    createTime = Google.Timestamp(microseconds: account.createTime)
    updateTime = Google.Timestamp(microseconds: account.updateTime)
    etag = String(account.version)
  }
}

extension Auth.Session {
  init(_ session: VencejoStore.Session, of account: Account, isCurrent: Bool = true) {
    self.init()
    name = "users/\(account.id)/sessions/\(session.id)"
    deviceId = session.deviceID
    deviceLabel = session.deviceLabel
    clientVersion = session.clientVersion
    createTime = Google.Timestamp(microseconds: session.createTime)
    lastSeenTime = Google.Timestamp(microseconds: session.lastSeenTime)
    expireTime = Google.Timestamp(microseconds: session.expireTime)
    current = isCurrent
  }
}

extension Auth.TokenPair {
  init(_ grant: TokenGrant) {
    self.init()
    accessToken = grant.accessToken
    accessExpireTime = Google.Timestamp(microseconds: grant.accessExpireTime)
    refreshToken = grant.refreshToken
    refreshExpireTime = Google.Timestamp(microseconds: grant.refreshExpireTime)
  }
}

extension Auth.ApiKey {
  init(_ key: APIKey) {
    self.init()
    name = "users/\(key.user)/apiKeys/\(key.id)"
    displayName = key.displayName
    prefix = key.prefix
    scopes = key.scopes
    createTime = Google.Timestamp(microseconds: key.createTime)
    lastUsedTime = key.lastUsedTime.map { Google.Timestamp(microseconds: $0) }
    expireTime = key.expireTime.map { Google.Timestamp(microseconds: $0) }
  }
}
