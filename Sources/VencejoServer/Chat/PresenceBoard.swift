import Synchronization
import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoStore

/// Who is here: kept in memory, told to the peers of direct chats, and only when it changes.
///
/// A user is present while a stream of theirs asks for typing and presence: a script that follows
/// the log does not make its owner look awake.
final class PresenceBoard: Sendable {
  private struct Entry {
    var streams = 0
    /// What the user said last, on whichever device.
    var declared = Chat.PresenceState.online
    /// What the others were told.
    var told = Chat.PresenceState.offline
    /// Grows with each coming and going: a going that waited too long is none any more.
    var generation: UInt64 = 0

    var state: Chat.PresenceState { streams == 0 ? .offline : declared }
  }

  private struct State {
    var users: [Int64: Entry] = [:]
    var isStopped = false
  }

  private let store: Store
  private let hub: ChatHub
  private let debounce: Duration
  private let board = Mutex(State())

  init(_ store: Store, _ hub: ChatHub, debounce: Duration) {
    self.store = store
    self.hub = hub
    self.debounce = debounce
  }

  /// What others see of a user now.
  func state(of user: Int64) -> Chat.PresenceState {
    board.withLock { $0.users[user]?.told ?? .offline }
  }

  /// Whether an app of the user's is open somewhere.
  func hasStream(_ user: Int64) -> Bool {
    board.withLock { ($0.users[user]?.streams ?? 0) > 0 }
  }

  /// A stream of the user's began.
  func came(_ user: Int64, _ id: UUID) {
    board.withLock {
      $0.users[user, default: Entry()].streams += 1
      $0.users[user, default: Entry()].generation &+= 1
    }
    tell(user, id)
  }

  /// A stream of the user's ended. A reconnect within the debounce is no news.
  func went(_ user: Int64, _ id: UUID) {
    let generation = board.withLock { state -> UInt64? in
      guard var entry = state.users[user] else { return nil }
      entry.streams -= 1
      entry.generation &+= 1
      state.users[user] = entry
      return entry.streams == 0 ? entry.generation : nil
    }
    guard let generation else { return }
    Task {
      try? await Task.sleep(for: debounce)
      let isStill = board.withLock { !$0.isStopped && $0.users[user]?.generation == generation }
      guard isStill else { return }
      _ = try? await store.write { try $0.setLastSeen(user) }
      tell(user, id)
      board.withLock { state in
        if state.users[user]?.generation == generation { state.users[user] = nil }
      }
    }
  }

  /// The user says what they are.
  func declare(_ declared: Chat.PresenceState, user: Int64, _ id: UUID) {
    board.withLock { state in
      guard state.users[user] != nil else { return }
      state.users[user]?.declared = declared
    }
    tell(user, id)
  }

  func stop() { board.withLock { $0.isStopped = true } }

  private func tell(_ user: Int64, _ id: UUID) {
    let news = board.withLock { state -> Chat.PresenceState? in
      guard !state.isStopped, var entry = state.users[user], entry.told != entry.state else {
        return nil
      }
      entry.told = entry.state
      state.users[user] = entry
      return entry.told
    }
    guard let news else { return }
    Task {
      let found = try? await store.read { transaction in
        try transaction.presenceListeners(of: user)
      }
      guard let found, !found.users.isEmpty else { return }
      hub.publish(
        .presence(
          .init(user: "users/\(id)", presence: Chat.Presence(news, lastSeen: found.lastSeen))),
        to: found.users, by: user)
    }
  }
}
