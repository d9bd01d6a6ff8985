/// Names a share.
public struct ShareID: Sendable, Hashable {
  public let database: DatabaseID
  public let share: String

  /// Throws when the identifier is malformed.
  public init(database: DatabaseID, share: String) throws(RecordViolation) {
    guard RecordNaming.isContainer(share) else {
      throw RecordViolation("share", "not the identifier of a share")
    }
    self.database = database
    self.share = share
  }

  /// From the tables, where it was checked.
  init(database: DatabaseID, share: String, unchecked: ()) {
    self.database = database
    self.share = share
  }

  /// Parses `containers/…/databases/…/shares/{share}`.
  public init(parsing name: String, caller: String) throws(RecordViolation) {
    let parts = RecordNaming.segments(name)
    guard parts.count == 6, parts[4] == "shares" else {
      throw RecordViolation(
        "", "expected containers/{container}/databases/{database}/shares/{share}")
    }
    try self.init(
      database: DatabaseID(parsing: parts.prefix(4).joined(separator: "/"), caller: caller),
      share: parts[5])
  }

  public var name: String { "\(database.name)/shares/\(share)" }
}

/// What a participant may do (CloudKit's `CKShare.ParticipantPermission`).
public enum SharePermission: Int64, Sendable, Hashable {
  case none = 1
  case readOnly = 2
  case readWrite = 3
}

/// Who takes part, and how they came to it (`CKShare.ParticipantRole`).
public enum ShareRole: Int64, Sendable, Hashable {
  case owner = 1
  /// May change the participants.
  case administrator = 2
  case privateUser = 3
  /// Came through the link.
  case publicUser = 4
}

/// One who takes part in a share.
public struct ShareParticipant: Sendable, Hashable {
  /// The user's identifier.
  public var user: String
  public var role: ShareRole
  public var permission: SharePermission
  public var isAccepted: Bool
  /// Microseconds since 1970.
  public var addTime: Int64

  public init(
    user: String, role: ShareRole = .privateUser, permission: SharePermission = .readOnly,
    isAccepted: Bool = false, addTime: Int64 = 0
  ) {
    self.user = user
    self.role = role
    self.permission = permission
    self.isAccepted = isAccepted
    self.addTime = addTime
  }
}

/// A zone, or a record with all below it, that others may see (CloudKit's `CKShare`).
public struct RecordShare: Sendable, Hashable {
  public var id: ShareID
  public var zone: ZoneID
  /// Nil: the whole zone.
  public var root: RecordID?
  /// What whoever has the link may do.
  public var publicPermission: SharePermission
  /// Without the owner.
  public var participants: [ShareParticipant]
  public var title: String
  public var type: String
  /// The secret of the link.
  public var link: String
  /// Microseconds since 1970; 0: never.
  public var linkExpireTime: Int64
  public var createTime: Int64
  public var updateTime: Int64
  /// Internal keys.
  var key: Int64
  var zoneKey: Int64
  var version: Int64

  public var owner: String { id.database.owner ?? "" }
  /// Differs after each change of the share or of who takes part.
  public var etag: String { String(key, radix: 36) + "-" + String(version, radix: 36) }

  /// What a user may do by this share; nil when they take no part.
  public func permission(of user: String) -> SharePermission? {
    if user == owner { return .readWrite }
    guard let one = participants.first(where: { $0.user == user }) else { return nil }
    return one.role == .publicUser ? publicPermission : one.permission
  }

  /// The share as one of its participants sees it. Owner and administrators see everything;
  /// invited participants one another; those who came by the link only the owner and themselves.
  public func seen(by user: String) -> RecordShare {
    let me = participants.first { $0.user == user }
    if user == owner || me?.role == .administrator { return self }
    var copy = self
    if publicPermission == .none { copy.link = "" }
    copy.participants =
      me?.role == .privateUser
      ? participants.filter { $0.role != .publicUser } : participants.filter { $0.user == user }
    return copy
  }

  static let maxParticipants = 100
  static let maxPublicParticipants: Int64 = 10_000
}

/// What a new share is made of, or an old one is changed to; nil leaves it.
public struct ShareChange: Sendable {
  public var publicPermission: SharePermission?
  /// Everybody but the owner and those who came by the link.
  public var participants: [ShareParticipant]?
  public var title: String?
  public var type: String?
  public var linkExpireTime: Int64?
  public var rotatesLink = false

  public init() {}
}

extension StoreError {
  static func shareNotFound(_ name: String) -> StoreError {
    .notFound("SHARE_NOT_FOUND", type: "vencejo.record.v1.Share", name: name)
  }

  static func alreadyShared(_ id: RecordID) -> StoreError {
    StoreError(
      .failedPrecondition, "ALREADY_SHARED", "\(id) is in a share already, or holds one",
      metadata: ["record": id.name],
      details: [.precondition(type: "ALREADY_SHARED", subject: id.name, description: "shared")])
  }

  static func permissionFailure(_ name: String, _ permission: String) -> StoreError {
    StoreError(
      .permissionDenied, "PERMISSION_FAILURE", "you have no \(permission) permission for \(name)",
      metadata: ["resource": name, "required_permission": permission])
  }
}
