public import VencejoCrypto

/// What a user may do on this server as a whole.
public enum ServerRole: Int64, Sendable, Hashable {
  case member = 1
  case administrator = 2
}

/// Whether an account may be used; raw values as on the wire.
public enum AccountState: Int64, Sendable, Hashable {
  case active = 1
  case suspended = 3
  /// To be purged; an administrator may bring it back until then.
  case deleted = 4
}

/// Who stands behind an account; raw values as on the wire.
public enum AccountKind: Int64, Sendable, Hashable {
  case human = 1
  /// Without a password; used by keys.
  case service = 2
}

/// A user.
public struct Account: Sendable, Hashable {
  /// Internal key; never on the wire.
  public let key: Int64
  /// The name's last segment: `users/{id}`.
  public let id: UUID
  public let handle: String
  public let email: String
  public let displayName: String
  public let role: ServerRole
  public let kind: AccountKind
  public let state: AccountState
  /// Of a service account.
  public let owner: UUID?
  /// When the data of a deleted account goes.
  public let purgeTime: Int64?
  /// Microseconds since the Unix epoch.
  public let createTime: Int64
  public let updateTime: Int64
  /// Grows with each change; for etags.
  public let version: Int64
}

/// A signed-in device.
public struct Session: Sendable, Hashable {
  /// Internal key; never on the wire.
  public let key: Int64
  public let id: UUID
  public let deviceID: String
  public let deviceLabel: String
  public let clientVersion: String
  public let createTime: Int64
  public let lastSeenTime: Int64
  public let expireTime: Int64
}

/// The secrets of a session; only hashes of them are stored.
public struct TokenGrant: Sendable, Hashable {
  public let accessToken: String
  public let accessExpireTime: Int64
  public let refreshToken: String
  public let refreshExpireTime: Int64
}

/// What signing up and signing in answer.
public struct SignedIn: Sendable, Hashable {
  public let account: Account
  public let session: Session
  public let tokens: TokenGrant
}

/// Who makes a call, as an access token proved it.
public struct Principal: Sendable, Hashable {
  /// Internal keys. An API key counts as a session below zero.
  public let user: Int64
  public let session: Int64
  public let userID: UUID
  public let sessionID: UUID
  public let role: ServerRole
  /// What an API key may be used for; nil for a session, which may be used for everything.
  public let scopes: Set<String>?
  /// When the access token expires, and when the session does.
  public let accessExpireTime: Int64
  public let sessionExpireTime: Int64
}

/// A device, as it introduces itself.
public struct Device: Sendable, Hashable {
  public var id: String
  public var label: String
  public var clientVersion: String

  public init(id: String = "", label: String = "", clientVersion: String = "") {
    self.id = id
    self.label = label
    self.clientVersion = clientVersion
  }
}

extension EventKind {
  /// A session ended before its time; the payload is a ``RevokedSessions``. Not a frame of any
  /// stream: it ends streams.
  public static let sessionsRevoked = EventKind(rawValue: 1)
}

/// Payload of ``EventKind/sessionsRevoked``: internal keys.
public struct RevokedSessions: Sendable {
  public let user: Int64
  public let sessions: [Int64]
}
