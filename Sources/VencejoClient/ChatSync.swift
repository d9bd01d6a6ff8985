import Synchronization
import VencejoAPI
import VencejoProtobuf
import VencejoRPC

/// Keeps the cache current: reads the chat stream, applies transaction by transaction, tells what
/// changed.
final class ChatSync: Sendable {
  private let chat: Chat.ChatClient
  private let authenticator: Authenticator
  private let cache: ChatCache
  private let configuration: VencejoClient.Configuration
  private let task = Mutex<Task<Void, Never>?>(nil)
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
  }

  private func run() async {
    guard let user = await authenticator.session?.user else {
      broadcast.send(.connection(.ended(reason: "nobody is signed in")))
      return
    }
    let broadcast = broadcast
    let stream = ResumableStream<Chat.SubscribeResponse>(
      token: cache.token, authenticator: authenticator, heartbeat: configuration.heartbeat,
      report: { broadcast.send(.connection($0)) }
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
        for change in cache.apply(group.frames, token: group.token, user: user) {
          if change == .caughtUp { broadcast.send(.connection(.live)) }
          broadcast.send(change)
        }
      }
    } catch {
      if !Task.isCancelled {
        broadcast.send(.connection(.ended(reason: "\(error)")))
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
}
