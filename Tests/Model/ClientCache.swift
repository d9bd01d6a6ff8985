import VencejoAPI
import VencejoProtobuf

/// A client written from the protocol alone: it knows what a snapshot and the events since told.
struct ClientCache: Sendable {
  struct Message: Equatable, Sendable {
    var text = ""
    var sender = ""
    var isDeleted = false
    var edits: Int32 = 0
    var reactions: [String: Int32] = [:]
    var isPinned = false
    var isStarred = false
    var votes: [Int32: Int32] = [:]
    var attachments: [String] = []
  }

  struct ChatState: Equatable, Sendable {
    var title = ""
    var role = Chat.MemberRole.unspecified
    var memberCount: Int32 = 0
    var unread: Int32 = 0
    var read: Int64 = 0
    var archived = false
    var pinRank: Int32 = 0
    var markedUnread = false
    /// Messages are held from here on.
    var floor: Int64 = 1
    var join: Int64 = 0
    var isChannel = false
    var messages: [Int64: Message] = [:]
  }

  let user: String
  var token = ""
  var chats: [String: ChatState] = [:]
  var faults: [String] = []
  /// Events by position, to find one that comes twice.
  private var created: [String: Int64] = [:]
  private var group: [Chat.SubscribeResponse] = []

  init(user: String) { self.user = user }

  /// Takes one frame; what belongs together is applied together, with its token.
  mutating func take(_ frame: Chat.SubscribeResponse) {
    if case .heartbeat? = frame.event, !group.isEmpty {
      faults.append("a heartbeat inside a group")
    }
    group.append(frame)
    guard !frame.resumeToken.isEmpty else { return }
    for frame in group { apply(frame) }
    group = []
    token = frame.resumeToken
  }

  /// A connection ended: half a group is none.
  mutating func disconnect() { group = [] }

  private mutating func apply(_ frame: Chat.SubscribeResponse) {
    switch frame.event {
    case .reset?:
      chats = [:]
      created = [:]
    case .chatSnapshot(let snapshot)?:
      guard let chat = snapshot.chat else { return }
      var state = ChatState()
      Self.fill(&state, chat)
      state.floor = snapshot.messages.first?.sequence ?? chat.lastSequence + 1
      for message in snapshot.messages {
        state.messages[message.sequence] = Self.message(message)
      }
      chats[chat.name] = state
      created[chat.name] = max(created[chat.name] ?? 0, chat.lastSequence)
    case .chatUpserted(let event)?:
      guard let chat = event.chat else { return }
      var state = chats[chat.name] ?? ChatState()
      let isNew = chats[chat.name] == nil || state.join != Self.micros(chat.selfField?.joinTime)
      Self.fill(&state, chat)
      if isNew {
        state.messages = [:]
        state.floor = chat.lastSequence + 1
      }
      chats[chat.name] = state
    case .chatRemoved(let event)?: chats[event.chat] = nil
    case .messageCreated(let event)?:
      if let message = event.message { add(message) }
    case .messageUpdated(let event)?:
      guard let new = event.message else { return }
      change(Self.chat(of: new.name), new.sequence) { held in
        let paths = event.changedFields?.paths ?? []
        if paths.contains("content") {
          held.text = Self.text(new)
          held.edits = new.editCount
          held.votes = Self.votes(new)
          held.attachments = Self.attachments(new)
        }
        if paths.contains("pinned") { held.isPinned = new.pinned }
        if paths.contains("starred") { held.isStarred = new.starred }
      }
    case .messagesDeleted(let event)?:
      for range in event.ranges {
        for sequence in chats[event.chat]?.messages.keys.sorted() ?? []
        where sequence >= range.firstSequence && sequence <= range.lastSequence {
          if event.scope == .forEveryone {
            change(event.chat, sequence) {
              $0.text = ""
              $0.isDeleted = true
              $0.reactions = [:]
              $0.votes = [:]
              $0.attachments = []
              $0.isPinned = false
            }
          } else {
            chats[event.chat]?.messages[sequence] = nil
          }
        }
      }
    case .reactionChanged(let event)?:
      change(Self.chat(of: event.message), event.sequence) {
        $0.reactions = Dictionary(
          event.reactions.map { ($0.emoji, $0.count) }, uniquingKeysWith: { $1 })
      }
    case .memberChanged(let event)?:
      if chats[event.chat]?.isChannel == false {
        chats[event.chat]?.memberCount = event.memberCount
      }
      if event.member?.user == user, let role = event.member?.role {
        chats[event.chat]?.role = role
      }
    case .settingsChanged(let event)?:
      guard let settings = event.settings else { return }
      let chat = String(settings.name.dropLast("/settings".count))
      chats[chat]?.archived = settings.archived
      chats[chat]?.pinRank = settings.pinRank
      chats[chat]?.markedUnread = settings.markedUnread
    case .unreadChanged(let event)?:
      chats[event.chat]?.unread = event.unread?.unreadCount ?? 0
      chats[event.chat]?.read = event.readSequence
    case .receiptMoved(let event)?:
      if event.user == user, event.readSequence > chats[event.chat]?.read ?? .max {
        chats[event.chat]?.read = event.readSequence
      }
    case .caughtUp?, .heartbeat?, .closing?, .profileChanged?, .typing?, .presence?, nil: break
    case .notificationCreated?, .notificationsRead?: break
    }
  }

  private mutating func add(_ message: Chat.Message) {
    let name = Self.chat(of: message.name)
    if let last = created[name], message.sequence <= last, chats[name] != nil {
      faults.append("message \(message.sequence) of \(name) after \(last)")
    }
    created[name] = message.sequence
    guard var state = chats[name] else {
      faults.append("a message of \(name), which is not there")
      return
    }
    state.messages[message.sequence] = Self.message(message)
    if message.sender == user {
      state.unread = 0
      state.read = message.sequence
    } else if !message.sender.isEmpty, message.deleteTime == nil, message.sequence > state.read {
      state.unread += 1
    }
    chats[name] = state
  }

  private mutating func change(
    _ chat: String, _ sequence: Int64, _ body: (inout Message) -> Void
  ) {
    guard var message = chats[chat]?.messages[sequence] else { return }
    body(&message)
    chats[chat]?.messages[sequence] = message
  }

  static func fill(_ state: inout ChatState, _ chat: Chat.Chat) {
    state.title = chat.title
    state.role = chat.selfField?.role ?? .unspecified
    // Readers of a channel do not hear who comes and goes.
    state.isChannel = chat.kind == .channel
    state.memberCount = state.isChannel ? 0 : chat.memberCount
    state.unread = chat.unread?.unreadCount ?? 0
    state.read = chat.selfField?.readSequence ?? 0
    state.archived = chat.settings?.archived ?? false
    state.pinRank = chat.settings?.pinRank ?? 0
    state.markedUnread = chat.settings?.markedUnread ?? false
    state.join = micros(chat.selfField?.joinTime)
  }

  static func message(_ message: Chat.Message) -> Message {
    Message(
      text: text(message), sender: message.sender, isDeleted: message.deleteTime != nil,
      edits: message.editCount,
      reactions: Dictionary(
        message.reactions.map { ($0.emoji, $0.count) }, uniquingKeysWith: { $1 }),
      isPinned: message.pinned, isStarred: message.starred, votes: votes(message),
      attachments: attachments(message))
  }

  static func votes(_ message: Chat.Message) -> [Int32: Int32] {
    guard case .poll(let poll)? = message.content?.kind else { return [:] }
    return Dictionary(
      poll.options.filter { $0.voteCount > 0 }.map { ($0.optionId, $0.voteCount) },
      uniquingKeysWith: { $1 })
  }

  static func attachments(_ message: Chat.Message) -> [String] {
    guard case .media(let media)? = message.content?.kind else { return [] }
    return media.attachments
  }

  static func text(_ message: Chat.Message) -> String {
    switch message.content?.kind {
    case .text(let text)?: text.text
    case .media(let media)?: media.caption
    case .poll(let poll)?: poll.question
    default: ""
    }
  }

  static func chat(of message: String) -> String {
    message.split(separator: "/").prefix(2).joined(separator: "/")
  }

  static func micros(_ time: Google.Timestamp?) -> Int64 {
    guard let time else { return 0 }
    return time.seconds &* 1_000_000 &+ Int64(time.nanos / 1000)
  }
}
