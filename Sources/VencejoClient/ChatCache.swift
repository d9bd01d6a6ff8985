import Synchronization
public import VencejoAPI
import VencejoProtobuf

/// What a device knows of its user's chats: the chats, their newest messages, what is unread.
///
/// It changes by whole transactions, together with the token that says how far it got.
public final class ChatCache: Sendable {
  private let contents = Mutex(ChatContents())

  init() {}

  /// All chats, latest activity first.
  public var chats: [Chat.Chat] {
    contents.withLock { contents in
      contents.chats.values.map(\.chat).sorted { one, other in
        let (left, right) = (one.activityTime?.seconds ?? 0, other.activityTime?.seconds ?? 0)
        return (left, one.lastSequence, one.name) > (right, other.lastSequence, other.name)
      }
    }
  }

  public func chat(_ name: String) -> Chat.Chat? {
    contents.withLock { $0.chats[name]?.chat }
  }

  /// The messages held of a chat, oldest first; without a hole up to the newest one.
  public func messages(of chat: String) -> [Chat.Message] {
    contents.withLock { $0.chats[chat]?.messages ?? [] }
  }

  /// Unread messages of all chats.
  public var totalUnread: Int {
    contents.withLock { $0.chats.values.reduce(0) { $0 + Int($1.chat.unread?.unreadCount ?? 0) } }
  }

  /// The position of the last transaction applied.
  var token: String { contents.withLock { $0.token } }

  /// Applies one transaction. Answers what changed.
  func apply(
    _ frames: [Chat.SubscribeResponse], token: String, user: String
  ) -> [ChatChange] {
    contents.withLock { $0.apply(frames, token: token, user: user) }
  }

  func clear() { contents.withLock { $0 = ChatContents() } }
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
  case connection(ConnectionState)
  /// The reader was too slow and missed changes: read the cache again.
  case missed
}

/// The value of the cache: pure, frames in and changes out.
struct ChatContents: Sendable {
  struct Entry: Sendable {
    var chat: Chat.Chat
    var messages: [Chat.Message] = []
  }

  var chats: [String: Entry] = [:]
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
