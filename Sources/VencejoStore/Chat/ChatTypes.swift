public import VencejoCrypto

/// What kind of conversation a chat is; raw values as on the wire.
public enum ChatKind: Int64, Sendable, Hashable {
  case direct = 1
  case group = 2
  case own = 4
}

/// What a member may do in a chat; raw values as on the wire.
public enum MemberRole: Int64, Sendable, Hashable {
  case member = 2
  case owner = 4
}

/// A user's place in a chat.
public struct Membership: Sendable, Hashable {
  public let role: MemberRole
  /// Microseconds since the Unix epoch.
  public let joinTime: Int64
  /// The first and, once they left, the last sequence this member may see.
  public let visibleFrom: Int64
  public let visibleTo: Int64?
  /// Everything up to here has been read.
  public let readSequence: Int64
  public let version: Int64
}

/// Messages after the reader's marker that are neither the reader's nor the system's.
public struct UnreadState: Sendable, Hashable {
  /// Exact up to 999.
  public let count: Int
  /// There are more than 999.
  public let isCapped: Bool
  /// 0 when none.
  public let firstSequence: Int64

  static let cap = 999
  static let none = UnreadState(count: 0, isCapped: false, firstSequence: 0)
}

/// A chat as one of its members sees it.
public struct ChatView: Sendable, Hashable {
  /// Internal key; never on the wire.
  public let key: Int64
  public let id: UUID
  public let kind: ChatKind
  public let title: String
  /// The other user of a direct chat.
  public let peer: UUID?
  public let memberCount: Int64
  public let createTime: Int64
  public let updateTime: Int64
  public let activityTime: Int64
  public let lastSequence: Int64
  public let lastMessage: StoredMessage?
  /// The reader's own place.
  public let membership: Membership
  public let unread: UnreadState
  public let version: Int64
}

/// What a message says.
public enum MessageBody: Sendable, Hashable {
  case text(String)
  /// A system message: who made the chat, and with whom.
  case chatCreated(actor: UUID, subjects: [UUID])
}

/// Enough of a message that is replied to, to draw it.
public struct Quote: Sendable, Hashable {
  public let id: UUID
  public let sender: UUID?
  public let excerpt: String
}

/// A stored message.
public struct StoredMessage: Sendable, Hashable {
  public let chat: UUID
  public let id: UUID
  /// Contiguous from 1 in its chat.
  public let sequence: Int64
  /// Nil for system messages; the key is internal.
  public let sender: UUID?
  public let senderKey: Int64?
  /// Microseconds since the Unix epoch; grows with the sequence.
  public let sendTime: Int64
  public let body: MessageBody
  public let quote: Quote?
  public let version: Int64
  /// Known only where the reader is its sender.
  public var isReadByAll = false
}

/// What others see of a user.
public struct Profile: Sendable, Hashable {
  public let user: UUID
  public let handle: String
  public let displayName: String
  public let updateTime: Int64
  public let version: Int64
}

extension EventKind {
  /// Payload: the ``StoredMessage``.
  public static let messageCreated = EventKind(rawValue: 10)
  /// Payload: a ``ChatMembers``, of those who have to hear of it.
  public static let chatUpserted = EventKind(rawValue: 11)
  /// Payload: a ``ReadMarker``.
  public static let receiptMoved = EventKind(rawValue: 12)
  /// For one user; no payload.
  public static let unreadChanged = EventKind(rawValue: 13)
}

/// Payload of ``EventKind/chatUpserted``: internal keys of users.
public struct ChatMembers: Sendable {
  public let users: [Int64]
}

/// Payload of ``EventKind/receiptMoved``.
public struct ReadMarker: Sendable, Hashable {
  public let chat: UUID
  public let user: UUID
  public let sequence: Int64
}

/// One event as one user sees it.
public enum ChatEvent: Sendable, Hashable {
  case messageCreated(StoredMessage)
  case chatUpserted(ChatView)
  case receiptMoved(ReadMarker)
  case unreadChanged(chat: UUID, UnreadState, total: Int)
}

/// Limits of one message and one chat.
public enum ChatLimits {
  /// Bytes of UTF-8.
  public static let textBytes = 64 * 1024
  /// Members of a chat when it is made.
  public static let members = 1000
  /// Receipts are told to others in chats up to this size.
  static let receiptMembers: Int64 = 256
  static let titleCharacters = 128
  static let pageDefault = 50
  static let pageMaximum = 200

  /// The page size to use for the one asked for (AIP-158).
  public static func page(_ asked: Int32) throws(StoreError) -> Int {
    guard asked >= 0 else {
      throw .invalid("page_size", "BAD_PAGE_SIZE", "page_size must not be negative")
    }
    return asked == 0 ? pageDefault : min(Int(asked), pageMaximum)
  }
}
