/// Who is signed in, and the tokens that prove it. Keep it as you would a password.
public struct Session: Sendable, Hashable {
  /// Format: `users/{user}`.
  public var user: String
  /// The handle at the time of signing in.
  public var handle: String
  public var accessToken: String
  /// When the access token ends, in seconds since 1970 by the server's clock; 0 is unknown.
  public var accessExpiry: Int64
  public var refreshToken: String

  public init(
    user: String, handle: String, accessToken: String, accessExpiry: Int64, refreshToken: String
  ) {
    self.user = user
    self.handle = handle
    self.accessToken = accessToken
    self.accessExpiry = accessExpiry
    self.refreshToken = refreshToken
  }
}

/// Where an application keeps its session between runs. Called from any thread, quickly.
public protocol SessionStorage: Sendable {
  /// The session another process of the same user may have refreshed meanwhile; nil when there
  /// is none.
  func load(user: String) -> Session?
  /// A new or refreshed session.
  func save(_ session: Session)
  /// The session is over: signed out, revoked, expired.
  func remove(user: String)
}

/// Keeps nothing.
public struct NoSessionStorage: SessionStorage {
  public init() {}
  public func load(user: String) -> Session? { nil }
  public func save(_ session: Session) {}
  public func remove(user: String) {}
}
