public import VencejoCrypto

extension EventKind {
  public static let messageCreated = EventKind(rawValue: 10)
  /// Of a chat: for all its members, or for those in a ``ChatMembers`` payload. Of a user: the
  /// chat in its keys is new to them.
  public static let chatUpserted = EventKind(rawValue: 11)
  public static let receiptMoved = EventKind(rawValue: 12)
  /// For one user; no payload.
  public static let unreadChanged = EventKind(rawValue: 13)
  public static let messageUpdated = EventKind(rawValue: 14)
  /// Of a chat: for everyone. Of a user: for them alone.
  public static let messagesDeleted = EventKind(rawValue: 15)
  public static let reactionChanged = EventKind(rawValue: 16)
  /// Of a chat: it was deleted. Of a user: they are no longer in it.
  public static let chatRemoved = EventKind(rawValue: 17)
  public static let memberChanged = EventKind(rawValue: 18)
  /// For one user; no payload.
  public static let settingsChanged = EventKind(rawValue: 19)
  /// For one user: themselves, or somebody they have a direct chat with.
  public static let profileChanged = EventKind(rawValue: 20)
  /// Countable messages went away; payload: a ``ChatMembers`` of those who had not read them.
  public static let unreadRecounted = EventKind(rawValue: 21)
  /// For one user: whom they block, or what they hide. Not a frame; streams look again.
  public static let viewChanged = EventKind(rawValue: 22)
  /// For one user: a message changed for them alone (a star).
  public static let ownMessageUpdated = EventKind(rawValue: 23)
  /// For one user; no payload.
  public static let notificationCreated = EventKind(rawValue: 24)
  /// For one user: those in its keys, or all when there are none; no payload.
  public static let notificationsRead = EventKind(rawValue: 25)
}

/// Payload of events that concern some members of a chat: internal keys of users.
public struct ChatMembers: Sendable {
  public let users: [Int64]
}

/// Payload of an event that all members of a chat hear alike.
public struct SharedEvent: Sendable {
  /// Rendered without regard to a reader, except for what ``owner`` alone is told.
  public let event: ChatEvent
  /// Whose devices get their own variant: the sender of the message.
  public var owner: Int64?
  /// Whose doing it is: those who block them do not hear it.
  public var author: Int64?
  /// Whose read receipt it is: those who hide their own do not hear it.
  public var reader: Int64?
}

/// Payload of ``EventKind/receiptMoved``.
public struct ReceiptMarker: Sendable, Hashable {
  public let chat: UUID
  public let user: UUID
  /// 0 where it is not told.
  public let read: Int64
  public let delivered: Int64
}

/// Why messages went away; raw values as on the wire.
public enum DeletionScope: Int64, Sendable, Hashable {
  case forMe = 1
  case forEveryone = 2
  case expired = 3
}

/// Which messages went away.
public struct Deletion: Sendable, Hashable {
  public let chat: UUID
  public let ranges: [SequenceRange]
  public let scope: DeletionScope
  /// Nil when they expired.
  public let actor: UUID?
}

/// What somebody thinks of a message.
public struct ReactionChange: Sendable, Hashable {
  public let chat: UUID
  public let message: UUID
  public let sequence: Int64
  public let user: UUID
  /// Empty: none any more.
  public let emoji: String
  public let reactions: [ReactionSummary]
}

/// Why a chat is no longer the reader's; raw values as on the wire.
public enum RemovalReason: Int64, Sendable, Hashable {
  case left = 1
  case removed = 2
  case deleted = 3
}

/// Which parts of a message an update tells; a client keeps the others.
public struct MessageFields: OptionSet, Sendable, Hashable {
  public let rawValue: Int64
  public init(rawValue: Int64) { self.rawValue = rawValue }

  public static let content = MessageFields(rawValue: 1)
  public static let pinned = MessageFields(rawValue: 2)
  public static let starred = MessageFields(rawValue: 4)

  /// By the names of the wire.
  public var paths: [String] {
    (contains(.content) ? ["content", "edit_count", "edit_time"] : [])
      + (contains(.pinned) ? ["pinned"] : []) + (contains(.starred) ? ["starred"] : [])
      + ["etag"]
  }
}

/// One event as one user sees it.
public enum ChatEvent: Sendable, Hashable {
  case messageCreated(StoredMessage)
  case messageUpdated(StoredMessage, MessageFields)
  case messagesDeleted(Deletion)
  case reactionChanged(ReactionChange)
  case chatUpserted(ChatView)
  case chatRemoved(chat: UUID, RemovalReason)
  case memberChanged(chat: UUID, Membership, memberCount: Int64)
  case settingsChanged(chat: UUID, ChatSettings)
  case receiptMoved(ReceiptMarker)
  case unreadChanged(chat: UUID, UnreadState, total: Int, read: Int64)
  case profileChanged(Profile)
  case notificationCreated(UserNotification)
  /// None named: all there were.
  case notificationsRead(user: UUID, [UUID], unread: Int)
}

/// Limits of one message and one chat.
public enum ChatLimits {
  /// Bytes of UTF-8.
  public static let textBytes = 64 * 1024
  /// Members of a chat when it is made.
  public static let members = 1000
  /// Members of a group, and of a channel.
  public static let groupMembers: Int64 = 1024
  public static let channelMembers: Int64 = 200_000
  /// Users added by one call.
  public static let addedAtOnce = 200
  /// Receipts are told to others in chats up to this size.
  static let receiptMembers: Int64 = 256
  static let titleCharacters = 128
  static let descriptionBytes = 4096
  static let pageDefault = 50
  static let pageMaximum = 200
  /// Messages of one chunk of an export.
  public static let exportPage: Int32 = 200
  /// Messages deleted by one call.
  public static let deletedAtOnce: Int64 = 500
  /// Mentions in one message.
  public static let mentions = 100
  public static let forwardedAtOnce = 100
  public static let forwardTargets = 5
  /// From here on a message goes to one chat at a time.
  public static let manyHops: Int64 = 5
  public static let reactionBytes = 32
  public static let pollOptions = 2...20
  public static let pinnedMessages: Int64 = 100
  public static let invites: Int64 = 100
  /// Users one may block.
  public static let blocks: Int64 = 10_000

  /// Microseconds after sending in which the sender may edit.
  public static let editWindow: Int64 = 15 * 60 * 1_000_000
  /// Microseconds after sending in which the sender may delete for everyone.
  public static let deleteWindow: Int64 = 48 * 3600 * 1_000_000
  /// Bounds of a chat's `message_ttl`, microseconds.
  public static let ttl: ClosedRange<Int64> = 1_000_000...(365 * 86_400_000_000)
  public static let slowModeMaximum: Int64 = 86_400_000_000

  /// The page size to use for the one asked for (AIP-158).
  public static func page(_ asked: Int32) throws(StoreError) -> Int {
    guard asked >= 0 else {
      throw .invalid("page_size", "BAD_PAGE_SIZE", "page_size must not be negative")
    }
    return asked == 0 ? pageDefault : min(Int(asked), pageMaximum)
  }

  static func exceeded(_ subject: String, _ limit: Int64) -> StoreError {
    StoreError(
      .invalidArgument, "LIMIT_EXCEEDED", "at most \(limit) \(subject): split in half",
      metadata: ["limit": String(limit), "subject": subject],
      details: [.quota(subject: subject, description: "at most \(limit)")])
  }
}
