import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoStore

/// ChatService over the store.
struct ChatServer: Chat.ChatService {
  let store: Store
  let authenticator: Authenticator
  let hub: ChatHub
  let presence: PresenceBoard
  let streams: StreamRegistry
  let hooks: HookSender
  let settings: SharedSettings

  /// Handlers only await the store's own threads.
  var execution: HandlerExecution { .loop }

  /// Runs a method for who calls it, and turns the store's errors into statuses.
  func respond<R>(_ context: ServerContext, _ body: (Principal) async throws -> R) async throws
    -> R
  {
    try await answering(.chat) { try await body(try await authenticator.principal(context)) }
  }

  // MARK: Profiles

  func getProfile(_ request: Chat.GetProfileRequest, _ context: ServerContext) async throws
    -> Chat.GetProfileResponse
  {
    try await respond(context) { caller in
      let user = try ResourceName.profile(request.name, field: "name", caller: caller)
      let profile = try await store.read { try $0.profile(user, for: caller.user) }
      return Chat.GetProfileResponse(profile: rendered(profile))
    }
  }

  func batchGetProfiles(_ request: Chat.BatchGetProfilesRequest, _ context: ServerContext)
    async throws -> Chat.BatchGetProfilesResponse
  {
    try await respond(context) { caller in
      let users = try request.names.map {
        try ResourceName.profile($0, field: "names", caller: caller)
      }
      let profiles = try await store.read { try $0.profiles(users, for: caller.user) }
      return Chat.BatchGetProfilesResponse(profiles: profiles.map(rendered))
    }
  }

  func updateProfile(_ request: Chat.UpdateProfileRequest, _ context: ServerContext) async throws
    -> Chat.UpdateProfileResponse
  {
    try await respond(context) { caller in
      let new = request.profile ?? Chat.Profile()
      let mask = try Mask(
        request.updateMask, of: ["display_name", "status_text", "privacy"],
        [
          "privacy.hide_last_seen", "privacy.hide_read_receipts", "privacy.refuse_group_adds",
        ])
      var changes = ProfileChanges()
      if mask.has("display_name") { changes.displayName = new.displayName }
      if mask.has("status_text") { changes.statusText = new.statusText }
      let privacy = new.privacy ?? Chat.PrivacySettings()
      if mask.has("privacy.hide_last_seen") { changes.hidesLastSeen = privacy.hideLastSeen }
      if mask.has("privacy.hide_read_receipts") {
        changes.hidesReceipts = privacy.hideReadReceipts
      }
      if mask.has("privacy.refuse_group_adds") {
        changes.refusesGroupAdds = privacy.refuseGroupAdds
      }
      let profile = try await store.write { [changes] in
        try $0.updateProfile(
          changes, etag: new.etag, requestID: request.requestId, by: caller.user)
      }
      return Chat.UpdateProfileResponse(profile: rendered(profile))
    }
  }

  func searchProfiles(_ request: Chat.SearchProfilesRequest, _ context: ServerContext)
    async throws -> Chat.SearchProfilesResponse
  {
    try await respond(context) { caller in
      let page = try await store.read {
        try $0.searchProfiles(
          request.query, pageSize: request.pageSize, pageToken: request.pageToken,
          for: caller.user)
      }
      return Chat.SearchProfilesResponse(
        profiles: page.profiles.map(rendered), nextPageToken: page.nextPageToken)
    }
  }

  func blockUser(_ request: Chat.BlockUserRequest, _ context: ServerContext) async throws
    -> Chat.BlockUserResponse
  {
    try await respond(context) { caller in
      let user = try ResourceName.user(request.user, field: "user", caller: caller)
      try await store.write { try $0.block(user, by: caller.user) }
      return Chat.BlockUserResponse()
    }
  }

  func unblockUser(_ request: Chat.UnblockUserRequest, _ context: ServerContext) async throws
    -> Chat.UnblockUserResponse
  {
    try await respond(context) { caller in
      let user = try ResourceName.user(request.user, field: "user", caller: caller)
      try await store.write { try $0.unblock(user, by: caller.user) }
      return Chat.UnblockUserResponse()
    }
  }

  func listBlockedUsers(_ request: Chat.ListBlockedUsersRequest, _ context: ServerContext)
    async throws -> Chat.ListBlockedUsersResponse
  {
    try await respond(context) { caller in
      let page = try await store.read {
        try $0.listBlocked(
          pageSize: request.pageSize, pageToken: request.pageToken, by: caller.user)
      }
      return Chat.ListBlockedUsersResponse(
        profiles: page.profiles.map(rendered), nextPageToken: page.nextPageToken)
    }
  }

  private func rendered(_ profile: Profile) -> Chat.Profile {
    Chat.Profile(profile, state: presence.state(of: profile.key))
  }
}
