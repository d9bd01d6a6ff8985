import Synchronization
import VencejoAPI
import VencejoProtobuf
public import VencejoRPC

/// Keeps the cache current: reads the chat stream, applies transaction by transaction, tells what
/// changed.
final class ChatSync: Sendable {
  private let chat: Chat.ChatClient
  private let authenticator: Authenticator
  private let cache: ChatCache
  private let configuration: VencejoClient.Configuration
  private let task = Mutex<Task<Void, Never>?>(nil)
  private let status = Mutex(Status())
  private let whenLive = Mutex<(@Sendable () -> Void)?>(nil)

  private struct Status {
    var connection = ConnectionState.offline
    var storageFailures: [StoragePart: RPCError] = [:]
  }

  /// What is kept on disk, each with its own troubles.
  enum StoragePart: CaseIterable {
    case file, cache, outbox
  }

  let broadcast = Broadcast<ChatChange>(missed: .missed)

  init(
    _ chat: Chat.ChatClient, authenticator: Authenticator, cache: ChatCache,
    configuration: VencejoClient.Configuration
  ) {
    self.chat = chat
    self.authenticator = authenticator
    self.cache = cache
    self.configuration = configuration
  }

  func start() {
    task.withLock { task in
      if let task, !task.isCancelled { return }
      task = Task { await self.run() }
    }
  }

  func stop() {
    task.withLock { task in
      task?.cancel()
      task = nil
    }
    status.withLock { status in
      switch status.connection {
      // Why it ended stays to be seen.
      case .signedOut, .ended: break
      default: status.connection = .offline
      }
    }
  }

  var connection: ConnectionState { status.withLock { $0.connection } }
  var storageFailure: RPCError? {
    status.withLock { status in
      StoragePart.allCases.compactMap { status.storageFailures[$0] }.first
    }
  }

  /// Does something with what is kept on disk; a failure is noted until the account changes.
  func keep(_ part: StoragePart, _ body: () throws(RPCError) -> Void) {
    do throws(RPCError) { try body() } catch { note(error, of: part) }
  }

  func note(_ failure: RPCError?, of part: StoragePart) {
    status.withLock { $0.storageFailures[part] = failure }
  }

  func forgetStorageFailures() { status.withLock { $0.storageFailures = [:] } }

  /// What else has waited for the server.
  func whenLive(_ action: @escaping @Sendable () -> Void) { whenLive.withLock { $0 = action } }

  private func report(_ connection: ConnectionState) {
    status.withLock { $0.connection = connection }
    broadcast.send(.connection(connection))
    if connection == .live { whenLive.withLock { $0 }?() }
  }

  private func run() async {
    guard let user = await authenticator.session?.user else {
      return report(.signedOut)
    }
    let stream = ResumableStream<Chat.SubscribeResponse>(
      token: cache.token, authenticator: authenticator, heartbeat: configuration.heartbeat,
      report: { [weak self] in self?.report($0) }
    ) { [chat, configuration] token, options in
      var request = Chat.SubscribeRequest()
      request.resumeToken = token
      // Used without a token, or when the token cannot be honoured.
      request.snapshot = .init(
        chatLimit: Int32(clamping: configuration.snapshotChats),
        messagesPerChat: Int32(clamping: configuration.snapshotMessages))
      request.heartbeatInterval = .init(configuration.heartbeat)
      return chat.subscribe(request, options)
    }
    do throws(RPCError) {
      while true {
        let group = try await stream.next()
        if Task.isCancelled { break }
        let (changes, failure) = cache.apply(group.frames, token: group.token, user: user)
        // All is written again with the next transaction, so that the last one tells.
        note(failure, of: .cache)
        for change in changes {
          if change == .caughtUp { report(.live) }
          broadcast.send(change)
        }
      }
    } catch {
      if !Task.isCancelled {
        report(error.code == .unauthenticated ? .signedOut : .ended(reason: "\(error)"))
        stop()
      }
    }
    stream.close()
  }
}

extension VencejoClient {
  /// Opens the stream of changes, unless it is open; it stays open, across lost connections, until
  /// `stopSync()`.
  public func startSync() { sync.start() }

  public func stopSync() { sync.stop() }

  /// What changes from now on. Each reader has its own sequence; one that falls 4,096 changes
  /// behind misses some and is told by `.missed`.
  public func changes() -> AsyncStream<ChatChange> { sync.broadcast.subscribe() }

  /// How the stream of changes stands.
  public var connection: ConnectionState { sync.connection }

  /// Why something that is known could not be kept on disk; nil when all is kept, or nothing is to
  /// be. FAILED_PRECONDITION when the account's file cannot be used, DATA_LOSS when it is damaged,
  /// RESOURCE_EXHAUSTED when there is no room. The client goes on in memory.
  public var storageFailure: RPCError? { sync.storageFailure }
}
