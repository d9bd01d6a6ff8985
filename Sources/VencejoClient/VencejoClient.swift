import Synchronization
public import VencejoAPI
public import VencejoHTTP2
import VencejoProtobuf
public import VencejoRPC

/// A signed-in way to a Vencejo server: calls carry the session's token, which is renewed in time;
/// changes of chats arrive through a stream that resumes without a gap.
///
/// ```swift
/// let client = try VencejoClient("127.0.0.1:7447")
/// try await client.signIn(handle: "ana", password: "…")
/// client.startSync()
/// for await change in client.changes() { … }
/// ```
public final class VencejoClient: Sendable {
  public struct Configuration: Sendable {
    /// Shown in the list of a user's sessions.
    public var deviceLabel = ""
    /// Stable per device; chosen by the application.
    public var deviceID = ""
    public var clientVersion = ""
    /// Of one call.
    public var timeout: Duration = .seconds(10)
    /// How often the server is asked for a sign of life on a quiet stream (it grants 5 s to 60 s).
    /// After two and a half of these without any frame the stream is given up and opened again.
    public var heartbeat: Duration = .seconds(20)
    /// Chats and messages that a first connection brings into the cache.
    public var snapshotChats = 200
    public var snapshotMessages = 30
    /// A folder of the application's in which what the device knows is kept between runs, and
    /// messages wait that could not be sent: a file for each account, erased when it signs out.
    /// Nil: in memory only. A second process that finds the file in use keeps to its memory.
    public var dataFolder: String?

    public init() {}
  }

  public let configuration: Configuration
  /// For calls that this class has no helper for; they carry no token: see `authorized(_:)`.
  public let channel: Channel
  let authenticator: Authenticator
  /// What is known of the user's chats, kept current while syncing.
  public let cache = ChatCache()
  let profiles = ProfileCache()
  let sync: ChatSync
  public let outbox: Outbox
  private let store = Mutex<DeviceStore?>(nil)

  /// A client of the server at `target` (`HOST:PORT`, `unix:/PATH`); connects when first used.
  ///
  /// - Parameter tls: how to make sure of the server; nil for plain text.
  /// - Parameter session: from an earlier run.
  /// - Parameter storage: told of every new session.
  /// - Throws: INVALID_ARGUMENT when the target is no address, or `tls` cannot be used.
  public init(
    _ target: String, tls: ClientTLS? = nil, configuration: Configuration = .init(),
    session: Session? = nil, storage: any SessionStorage = NoSessionStorage()
  ) throws(RPCError) {
    self.configuration = configuration
    // Streams and outbox have delays of their own; a connection that was refused is tried again
    // whenever they ask.
    var connecting = Channel.Configuration()
    connecting.backoff = Backoff(initial: .milliseconds(50), maximum: .milliseconds(500))
    channel = try Channel(target, tls: tls, configuration: connecting)
    authenticator = Authenticator(
      Auth.AuthClient(channel), storage: storage, session: session)
    sync = ChatSync(
      Chat.ChatClient(channel), authenticator: authenticator, cache: cache,
      configuration: configuration)
    outbox = Outbox(
      Chat.ChatClient(channel), authenticator: authenticator, sync: sync,
      timeout: configuration.timeout)
    sync.whenLive { [weak outbox] in outbox?.wake() }
    if let session { attach(session.user) }
  }

  /// Ends the stream and the connection. The session stays good, and what waits to be sent is kept
  /// for the next run if there is a folder for data.
  public func close() {
    sync.stop()
    outbox.clear()
    cache.detach()
    profiles.detach()
    store.withLock { $0 = nil }
    channel.close()
  }

  // MARK: Account

  /// The session, renewed or not; nil when nobody is signed in.
  public var session: Session? {
    get async { await authenticator.session }
  }

  public func serverInfo() async throws(RPCError) -> Auth.GetServerInfoResponse {
    let info = try await Auth.AuthClient(channel).getServerInfo(
      .init(), CallOptions(timeout: configuration.timeout))
    if let time = info.serverTime { await authenticator.note(serverTime: time.seconds) }
    return info
  }

  /// Makes an account and signs in.
  @discardableResult
  public func signUp(
    handle: String, password: String, displayName: String = "", email: String = ""
  ) async throws(RPCError) -> Auth.User {
    var request = Auth.SignUpRequest()
    request.requestId = MessageID.make()
    request.handle = handle
    request.password = password
    request.displayName = displayName
    request.email = email
    request.deviceId = configuration.deviceID
    request.deviceLabel = configuration.deviceLabel
    let response = try await Auth.AuthClient(channel).signUp(
      request, CallOptions(timeout: configuration.timeout))
    return try await adopt(response.user, response.tokens)
  }

  @discardableResult
  public func signIn(handle: String, password: String) async throws(RPCError) -> Auth.User {
    var request = Auth.SignInRequest()
    request.credential = .password(.init(identifier: handle, password: password))
    request.deviceId = configuration.deviceID
    request.deviceLabel = configuration.deviceLabel
    request.clientVersion = configuration.clientVersion
    let response = try await Auth.AuthClient(channel).signIn(
      request, CallOptions(timeout: configuration.timeout))
    return try await adopt(response.user, response.tokens)
  }

  /// Goes on with a session of an earlier run, and with what was kept of its account.
  public func resume(_ session: Session) async {
    forget()
    await authenticator.set(session)
    attach(session.user)
  }

  /// Whether what happens from now on will be known to the next run.
  public var isKept: Bool { store.withLock { $0 != nil } }

  /// Ends the session on the server and here. Here it ends even when the server cannot be told.
  public func signOut(everywhere: Bool = false) async throws(RPCError) {
    sync.stop()
    do throws(RPCError) {
      _ = try await authorized { (options) async throws(RPCError) in
        try await Auth.AuthClient(self.channel).signOut(
          .init(allSessions: everywhere), options)
      }
    } catch {
      if error.code != .unauthenticated {
        await authenticator.set(nil)
        forget(erasing: true)
        throw error
      }
    }
    await authenticator.set(nil)
    forget(erasing: true)
  }

  public func currentUser() async throws(RPCError) -> Auth.User {
    try await authorized { (options) async throws(RPCError) in
      let response = try await Auth.AuthClient(self.channel).getUser(
        .init(name: "users/me"), options)
      return response.user ?? .init()
    }
  }

  private func adopt(
    _ user: Auth.User?, _ tokens: Auth.TokenPair?
  ) async throws(RPCError) -> Auth.User {
    guard let user, let tokens else {
      throw RPCError(.internalError, "the server sent no session")
    }
    forget()
    await authenticator.set(
      Session(
        user: user.name, handle: user.handle, accessToken: tokens.accessToken,
        accessExpiry: tokens.accessExpireTime?.seconds ?? 0, refreshToken: tokens.refreshToken))
    attach(user.name)
    return user
  }

  /// Another user: nothing of the last one stays in memory.
  private func forget(erasing: Bool = false) {
    sync.stop()
    outbox.clear()
    cache.clear()
    profiles.clear()
    store.withLock { store in
      sync.forgetStorageFailures()
      if erasing { sync.keep(.file) { () throws(RPCError) in try store?.erase() } }
      store = nil
    }
  }

  /// Goes on with what was kept of a user (`users/{user}`), if there is a place for it.
  private func attach(_ user: String) {
    guard let folder = configuration.dataFolder else { return }
    sync.keep(.file) { () throws(RPCError) in try open(user, in: folder) }
  }

  private func open(_ user: String, in folder: String) throws(RPCError) {
    // Ids are letters, digits and dashes; anything else would be the work of a hostile server.
    let id = user.split(separator: "/").last ?? ""
    let isPlain = id.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte)
        || (0x61...0x7A).contains(byte) || byte == 0x2D || byte == 0x5F
    }
    guard isPlain, !id.isEmpty, id.utf8.count <= 100 else {
      throw RPCError(.invalidArgument, "\(user) is no user's name")
    }
    guard let opened = try DeviceStore(path: "\(folder)/\(id).sqlite") else { return }
    let kept = try opened.load()
    cache.attach(opened, kept)
    profiles.attach(opened, kept.profiles)
    outbox.attach(opened, kept.outbox)
    store.withLock { $0 = opened }
    outbox.wake()
  }

  // MARK: Calls

  /// Makes a call with the session's token; when the server refuses the token, once more with a
  /// new one.
  public func authorized<Answer: Sendable>(
    timeout: Duration? = nil,
    _ call: @Sendable (CallOptions) async throws(RPCError) -> Answer
  ) async throws(RPCError) -> Answer {
    try await authenticator.authorized(timeout: timeout ?? configuration.timeout, call)
  }
}

extension Authenticator {
  nonisolated func authorized<Answer: Sendable>(
    timeout: Duration, _ call: @Sendable (CallOptions) async throws(RPCError) -> Answer
  ) async throws(RPCError) -> Answer {
    let token = try await token()
    do throws(RPCError) {
      return try await call(Self.options(token, timeout))
    } catch {
      guard error.code == .unauthenticated, error.origin == .remote else { throw error }
      let fresh = try await refreshed(instead: token)
      return try await call(Self.options(fresh, timeout))
    }
  }

  static func options(_ token: String, _ timeout: Duration?) -> CallOptions {
    CallOptions(timeout: timeout, metadata: ["authorization": "Bearer \(token)"])
  }
}
