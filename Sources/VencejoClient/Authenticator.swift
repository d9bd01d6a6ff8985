import VencejoAPI
import VencejoProtobuf
import VencejoRPC

/// Holds the session and renews its access token: before it ends, and when the server refuses it.
/// Streams that are open belong to the session and go on.
actor Authenticator {
  private let auth: Auth.AuthClient
  private let storage: any SessionStorage
  private(set) var session: Session?
  /// Server's clock minus ours, in seconds; nil until the server told its time.
  private var skew: Int64?
  /// One refresh at a time: a refresh token is good for one use.
  private var refreshing: Task<Result<Session, RPCError>, Never>?

  /// An access token is renewed when less than this is left, in seconds.
  private static let margin: Int64 = 60

  init(_ auth: Auth.AuthClient, storage: any SessionStorage, session: Session?) {
    self.auth = auth
    self.storage = storage
    self.session = session
  }

  func set(_ session: Session?) {
    if session == nil, let old = self.session { storage.remove(user: old.user) }
    self.session = session
    if let session { storage.save(session) }
  }

  private var now: Int64 { WallClock.seconds + (skew ?? 0) }

  func note(serverTime: Int64) { skew = serverTime - WallClock.seconds }

  /// A token that is good for now.
  func token() async throws(RPCError) -> String {
    guard let session else {
      throw RPCError(.unauthenticated, "nobody is signed in")
    }
    if session.accessExpiry == 0 || session.accessExpiry - now > Self.margin {
      return session.accessToken
    }
    if skew == nil {
      // It may be our clock that is wrong, and then every new token would look old, too.
      let info = try? await auth.getServerInfo(.init(), .init(timeout: .seconds(10)))
      if skew == nil, let time = info?.serverTime { note(serverTime: time.seconds) }
      if skew != nil { return try await token() }
    }
    do {
      return try await refreshed(instead: session.accessToken)
    } catch {
      // The server cannot be reached, but the token may still be good.
      if error.code == .unavailable, session.accessExpiry > now { return session.accessToken }
      throw error
    }
  }

  /// A token other than `refused`, which the server did not take.
  func refreshed(instead refused: String) async throws(RPCError) -> String {
    guard let session else {
      throw RPCError(.unauthenticated, "nobody is signed in")
    }
    if session.accessToken != refused { return session.accessToken }
    // Another process of this user may have been first.
    if let stored = storage.load(user: session.user), stored.accessToken != refused,
      stored.refreshToken != session.refreshToken
    {
      self.session = stored
      return stored.accessToken
    }
    let task: Task<Result<Session, RPCError>, Never>
    if let refreshing {
      task = refreshing
    } else {
      task = Task { await self.refresh(session) }
      refreshing = task
    }
    return try await task.value.get().accessToken
  }

  private func refresh(_ old: Session) async -> Result<Session, RPCError> {
    defer { refreshing = nil }
    do throws(RPCError) {
      let response = try await auth.refreshSession(
        .init(refreshToken: old.refreshToken), .init(timeout: .seconds(10)))
      guard let tokens = response.tokens else {
        throw RPCError(.internalError, "the server sent no tokens")
      }
      var session = old
      session.accessToken = tokens.accessToken
      session.accessExpiry = tokens.accessExpireTime?.seconds ?? 0
      session.refreshToken = tokens.refreshToken
      // Signed out, or in as somebody else, while the answer was on its way.
      guard self.session?.refreshToken == old.refreshToken else {
        throw RPCError(.unauthenticated, "the session ended")
      }
      set(session)
      return .success(session)
    } catch {
      if error.code == .unauthenticated, self.session?.refreshToken == old.refreshToken {
        set(nil)
      }
      return .failure(error)
    }
  }
}
