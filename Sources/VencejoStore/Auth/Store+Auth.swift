import VencejoCrypto

/// What a new account is made from.
public struct NewAccount: Sendable {
  public var handle: String
  public var email: String
  public var password: String
  public var displayName: String
  public var device: Device
  public var requestID: String
  /// The caller is on this machine: the first account of an empty folder becomes administrator.
  public var isLocal: Bool
  /// Needed where sign-up is not open to the caller.
  public var code: String?

  public init(
    handle: String, email: String = "", password: String, displayName: String = "",
    device: Device = Device(), requestID: String = "", isLocal: Bool = true
  ) {
    self.handle = handle
    self.email = email
    self.password = password
    self.displayName = displayName
    self.device = device
    self.requestID = requestID
    self.isLocal = isLocal
  }
}

extension Store {
  /// Makes an account and its first session.
  ///
  /// - Throws: `BAD_HANDLE`, `BAD_EMAIL`, `WEAK_PASSWORD`, `HANDLE_TAKEN`, `EMAIL_TAKEN`,
  ///   `TOO_MANY_SIGN_INS`.
  public func signUp(_ new: NewAccount) async throws(StoreError) -> SignedIn {
    let handle = try AccountRules.handle(new.handle)
    let email = try AccountRules.email(new.email)
    let displayName = try AccountRules.displayName(new.displayName, handle: handle)
    try AccountRules.password(new.password)

    // A repeat proves itself by the password: nothing derived from it may lie in the request
    // log, so the hash of the body leaves it out.
    var body = KeysetWriter()
    for text in [handle, email, displayName] { body.text(text) }
    let bodyHash = SHA256.digest(body.bytes)
    let password = try await hashing.hash(new.password)
    let made = try await write { transaction -> SignedIn? in
      let known = try transaction.rememberedAnswer(
        user: 0, rpc: "SignUp", requestID: new.requestID, bodyHash: bodyHash)
      guard known == nil else { return nil }
      if let code = new.code { try transaction.spendSignUpCode(code) }
      let account = try transaction.insertAccount(
        handle: handle, email: email, displayName: displayName, password: password,
        isLocal: new.isLocal)
      try transaction.rememberAnswer(
        user: 0, rpc: "SignUp", requestID: new.requestID, bodyHash: bodyHash, answer: [])
      return try transaction.openSession(account, new.device)
    }
    if let made { return made }
    return try await signIn(identifier: handle, password: new.password, device: new.device)
  }

  /// Opens a session for whoever knows the password of a handle or an e-mail address.
  ///
  /// - Throws: `BAD_CREDENTIAL`, in the same time whether or not the account exists;
  ///   `TOO_MANY_SIGN_INS`.
  public func signIn(identifier: String, password: String, device: Device)
    async throws(StoreError) -> SignedIn
  {
    guard password.utf8.count <= 1024, identifier.utf8.count <= 254 else {
      throw Self.badCredential
    }
    let found = try await read { try $0.credential(identifier) }
    guard try await hashing.verify(password, found?.password), let found else {
      throw Self.badCredential
    }
    return try await write { transaction in
      guard let account = try transaction.account(key: found.account) else {
        throw Self.badCredential
      }
      guard account.state == .active else { throw StoreError.accountSuspended }
      return try transaction.openSession(account, device)
    }
  }

  /// Rotates a refresh token.
  ///
  /// The token before stays good until its successor is used, at most 60 seconds, and answers
  /// with the same successor; later reuse revokes the session.
  ///
  /// - Throws: `BAD_CREDENTIAL`, `SESSION_REVOKED`, `SESSION_EXPIRED`.
  public func refresh(_ refreshToken: String) async throws(StoreError) -> TokenGrant {
    let outcome = try await write { try $0.rotate(refreshToken) }
    switch outcome {
    case .granted(let grant): return grant
    case .refused(let error): throw error
    }
  }

  /// Who an access token belongs to.
  ///
  /// - Throws: `BAD_CREDENTIAL`, `ACCESS_TOKEN_EXPIRED`, `SESSION_REVOKED`, `SESSION_EXPIRED`.
  public func authenticate(_ accessToken: String) async throws(StoreError) -> Principal {
    try await read { try $0.principal(accessToken) }
  }

  static let badCredential = StoreError(
    .unauthenticated, "BAD_CREDENTIAL", "the credential is wrong")
}
