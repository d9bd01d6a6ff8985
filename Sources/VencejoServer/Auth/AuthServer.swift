import VencejoAPI
import VencejoHTTP2
import VencejoProtobuf
import VencejoRPC
import VencejoStore

/// AuthService over the store.
struct AuthServer: Auth.AuthService {
  let store: Store
  let authenticator: Authenticator
  let door: SignUpDoor
  /// Whether callers on loopback and Unix sockets stand for the operator.
  let trustsLoopback: Bool
  let heartbeat: Duration
  let guardian: SignInGuard
  let limits: RateLimits

  /// Handlers only await the store's own threads.
  var execution: HandlerExecution { .loop }

  func getServerInfo(_ request: Auth.GetServerInfoRequest, _ context: ServerContext) async throws
    -> Auth.GetServerInfoResponse
  {
    var response = Auth.GetServerInfoResponse()
    response.serverVersion = VencejoRPC.version
    response.packages = ["vencejo.auth.v1", "vencejo.chat.v1", "vencejo.record.v1"]
    response.signUpOpen = maySignUp(context)
    response.serverTime = Google.Timestamp(microseconds: store.now)
    response.maxMessageBytes = Int64(ChatLimits.textBytes)
    response.maxAttachmentBytes = AttachmentLimits.bytes
    response.recommendedChunkBytes = Int32(AttachmentLimits.recommendedChunkBytes)
    response.heartbeatInterval = Google.Duration(heartbeat)
    return response
  }

  func signUp(_ request: Auth.SignUpRequest, _ context: ServerContext) async throws
    -> Auth.SignUpResponse
  {
    try await answering(.auth) {
      guard maySignUp(context) || !request.inviteCode.isEmpty else {
        throw StoreError(
          .permissionDenied, "SIGN_UP_CLOSED", "this server takes no new accounts from elsewhere")
      }
      try admit(context)
      var new = NewAccount(
        handle: request.handle, email: request.email, password: request.password,
        displayName: request.displayName,
        device: Device(id: request.deviceId, label: request.deviceLabel),
        requestID: request.requestId, isLocal: isLocal(context))
      if !maySignUp(context) { new.code = request.inviteCode }
      let signedIn = try await store.signUp(new)
      var response = Auth.SignUpResponse()
      response.user = Auth.User(signedIn.account, showsEmail: true)
      response.tokens = Auth.TokenPair(signedIn.tokens)
      response.session = Auth.Session(signedIn.session, of: signedIn.account)
      return response
    }
  }

  func signIn(_ request: Auth.SignInRequest, _ context: ServerContext) async throws
    -> Auth.SignInResponse
  {
    try await answering(.auth) {
      guard case .password(let credential)? = request.credential else {
        throw StoreError.invalid(
          "credential", "MISSING_CREDENTIAL", "say who you are: password is missing")
      }
      try admit(context)
      let address = address(context)
      try guardian.check(credential.identifier, address, now: store.now)
      let signedIn: SignedIn
      do {
        signedIn = try await store.signIn(
          identifier: credential.identifier, password: credential.password,
          device: Device(
            id: request.deviceId, label: request.deviceLabel,
            clientVersion: request.clientVersion))
      } catch let error as StoreError {
        if error.reason == "BAD_CREDENTIAL" {
          guardian.failed(credential.identifier, address, now: store.now)
        }
        throw error
      }
      guardian.succeeded(credential.identifier, address)
      var response = Auth.SignInResponse()
      response.user = Auth.User(signedIn.account, showsEmail: true)
      response.tokens = Auth.TokenPair(signedIn.tokens)
      response.session = Auth.Session(signedIn.session, of: signedIn.account)
      return response
    }
  }

  func refreshSession(_ request: Auth.RefreshSessionRequest, _ context: ServerContext)
    async throws -> Auth.RefreshSessionResponse
  {
    try await answering(.auth) {
      var response = Auth.RefreshSessionResponse()
      response.tokens = Auth.TokenPair(try await store.refresh(request.refreshToken))
      return response
    }
  }

  func signOut(_ request: Auth.SignOutRequest, _ context: ServerContext) async throws
    -> Auth.SignOutResponse
  {
    try await answering(.auth) {
      let principal = try await authenticator.principal(context)
      try await store.write { try $0.signOut(principal, allSessions: request.allSessions) }
      return Auth.SignOutResponse()
    }
  }

  func getUser(_ request: Auth.GetUserRequest, _ context: ServerContext) async throws
    -> Auth.GetUserResponse
  {
    try await answering(.auth) {
      let principal = try await authenticator.principal(context)
      let id = try ResourceName.user(request.name, field: "name", caller: principal)
      let account = try await store.read { try $0.account(id: id) }
      var response = Auth.GetUserResponse()
      response.user = Auth.User(
        account, showsEmail: id == principal.userID || principal.role == .administrator)
      return response
    }
  }

  private func maySignUp(_ context: ServerContext) -> Bool {
    door.isOpen || isLocal(context)
  }

  private func isLocal(_ context: ServerContext) -> Bool {
    trustsLoopback && context.peer.isLoopback
  }

  /// Attempts of one address are counted, whoever it tries to be.
  func admit(_ context: ServerContext) throws(StoreError) {
    guard !isLocal(context) else { return }
    try limits.spend(.attempt, address(context), now: store.now)
  }

  /// Who is counted. Behind a proxy on this machine it is whom the proxy names last: what stands
  /// before it came from the caller.
  func address(_ context: ServerContext) -> String {
    guard !trustsLoopback, context.peer.isLoopback,
      let forwarded = context.metadata["x-forwarded-for"]?.split(separator: ",").last
    else { return context.peer.host }
    return "x:" + String(forwarded.filter { !$0.isWhitespace }.prefix(64))
  }
}
