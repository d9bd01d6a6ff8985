import Synchronization
public import VencejoAPI
import VencejoProtobuf
public import VencejoRPC

/// Profiles seen, by user.
final class ProfileCache: Sendable {
  private struct State {
    var profiles: [String: Chat.Profile] = [:]
    var store: DeviceStore?
  }

  private let state = Mutex(State())

  subscript(_ user: String) -> Chat.Profile? {
    state.withLock { $0.profiles[user] }
  }

  func add(_ new: [Chat.Profile]) {
    state.withLock { state in
      let new = new.filter { !$0.user.isEmpty && state.profiles[$0.user] != $0 }
      for profile in new { state.profiles[profile.user] = profile }
      // One that is not kept is asked for again.
      if !new.isEmpty { try? state.store?.write(new) }
    }
  }

  /// Goes on with what an earlier process left.
  func attach(_ store: DeviceStore, _ kept: [Chat.Profile]) {
    state.withLock { state in
      for profile in kept { state.profiles[profile.user] = profile }
      state.store = store
    }
  }

  /// Keeps nothing from now on.
  func detach() { state.withLock { $0.store = nil } }

  func clear() { state.withLock { $0 = State() } }

  /// Unknown ones among the users.
  func missing(_ users: some Sequence<String>) -> [String] {
    state.withLock { state in
      let profiles = state.profiles
      return Set(users).filter { !$0.isEmpty && profiles[$0] == nil }.sorted()
    }
  }
}

extension VencejoClient {
  private var chats: Chat.ChatClient { Chat.ChatClient(channel) }

  // MARK: People

  /// The profiles of users (`users/{user}`), from memory where they are known.
  public func profiles(
    of users: some Sequence<String>
  ) async throws(RPCError) -> [String: Chat.Profile] {
    let wanted = Array(Set(users))
    var missing = profiles.missing(wanted)[...]
    while !missing.isEmpty {
      let part = Array(missing.prefix(200))
      missing = missing.dropFirst(part.count)
      let response = try await authorized { (options) async throws(RPCError) in
        try await self.chats.batchGetProfiles(
          .init(names: part.map { "\($0)/profile" }), options)
      }
      profiles.add(response.profiles)
    }
    return knownProfiles(of: wanted)
  }

  /// What is known already; asks nobody.
  public func knownProfiles(of users: some Sequence<String>) -> [String: Chat.Profile] {
    var known: [String: Chat.Profile] = [:]
    for user in users { known[user] = profiles[user] }
    return known
  }

  /// People whose handle or name begins with the text.
  public func findProfiles(_ query: String, limit: Int = 20) async throws(RPCError)
    -> [Chat.Profile]
  {
    let response = try await authorized { (options) async throws(RPCError) in
      try await self.chats.searchProfiles(
        .init(query: query, pageSize: Int32(clamping: limit)), options)
    }
    profiles.add(response.profiles)
    return response.profiles
  }

  // MARK: Chats

  /// The caller's chats, latest activity first; all pages of them, at most `limit`.
  public func listChats(limit: Int = 1000) async throws(RPCError) -> [Chat.Chat] {
    var chats: [Chat.Chat] = []
    var token = ""
    repeat {
      let page = token
      let response = try await authorized { (options) async throws(RPCError) in
        try await self.chats.listChats(.init(pageSize: 200, pageToken: page), options)
      }
      chats += response.chats
      token = response.nextPageToken
    } while !token.isEmpty && chats.count < limit
    return Array(chats.prefix(limit))
  }

  public func getChat(_ name: String) async throws(RPCError) -> Chat.Chat {
    try await authorized { (options) async throws(RPCError) in
      try await self.chats.getChat(.init(name: name), options).chat ?? .init()
    }
  }

  /// A chat with the users (`users/{user}`): direct with one and no title, else a group.
  public func createChat(
    with users: [String], title: String? = nil
  ) async throws(RPCError) -> Chat.CreateChatResponse {
    var request = Chat.CreateChatRequest()
    request.requestId = MessageID.make()
    request.members = users
    var chat = Chat.Chat()
    chat.kind = users.count == 1 && title == nil ? .direct : .group
    chat.title = title ?? ""
    request.chat = chat
    let ready = request
    return try await authorized { (options) async throws(RPCError) in
      try await self.chats.createChat(ready, options)
    }
  }

  /// The newest messages of a chat, oldest first; those before a sequence when one is given.
  public func messages(
    of chat: String, limit: Int = 30, before sequence: Int64? = nil
  ) async throws(RPCError) -> [Chat.Message] {
    var request = Chat.ListMessagesRequest()
    request.parent = chat
    request.pageSize = Int32(clamping: limit)
    if let sequence { request.anchor = .beforeSequence(sequence) }
    let ready = request
    return try await authorized { (options) async throws(RPCError) in
      try await self.chats.listMessages(ready, options).messages
    }
  }

  /// Moves the caller's marker forward: everything up to the sequence has been displayed.
  @discardableResult
  public func markRead(
    _ chat: String, upTo sequence: Int64
  ) async throws(RPCError) -> Chat.UnreadState {
    try await authorized { (options) async throws(RPCError) in
      try await self.chats.markRead(
        .init(chat: chat, upToSequence: sequence), options
      ).unread ?? .init()
    }
  }

  /// Sends a text and waits until the server has stored it; tries again, with the same message
  /// id, for as long as the server cannot be reached.
  public func send(_ text: String, to chat: String) async throws(RPCError) -> Chat.Message {
    try await outbox.send(text, to: chat)
  }
}

extension VencejoClient {
  /// Sends a text once, under an id of the caller's: for callers who rather hear of a failure than
  /// wait. A repeat with the same id is harmless.
  public func sendOnce(
    _ text: String, to chat: String, id: String
  ) async throws(RPCError) -> Chat.Message {
    try await authorized { (options) async throws(RPCError) in
      var request = Chat.SendMessageRequest()
      request.parent = chat
      request.messageId = id
      request.content = .init(kind: .text(.init(text: text)))
      return try await Chat.ChatClient(self.channel).sendMessage(request, options).message
        ?? .init()
    }
  }
}
