/// Names a saved subscription of one user.
public struct SubscriptionID: Sendable, Hashable {
  public let database: DatabaseID
  public let subscription: String

  /// Throws when the identifier is malformed.
  public init(database: DatabaseID, subscription: String) throws(RecordViolation) {
    guard RecordNaming.isContainer(subscription) else {
      throw RecordViolation(
        "subscription",
        "a subscription identifier is 1 to 128 of A-Z a-z 0-9 . _ - and starts with a letter or"
          + " digit")
    }
    self.database = database
    self.subscription = subscription
  }

  /// Parses `containers/…/databases/…/subscriptions/{subscription}`.
  public init(parsing name: String, caller: String) throws(RecordViolation) {
    let parts = RecordNaming.segments(name)
    guard parts.count == 6, parts[4] == "subscriptions" else {
      throw RecordViolation(
        "", "expected containers/{container}/databases/{database}/subscriptions/{subscription}")
    }
    let parent = parts.prefix(4).joined(separator: "/")
    try self.init(
      database: DatabaseID(parsingOrShared: parent, caller: caller), subscription: parts[5])
  }

  public var name: String { "\(database.name)/subscriptions/\(subscription)" }
}

/// What a saved subscription waits for, and what it says then.
public struct SavedSubscription: Sendable, Hashable {
  /// What happened to a record, or in a zone.
  public enum Reason: Int64, Sendable, Hashable {
    case creation = 1
    case update = 2
    case deletion = 3
  }

  public enum Kind: Sendable, Hashable {
    /// Changes of records that the query selects; in one zone, or in all of the database.
    case query(RecordQuery, firesOn: Set<Reason>, once: Bool, zone: String?)
    /// Any change in a zone; of records of one type, or of all.
    case zone(String, type: String?)
    /// Any change in the database; of records of one type, or of all.
    case database(type: String?)
  }

  public var id: SubscriptionID
  public var kind: Kind
  public var info: NotificationInfo
  /// Microseconds since 1970.
  public var createTime: Int64
  /// The client's own words, kept for the answer to its question.
  public var message: [UInt8]

  public init(
    id: SubscriptionID, kind: Kind, info: NotificationInfo = NotificationInfo(),
    createTime: Int64 = 0, message: [UInt8] = []
  ) {
    self.id = id
    self.kind = kind
    self.info = info
    self.createTime = createTime
    self.message = message
  }
}

/// What a firing says (CloudKit's `CKSubscription.NotificationInfo`).
public struct NotificationInfo: Sendable, Hashable {
  public var title: String
  /// Literal text; `{field}` stands for the field's value.
  public var body: String
  /// Fields copied into the firing.
  public var desiredKeys: [String]
  public var incrementsBadge: Bool
  /// Firings with one value of this field replace one another; empty: none do.
  public var collapseField: String
  /// Where firings are posted too; empty: nowhere.
  public var hookURI: String

  public init(
    title: String = "", body: String = "", desiredKeys: [String] = [],
    incrementsBadge: Bool = false, collapseField: String = "", hookURI: String = ""
  ) {
    self.title = title
    self.body = body
    self.desiredKeys = desiredKeys
    self.incrementsBadge = incrementsBadge
    self.collapseField = collapseField
    self.hookURI = hookURI
  }

  /// Most bytes of a title or a body with its placeholders filled.
  static let maxText = 1_000
  static let maxDesiredKeys = 32
}

/// A subscription that fired, until its user acknowledges it.
public struct Firing: Sendable, Hashable {
  public var id: String
  public var subscription: SubscriptionID
  public var reason: SavedSubscription.Reason
  public var zone: ZoneID
  /// Nil when it tells of a zone or a database.
  public var record: RecordID?
  public var type: String
  public var fields: [String: RecordValue]
  public var title: String
  public var body: String
  /// The user's badge in the container as this firing left it.
  public var badge: Int64
  /// Microseconds since 1970.
  public var fireTime: Int64
  /// The user who made the change.
  public var actor: String
  /// Position of the event it tells of.
  var position: Int64
}

/// What a page of firings holds.
public struct FiringPage: Sendable {
  /// Oldest first.
  public var firings: [Firing]
  /// Continue from here.
  public var position: Int64
  public var moreComing: Bool
  public var badge: Int64
}

extension RecordRules {
  /// Saved subscriptions of one user in one database.
  public static let maxSubscriptions = 100
  /// Firings that wait for one subscription's user; older ones are dropped.
  public static let maxWaiting: Int64 = 1_000
}

extension SavedSubscription {
  /// So that all of a user's fit one answer.
  static let maxBytes = 32 << 10

  /// Throws when it could never fire, or may not stand in its database.
  func check() throws(StoreError) {
    func violation(_ field: String, _ text: String) -> StoreError {
      StoreError(RecordViolation("subscription.\(field)", text))
    }
    switch kind {
    case .query(let query, let firesOn, _, let zone):
      _ = try query.checked()
      guard !firesOn.isEmpty else {
        throw violation("query.fires_on", "name at least one of creation, update, deletion")
      }
      if let zone, !RecordNaming.isZone(zone) { throw violation("query.zone", "not a zone") }
    case .zone(let zone, let type):
      guard RecordNaming.isZone(zone) else { throw violation("zone.zone", "not a zone") }
      if let type, !RecordNaming.isWord(type) {
        throw violation("zone.record_type", "not a record type")
      }
    case .database(let type):
      if let type, !RecordNaming.isWord(type) {
        throw violation("database.record_type", "not a record type")
      }
    }
    if id.database.isPublic {
      guard case .query = kind else {
        throw violation("kind", "the public database takes query subscriptions only")
      }
    }
    if id.database.isSharedView {
      guard case .database = kind else {
        throw violation("kind", "the shared database takes database subscriptions only")
      }
    }
    guard definition.count <= Self.maxBytes, message.count <= Self.maxBytes else {
      throw StoreError(
        .invalidArgument, "LIMIT_EXCEEDED", "a subscription has at most 32 KiB",
        metadata: ["limit": String(Self.maxBytes)],
        details: [.quota(subject: "subscription", description: "at most 32 KiB")])
    }
    guard info.title.utf8.count <= NotificationInfo.maxText,
      info.body.utf8.count <= NotificationInfo.maxText,
      info.desiredKeys.count <= NotificationInfo.maxDesiredKeys,
      info.desiredKeys.allSatisfy(RecordNaming.isWord),
      info.collapseField.isEmpty || RecordNaming.isWord(info.collapseField)
    else {
      throw violation(
        "notification_info",
        "title and body have at most \(NotificationInfo.maxText) bytes, desired_keys at most"
          + " \(NotificationInfo.maxDesiredKeys) field names")
    }
  }
}
