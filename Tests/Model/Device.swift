import Synchronization
import VencejoAPI
import VencejoRPC

/// One device of a user: it holds a cache, and is connected or is not.
final class Device: Sendable {
  let user: Int
  private let cache: Mutex<ClientCache>
  private let live = Mutex<Task<Void, Never>?>(nil)
  /// How its last stream ended, for the words of a fault.
  private let ending = Mutex("")

  init(user: Int, name: String) {
    self.user = user
    cache = Mutex(ClientCache(user: name))
  }

  var contents: ClientCache { cache.withLock { $0 } }
  var lastEnd: String { ending.withLock { $0 } }
  /// One that was refused because time passed while it connected is not; any other end is a fault.
  var isLive: Bool {
    live.withLock { $0 != nil } && !lastEnd.contains("the access token has expired")
  }

  /// Opens the stream and follows it until it is told to stop, or the server is gone.
  func connect(_ client: Chat.ChatClient, _ options: CallOptions) {
    let token = contents.token
    let call = client.subscribe(
      .with {
        $0.resumeToken = token
        $0.snapshot = .with {
          $0.chatLimit = 1000
          $0.messagesPerChat = 100
        }
      }, options)
    let task = Task {
      do {
        for try await frame in call {
          if Task.isCancelled { return }
          cache.withLock { $0.take(frame) }
        }
        ending.withLock { $0 = "ended" }
      } catch {
        ending.withLock { $0 = "\(error)" }
      }
    }
    ending.withLock { $0 = "" }
    live.withLock { $0 = task }
  }

  /// Ends the stream in the middle of whatever it does.
  func disconnect() async {
    let task = live.withLock { live in
      defer { live = nil }
      return live
    }
    task?.cancel()
    await task?.value
    cache.withLock { $0.disconnect() }
  }

  func loseCache() { cache.withLock { $0 = ClientCache(user: $0.user) } }

  /// Reads pages of the log: some, or all there are.
  func catchUp(
    _ client: Chat.ChatClient, _ options: CallOptions, pages: Int, pageSize: Int32
  ) async throws {
    // Without a token there is a snapshot first, and that is the stream's to give.
    guard !contents.token.isEmpty else { return }
    for _ in 0..<pages {
      let token = contents.token
      let page = try await client.listEvents(
        .with {
          $0.resumeToken = token
          $0.pageSize = pageSize
        }, options)
      cache.withLock { cache in
        for frame in page.events { cache.take(frame) }
        cache.token = page.resumeToken
      }
      if !page.moreAvailable { return }
    }
  }
}
