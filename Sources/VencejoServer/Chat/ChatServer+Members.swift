import VencejoAPI
import VencejoProtobuf
import VencejoRPC
import VencejoStore

// Who is in a chat, and how people get there.
extension ChatServer {
  func listMembers(_ request: Chat.ListMembersRequest, _ context: ServerContext) async throws
    -> Chat.ListMembersResponse
  {
    try await respond(context) { caller in
      let chat = try ResourceName.chat(request.parent, field: "parent")
      let page = try await store.read {
        try $0.listMembers(
          chat, pageSize: request.pageSize, pageToken: request.pageToken, for: caller.user)
      }
      return Chat.ListMembersResponse(
        members: page.members.map { Chat.Member($0, in: request.parent) },
        nextPageToken: page.nextPageToken, totalSize: Int32(clamping: page.total))
    }
  }

  func addMembers(_ request: Chat.AddMembersRequest, _ context: ServerContext) async throws
    -> Chat.AddMembersResponse
  {
    try await respond(context) { caller in
      let chat = try ResourceName.chat(request.parent, field: "parent")
      let users = try request.users.map {
        try ResourceName.user($0, field: "users", caller: caller)
      }
      let role =
        request.role == .unspecified ? nil : try MemberRole(request.role, field: "role")
      let added = try await store.write {
        try $0.addMembers(
          users, role: role, to: chat, requestID: request.requestId, by: caller.user)
      }
      return Chat.AddMembersResponse(
        members: added.members.map { Chat.Member($0, in: request.parent) },
        failures: added.failures.map { Chat.MemberFailure($0.user, $0.error) })
    }
  }

  func updateMember(_ request: Chat.UpdateMemberRequest, _ context: ServerContext) async throws
    -> Chat.UpdateMemberResponse
  {
    try await respond(context) { caller in
      let new = request.member ?? Chat.Member()
      let name = try ResourceName.member(new.name, field: "member.name", caller: caller)
      _ = try Mask(request.updateMask, of: ["role"])
      let role = try MemberRole(new.role, field: "member.role")
      let member = try await store.write {
        try $0.updateMember(
          name.user, role: role, in: name.chat, etag: new.etag, requestID: request.requestId,
          by: caller.user)
      }
      return Chat.UpdateMemberResponse(member: Chat.Member(member, in: "chats/\(name.chat)"))
    }
  }

  func removeMember(_ request: Chat.RemoveMemberRequest, _ context: ServerContext) async throws
    -> Chat.RemoveMemberResponse
  {
    try await respond(context) { caller in
      let name = try ResourceName.member(request.name, field: "name", caller: caller)
      try await store.write {
        try $0.removeMember(
          name.user, from: name.chat, ban: request.ban, requestID: request.requestId,
          by: caller.user)
      }
      return Chat.RemoveMemberResponse()
    }
  }

  // MARK: Invites

  func createInvite(_ request: Chat.CreateInviteRequest, _ context: ServerContext) async throws
    -> Chat.CreateInviteResponse
  {
    try await respond(context) { caller in
      let chat = try ResourceName.chat(request.parent, field: "parent")
      let new = request.invite ?? Chat.Invite()
      let invite = try await store.write {
        try $0.createInvite(
          to: chat, expireTime: new.expireTime?.microseconds, maxUses: Int64(new.maxUses),
          needsApproval: new.requiresApproval, requestID: request.requestId, by: caller.user)
      }
      return Chat.CreateInviteResponse(invite: Chat.Invite(invite))
    }
  }

  func listInvites(_ request: Chat.ListInvitesRequest, _ context: ServerContext) async throws
    -> Chat.ListInvitesResponse
  {
    try await respond(context) { caller in
      let chat = try ResourceName.chat(request.parent, field: "parent")
      let page = try await store.read {
        try $0.listInvites(
          chat, pageSize: request.pageSize, pageToken: request.pageToken, for: caller.user)
      }
      return Chat.ListInvitesResponse(
        invites: page.invites.map { Chat.Invite($0) }, nextPageToken: page.nextPageToken)
    }
  }

  func revokeInvite(_ request: Chat.RevokeInviteRequest, _ context: ServerContext) async throws
    -> Chat.RevokeInviteResponse
  {
    try await respond(context) { caller in
      let name = try ResourceName.part(request.name, of: "invites", field: "name")
      try await store.write { try $0.revokeInvite(name.id, in: name.chat, by: caller.user) }
      return Chat.RevokeInviteResponse()
    }
  }

  func joinChat(_ request: Chat.JoinChatRequest, _ context: ServerContext) async throws
    -> Chat.JoinChatResponse
  {
    try await respond(context) { caller in
      let outcome = try await store.write {
        try $0.joinChat(code: request.inviteCode, by: caller.user)
      }
      switch outcome {
      case .joined(let chat):
        return Chat.JoinChatResponse(chat: Chat.Chat(chat, for: caller.user))
      case .waits: return Chat.JoinChatResponse(pendingApproval: true)
      }
    }
  }

  func listJoinRequests(_ request: Chat.ListJoinRequestsRequest, _ context: ServerContext)
    async throws -> Chat.ListJoinRequestsResponse
  {
    try await respond(context) { caller in
      let chat = try ResourceName.chat(request.parent, field: "parent")
      let page = try await store.read {
        try $0.listJoinRequests(
          chat, pageSize: request.pageSize, pageToken: request.pageToken, for: caller.user)
      }
      return Chat.ListJoinRequestsResponse(
        joinRequests: page.requests.map {
          Chat.JoinRequest(
            name: "chats/\($0.chat)/joinRequests/\($0.user)", user: "users/\($0.user)",
            invite: "chats/\($0.chat)/invites/\($0.invite)",
            createTime: Google.Timestamp(microseconds: $0.createTime))
        }, nextPageToken: page.nextPageToken)
    }
  }

  func answerJoinRequest(_ request: Chat.AnswerJoinRequestRequest, _ context: ServerContext)
    async throws -> Chat.AnswerJoinRequestResponse
  {
    try await respond(context) { caller in
      let name = try ResourceName.part(request.name, of: "joinRequests", field: "name")
      let member = try await store.write {
        try $0.answerJoinRequest(
          of: name.id, in: name.chat, approve: request.approve, by: caller.user)
      }
      return Chat.AnswerJoinRequestResponse(
        member: member.map { Chat.Member($0, in: "chats/\(name.chat)") })
    }
  }
}
