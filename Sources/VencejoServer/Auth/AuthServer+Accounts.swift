import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoStore

// What becomes of an account: its passwords, sessions, keys and its end.
extension AuthServer {
  private func respond<R>(_ context: ServerContext, _ body: (Principal) async throws -> R)
    async throws -> R
  {
    try await answering(.auth) { try await body(try await authenticator.principal(context)) }
  }

  func changePassword(_ request: Auth.ChangePasswordRequest, _ context: ServerContext)
    async throws -> Auth.ChangePasswordResponse
  {
    try await respond(context) { caller in
      let name = "\(caller.userID)"
      try guardian.check(name, address(context), now: store.now)
      do {
        try await store.changePassword(
          from: request.currentPassword, to: request.newPassword,
          revokeOthers: request.revokeOtherSessions ?? true, by: caller)
      } catch let error as StoreError {
        if error.reason == "BAD_CREDENTIAL" {
          guardian.failed(name, address(context), now: store.now)
        }
        throw error
      }
      return Auth.ChangePasswordResponse()
    }
  }

  func requestPasswordReset(
    _ request: Auth.RequestPasswordResetRequest, _ context: ServerContext
  ) async throws -> Auth.RequestPasswordResetResponse {
    try await answering(.auth) {
      try admit(context)
      try await store.write { try $0.requestPasswordReset(identifier: request.identifier) }
      return Auth.RequestPasswordResetResponse()
    }
  }

  func resetPassword(_ request: Auth.ResetPasswordRequest, _ context: ServerContext) async throws
    -> Auth.ResetPasswordResponse
  {
    try await answering(.auth) {
      try admit(context)
      try await store.resetPassword(code: request.resetCode, to: request.newPassword)
      return Auth.ResetPasswordResponse()
    }
  }

  func updateUser(_ request: Auth.UpdateUserRequest, _ context: ServerContext) async throws
    -> Auth.UpdateUserResponse
  {
    try await respond(context) { caller in
      let new = request.user ?? Auth.User()
      let id = try ResourceName.user(new.name, field: "user.name", caller: caller)
      let mask = try Mask(request.updateMask, of: ["handle", "email"])
      let account = try await store.write {
        try $0.updateAccount(
          id, handle: mask.has("handle") ? new.handle : nil,
          email: mask.has("email") ? new.email : nil, etag: new.etag, by: caller)
      }
      return Auth.UpdateUserResponse(user: Auth.User(account, showsEmail: true))
    }
  }

  func deleteUser(_ request: Auth.DeleteUserRequest, _ context: ServerContext) async throws
    -> Auth.DeleteUserResponse
  {
    try await respond(context) { caller in
      let id = try ResourceName.user(request.name, field: "name", caller: caller)
      let account = try await store.write {
        try $0.deleteAccount(id, etag: request.etag, by: caller)
      }
      return Auth.DeleteUserResponse(user: Auth.User(account, showsEmail: true))
    }
  }

  func listUsers(_ request: Auth.ListUsersRequest, _ context: ServerContext) async throws
    -> Auth.ListUsersResponse
  {
    try await respond(context) { caller in
      let page = try await store.read {
        try $0.listAccounts(pageSize: request.pageSize, pageToken: request.pageToken, by: caller)
      }
      return Auth.ListUsersResponse(
        users: page.accounts.map { Auth.User($0, showsEmail: true) },
        nextPageToken: page.nextPageToken)
    }
  }

  func setUserState(_ request: Auth.SetUserStateRequest, _ context: ServerContext) async throws
    -> Auth.SetUserStateResponse
  {
    try await respond(context) { caller in
      let id = try ResourceName.user(request.name, field: "name", caller: caller)
      let state = AccountState(rawValue: Int64(request.state.rawValue))
      let role = ServerRole(rawValue: Int64(request.role.rawValue))
      guard state != nil || request.state == .unspecified,
        role != nil || request.role == .unspecified
      else {
        throw StoreError.invalid("state", "BAD_STATE", "choose ACTIVE or SUSPENDED")
      }
      let account = try await store.write {
        try $0.setAccount(id, state: state, role: role, etag: request.etag, by: caller)
      }
      return Auth.SetUserStateResponse(user: Auth.User(account, showsEmail: true))
    }
  }

  // MARK: Sessions

  func listSessions(_ request: Auth.ListSessionsRequest, _ context: ServerContext) async throws
    -> Auth.ListSessionsResponse
  {
    try await respond(context) { caller in
      let id = try ResourceName.user(request.parent, field: "parent", caller: caller)
      let page = try await store.read {
        try $0.listSessions(
          of: id, pageSize: request.pageSize, pageToken: request.pageToken, by: caller)
      }
      return Auth.ListSessionsResponse(
        sessions: page.sessions.map {
          Auth.Session($0, of: page.account, isCurrent: $0.key == caller.session)
        }, nextPageToken: page.nextPageToken)
    }
  }

  func revokeSession(_ request: Auth.RevokeSessionRequest, _ context: ServerContext) async throws
    -> Auth.RevokeSessionResponse
  {
    try await respond(context) { caller in
      let name = try ResourceName.userPart(
        request.name, of: "sessions", field: "name", caller: caller)
      try await store.write { try $0.revokeSession(name.id, of: name.user, by: caller) }
      return Auth.RevokeSessionResponse()
    }
  }

  // MARK: Machines

  func createServiceAccount(
    _ request: Auth.CreateServiceAccountRequest, _ context: ServerContext
  ) async throws -> Auth.CreateServiceAccountResponse {
    try await respond(context) { caller in
      let account = try await store.write {
        try $0.createServiceAccount(
          handle: request.handle, displayName: request.displayName,
          requestID: request.requestId, by: caller)
      }
      return Auth.CreateServiceAccountResponse(user: Auth.User(account, showsEmail: true))
    }
  }

  func createApiKey(_ request: Auth.CreateApiKeyRequest, _ context: ServerContext) async throws
    -> Auth.CreateApiKeyResponse
  {
    try await respond(context) { caller in
      let id = try ResourceName.user(request.parent, field: "parent", caller: caller)
      let new = request.apiKey ?? Auth.ApiKey()
      let made = try await store.write { transaction -> (APIKey, String?) in
        let made = try transaction.createKey(
          for: id, displayName: new.displayName, scopes: new.scopes,
          expireTime: new.expireTime?.microseconds, requestID: request.requestId, by: caller)
        return (made.key, made.secret)
      }
      return Auth.CreateApiKeyResponse(apiKey: Auth.ApiKey(made.0), secret: made.1 ?? "")
    }
  }

  func listApiKeys(_ request: Auth.ListApiKeysRequest, _ context: ServerContext) async throws
    -> Auth.ListApiKeysResponse
  {
    try await respond(context) { caller in
      let id = try ResourceName.user(request.parent, field: "parent", caller: caller)
      let page = try await store.read {
        try $0.listKeys(
          of: id, pageSize: request.pageSize, pageToken: request.pageToken, by: caller)
      }
      return Auth.ListApiKeysResponse(
        apiKeys: page.keys.map { Auth.ApiKey($0) }, nextPageToken: page.nextPageToken)
    }
  }

  func revokeApiKey(_ request: Auth.RevokeApiKeyRequest, _ context: ServerContext) async throws
    -> Auth.RevokeApiKeyResponse
  {
    try await respond(context) { caller in
      let name = try ResourceName.userPart(
        request.name, of: "apiKeys", field: "name", caller: caller)
      try await store.write { try $0.revokeKey(name.id, of: name.user, by: caller) }
      return Auth.RevokeApiKeyResponse()
    }
  }
}
