/// What a messenger must do, in the plainest words: lists and sets, no database, no intervals.
/// It shares nothing with the server but the names of refusals.
struct ChatModel {
  enum Role: Int, Comparable {
    case reader = 1
    case member, admin, owner
    static func < (left: Role, right: Role) -> Bool { left.rawValue < right.rawValue }
  }
  enum Kind { case direct, group, channel, own }

  struct Message {
    let id: String
    /// Nil for the system.
    let sender: Int?
    var text: String
    var isDeleted = false
    var edits = 0
    var reactions: [Int: String] = [:]
    var isPinned = false
    var starredBy: Set<Int> = []
    var mentions: Set<Int> = []
    /// Whom a mention called when it was sent.
    var notified: Set<Int> = []
    var poll: Poll?
    /// The name of a file it shows.
    var attachment: String?
    /// In the model's time; nil for ever.
    var expiry: Int?
    var sentAt = 0
    var isExpired = false
    /// From elsewhere and long ago: nobody may edit it any more.
    var isOld = false
    /// Who was there when it was sent, or is shown the past.
    var audience: Set<Int> = []
    /// Who blocked its sender when it was sent: they never see it.
    var blockedFor: Set<Int> = []
    /// Who deleted it for themselves.
    var hiddenFor: Set<Int> = []

    func isVisible(to user: Int) -> Bool {
      audience.contains(user) && !blockedFor.contains(user) && !hiddenFor.contains(user)
        && !isExpired
    }
  }

  struct Poll {
    let options: [Int]
    let allowsSeveral: Bool
    var votes: [Int: Set<Int>] = [:]
  }

  struct Invite {
    let name: String
    let code: String
    let chat: String
    let creator: Int
    var isRevoked = false
  }

  struct Member {
    var role: Role
    /// How far they have read, by sequence.
    var read: Int
    var isIn = true
    /// How many messages there were when they left.
    var end = 0
  }

  struct Chat {
    var kind: Kind
    var title: String
    var members: [Int: Member] = [:]
    var messages: [Message] = []
    /// The policy: who may send, and whether newcomers see the past.
    var sendRole = Role.member
    var showsHistory = false
    var settings: [Int: Settings] = [:]
    /// Seconds that messages stay.
    var ttl: Int?
  }

  struct Settings: Equatable {
    var isArchived = false
    var pinRank = 0
    var isMarkedUnread = false
  }

  var chats: [String: Chat] = [:]
  /// Who blocks whom.
  var blocks: [Int: Set<Int>] = [:]
  var hidesReceipts: Set<Int> = []
  var invites: [Invite] = []
  /// Who uploaded which file, and what it holds.
  var uploads: [String: Int] = [:]
  var files: [String: [UInt8]] = [:]
  /// Seconds that have passed.
  var time = 0

  // MARK: What is true

  func isIn(_ user: Int, _ chat: String) -> Bool { chats[chat]?.members[user]?.isIn ?? false }

  /// Somebody who is or was in the chat: for others it does not exist.
  func knows(_ user: Int, _ chat: String) -> Bool { chats[chat]?.members[user] != nil }

  func visible(_ user: Int, _ chat: String) -> [Int] {
    guard let chat = chats[chat] else { return [] }
    return chat.messages.indices.filter { chat.messages[$0].isVisible(to: user) }.map { $0 + 1 }
  }

  func unread(_ user: Int, _ chat: String) -> (count: Int, mentions: Int) {
    guard let found = chats[chat], let member = found.members[user] else { return (0, 0) }
    let unread = visible(user, chat).filter { sequence in
      let message = found.messages[sequence - 1]
      return sequence > member.read && message.sender != nil && message.sender != user
        && !message.isDeleted
    }
    return (
      unread.count, unread.filter { found.messages[$0 - 1].mentions.contains(user) }.count
    )
  }

  func chats(of user: Int) -> Set<String> {
    Set(chats.keys.filter { isIn(user, $0) })
  }

  // MARK: What happens

  mutating func create(_ name: String, _ kind: Kind, title: String, by user: Int, with: [Int]) {
    var chat = Chat(kind: kind, title: title)
    chat.showsHistory = kind == .channel
    let isShared = kind == .group || kind == .channel
    chat.members[user] = Member(role: isShared ? .owner : .member, read: 0)
    for other in with {
      chat.members[other] = Member(role: kind == .channel ? .reader : .member, read: 0)
    }
    chats[name] = chat
    if kind == .group { note(name) }
  }

  /// A group that came from elsewhere: nobody says that it was made, and all see all of it.
  mutating func becomeImported(_ name: String) {
    chats[name]?.kind = .group
    chats[name]?.showsHistory = true
    for user in chats[name]?.members.keys.sorted() ?? [] {
      chats[name]?.members[user]?.role = user == 0 ? .owner : .member
    }
  }

  /// The system says something.
  mutating func note(_ chat: String) { append(Message(id: "", sender: nil, text: ""), to: chat) }

  mutating func append(_ message: Message, to chat: String) {
    var message = message
    for (user, member) in chats[chat]?.members ?? [:] where member.isIn {
      message.audience.insert(user)
    }
    for (user, blocked) in blocks {
      if let sender = message.sender, blocked.contains(sender) { message.blockedFor.insert(user) }
    }
    message.sentAt = time
    message.mentions.formIntersection(message.audience)
    // What the system says stays.
    message.expiry = message.sender == nil ? nil : chats[chat]?.ttl.map { time + $0 }
    message.notified = message.mentions.filter {
      $0 != message.sender && message.audience.contains($0) && !message.blockedFor.contains($0)
    }
    chats[chat]?.messages.append(message)
  }

  mutating func pass(seconds: Int) {
    time += seconds
    for name in chats.keys {
      for index in chats[name]?.messages.indices ?? 0..<0 {
        if let expiry = chats[name]?.messages[index].expiry, expiry <= time {
          chats[name]?.messages[index].isExpired = true
        }
      }
    }
  }

  /// Whether the time in which its sender may edit or delete it is over.
  func isOver(_ seconds: Int, _ message: Message) -> Bool {
    message.isOld || time - message.sentAt > seconds
  }

  mutating func send(_ message: Message, to chat: String, by user: Int) {
    append(message, to: chat)
    let last = chats[chat]?.messages.count ?? 0
    chats[chat]?.members[user]?.read = last
    chats[chat]?.settings[user]?.isMarkedUnread = false
  }

  mutating func add(_ user: Int, to chat: String) {
    let last = chats[chat]?.messages.count ?? 0
    let old = chats[chat]?.members[user]
    let role: Role = chats[chat]?.kind == .channel ? .reader : .member
    chats[chat]?.members[user] = Member(role: role, read: max(old?.read ?? 0, last))
    if chats[chat]?.showsHistory == true {
      for index in chats[chat]?.messages.indices ?? 0..<0 {
        chats[chat]?.messages[index].audience.insert(user)
      }
    }
    if chats[chat]?.kind == .group { note(chat) }
  }

  mutating func end(_ user: Int, _ chat: String) {
    if chats[chat]?.kind == .group { note(chat) }
    chats[chat]?.members[user]?.isIn = false
    let count = chats[chat]?.messages.count ?? 0
    chats[chat]?.members[user]?.end = count
    if chats[chat]?.members[user]?.role == .owner { chats[chat]?.members[user]?.role = .member }
  }

  mutating func read(_ user: Int, _ chat: String, upTo sequence: Int) {
    guard let member = chats[chat]?.members[user] else { return }
    let end = member.isIn ? chats[chat]?.messages.count ?? 0 : member.end
    chats[chat]?.members[user]?.read = max(member.read, min(sequence, end))
    chats[chat]?.settings[user]?.isMarkedUnread = false
  }
}
