// Resource names of the record store (AIP-122):
//   containers/{container}/databases/{database}/zones/{zone}/records/{record}
//
// Names are compared as bytes, here and in SQL. Swift's own `==` on strings is
// canonical equivalence, under which two names that SQLite keeps apart would
// be one; hence the hand-written equality below.

/// A value of a request that no state of the store could make acceptable.
public struct RecordViolation: Error, Sendable, Hashable, CustomStringConvertible {
  /// Where in the request, as a field path; empty when it is the whole.
  public var field: String
  /// What is wrong, in one sentence, for people.
  public var description: String

  public init(_ field: String, _ description: String) {
    self.field = field
    self.description = description
  }
}

/// Names a database: `public`, or `u-{user}` for a user's private one.
public struct DatabaseID: Sendable, Hashable, CustomStringConvertible {
  /// The database every user of a container reads.
  public static let publicName = "public"
  /// Alias, in requests only, of the caller's own database.
  public static let privateAlias = "private"

  /// Alias, in requests only, of what others share with the caller.
  public static let sharedAlias = "shared"

  public let container: String
  public let database: String

  /// Throws when one of the identifiers is malformed.
  public init(container: String, database: String) throws(RecordViolation) {
    guard RecordNaming.isContainer(container) else {
      throw RecordViolation(
        "container",
        "a container identifier is 1 to 128 of A-Z a-z 0-9 . _ - and starts with"
          + " a letter or digit")
    }
    guard RecordNaming.isDatabase(database) || RecordNaming.isSharedView(database) else {
      throw RecordViolation("database", "a database is `public`, `private` or `u-{user}`")
    }
    self.container = container
    self.database = database
  }

  /// Parses `containers/{container}/databases/{database}`; `private` becomes
  /// the database of `caller`.
  public init(parsing name: String, caller: String) throws(RecordViolation) {
    let parts = RecordNaming.segments(name)
    guard parts.count == 4, parts[0] == "containers", parts[2] == "databases" else {
      throw RecordViolation("", "expected containers/{container}/databases/{database}")
    }
    try self.init(parts: parts, caller: caller)
  }

  /// As ``init(parsing:caller:)``, or what others share with the caller: it holds subscriptions,
  /// and no zones of its own.
  public init(parsingOrShared name: String, caller: String) throws(RecordViolation) {
    let parts = RecordNaming.segments(name)
    guard parts.count == 4, parts[0] == "containers", parts[2] == "databases",
      parts[3] == Self.sharedAlias || parts[3] == "s-\(caller)"
    else {
      try self.init(parsing: name, caller: caller)
      return
    }
    try self.init(container: parts[1], database: "s-\(caller)")
  }

  /// Stands where only a database's key counts.
  static let unnamed = DatabaseID()

  private init() {
    container = ""
    database = Self.publicName
  }

  fileprivate init(parts: [String], caller: String) throws(RecordViolation) {
    let database = parts[3] == Self.privateAlias ? "u-\(caller)" : parts[3]
    guard !RecordNaming.isSharedView(database) else {
      throw RecordViolation("database", "a database is `public`, `private` or `u-{user}`")
    }
    try self.init(container: parts[1], database: database)
  }

  /// The owner's user identifier; nil for the public database.
  public var owner: String? {
    isPublic ? nil : String(database.dropFirst(2))
  }

  public var isPublic: Bool { database == Self.publicName }
  /// What others share with its owner.
  public var isSharedView: Bool { RecordNaming.isSharedView(database) }

  /// The canonical resource name.
  public var name: String { "containers/\(container)/databases/\(database)" }
  public var description: String { name }
}

/// Names a zone of a database.
public struct ZoneID: Sendable, Hashable, CustomStringConvertible {
  /// The zone that every database has from the start.
  public static let defaultZone = "_defaultZone"

  public let database: DatabaseID
  public let zone: String

  /// Throws when the identifier is malformed.
  public init(database: DatabaseID, zone: String) throws(RecordViolation) {
    guard RecordNaming.isZone(zone) else {
      throw RecordViolation(
        "zone",
        "a zone identifier is 1 to 128 of A-Z a-z 0-9 . _ - and starts with a letter"
          + " or digit; only \(Self.defaultZone) starts otherwise")
    }
    self.database = database
    self.zone = zone
  }

  /// Parses `containers/…/databases/…/zones/{zone}`.
  public init(parsing name: String, caller: String) throws(RecordViolation) {
    let parts = RecordNaming.segments(name)
    guard parts.count == 6, parts[0] == "containers", parts[2] == "databases", parts[4] == "zones"
    else {
      throw RecordViolation("", "expected containers/{container}/databases/{database}/zones/{zone}")
    }
    try self.init(database: DatabaseID(parts: parts, caller: caller), zone: parts[5])
  }

  public var isDefault: Bool { zone == Self.defaultZone }
  public var name: String { "\(database.name)/zones/\(zone)" }
  public var description: String { name }
}

/// Names a record of a zone.
public struct RecordID: Sendable, Hashable, CustomStringConvertible {
  public let zone: ZoneID
  /// The record name: 1 to 255 characters without `/` or control characters.
  public let record: String

  /// Throws when the record name is malformed.
  public init(zone: ZoneID, record: String) throws(RecordViolation) {
    guard RecordNaming.isRecord(record) else {
      throw RecordViolation(
        "name", "a record name is 1 to 255 characters without `/` or control characters")
    }
    self.zone = zone
    self.record = record
  }

  /// Parses `containers/…/databases/…/zones/…/records/{record}`.
  public init(parsing name: String, caller: String) throws(RecordViolation) {
    let parts = RecordNaming.segments(name)
    guard parts.count == 8, parts[0] == "containers", parts[2] == "databases", parts[4] == "zones",
      parts[6] == "records"
    else {
      throw RecordViolation(
        "", "expected containers/{container}/databases/{database}/zones/{zone}/records/{record}")
    }
    try self.init(
      zone: ZoneID(database: DatabaseID(parts: parts, caller: caller), zone: parts[5]),
      record: parts[7])
  }

  public static func == (a: Self, b: Self) -> Bool {
    a.zone == b.zone && a.record.utf8.elementsEqual(b.record.utf8)
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(zone)
    for byte in record.utf8 { hasher.combine(byte) }
  }

  public var name: String { "\(zone.name)/records/\(record)" }
  public var description: String { name }
}

extension String {
  /// The bytes, to be found by: two spellings of one accent are two names.
  var utf8Key: [UInt8] { Array(utf8) }
}

/// The rules of identifiers.
public enum RecordNaming {
  /// Splits at `/` by bytes: a combining mark after the slash must not glue to it.
  static func segments(_ name: String) -> [String] {
    name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      .map { String($0) ?? "" }
  }

  static func isContainer(_ text: String) -> Bool { isIdentifier(text, limit: 128) }

  static func isZone(_ text: String) -> Bool {
    text == ZoneID.defaultZone || isIdentifier(text, limit: 128)
  }

  static func isDatabase(_ text: String) -> Bool {
    if text == DatabaseID.publicName { return true }
    guard text.utf8.starts(with: "u-".utf8) else { return false }
    return isIdentifier(String(text.dropFirst(2)), limit: 64)
  }

  static func isSharedView(_ text: String) -> Bool {
    text.utf8.starts(with: "s-".utf8) && isIdentifier(String(text.dropFirst(2)), limit: 64)
  }

  static func isRecord(_ text: String) -> Bool {
    var count = 0
    for scalar in text.unicodeScalars {
      count += 1
      if count > 255 || scalar.value < 0x20 || scalar.value == 0x7F || scalar == "/" {
        return false
      }
    }
    return count > 0
  }

  /// Record types and field names: `[A-Za-z][A-Za-z0-9_]*`, at most 255.
  public static func isWord(_ text: String) -> Bool {
    guard let first = text.utf8.first, isLetter(first), text.utf8.count <= 255 else {
      return false
    }
    return text.utf8.allSatisfy { isLetter($0) || isDigit($0) || $0 == UInt8(ascii: "_") }
  }

  private static func isIdentifier(_ text: String, limit: Int) -> Bool {
    guard let first = text.utf8.first, text.utf8.count <= limit, isLetter(first) || isDigit(first)
    else { return false }
    return text.utf8.allSatisfy {
      isLetter($0) || isDigit($0) || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "_")
        || $0 == UInt8(ascii: "-")
    }
  }

  static func isLetter(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(byte & 0xDF) }
  static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}
