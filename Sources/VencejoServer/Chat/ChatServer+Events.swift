import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoStore

// The stream of events, and its pages.
extension ChatServer {
  func subscribe(
    _ request: Chat.SubscribeRequest, _ out: ResponseWriter<Chat.SubscribeResponse>,
    _ context: ServerContext
  ) async throws {
    // In a task of its own: what is needed to know the caller is not kept while the stream waits.
    let caller = try await Task(executorPreference: out.loop) {
      try await respond(context) { $0 }
    }.value
    let subscription = try await answering(.chat) {
      try ChatSubscription(
        request, store: store, shelf: hub.shelf(for: out.loop), streams: streams,
        presence: presence, configuration: settings.configuration, caller: caller, out: out)
    }
    try await answering(.chat) { try await subscription.run() }
  }

  func listEvents(_ request: Chat.ListEventsRequest, _ context: ServerContext) async throws
    -> Chat.ListEventsResponse
  {
    try await respond(context) { caller in
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
          of: entry, token: token, historical: true, for: caller.user)
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
