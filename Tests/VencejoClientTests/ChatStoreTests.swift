import Synchronization
import TestSupport
import Testing
import VencejoAPI
import VencejoProtobuf
import VencejoRPC

@testable import VencejoClient

/// What an application shows, with a server and without one.
@Suite(.timeLimit(.minutes(1))) struct ChatStoreTests {
  private let backend: ScriptedBackend
  private let folder: TemporaryFolder

  init() throws {
    backend = try ScriptedBackend()
    folder = try TemporaryFolder("device")
  }

  private static let nowhere = "127.0.0.1:1"

  private func configuration() -> VencejoClient.Configuration {
    var configuration = VencejoClient.Configuration()
    configuration.dataFolder = folder.path
    return configuration
  }

  private func signedIn() async throws -> VencejoClient {
    let client = try VencejoClient(backend.address, configuration: configuration())
    try await client.signIn(handle: "ana", password: "right")
    return client
  }

  private func frame(
    _ event: Chat.SubscribeResponse.Event, _ token: String = ""
  ) -> ScriptedBackend.Step {
    var frame = Chat.SubscribeResponse()
    frame.event = event
    frame.resumeToken = token
    return .frame(frame)
  }

  private func message(_ sequence: Int64, mine: Bool = false) -> Chat.SubscribeResponse.Event {
    var message = Chat.Message(name: "chats/a/messages/m\(sequence)")
    message.sequence = sequence
    message.mine = mine
    message.sender = mine ? "users/ana" : "users/ben"
    message.deliveryState = mine ? .sent : .unspecified
    return .messageCreated(.init(message: message))
  }

  private func chat(_ name: String, _ kind: Chat.ChatKind = .direct) -> ScriptedBackend.Step {
    frame(.chatSnapshot(.init(chat: .init(name: name, kind: kind))))
  }

  /// Reads values until one is as wanted.
  private func value<Value>(
    of values: Values<Value>, _ isWanted: (Value) -> Bool
  ) async throws -> Value {
    for await value in values where isWanted(value) { return value }
    throw RPCError(.internalError, "the values ended")
  }

  @Test func theLastStateIsThereBeforeAnyNetwork() async throws {
    backend.state.withLock { state in
      state.streams = [
        [chat("chats/a"), frame(message(1), "t1"), frame(.caughtUp(.init()), "t2"), .hang]
      ]
    }
    let first = try await signedIn()
    first.startSync()
    _ = try await value(of: ChatStore(first).connections) { $0 == .live }
    let session = try #require(await first.session)
    first.close()

    let later = try VencejoClient(
      Self.nowhere, configuration: configuration(), session: session)
    let store = ChatStore(later)
    #expect(store.chatList.map(\.name) == ["chats/a"])
    #expect(store.conversation("chats/a").items.map(\.message.sequence) == [1])
    #expect(store.unreadTotal == 1)
    #expect(store.connection == .offline)
    let id = store.send("written on a mountain", to: "chats/a")
    #expect(store.conversation("chats/a").items.last?.state == .queued)
    #expect(store.conversation("chats/a").items.last?.id == id)
    later.close()

    // Home again.
    backend.state.withLock { $0.streams = [[frame(message(2), "t3"), .hang]] }
    let home = try VencejoClient(
      backend.address, configuration: configuration(), session: session)
    defer { home.close() }
    let changes = home.changes()
    home.startSync()
    var isSent = false
    var isResumed = false
    for await change in changes {
      if case .sent(let message) = change { isSent = message.name == "chats/a/messages/\(id)" }
      if case .message(let message, _) = change { isResumed = message.sequence == 2 }
      if isSent || home.outbox.pending.isEmpty, isResumed { break }
    }
    #expect(backend.state.withLock { $0.resumed } == ["", "t2"])
    #expect(backend.state.withLock { $0.order } == [id])
  }

  @Test func aRefusedMessageWaitsForItsWriter() async throws {
    backend.state.withLock { $0.sendFailures = [.init(.permissionDenied, "blocked")] }
    var client = try await signedIn()
    let id = ChatStore(client).send("hola", to: "chats/a")
    let refused = Conversation.State.failed(
      .init(code: 7, message: "blocked"))
    _ = try await value(of: ChatStore(client).conversations(of: "chats/a")) { conversation in
      conversation.items.last?.state == refused
    }
    // It does not hold up what comes after it.
    let next = try await client.send("otra", to: "chats/a")
    #expect(next.name.hasPrefix("chats/a"))
    let session = try #require(await client.session)
    client.close()

    client = try VencejoClient(backend.address, configuration: configuration(), session: session)
    defer { client.close() }
    #expect(client.outbox.failed.map(\.id) == [id])
    #expect(client.outbox.pending.isEmpty)
    #expect(ChatStore(client).conversation("chats/a").items.last?.state == refused)
    let changes = client.changes()
    #expect(ChatStore(client).retry(id))
    #expect(!ChatStore(client).retry(id))
    for await change in changes {
      if case .sent(let message) = change {
        #expect(message.name == "chats/a/messages/\(id)")
        break
      }
    }
    #expect(client.outbox.failed.isEmpty)
  }

  @Test func aDiscardedMessageIsGone() async throws {
    backend.state.withLock { $0.sendFailures = [.init(.permissionDenied, "blocked")] }
    var client = try await signedIn()
    let store = ChatStore(client)
    let id = store.send("hola", to: "chats/a")
    _ = try await value(of: store.conversations(of: "chats/a")) { conversation in
      if case .failed? = conversation.items.last?.state { true } else { false }
    }
    #expect(store.discard(id))
    #expect(!store.discard(id))
    #expect(store.conversation("chats/a").items.isEmpty)
    let session = try #require(await client.session)
    client.close()
    client = try VencejoClient(Self.nowhere, configuration: configuration(), session: session)
    defer { client.close() }
    #expect(client.outbox.failed.isEmpty)
  }

  @Test func chatsDoNotWaitForEachOther() async throws {
    backend.state.withLock { $0.stuckChats = ["chats/a"] }
    let client = try await signedIn()
    defer { client.close() }
    let stuck = client.outbox.enqueue("one", to: "chats/a")
    _ = try await client.send("two", to: "chats/b")
    #expect(client.outbox.pending.map(\.id) == [stuck])
    // The server is there again, and says so: nobody waits for the end of a pause.
    backend.state.withLock { $0.stuckChats = [] }
    client.outbox.wake()
    _ = try await value(of: ChatStore(client).conversations(of: "chats/a")) { _ in
      client.outbox.pending.isEmpty
    }
    #expect(backend.state.withLock { $0.order.last } == stuck)
  }

  @Test func signingOutLeavesNothing() async throws {
    backend.state.withLock { state in
      state.streams = [[chat("chats/a"), frame(.caughtUp(.init()), "t1"), .hang]]
    }
    let client = try await signedIn()
    client.startSync()
    _ = try await value(of: ChatStore(client).chatLists) { !$0.isEmpty }
    let session = try #require(await client.session)
    // This server knows no sign-out; here it ends all the same.
    await #expect(throws: RPCError.self) { try await client.signOut() }
    #expect(ChatStore(client).chatList.isEmpty)
    client.close()
    let later = try VencejoClient(
      Self.nowhere, configuration: configuration(), session: session)
    defer { later.close() }
    #expect(ChatStore(later).chatList.isEmpty)
  }

  @Test func accountsDoNotMix() async throws {
    let client = try VencejoClient(backend.address, configuration: configuration())
    defer { client.close() }
    for handle in ["ana", "ben", "ana"] {
      try await client.signIn(handle: handle, password: "right")
      #expect(client.isKept)
    }
    #expect(folder.names.filter { $0.hasSuffix(".sqlite") } == ["ana.sqlite", "ben.sqlite"])
    // A second process of the same account gets by without the file.
    let second = try VencejoClient(backend.address, configuration: configuration())
    defer { second.close() }
    try await second.signIn(handle: "ana", password: "right")
    #expect(!second.isKept)
    // A name that would lead out of the folder is none.
    let hostile = try VencejoClient(backend.address, configuration: configuration())
    defer { hostile.close() }
    try await hostile.signIn(handle: "..", password: "right")
    #expect(!hostile.isKept)
    #expect(hostile.storageFailure?.code == .invalidArgument)
  }

  @Test func whoCannotKeepAnythingIsToldAndGoesOn() async throws {
    var configuration = VencejoClient.Configuration()
    configuration.dataFolder = "\(folder.path)/none"
    let client = try VencejoClient(backend.address, configuration: configuration)
    defer { client.close() }
    #expect(client.storageFailure == nil)
    try await client.signIn(handle: "ana", password: "right")
    #expect(client.storageFailure?.code == .failedPrecondition)
    #expect(!client.isKept)
    _ = try await client.send("all the same", to: "chats/a")
    // A transaction that is not to be kept says nothing of the file.
    backend.state.withLock { $0.streams = [[chat("chats/a"), frame(message(1), "t1"), .hang]] }
    client.startSync()
    _ = try await value(of: ChatStore(client).chatLists) { !$0.isEmpty }
    #expect(client.storageFailure?.code == .failedPrecondition)
  }

  /// The answer to the sender comes before the stream does.
  @Test func aMessageThatWasSentStaysInItsConversation() async throws {
    backend.state.withLock { $0.streams = [[chat("chats/a"), frame(message(3), "t1"), .hang]] }
    let client = try await signedIn()
    defer { client.close() }
    let store = ChatStore(client)
    client.startSync()
    _ = try await value(of: store.conversations(of: "chats/a")) { !$0.items.isEmpty }
    // The server has had three more of others.
    backend.state.withLock { $0.order = ["x", "y", "z", "w"] }
    let stored = try await client.send("mine", to: "chats/a")
    #expect(stored.sequence == 5)
    #expect(client.outbox.pending.isEmpty)
    #expect(store.conversation("chats/a").items.map(\.message.sequence) == [3, 5])
    #expect(store.conversation("chats/b").items.isEmpty)
    // The stream has been there: the cache knows better.
    _ = client.cache.apply(
      [created(4), created(5), created(6)], token: "t2", user: "users/ana")
    #expect(store.conversation("chats/a").items.map(\.message.sequence) == [3, 4, 5, 6])
  }

  private func created(_ sequence: Int64) -> Chat.SubscribeResponse {
    var frame = Chat.SubscribeResponse()
    frame.event = message(sequence)
    return frame
  }

  @Test func ticksOfADirectChatMove() async throws {
    backend.state.withLock { state in
      state.streams = [
        [
          chat("chats/a"), frame(message(1, mine: true)), frame(message(2, mine: true), "t1"),
          frame(
            .receiptMoved(
              .init(
                chat: "chats/a", user: "users/ben", readSequence: 1, deliveredSequence: 2)), "t2"),
          .hang,
        ]
      ]
    }
    let client = try await signedIn()
    defer { client.close() }
    client.startSync()
    let ticked = try await value(of: ChatStore(client).conversations(of: "chats/a")) {
      $0.items.first?.state == .read
    }
    #expect(ticked.items.map(\.state) == [.read, .delivered])
  }

  @Test func theConnectionTellsHowItStands() async throws {
    backend.state.withLock { state in
      state.streams = [[chat("chats/a"), frame(.caughtUp(.init()), "t1"), .hang]]
    }
    let client = try await signedIn()
    defer { client.close() }
    #expect(client.connection == .offline)
    let changes = client.changes()
    client.startSync()
    var states: [ConnectionState] = []
    for await change in changes {
      if case .connection(let state) = change { states.append(state) }
      if states.last == .live { break }
    }
    #expect(states == [.connecting, .catchingUp, .live])
    client.stopSync()
    #expect(client.connection == .offline)
    let stranger = try VencejoClient(backend.address)
    defer { stranger.close() }
    stranger.startSync()
    _ = try await value(of: ChatStore(stranger).connections) { $0 == .signedOut }
  }

  @Test func earlierMessagesJoin() {
    var contents = ChatContents()
    var snapshot = Chat.Chat(name: "chats/a")
    snapshot.lastSequence = 9
    var frame = Chat.SubscribeResponse()
    func held(_ sequences: ClosedRange<Int64>) -> [Chat.Message] {
      sequences.map { .init(name: "chats/a/messages/m\($0)", sequence: $0) }
    }
    frame.event = .chatSnapshot(.init(chat: snapshot, messages: held(7...9)))
    _ = contents.apply([frame], token: "t", user: "users/ana")
    contents.prepend(held(4...7), to: "chats/a")
    #expect(contents.chats["chats/a"]?.messages.map(\.sequence) == Array(4...9))
    // A hole between them, and a chat that is none of the user's, change nothing.
    contents.prepend(held(1...2), to: "chats/a")
    contents.prepend(held(1...2), to: "chats/b")
    #expect(contents.chats["chats/a"]?.messages.map(\.sequence) == Array(4...9))
    #expect(contents.chats["chats/b"] == nil)
  }

  @Test func pinnedChatsComeFirst() async throws {
    func snapshot(_ name: String, pin: Int32 = 0, archived: Bool = false) -> ScriptedBackend.Step {
      var chat = Chat.Chat(name: name)
      chat.settings = .init(archived: archived, pinRank: pin)
      return frame(.chatSnapshot(.init(chat: chat)))
    }
    backend.state.withLock { state in
      state.streams = [
        [
          snapshot("chats/a"), snapshot("chats/b", pin: 2), snapshot("chats/c", archived: true),
          snapshot("chats/d", pin: 1), frame(.caughtUp(.init()), "t1"), .hang,
        ]
      ]
    }
    let client = try await signedIn()
    defer { client.close() }
    client.startSync()
    let list = try await value(of: ChatStore(client).chatLists) { $0.count == 3 }
    #expect(list.map(\.name) == ["chats/d", "chats/b", "chats/a"])
  }
}
