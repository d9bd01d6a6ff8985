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
  let streams: StreamRegistry
  let configuration: Backend.Configuration

  /// Handlers only await the store's own threads.
  var execution: HandlerExecution { .loop }

  // MARK: Profiles

  func getProfile(_ request: Chat.GetProfileRequest, _ context: ServerContext) async throws
    -> Chat.GetProfileResponse
  {
    try await answering(.chat) {
      let caller = try await authenticator.principal(context)
      let user = try ResourceName.profile(request.name, field: "name", caller: caller)
      let profile = try await store.read { try $0.profile(user) }
      return Chat.GetProfileResponse(profile: Chat.Profile(profile))
    }
  }

  func batchGetProfiles(_ request: Chat.BatchGetProfilesRequest, _ context: ServerContext)
    async throws -> Chat.BatchGetProfilesResponse
  {
    try await answering(.chat) {
      let caller = try await authenticator.principal(context)
      let users = try request.names.map {
        try ResourceName.profile($0, field: "names", caller: caller)
      }
      let profiles = try await store.read { try $0.profiles(users) }
      return Chat.BatchGetProfilesResponse(profiles: profiles.map { Chat.Profile($0) })
    }
  }

  func searchProfiles(_ request: Chat.SearchProfilesRequest, _ context: ServerContext)
    async throws -> Chat.SearchProfilesResponse
  {
    try await answering(.chat) {
      _ = try await authenticator.principal(context)
      let page = try await store.read {
        try $0.searchProfiles(
          request.query, pageSize: request.pageSize, pageToken: request.pageToken)
      }
      return Chat.SearchProfilesResponse(
        profiles: page.profiles.map { Chat.Profile($0) }, nextPageToken: page.nextPageToken)
    }
  }

  // MARK: Chats

  func createChat(_ request: Chat.CreateChatRequest, _ context: ServerContext) async throws
    -> Chat.CreateChatResponse
  {
    try await answering(.chat) {
      let caller = try await authenticator.principal(context)
      let wanted = request.chat ?? Chat.Chat()
      guard let kind = ChatKind(rawValue: Int64(wanted.kind.rawValue)) else {
        throw StoreError.invalid("chat.kind", "BAD_CHAT_KIND", "choose DIRECT, GROUP or SELF")
      }
      let members = try request.members.map {
        try ResourceName.user($0, field: "members", caller: caller)
      }
      let made = try await store.write {
        try $0.createChat(
          NewChat(
            kind: kind, title: wanted.title, members: members, requestID: request.requestId),
          by: caller.user)
      }
      var response = Chat.CreateChatResponse()
      response.chat = Chat.Chat(made.chat, for: caller)
      response.created = made.isNew
      response.failures = made.failures.map { user, error in
        Chat.MemberFailure(
          user: "users/\(user)",
          status: Chat.ItemStatus(
            code: Int32(StatusCode(error.code).rawValue), message: error.message))
      }
      return response
    }
  }

  func getChat(_ request: Chat.GetChatRequest, _ context: ServerContext) async throws
    -> Chat.GetChatResponse
  {
    try await answering(.chat) {
      let caller = try await authenticator.principal(context)
      let id = try ResourceName.chat(request.name, field: "name")
      let chat = try await store.read { try $0.chat(id, for: caller.user) }
      return Chat.GetChatResponse(chat: Chat.Chat(chat, for: caller))
    }
  }

  func listChats(_ request: Chat.ListChatsRequest, _ context: ServerContext) async throws
    -> Chat.ListChatsResponse
  {
    try await answering(.chat) {
      let caller = try await authenticator.principal(context)
      let page = try await store.read {
        try $0.listChats(
          pageSize: request.pageSize, pageToken: request.pageToken, for: caller.user)
      }
      return Chat.ListChatsResponse(
        chats: page.chats.map { Chat.Chat($0, for: caller) }, nextPageToken: page.nextPageToken,
        resumeToken: request.pageToken.isEmpty ? page.resumeToken : "")
    }
  }

  // MARK: Messages

  func sendMessage(_ request: Chat.SendMessageRequest, _ context: ServerContext) async throws
    -> Chat.SendMessageResponse
  {
    try await answering(.chat) {
      let caller = try await authenticator.principal(context)
      let outgoing = try Self.outgoing(request)
      let sent = try await store.write { transaction -> (StoredMessage, Bool) in
        let sent = try transaction.sendMessage(outgoing, by: caller.user)
        return (sent.message, sent.isDuplicate)
      }
      return Chat.SendMessageResponse(
        message: Chat.Message(sent.0, for: caller.user), duplicate: sent.1)
    }
  }

  private static func outgoing(_ request: Chat.SendMessageRequest) throws(StoreError)
    -> OutgoingMessage
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
    let text: String
    switch request.content?.kind {
    case .text(let content)?: text = content.text
    case .system?:
      throw .invalid("content", "BAD_CONTENT", "only the server writes system messages")
    case nil: text = ""
    }
    return OutgoingMessage(
      chat: chat, id: id, text: text, replyTo: replyTo,
      clientTime: request.clientTime?.microseconds)
  }

  func getMessage(_ request: Chat.GetMessageRequest, _ context: ServerContext) async throws
    -> Chat.GetMessageResponse
  {
    try await answering(.chat) {
      let caller = try await authenticator.principal(context)
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
    try await answering(.chat) {
      let caller = try await authenticator.principal(context)
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
      let page = try await store.read {
        try $0.listMessages(
          chat, pageSize: request.pageSize, pageToken: request.pageToken, anchor: anchor,
          for: caller.user)
      }
      return Chat.ListMessagesResponse(
        messages: page.messages.map { Chat.Message($0, for: caller.user) },
        olderPageToken: page.olderToken, newerPageToken: page.newerToken)
    }
  }

  func markRead(_ request: Chat.MarkReadRequest, _ context: ServerContext) async throws
    -> Chat.MarkReadResponse
  {
    try await answering(.chat) {
      let caller = try await authenticator.principal(context)
      let chat = try ResourceName.chat(request.chat, field: "chat")
      let (unread, sequence) = try await store.write { transaction -> (UnreadState, Int64) in
        let marked = try transaction.markRead(
          chat, upTo: request.upToSequence, isPrivate: request.`private`, by: caller.user)
        return (marked.unread, marked.readSequence)
      }
      return Chat.MarkReadResponse(unread: Chat.UnreadState(unread), readSequence: sequence)
    }
  }

  // MARK: Events

  func subscribe(
    _ request: Chat.SubscribeRequest, _ out: ResponseWriter<Chat.SubscribeResponse>,
    _ context: ServerContext
  ) async throws {
    try await answering(.chat) {
      let caller = try await authenticator.principal(context)
      let subscription = ChatSubscription(
        store: store, shelf: hub.shelf(for: out.loop), streams: streams,
        configuration: configuration, caller: caller, out: out)
      try await subscription.run(request)
    }
  }

  func listEvents(_ request: Chat.ListEventsRequest, _ context: ServerContext) async throws
    -> Chat.ListEventsResponse
  {
    try await answering(.chat) {
      let caller = try await authenticator.principal(context)
      let limit = try ChatLimits.page(request.pageSize)
      let only = try Self.chats(request.chats)
      let tokens = store.tokens
      guard !request.resumeToken.isEmpty else {
        let (head, now) = try await store.read { transaction in
          try Self.check(only, transaction, caller)
          return (try transaction.head(), transaction.now)
        }
        return Chat.ListEventsResponse(
          resumeToken: tokens.resumeToken(.chat, position: head, now: now))
      }
      let page = try await store.read { transaction -> LogPage in
        try Self.check(only, transaction, caller)
        let start: Int64
        switch try transaction.chatStart(of: request.resumeToken) {
        case .position(let position): start = position
        case .refused(let refusal): throw refusal.error
        }
        // Other people's events alone are no page: look on for a while.
        var page = try transaction.chatLog(
          for: caller.user, after: start, limit: limit, chats: only)
        for _ in 0..<8 where page.entries.isEmpty && !page.isAtHead {
          page = try transaction.chatLog(
            for: caller.user, after: page.position, limit: limit, chats: only)
        }
        return page
      }
      let now = store.now
      var events: [Chat.SubscribeResponse] = []
      for entry in page.entries {
        let token = tokens.resumeToken(.chat, position: entry.position, now: now)
        events += Chat.SubscribeResponse.frames(
          of: entry, token: token, historical: true, for: caller)
      }
      return Chat.ListEventsResponse(
        events: events,
        resumeToken: tokens.resumeToken(.chat, position: page.position, now: now),
        moreAvailable: !page.isAtHead)
    }
  }

  static func chats(_ names: [String]) throws(StoreError) -> Set<UUID>? {
    guard !names.isEmpty else { return nil }
    var result: Set<UUID> = []
    for name in names { result.insert(try ResourceName.chat(name, field: "chats")) }
    return result
  }

  /// Chats that are asked for by name must be the caller's.
  static func check(_ only: Set<UUID>?, _ transaction: ReadTransaction, _ caller: Principal)
    throws(StoreError)
  {
    for chat in only ?? [] { _ = try transaction.chat(chat, for: caller.user) }
  }
}

extension Chat.SubscribeResponse {
  /// The frames of one transaction; only the last has the token.
  static func frames(
    of entry: LogEntry, token: String, historical: Bool, for caller: Principal
  ) -> [Chat.SubscribeResponse] {
    entry.events.enumerated().map { index, event in
      Chat.SubscribeResponse(
        event, commitTime: entry.commitTime,
        token: index == entry.events.count - 1 ? token : "", historical: historical, for: caller)
    }
  }
}
