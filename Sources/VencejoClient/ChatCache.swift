import Synchronization
public import VencejoAPI
import VencejoProtobuf
import VencejoRPC

/// What a device knows of its user's chats: the chats, their newest messages, what is unread.
///
/// It changes by whole transactions, together with the token that says how far it got; with a
/// folder for data both are on disk together, too.
public final class ChatCache: Sendable {
  private struct State {
    var contents = ChatContents()
    var store: DeviceStore?
    /// The store has missed something.
    var mustReplace = false
  }

  private let state = Mutex(State())

  init() {}

  /// All chats, latest activity first.
  public var chats: [Chat.Chat] {
    state.withLock { state in
      state.contents.chats.values.map(\.chat).sorted { one, other in
        let (left, right) = (one.activityTime?.seconds ?? 0, other.activityTime?.seconds ?? 0)
        return (left, one.lastSequence, one.name) > (right, other.lastSequence, other.name)
      }
    }
  }

  public func chat(_ name: String) -> Chat.Chat? {
    state.withLock { $0.contents.chats[name]?.chat }
  }

  /// The messages held of a chat, oldest first; without a hole up to the newest one.
  public func messages(of chat: String) -> [Chat.Message] {
    state.withLock { $0.contents.chats[chat]?.messages ?? [] }
  }

  /// Unread messages of all chats.
  public var totalUnread: Int {
    state.withLock { state in
      state.contents.chats.values.reduce(0) { $0 + Int($1.chat.unread?.unreadCount ?? 0) }
    }
  }

  /// The position of the last transaction applied.
  var token: String { state.withLock { $0.contents.token } }

  /// Applies one transaction, and keeps it. Answers what changed, and why it could not be kept, if
  /// so; then everything is written with the next transaction.
  func apply(
    _ frames: [Chat.SubscribeResponse], token: String, user: String
  ) -> (changes: [ChatChange], failure: RPCError?) {
    state.withLock { state in
      let changes = state.contents.apply(frames, token: token, user: user)
      return (changes, Self.keep(&state))
    }
  }

  /// Puts older messages before those held, where they join them.
  func prepend(_ messages: [Chat.Message], to chat: String) {
    state.withLock { $0.contents.prepend(messages, to: chat) }
  }

  /// Goes on with what an earlier process left.
  func attach(_ store: DeviceStore, _ kept: DeviceStore.Contents) {
    state.withLock { state in
      state.contents = ChatContents()
      state.contents.chats = TrackedChats(kept.chats)
      state.contents.chats.isTracking = true
      state.contents.token = kept.token
      state.store = store
      state.mustReplace = false
    }
  }

  /// Keeps nothing from now on.
  func detach() {
    state.withLock { state in
      state.store = nil
      state.contents.chats.isTracking = false
    }
  }

  func clear() { state.withLock { $0 = State() } }

  private static func keep(_ state: inout State) -> RPCError? {
    guard let store = state.store else { return nil }
    let delta = state.contents.chats.takeDelta()
    do throws(RPCError) {
      if state.mustReplace {
        try store.replace(by: state.contents)
      } else {
        try store.write(delta, token: state.contents.token)
      }
      state.mustReplace = false
      return nil
    } catch {
      // The file still holds an older state with its token: whole, if not new.
      state.mustReplace = true
      return error
    }
  }
}

/// Something that changed in the user's chats.
public enum ChatChange: Sendable, Hashable {
  /// A new message. `historical`: it is older than the connection.
  case message(Chat.Message, historical: Bool)
  /// A message held was edited, deleted for everyone, pinned, or reacted to.
  case messageChanged(Chat.Message)
  /// Messages went away, for this user at least.
  case messagesRemoved(chat: String, sequences: [ClosedRange<Int64>])
  /// A chat is new or has changed.
  case chat(Chat.Chat)
  /// A chat is no longer the user's.
  case chatRemoved(String)
  /// The unread count of a chat.
  case unread(chat: String, Chat.UnreadState)
  /// A member read up to a sequence.
  case receipt(chat: String, user: String, readSequence: Int64)
  /// The cache is as new as the server.
  case caughtUp
  /// The cache was thrown away and filled anew.
  case reset
  /// A message in the outbox was stored, or refused for good.
  case sent(Chat.Message)
  case sendFailed(id: String, chat: String, RPCErrorSummary)
  /// Something was put into the outbox, tried again, or dropped.
  case outboxChanged
  /// `ChatStore.loadEarlier(of:limit:)` brought older messages.
  case earlierMessages(chat: String)
  case connection(ConnectionState)
  /// The reader was too slow and missed changes: read the cache again.
  case missed
}

/// The value of the cache: pure, frames in and changes out.
struct ChatContents: Sendable {
  struct Entry: Sendable, Equatable {
    var chat: Chat.Chat
    var messages: [Chat.Message] = []
  }

  var chats = TrackedChats()
  var token = ""

  /// Messages kept per chat.
  static let longestTail = 500
  /// Unread counts are exact up to here (see UnreadState).
  static let unreadLimit: Int32 = 999

  mutating func apply(
    _ frames: [Chat.SubscribeResponse], token: String, user: String
  ) -> [ChatChange] {
    var changes: [ChatChange] = []
    for frame in frames {
      switch frame.event {
      case .reset?:
        chats.removeAll()
        changes.append(.reset)
      case .chatSnapshot(let snapshot)?: insert(snapshot, &changes)
      case .messageCreated(let created)?:
        if let message = created.message {
          add(message, historical: frame.historical, user: user, &changes)
        }
      case .chatUpserted(let upserted)?:
        if let chat = upserted.chat { update(chat, &changes) }
      case .unreadChanged(let changed)?:
        guard let unread = changed.unread else { break }
        chats[changed.chat]?.chat.unread = unread
        if changed.readSequence > chats[changed.chat]?.chat.selfField?.readSequence ?? .max {
          chats[changed.chat]?.chat.selfField?.readSequence = changed.readSequence
        }
        changes.append(.unread(chat: changed.chat, unread))
      case .receiptMoved(let moved)?:
        if moved.user == user, var member = chats[moved.chat]?.chat.selfField {
          member.readSequence = max(member.readSequence, moved.readSequence)
          chats[moved.chat]?.chat.selfField = member
        }
        if moved.user != user { tick(moved) }
        changes.append(
          .receipt(chat: moved.chat, user: moved.user, readSequence: moved.readSequence))
      case .caughtUp?: changes.append(.caughtUp)
      case .messageUpdated(let updated)?: merge(updated, &changes)
      case .messagesDeleted(let deleted)?:
        remove(deleted, commitTime: frame.commitTime, &changes)
      case .reactionChanged(let changed)?: merge(changed, user: user, &changes)
      case .chatRemoved(let removed)?:
        if chats.removeValue(forKey: removed.chat) != nil {
          changes.append(.chatRemoved(removed.chat))
        }
      case .memberChanged(let changed)?: merge(changed, user: user, &changes)
      case .settingsChanged(let changed)?:
        guard let settings = changed.settings else { break }
        let chat = Self.chatName(of: settings.name)
        chats[chat]?.chat.settings = settings
        if let chat = chats[chat]?.chat { changes.append(.chat(chat)) }
      // Profiles and notifications are not held here, and what is not kept is for who looks now.
      case .profileChanged?, .notificationCreated?, .notificationsRead?: break
      case .typing?, .presence?: break
      case .heartbeat?, .closing?, nil: break
      }
    }
    self.token = token
    return changes
  }

  /// In a direct chat the other's marker says what became of the user's own messages. In a group
  /// it takes everybody's, which only the server knows.
  private mutating func tick(_ moved: Chat.ReceiptMovedEvent) {
    guard let entry = chats[moved.chat], entry.chat.kind == .direct else { return }
    for index in entry.messages.indices where entry.messages[index].mine {
      let message = entry.messages[index]
      let state: Chat.DeliveryState =
        message.sequence <= moved.readSequence
        ? .read : message.sequence <= moved.deliveredSequence ? .delivered : .sent
      if state.rawValue > message.deliveryState.rawValue {
        chats[moved.chat]?.messages[index].deliveryState = state
      }
    }
  }

  mutating func prepend(_ older: [Chat.Message], to chat: String) {
    guard var entry = chats[chat] else { return }
    let first = entry.messages.first?.sequence ?? entry.chat.lastSequence + 1
    let joining = older.filter { $0.sequence < first }
    guard joining.last?.sequence == first - 1 else { return }
    entry.messages = joining + entry.messages
    chats[chat] = entry
  }

  private mutating func insert(
    _ snapshot: Chat.ChatSnapshotEvent, _ changes: inout [ChatChange]
  ) {
    guard let chat = snapshot.chat else { return }
    chats[chat.name] = Entry(chat: chat, messages: snapshot.messages)
    changes.append(.chat(chat))
  }

  /// A chat that comes anew keeps the messages held, unless the user was away in between.
  private mutating func update(_ chat: Chat.Chat, _ changes: inout [ChatChange]) {
    var entry = chats[chat.name] ?? Entry(chat: chat)
    if entry.chat.selfField?.joinTime != chat.selfField?.joinTime { entry.messages.removeAll() }
    entry.chat = chat
    chats[chat.name] = entry
    changes.append(.chat(chat))
  }

  private mutating func add(
    _ message: Chat.Message, historical: Bool, user: String, _ changes: inout [ChatChange]
  ) {
    let name = Self.chatName(of: message.name)
    var entry = chats[name] ?? Entry(chat: Chat.Chat(name: name))
    if let last = entry.messages.last {
      // The same frame once more changes nothing.
      if message.sequence <= last.sequence { return }
      // Messages were missed that nobody will send again: what is held no longer joins.
      if message.sequence > last.sequence + 1 { entry.messages.removeAll() }
    }
    entry.messages.append(message)
    if entry.messages.count > Self.longestTail {
      entry.messages.removeFirst(entry.messages.count - Self.longestTail)
    }
    if message.sequence > entry.chat.lastSequence {
      entry.chat.lastSequence = message.sequence
      entry.chat.lastMessage = message
      entry.chat.activityTime = message.sendTime
      Self.count(message, in: &entry.chat, user: user)
    }
    chats[name] = entry
    changes.append(.message(message, historical: historical))
  }

  /// Unread are the messages after the marker that are not the reader's own and no system
  /// messages; sending reads up to what was sent.
  private static func count(_ message: Chat.Message, in chat: inout Chat.Chat, user: String) {
    var unread = chat.unread ?? Chat.UnreadState()
    var member = chat.selfField ?? Chat.Member()
    if message.mine || message.sender == user {
      unread = Chat.UnreadState()
      member.readSequence = max(member.readSequence, message.sequence)
    } else if !message.sender.isEmpty, message.deleteTime == nil,
      message.sequence > member.readSequence
    {
      if unread.unreadCount >= unreadLimit {
        unread.capped = true
      } else {
        unread.unreadCount += 1
      }
      if unread.firstUnreadSequence == 0 { unread.firstUnreadSequence = message.sequence }
    }
    chat.unread = unread
    chat.selfField = member
  }

  /// `chats/{chat}` of `chats/{chat}/messages/{message}`.
  static func chatName(of message: String) -> String {
    message.split(separator: "/").prefix(2).joined(separator: "/")
  }
}
