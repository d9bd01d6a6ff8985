import Glibc
import Synchronization
import Testing
import VencejoAPI
import VencejoProtobuf
import VencejoRPC

@testable import VencejoClient

func clockSeconds() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_REALTIME, &time)
  return Int64(time.tv_sec)
}

@Suite(.timeLimit(.minutes(1))) struct ClientTests {
  private let backend: ScriptedBackend

  init() throws { backend = try ScriptedBackend() }

  private func client(
    heartbeat: Duration = .seconds(20), storage: any SessionStorage = NoSessionStorage()
  ) async throws -> VencejoClient {
    var configuration = VencejoClient.Configuration()
    configuration.heartbeat = heartbeat
    let client = try VencejoClient(
      backend.address, configuration: configuration, storage: storage)
    try await client.signIn(handle: "ana", password: "right")
    return client
  }

  private func frame(
    _ event: Chat.SubscribeResponse.Event, token: String = ""
  ) -> ScriptedBackend.Step {
    var frame = Chat.SubscribeResponse()
    frame.event = event
    frame.resumeToken = token
    return .frame(frame)
  }

  private func message(_ sequence: Int64, token: String = "") -> ScriptedBackend.Step {
    var message = Chat.Message(name: "chats/a/messages/m\(sequence)")
    message.sequence = sequence
    message.sender = "users/ben"
    return frame(.messageCreated(.init(message: message)), token: token)
  }

  private func snapshot(_ name: String) -> ScriptedBackend.Step {
    frame(.chatSnapshot(.init(chat: .init(name: name))))
  }

  /// The sequences of the messages that changes bring, until `count` came.
  private func sequences(
    _ changes: AsyncStream<ChatChange>, _ count: Int
  ) async -> [Int64] {
    var seen: [Int64] = []
    for await change in changes {
      if case .message(let message, _) = change { seen.append(message.sequence) }
      if seen.count == count { break }
    }
    return seen
  }

  // MARK: Tokens

  @Test func aRefusedTokenIsRenewedOnceForAll() async throws {
    let client = try await client()
    defer { client.close() }
    backend.expireTokens()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<20 { group.addTask { _ = try await client.currentUser() } }
      try await group.waitForAll()
    }
    #expect(backend.state.withLock { $0.refreshes } == 1)
    #expect(await client.session?.accessToken == "a2")
  }

  @Test func aTokenIsRenewedBeforeItEnds() async throws {
    backend.state.withLock { $0.lifetime = 30 }
    let client = try await client()
    defer { client.close() }
    backend.state.withLock { $0.lifetime = 900 }
    _ = try await client.currentUser()
    _ = try await client.currentUser()
    #expect(backend.state.withLock { $0.refreshes } == 1)
  }

  @Test func aRevokedSessionEnds() async throws {
    final class Storage: SessionStorage {
      let removed = Mutex<[String]>([])
      func load(user: String) -> Session? { nil }
      func save(_ session: Session) {}
      func remove(user: String) { removed.withLock { $0.append(user) } }
    }
    let storage = Storage()
    let client = try await client(storage: storage)
    defer { client.close() }
    backend.state.withLock { $0.refusesRefresh = true }
    backend.expireTokens()
    let error = await #expect(throws: RPCError.self) { _ = try await client.currentUser() }
    #expect(error?.code == .unauthenticated)
    #expect(await client.session == nil)
    #expect(storage.removed.withLock { $0 } == ["users/ana"])
  }

  @Test func anotherProcessMayHaveRenewedTheSession() async throws {
    struct Storage: SessionStorage {
      func load(user: String) -> Session? {
        Session(
          user: user, handle: "ana", accessToken: "theirs", accessExpiry: 0, refreshToken: "rX")
      }
      func save(_ session: Session) {}
      func remove(user: String) {}
    }
    let client = try await client(storage: Storage())
    defer { client.close() }
    backend.state.withLock { $0.goodTokens = ["theirs"] }
    _ = try await client.currentUser()
    #expect(backend.state.withLock { $0.refreshes } == 0)
  }

  @Test func wrongPassword() async throws {
    let client = try VencejoClient(backend.address)
    defer { client.close() }
    let error = await #expect(throws: RPCError.self) {
      try await client.signIn(handle: "ana", password: "wrong")
    }
    #expect(error?.code == .unauthenticated)
    #expect(backend.state.withLock { $0.refreshes } == 0)
  }

  // MARK: The stream

  @Test("Rule 3: a stream that is cut inside a transaction resumes without gap or repetition")
  func aStreamCutInsideATransactionResumesWithoutGapOrRepetition() async throws {
    backend.state.withLock {
      $0.streams = [
        [snapshot("chats/a"), message(1, token: "t1"), message(2), .fail(.init(.unavailable))],
        [message(2), message(3, token: "t3"), message(4, token: "t4"), .finish],
        [message(5, token: "t5"), frame(.closing(.init()))],
        [message(6, token: "t6"), .hang],
      ]
    }
    let client = try await client()
    defer { client.close() }
    let changes = client.changes()
    client.startSync()
    #expect(await sequences(changes, 6) == [1, 2, 3, 4, 5, 6])
    #expect(backend.state.withLock { $0.resumed } == ["", "t1", "t4", "t5"])
    #expect(client.cache.messages(of: "chats/a").map(\.sequence) == [1, 2, 3, 4, 5, 6])
    #expect(client.cache.chat("chats/a")?.unread?.unreadCount == 6)
    #expect(client.cache.totalUnread == 6)
  }

  @Test func anExpiredTokenDoesNotLoseTheStream() async throws {
    backend.state.withLock {
      $0.streams = [
        [message(1, token: "t1"), .fail(.init(.unauthenticated, "expired"))],
        [message(2, token: "t2"), .hang],
      ]
    }
    let client = try await client()
    defer { client.close() }
    let changes = client.changes()
    client.startSync()
    #expect(await sequences(changes, 2) == [1, 2])
    #expect(backend.state.withLock { $0.resumed } == ["", "t1"])
    #expect(backend.state.withLock { $0.refreshes } == 1)
  }

  @Test("Rule 22: a client hangs up on a stream that is silent for too long")
  func aSilentStreamIsOpenedAgain() async throws {
    backend.state.withLock {
      $0.streams = [[message(1, token: "t1"), .hang], [message(2, token: "t2"), .hang]]
    }
    // Silence is 2.5 of these: longer than a busy machine holds up a stream that is alive.
    let client = try await client(heartbeat: .milliseconds(800))
    defer { client.close() }
    let changes = client.changes()
    client.startSync()
    #expect(await sequences(changes, 2) == [1, 2])
    #expect(backend.state.withLock { $0.heartbeats.first ?? nil } == .init(nanos: 800_000_000))
  }

  @Test func resetReplacesTheCache() async throws {
    backend.state.withLock {
      $0.streams = [
        [snapshot("chats/a"), snapshot("chats/b"), message(1, token: "t1"), .finish],
        [
          frame(.reset(.init())), snapshot("chats/b"), frame(.caughtUp(.init()), token: "t9"),
          .hang,
        ],
      ]
    }
    let client = try await client()
    defer { client.close() }
    let changes = client.changes()
    client.startSync()
    for await change in changes where change == .caughtUp { break }
    #expect(client.cache.chats.map(\.name) == ["chats/b"])
    #expect(client.cache.token == "t9")
  }

  @Test func aRefusalEndsTheStream() async throws {
    backend.state.withLock { $0.streams = [[.fail(.init(.permissionDenied, "not for you"))]] }
    let client = try await client()
    defer { client.close() }
    let changes = client.changes()
    client.startSync()
    var end: ConnectionState?
    for await change in changes {
      if case .connection(let state) = change, case .ended = state {
        end = state
        break
      }
    }
    #expect(end == .ended(reason: "permissionDenied: not for you") || end != nil)
    #expect(backend.state.withLock { $0.resumed.count } == 1)
  }

  // MARK: The outbox

  @Test func aMessageIsSentUnderOneIDUntilItIsStored() async throws {
    backend.state.withLock {
      $0.sendFailures = [.init(.unavailable), .init(.deadlineExceeded)]
    }
    let client = try await client()
    defer { client.close() }
    let stored = try await client.send("hola", to: "chats/a")
    let (attempts, order) = backend.state.withLock { ($0.attempts, $0.order) }
    #expect(attempts.count == 3)
    #expect(Set(attempts).count == 1)
    #expect(order.count == 1)
    #expect(stored.name == "chats/a/messages/\(attempts[0])")
    #expect(client.outbox.pending.isEmpty)
  }

  @Test func messagesKeepTheirOrder() async throws {
    backend.state.withLock { $0.sendFailures = [.init(.unavailable)] }
    let client = try await client()
    defer { client.close() }
    let changes = client.changes()
    let ids = (0..<20).map { client.outbox.enqueue("text \($0)", to: "chats/a") }
    var sent = 0
    for await change in changes {
      if case .sent = change { sent += 1 }
      if sent == ids.count { break }
    }
    #expect(backend.state.withLock { $0.order } == ids)
  }

  @Test func aRefusedMessageLeavesTheOutbox() async throws {
    backend.state.withLock { $0.sendFailures = [.init(.permissionDenied, "blocked")] }
    let client = try await client()
    defer { client.close() }
    let error = await #expect(throws: RPCError.self) {
      _ = try await client.send("hola", to: "chats/a")
    }
    #expect(error?.code == .permissionDenied)
    #expect(client.outbox.pending.isEmpty)
    _ = try await client.send("otra", to: "chats/a")
  }

  @Test func aCancelledSenderLeavesTheMessageInTheOutbox() async throws {
    backend.state.withLock {
      $0.sendFailures = Array(repeating: RPCError(.unavailable), count: 3)
    }
    let client = try await client()
    defer { client.close() }
    let changes = client.changes()
    let task = Task { try await client.send("hola", to: "chats/a") }
    while client.outbox.pending.isEmpty {
      // Between two looks.
      try? await Task.sleep(for: .milliseconds(1))
    }
    task.cancel()
    await #expect(throws: RPCError.self) { try await task.value }
    for await change in changes {
      if case .sent = change { break }
    }
    #expect(backend.state.withLock { $0.order.count } == 1)
  }
}
