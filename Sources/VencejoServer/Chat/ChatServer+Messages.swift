import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoStore

// Messages, from their sending to their end.
extension ChatServer {
  func sendMessage(_ request: Chat.SendMessageRequest, _ context: ServerContext) async throws
    -> Chat.SendMessageResponse
  {
    try await respond(context) { caller in
      let outgoing = try Self.outgoing(request, caller)
      // Attachments are looked at when the message is there already; all else is before.
      let hasAttachments = if case .media = outgoing.body { true } else { false }
      let sent = try await store.write(isolated: hasAttachments) {
        transaction -> (StoredMessage, Bool) in
        let sent = try transaction.sendMessage(outgoing, by: caller.user)
        return (sent.message, sent.isDuplicate)
      }
      return Chat.SendMessageResponse(
        message: Chat.Message(sent.0, for: caller.user), duplicate: sent.1)
    }
  }

  private static func outgoing(_ request: Chat.SendMessageRequest, _ caller: Principal)
    throws(StoreError) -> OutgoingMessage
  {
    let chat = try ResourceName.chat(request.parent, field: "parent")
    guard let id = UUID(parsing: request.messageId) else {
      throw .invalid("message_id", "BAD_MESSAGE_ID", "message_id must be a UUID")
    }
    var replyTo: UUID?
    if !request.replyTo.isEmpty {
      let name = try ResourceName.message(request.replyTo, field: "reply_to")
      guard name.chat == chat else {
        throw .invalid("reply_to", "BAD_NAME", "reply_to must be a message of the same chat")
      }
      replyTo = name.id
    }
    var outgoing = OutgoingMessage(
      chat: chat, id: id, body: try MessageBody(request.content, caller: caller),
      replyTo: replyTo, clientTime: request.clientTime?.microseconds)
    outgoing.isSilent = request.silent
    return outgoing
  }

  func getMessage(_ request: Chat.GetMessageRequest, _ context: ServerContext) async throws
    -> Chat.GetMessageResponse
  {
    try await respond(context) { caller in
      let name = try ResourceName.message(request.name, field: "name")
      let message = try await store.read {
        try $0.message(name.id, in: name.chat, for: caller.user)
      }
      return Chat.GetMessageResponse(message: Chat.Message(message, for: caller.user))
    }
  }

  func listMessages(_ request: Chat.ListMessagesRequest, _ context: ServerContext) async throws
    -> Chat.ListMessagesResponse
  {
    try await respond(context) { caller in
      let chat = try ResourceName.chat(request.parent, field: "parent")
      let anchor: MessageAnchor =
        switch request.anchor {
        case .beforeSequence(let sequence)?: .before(sequence)
        case .afterSequence(let sequence)?: .after(sequence)
        case .aroundSequence(let sequence)?: .around(sequence)
        case .firstUnread(let wanted)?: wanted ? .firstUnread : .newest
        case .atTime(let time)?: .time(time.microseconds)
        case nil: .newest
        }
      if !request.pageToken.isEmpty, anchor != .newest {
        throw StoreError.invalid(
          "page_token", "ANCHOR_AND_TOKEN",
          "a page_token goes on where the page before ended: leave the anchor out")
      }
      let page = try await store.read {
        try $0.listMessages(
          chat, pageSize: request.pageSize, pageToken: request.pageToken, anchor: anchor,
          for: caller.user)
      }
      return Chat.ListMessagesResponse(
        messages: page.messages.map { Chat.Message($0, for: caller.user) },
        olderPageToken: page.olderToken, newerPageToken: page.newerToken,
        deletedRanges: page.deletedRanges.map { Chat.SequenceRange($0) })
    }
  }

  func editMessage(_ request: Chat.EditMessageRequest, _ context: ServerContext) async throws
    -> Chat.EditMessageResponse
  {
    try await respond(context) { caller in
      let name = try ResourceName.message(request.name, field: "name")
      let body = try MessageBody(request.content, caller: caller)
      let message = try await store.write {
        try $0.editMessage(
          name.id, in: name.chat, body: body, etag: request.etag, requestID: request.requestId,
          by: caller.user)
      }
      return Chat.EditMessageResponse(message: Chat.Message(message, for: caller.user))
    }
  }

  func deleteMessages(_ request: Chat.DeleteMessagesRequest, _ context: ServerContext)
    async throws -> Chat.DeleteMessagesResponse
  {
    try await respond(context) { caller in
      let chat = try ResourceName.chat(request.parent, field: "parent")
      guard let scope = DeletionScope(rawValue: Int64(request.scope.rawValue)) else {
        throw StoreError.invalid("scope", "BAD_SCOPE", "choose FOR_ME or FOR_EVERYONE")
      }
      let ranges = request.ranges.map {
        VencejoStore.SequenceRange($0.firstSequence, $0.lastSequence)
      }
      // Its repeat deletes nothing more: request_id is not needed.
      let count = try await store.write {
        try $0.deleteMessages(ranges, in: chat, scope: scope, by: caller.user)
      }
      return Chat.DeleteMessagesResponse(deletedCount: Int32(clamping: count))
    }
  }

  func forwardMessages(_ request: Chat.ForwardMessagesRequest, _ context: ServerContext)
    async throws -> Chat.ForwardMessagesResponse
  {
    try await respond(context) { caller in
      let names = try request.names.map { try ResourceName.message($0, field: "names") }
      let targets = try request.targetChats.map {
        try ResourceName.chat($0, field: "target_chats")
      }
      let ids = try request.messageIds.map { text in
        guard let id = UUID(parsing: text) else {
          throw StoreError.invalid("message_ids", "BAD_MESSAGE_ID", "message_ids must be UUIDs")
        }
        return id
      }
      let messages = try await store.write {
        try $0.forwardMessages(names, to: targets, ids: ids, by: caller.user)
      }
      return Chat.ForwardMessagesResponse(
        messages: messages.map { Chat.Message($0, for: caller.user) })
    }
  }

  func setReaction(_ request: Chat.SetReactionRequest, _ context: ServerContext) async throws
    -> Chat.SetReactionResponse
  {
    try await respond(context) { caller in
      let name = try ResourceName.message(request.message, field: "message")
      let message = try await store.write {
        try $0.setReaction(request.emoji, on: name.id, in: name.chat, by: caller.user)
      }
      return Chat.SetReactionResponse(message: Chat.Message(message, for: caller.user))
    }
  }

  func listReactions(_ request: Chat.ListReactionsRequest, _ context: ServerContext) async throws
    -> Chat.ListReactionsResponse
  {
    try await respond(context) { caller in
      let name = try ResourceName.message(request.parent, field: "parent")
      let page = try await store.read {
        try $0.listReactions(
          name.id, in: name.chat, pageSize: request.pageSize, pageToken: request.pageToken,
          for: caller.user)
      }
      return Chat.ListReactionsResponse(
        reactions: page.reactions.map {
          Chat.Reaction(
            user: "users/\($0.user)", emoji: $0.emoji,
            reactTime: Google.Timestamp(microseconds: $0.time))
        }, nextPageToken: page.nextPageToken)
    }
  }

  func votePoll(_ request: Chat.VotePollRequest, _ context: ServerContext) async throws
    -> Chat.VotePollResponse
  {
    try await respond(context) { caller in
      let name = try ResourceName.message(request.name, field: "name")
      let message = try await store.write {
        try $0.votePoll(
          name.id, in: name.chat, options: request.optionIds.map(Int64.init), by: caller.user)
      }
      return Chat.VotePollResponse(message: Chat.Message(message, for: caller.user))
    }
  }

  func setMessagePinned(_ request: Chat.SetMessagePinnedRequest, _ context: ServerContext)
    async throws -> Chat.SetMessagePinnedResponse
  {
    try await respond(context) { caller in
      let name = try ResourceName.message(request.name, field: "name")
      let ttl = request.ttl.map(\.microseconds).flatMap { $0 == 0 ? nil : $0 }
      let chat = try await store.write {
        try $0.setPinned(name.id, in: name.chat, request.pinned, ttl: ttl, by: caller.user)
      }
      return Chat.SetMessagePinnedResponse(chat: Chat.Chat(chat, for: caller.user))
    }
  }

  func setMessageStarred(_ request: Chat.SetMessageStarredRequest, _ context: ServerContext)
    async throws -> Chat.SetMessageStarredResponse
  {
    try await respond(context) { caller in
      let name = try ResourceName.message(request.name, field: "name")
      let message = try await store.write {
        try $0.setStarred(name.id, in: name.chat, request.starred, by: caller.user)
      }
      return Chat.SetMessageStarredResponse(message: Chat.Message(message, for: caller.user))
    }
  }

  func searchMessages(_ request: Chat.SearchMessagesRequest, _ context: ServerContext)
    async throws -> Chat.SearchMessagesResponse
  {
    try await respond(context) { caller in
      let chats = try request.chats.map { try ResourceName.chat($0, field: "chats") }
      let page = try await store.read {
        try $0.searchMessages(
          request.query, chats: chats, pageSize: request.pageSize,
          pageToken: request.pageToken, for: caller.user)
      }
      return Chat.SearchMessagesResponse(
        hits: page.hits.map {
          Chat.SearchHit(message: Chat.Message($0.message, for: caller.user), snippet: $0.snippet)
        }, nextPageToken: page.nextPageToken)
    }
  }
}
