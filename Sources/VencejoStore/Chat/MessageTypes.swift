public import VencejoCrypto

/// Somebody called in a text. Places count Unicode scalars.
public struct Mention: Sendable, Hashable {
  /// Nil for everyone.
  public var user: UUID?
  public var start: Int64
  public var length: Int64

  public init(user: UUID?, start: Int64, length: Int64) {
    self.user = user
    self.start = start
    self.length = length
  }
}

/// A place on earth.
public struct SharedLocation: Sendable, Hashable {
  public var latitude: Double
  public var longitude: Double
  public var label: String

  public init(latitude: Double, longitude: Double, label: String) {
    self.latitude = latitude
    self.longitude = longitude
    self.label = label
  }
}

/// Somebody's card.
public struct SharedContact: Sendable, Hashable {
  public var displayName: String
  public var user: UUID?
  public var vcard: [UInt8]

  public init(displayName: String, user: UUID?, vcard: [UInt8]) {
    self.displayName = displayName
    self.user = user
    self.vcard = vcard
  }
}

/// A question with answers to choose from.
public struct Poll: Sendable, Hashable {
  public struct Option: Sendable, Hashable {
    public var id: Int64
    public var text: String
    /// As they stand when the message is read.
    public var votes: Int64 = 0
    public var isVoted = false

    public init(id: Int64, text: String) {
      self.id = id
      self.text = text
    }
  }

  public var question: String
  public var options: [Option]
  public var allowsSeveral: Bool

  public init(question: String, options: [Option], allowsSeveral: Bool) {
    self.question = question
    self.options = options
    self.allowsSeveral = allowsSeveral
  }
}

/// Bytes of an application; the server does not look into them.
public struct CustomBody: Sendable, Hashable {
  public var typeURL: String
  public var data: [UInt8]
  public var fallback: String

  public init(typeURL: String, data: [UInt8], fallback: String) {
    self.typeURL = typeURL
    self.data = data
    self.fallback = fallback
  }
}

/// What a system message tells; raw values as on the wire.
public enum SystemAction: Int64, Sendable, Hashable {
  case chatCreated = 1
  case membersAdded = 2
  case memberLeft = 3
  case memberRemoved = 4
  case roleChanged = 5
  case titleChanged = 6
  case ttlChanged = 8
  case messagePinned = 9
}

/// What the system says in a chat.
public struct SystemNote: Sendable, Hashable {
  public var action: SystemAction
  public var actor: UUID
  public var subjects: [UUID]
  public var text: String

  public init(_ action: SystemAction, actor: UUID, subjects: [UUID] = [], text: String = "") {
    self.action = action
    self.actor = actor
    self.subjects = subjects
    self.text = text
  }
}

/// Files, and what is written under them.
public struct Media: Sendable, Hashable {
  public var attachments: [UUID]
  public var caption: String
  public var mentions: [Mention]
  public var isVoiceNote: Bool

  public init(
    attachments: [UUID], caption: String = "", mentions: [Mention] = [],
    isVoiceNote: Bool = false
  ) {
    self.attachments = attachments
    self.caption = caption
    self.mentions = mentions
    self.isVoiceNote = isVoiceNote
  }
}

/// What a message says.
public enum MessageBody: Sendable, Hashable {
  case text(String, mentions: [Mention] = [])
  case media(Media)
  case location(SharedLocation)
  case contact(SharedContact)
  case poll(Poll)
  case custom(CustomBody)
  case system(SystemNote)
  /// Deleted for everyone.
  case deleted
}

/// Enough of a message that is replied to, to draw it.
public struct Quote: Sendable, Hashable {
  public let id: UUID
  public let sender: UUID?
  public let excerpt: String
  public var isDeleted = false
}

/// How many chose an emoji.
public struct ReactionSummary: Sendable, Hashable {
  public let emoji: String
  public let count: Int64
  /// Whether the reader is among them.
  public let isMine: Bool
}

/// A stored message.
public struct StoredMessage: Sendable, Hashable {
  /// Internal key; never on the wire.
  public let key: Int64
  public let chat: UUID
  public let id: UUID
  /// Contiguous from 1 in its chat.
  public let sequence: Int64
  /// Nil for system messages; the key is internal.
  public let sender: UUID?
  public let senderKey: Int64?
  /// Microseconds since the Unix epoch; grows with the sequence.
  public let sendTime: Int64
  public var body: MessageBody
  public var quote: Quote?
  /// How often it was passed on before; 0 for an original.
  public let forwardHops: Int64
  public var reactions: [ReactionSummary] = []
  public let editCount: Int64
  public let editTime: Int64?
  public let deleteTime: Int64?
  public let expireTime: Int64?
  public let isPinned: Bool
  public let isStarred: Bool
  public let isImported: Bool
  public let version: Int64
  /// Known only where the reader is its sender.
  public var delivery = Delivery.sent

  /// How far a message of the reader's own got; raw values as on the wire.
  public enum Delivery: Int64, Sendable, Hashable {
    case sent = 1
    /// A device of every other member has it.
    case delivered = 2
    /// Every other member who shows receipts has read it.
    case read = 3
  }
}

/// Both ends included.
public struct SequenceRange: Sendable, Hashable {
  public var first: Int64
  public var last: Int64

  public init(_ first: Int64, _ last: Int64) {
    self.first = first
    self.last = last
  }
}
