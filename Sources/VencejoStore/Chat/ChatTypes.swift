public import VencejoCrypto

/// What kind of conversation a chat is; raw values as on the wire.
public enum ChatKind: Int64, Sendable, Hashable {
  case direct = 1
  case group = 2
  /// Few writers, many readers.
  case channel = 3
  case own = 4

  /// Whether it has roles, a title and a policy.
  var isShared: Bool { self == .group || self == .channel }
}

/// What a member may do in a chat; raw values as on the wire.
public enum MemberRole: Int64, Sendable, Hashable, Comparable {
  /// Channels only.
  case reader = 1
  case member = 2
  case admin = 3
  case owner = 4

  public static func < (left: MemberRole, right: MemberRole) -> Bool {
    left.rawValue < right.rawValue
  }

  var name: String {
    switch self {
    case .reader: "READER"
    case .member: "MEMBER"
    case .admin: "ADMIN"
    case .owner: "OWNER"
    }
  }
}

/// Whether a user is in a chat; raw values as on the wire.
public enum MemberState: Int64, Sendable, Hashable {
  case joined = 1
  case left = 3
  case removed = 4
  case banned = 5
}

/// A user's place in a chat.
public struct Membership: Sendable, Hashable {
  public let user: UUID
  public let role: MemberRole
  public let state: MemberState
  /// Microseconds since the Unix epoch.
  public let joinTime: Int64
  /// The first and, once they left, the last sequence this member may see.
  public let visibleFrom: Int64
  public let visibleTo: Int64?
  /// Everything up to here has been read; as far as the reader of this may know it.
  public var readSequence: Int64
  /// Everything up to here has been received by one of the member's devices.
  public var deliveredSequence: Int64
  public let version: Int64
}

/// Least roles for what changes a chat, and windows in microseconds.
public struct ChatPolicy: Sendable, Hashable {
  public var sendMessages = MemberRole.member
  public var addMembers = MemberRole.member
  public var editInfo = MemberRole.member
  public var pinMessages = MemberRole.member
  public var showsHistory = false
  /// Nil is ``ChatLimits/editWindow``.
  public var editWindow: Int64?
  /// Nil is ``ChatLimits/deleteWindow``.
  public var deleteWindow: Int64?
  /// Least time between two messages of one member; 0 for none.
  public var slowMode: Int64 = 0

  public init() {}
}

/// Messages after the reader's marker that the reader may see and that are neither the
/// reader's, nor deleted, nor the system's.
public struct UnreadState: Sendable, Hashable {
  /// Exact up to 999.
  public let count: Int
  /// There are more than 999.
  public let isCapped: Bool
  /// Those of them that mention the reader; exact up to 999.
  public var mentions = 0
  /// 0 when none.
  public let firstSequence: Int64

  static let cap = 999
  static let none = UnreadState(count: 0, isCapped: false, firstSequence: 0)
}

/// A text that was begun and not sent.
public struct Draft: Sendable, Hashable {
  public var body: MessageBody
  public var replyTo: UUID?
  public var updateTime: Int64 = 0

  public init(body: MessageBody, replyTo: UUID? = nil) {
    self.body = body
    self.replyTo = replyTo
  }
}

/// A member's own view of a chat, the same on all their devices.
public struct ChatSettings: Sendable, Hashable {
  /// Microseconds since the Unix epoch; nil when not muted.
  public var muteUntil: Int64?
  public var isArchived = false
  /// 0: not pinned; otherwise the rank in the list.
  public var pinRank: Int64 = 0
  public var isMarkedUnread = false
  public var mentionsOnly = false
  public var draft: Draft?
  public var version: Int64 = 0

  public init() {}
}

/// A chat as one of its members sees it.
public struct ChatView: Sendable, Hashable {
  /// Internal key; never on the wire.
  public let key: Int64
  public let id: UUID
  public let kind: ChatKind
  public let title: String
  public let description: String
  /// The other user of a direct chat.
  public let peer: UUID?
  public let memberCount: Int64
  public let createTime: Int64
  public let updateTime: Int64
  public internal(set) var activityTime: Int64
  public let lastSequence: Int64
  public internal(set) var lastMessage: StoredMessage?
  /// Microseconds; nil when messages stay.
  public let messageTTL: Int64?
  public let policy: ChatPolicy
  /// The reader's own place.
  public let membership: Membership
  public let settings: ChatSettings
  public internal(set) var unread: UnreadState
  /// Newest pin first.
  public internal(set) var pinned: [Int64]
  public let version: Int64
}

/// What others see of a user.
public struct Profile: Sendable, Hashable {
  /// Internal key; never on the wire.
  public let key: Int64
  public let user: UUID
  public let handle: String
  public let displayName: String
  public let statusText: String
  /// Nil where the owner hides it, or it was never seen.
  public let lastSeenTime: Int64?
  /// Whether presence may be shown to who asked.
  public let showsPresence: Bool
  /// For the owner's eyes only.
  public let privacy: PrivacySettings?
  public let isServiceAccount: Bool
  public let updateTime: Int64
  public let version: Int64
}

/// What a user keeps from others.
public struct PrivacySettings: Sendable, Hashable {
  public var hidesLastSeen = false
  /// Read markers are neither shown nor seen.
  public var hidesReceipts = false
  public var refusesGroupAdds = false

  public init() {}
}
