import VencejoStore

/// Reads the log behind the writer and lets what is to be pushed wait for the hooks: who writes
/// does not wait for it, and a server that dies goes on where it was.
final class PushFollower: Sendable {
  private let signals: AsyncStream<Void>.Continuation
  private let task: Task<Void, Never>

  init(_ store: Store, _ presence: PresenceBoard) {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    signals = continuation
    task = Task {
      var position: Int64?
      for await _ in stream {
        do throws(StoreError) {
          var isAtHead = false
          while !isAtHead, !Task.isCancelled {
            let start = position
            let page = try await store.read { transaction in
              try transaction.pushes(after: start ?? transaction.pushCursor())
            }
            isAtHead = page.isAtHead
            // Somebody at an open app has seen it.
            let wanted = page.pushes.filter { $0.isForProgram || !presence.hasStream($0.user) }
            if !page.pushes.isEmpty {
              try await store.write { try $0.enqueue(wanted, upTo: page.position) }
            }
            position = page.position
          }
        } catch {
          // The next commit wakes us, and the log is still there.
        }
      }
    }
    continuation.yield()
  }

  /// On the writer's thread.
  func publish(_ batch: CommittedBatch) {
    let isNews = batch.transactions.contains { events in
      events.contains { $0.kind == .messageCreated || $0.kind == .notificationCreated }
    }
    if isNews { signals.yield() }
  }

  func close() {
    signals.finish()
    task.cancel()
  }
}
