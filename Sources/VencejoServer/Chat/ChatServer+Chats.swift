import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoStore

// Chats, and each member's own view of them.
extension ChatServer {
  func createChat(_ request: Chat.CreateChatRequest, _ context: ServerContext) async throws
    -> Chat.CreateChatResponse
  {
    try await respond(context) { caller in
      let wanted = request.chat ?? Chat.Chat()
      guard let kind = ChatKind(rawValue: Int64(wanted.kind.rawValue)) else {
        throw StoreError.invalid(
          "chat.kind", "BAD_CHAT_KIND", "choose DIRECT, GROUP, CHANNEL or SELF")
      }
      var new = NewChat(kind: kind, title: wanted.title, requestID: request.requestId)
      new.members = try request.members.map {
        try ResourceName.user($0, field: "members", caller: caller)
      }
      new.description = wanted.description
      new.policy = try wanted.policy.map { try VencejoStore.ChatPolicy($0) }
      new.messageTTL = wanted.messageTtl.map(\.microseconds).flatMap { $0 == 0 ? nil : $0 }
      let made = try await store.write { [new] in try $0.createChat(new, by: caller.user) }
      var response = Chat.CreateChatResponse()
      response.chat = Chat.Chat(made.chat, for: caller.user)
      response.created = made.isNew
      response.failures = made.failures.map { Chat.MemberFailure($0, $1) }
      return response
    }
  }

  func getChat(_ request: Chat.GetChatRequest, _ context: ServerContext) async throws
    -> Chat.GetChatResponse
  {
    try await respond(context) { caller in
      let id = try ResourceName.chat(request.name, field: "name")
      let chat = try await store.read { try $0.chat(id, for: caller.user) }
      return Chat.GetChatResponse(chat: Chat.Chat(chat, for: caller.user))
    }
  }

  func listChats(_ request: Chat.ListChatsRequest, _ context: ServerContext) async throws
    -> Chat.ListChatsResponse
  {
    try await respond(context) { caller in
      let page = try await store.read {
        try $0.listChats(
          pageSize: request.pageSize, pageToken: request.pageToken, for: caller.user)
      }
      return Chat.ListChatsResponse(
        chats: page.chats.map { Chat.Chat($0, for: caller.user) },
        nextPageToken: page.nextPageToken,
        resumeToken: request.pageToken.isEmpty ? page.resumeToken : "")
    }
  }

  func updateChat(_ request: Chat.UpdateChatRequest, _ context: ServerContext) async throws
    -> Chat.UpdateChatResponse
  {
    try await respond(context) { caller in
      let new = request.chat ?? Chat.Chat()
      let id = try ResourceName.chat(new.name, field: "chat.name")
      guard request.updateMask != nil else {
        throw StoreError.invalid(
          "update_mask", "BAD_UPDATE_MASK", "say what to change: a chat has fields of many hands")
      }
      let mask = try Mask(
        request.updateMask, of: ["title", "description", "message_ttl", "policy"])
      var changes = ChatChanges()
      if mask.has("title") { changes.title = new.title }
      if mask.has("description") { changes.description = new.description }
      if mask.has("message_ttl") { changes.messageTTL = new.messageTtl?.microseconds ?? 0 }
      if mask.has("policy") {
        changes.policy = try VencejoStore.ChatPolicy(new.policy ?? Chat.ChatPolicy())
      }
      let chat = try await store.write { [changes] in
        try $0.updateChat(
          id, changes, etag: new.etag, requestID: request.requestId, by: caller.user)
      }
      return Chat.UpdateChatResponse(chat: Chat.Chat(chat, for: caller.user))
    }
  }

  func deleteChat(_ request: Chat.DeleteChatRequest, _ context: ServerContext) async throws
    -> Chat.DeleteChatResponse
  {
    try await respond(context) { caller in
      let id = try ResourceName.chat(request.name, field: "name")
      try await store.write {
        try $0.deleteChat(id, etag: request.etag, requestID: request.requestId, by: caller.user)
      }
      return Chat.DeleteChatResponse()
    }
  }

  func leaveChat(_ request: Chat.LeaveChatRequest, _ context: ServerContext) async throws
    -> Chat.LeaveChatResponse
  {
    try await respond(context) { caller in
      let id = try ResourceName.chat(request.name, field: "name")
      let owner =
        try request.newOwner.isEmpty
        ? nil : ResourceName.user(request.newOwner, field: "new_owner", caller: caller)
      try await store.write {
        try $0.leaveChat(id, newOwner: owner, requestID: request.requestId, by: caller.user)
      }
      return Chat.LeaveChatResponse()
    }
  }

  func clearChat(_ request: Chat.ClearChatRequest, _ context: ServerContext) async throws
    -> Chat.ClearChatResponse
  {
    try await respond(context) { caller in
      let id = try ResourceName.chat(request.name, field: "name")
      let chat = try await store.write {
        try $0.clearChat(
          id, upTo: request.upToSequence, keepStarred: request.keepStarred,
          requestID: request.requestId, by: caller.user)
      }
      return Chat.ClearChatResponse(chat: Chat.Chat(chat, for: caller.user))
    }
  }

  func updateChatSettings(_ request: Chat.UpdateChatSettingsRequest, _ context: ServerContext)
    async throws -> Chat.UpdateChatSettingsResponse
  {
    try await respond(context) { caller in
      let new = request.settings ?? Chat.ChatSettings()
      let id = try ResourceName.settings(new.name, field: "settings.name")
      let paths: [(String, SettingFields)] = [
        ("mute_until_time", .mute), ("archived", .archived), ("pin_rank", .pinRank),
        ("marked_unread", .markedUnread), ("draft", .draft), ("mentions_only", .mentionsOnly),
      ]
      let mask = try Mask(request.updateMask, of: paths.map(\.0))
      var fields: SettingFields = []
      for (path, field) in paths where mask.has(path) { fields.insert(field) }
      var settings = VencejoStore.ChatSettings()
      settings.muteUntil = new.muteUntilTime?.microseconds
      settings.isArchived = new.archived
      settings.pinRank = Int64(new.pinRank)
      settings.isMarkedUnread = new.markedUnread
      settings.mentionsOnly = new.mentionsOnly
      if let draft = new.draft, draft.content != nil, fields.contains(.draft) {
        settings.draft = Draft(
          body: try MessageBody(draft.content, caller: caller),
          replyTo: draft.replyTo.isEmpty
            ? nil : try ResourceName.message(draft.replyTo, field: "settings.draft.reply_to").id)
      }
      let stored = try await store.write { [settings, fields] in
        try $0.updateSettings(id, settings, fields, etag: new.etag, by: caller.user)
      }
      return Chat.UpdateChatSettingsResponse(
        settings: Chat.ChatSettings(stored, in: "chats/\(id)"))
    }
  }
}

extension Chat.MemberFailure {
  init(_ user: UUID, _ error: StoreError) {
    self.init(
      user: "users/\(user)",
      status: Chat.ItemStatus(
        code: Int32(StatusCode(error.code).rawValue), message: error.message))
  }
}
