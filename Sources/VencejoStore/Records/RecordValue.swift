/// A value of a record's field. Lists hold one scalar type and no lists.
public enum RecordValue: Sendable, Hashable {
  case string(String)
  case int64(Int64)
  /// Never NaN: SQLite would store it as NULL and it would compare as nothing.
  case double(Double)
  case bytes([UInt8])
  /// Microseconds since 1970-01-01T00:00:00Z.
  case timestamp(Int64)
  case location(RecordLocation)
  case reference(RecordReference)
  /// Kept, not compared: a file of its own.
  case asset(RecordAsset)
  case list([RecordValue])

  // Strings by bytes, as in names and in SQL; doubles by value.
  public static func == (a: Self, b: Self) -> Bool {
    switch (a, b) {
    case (.string(let x), .string(let y)): x.utf8.elementsEqual(y.utf8)
    case (.int64(let x), .int64(let y)): x == y
    case (.double(let x), .double(let y)): x == y
    case (.bytes(let x), .bytes(let y)): x == y
    case (.timestamp(let x), .timestamp(let y)): x == y
    case (.location(let x), .location(let y)): x == y
    case (.reference(let x), .reference(let y)): x == y
    case (.asset(let x), .asset(let y)): x == y
    case (.list(let x), .list(let y)): x == y
    default: false
    }
  }

  public func hash(into hasher: inout Hasher) {
    switch self {
    case .string(let x): for byte in x.utf8 { hasher.combine(byte) }
    case .int64(let x): hasher.combine(x)
    case .double(let x): hasher.combine(x)
    case .bytes(let x): hasher.combine(x)
    case .timestamp(let x): hasher.combine(x)
    case .location(let x): hasher.combine(x)
    case .reference(let x): hasher.combine(x)
    case .asset(let x): hasher.combine(x)
    case .list(let x): hasher.combine(x)
    }
  }
}

/// A place, in degrees and metres.
public struct RecordLocation: Sendable, Hashable {
  public var latitude: Double
  public var longitude: Double
  public var altitude: Double?
  public var horizontalAccuracy: Double?
  public var course: Double?
  public var speed: Double?
  /// Microseconds since 1970.
  public var sampleTime: Int64?

  public init(
    latitude: Double, longitude: Double, altitude: Double? = nil, horizontalAccuracy: Double? = nil,
    course: Double? = nil, speed: Double? = nil, sampleTime: Int64? = nil
  ) {
    self.latitude = latitude
    self.longitude = longitude
    self.altitude = altitude
    self.horizontalAccuracy = horizontalAccuracy
    self.course = course
    self.speed = speed
    self.sampleTime = sampleTime
  }
}

/// A reference to a record of the same zone.
public struct RecordReference: Sendable, Hashable {
  /// The target's zone, by its identifier within the database.
  public var zone: String
  /// The target's record name.
  public var record: String
  /// What becomes of the record that holds it (CloudKit's `CKRecord.ReferenceAction`).
  public var action: Action

  public enum Action: Sendable, Hashable {
    /// The target may be missing, and may go.
    case none
    /// The record is deleted with its target, which must be there on save.
    case deleteSelf
  }

  public init(zone: String, record: String, action: Action = .none) {
    self.zone = zone
    self.record = record
    self.action = action
  }

  /// The form in the index: unique within a database, as neither part has `/`.
  var key: String { "\(zone)/\(record)" }

  public static func == (a: Self, b: Self) -> Bool {
    a.zone == b.zone && a.action == b.action && a.record.utf8.elementsEqual(b.record.utf8)
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(zone)
    for byte in record.utf8 { hasher.combine(byte) }
  }
}

extension RecordValue {
  /// Record names that the value binds its record to.
  var owners: [String] {
    switch self {
    case .reference(let target): target.action == .deleteSelf ? [target.record] : []
    case .list(let elements): elements.flatMap(\.owners)
    default: []
    }
  }
}

extension StoredRecord {
  /// The records that this one is deleted with, each once.
  var owners: Set<[UInt8]> { Set(fields.values.flatMap(\.owners).map { Array($0.utf8) }) }
}

/// A record as the store knows it.
public struct StoredRecord: Sendable, Hashable {
  public var id: RecordID
  public var type: String
  public var fields: [String: RecordValue]
  /// Opaque; differs after each save.
  public var changeTag: String
  /// Microseconds since 1970.
  public var createTime: Int64
  public var updateTime: Int64
  /// User identifiers, without `users/`.
  public var creator: String
  public var lastModifier: String
  /// Name of the record above it, in the same zone; or empty.
  public var parent: String
  /// Identifier of the share that covers it by its place in a hierarchy; or empty.
  public var share: String

  public init(
    id: RecordID, type: String, fields: [String: RecordValue], changeTag: String = "",
    createTime: Int64 = 0, updateTime: Int64 = 0, creator: String = "", lastModifier: String = "",
    parent: String = "", share: String = ""
  ) {
    self.id = id
    self.type = type
    self.fields = fields
    self.changeTag = changeTag
    self.createTime = createTime
    self.updateTime = updateTime
    self.creator = creator
    self.lastModifier = lastModifier
    self.parent = parent
    self.share = share
  }

  /// Takes over creator, last modifier and times, where the other has them.
  mutating func keepSystemFields(of other: StoredRecord) {
    if other.createTime != 0 { createTime = other.createTime }
    if other.updateTime != 0 { updateTime = other.updateTime }
    if !other.creator.isEmpty { creator = other.creator }
    if !other.lastModifier.isEmpty { lastModifier = other.lastModifier }
  }

  /// A copy with only the fields named; nil keeps all.
  public func keeping(_ keys: Set<String>?) -> StoredRecord {
    guard let keys else { return self }
    var copy = self
    copy.fields = fields.filter { keys.contains($0.key) }
    return copy
  }
}

/// What is left of a deleted record.
public struct DeletedRecord: Sendable, Hashable {
  public var id: RecordID
  public var type: String
  /// Microseconds since 1970.
  public var deleteTime: Int64
  /// It was deleted with a record it refers to.
  public var cascaded: Bool

  public init(id: RecordID, type: String, deleteTime: Int64, cascaded: Bool = false) {
    self.id = id
    self.type = type
    self.deleteTime = deleteTime
    self.cascaded = cascaded
  }
}

/// Rules for the values a client sends.
public enum RecordRules {
  /// Bytes of a record's fields, in the store's own encoding.
  public static let maxRecordBytes = 1 << 20
  /// Bytes of all fields of one ModifyRecords.
  public static let maxRequestBytes = 2 << 20
  /// Bytes of all fields of the records in one answer; a peer accepts messages of 4 MiB.
  public static let maxAnswerBytes = 3 << 20
  public static let maxFields = 1_000
  /// Elements of all lists of a record: each is a row of the index.
  public static let maxElements = 10_000
  /// Operations of one ModifyRecords, names of one LookupRecords.
  public static let maxOperations = 400
  public static let maxPageSize = 1_000
  public static let defaultPageSize = 100

  /// Throws when a field has a bad name or a value the store cannot keep.
  public static func check(fields: [String: RecordValue], in zone: String) throws(RecordViolation) {
    guard fields.count <= maxFields else {
      throw RecordViolation("fields", "a record has at most \(maxFields) fields")
    }
    var elements = 0
    for (name, value) in fields {
      if case .list(let list) = value { elements += list.count }
      guard elements <= maxElements else {
        throw RecordViolation(name, "the lists of a record have at most \(maxElements) elements")
      }
      guard RecordNaming.isWord(name) else {
        throw RecordViolation(
          "fields", "a field name is A-Z a-z 0-9 _, starts with a letter and has at most 255")
      }
      try check(value, field: name, zone: zone)
    }
  }

  /// About what the fields take, in bytes.
  public static func size(of fields: [String: RecordValue]) -> Int {
    fields.reduce(0) { $0 + $1.key.utf8.count + size(of: $1.value) }
  }

  private static func size(of value: RecordValue) -> Int {
    switch value {
    case .string(let text): text.utf8.count + 2
    case .bytes(let bytes): bytes.count + 2
    case .reference(let target): target.zone.utf8.count + target.record.utf8.count + 3
    case .list(let elements): elements.reduce(2) { $0 + size(of: $1) }
    case .int64, .double, .timestamp: 8
    case .asset(let asset): 64 + asset.contentType.utf8.count + asset.fileName.utf8.count
    case .location: 24
    }
  }

  static func check(
    _ value: RecordValue, field: String, zone: String
  ) throws(RecordViolation) {
    switch value {
    case .double(let number):
      if number.isNaN { throw RecordViolation(field, "NaN is not a value") }
    case .location(let place):
      try check(place, field: field)
    case .reference(let target):
      guard target.zone == zone else {
        throw RecordViolation(field, "a reference leads to a record of the same zone")
      }
    case .list(let elements):
      guard let first = elements.first else { return }
      for element in elements {
        guard element.hasSameType(as: first) else {
          throw RecordViolation(field, "the elements of a list have one type")
        }
        if case .list = element { throw RecordViolation(field, "a list holds no lists") }
        try check(element, field: field, zone: zone)
      }
    case .string, .int64, .bytes, .timestamp, .asset:
      return
    }
  }

  /// Throws unless the place is on Earth.
  static func check(_ place: RecordLocation, field: String) throws(RecordViolation) {
    guard (-90...90).contains(place.latitude), (-180...180).contains(place.longitude) else {
      throw RecordViolation(field, "latitude is -90 to 90 degrees, longitude -180 to 180")
    }
    for number in [place.altitude, place.horizontalAccuracy, place.course, place.speed] {
      if let number, number.isNaN { throw RecordViolation(field, "NaN is not a value") }
    }
  }
}

extension RecordValue {
  func hasSameType(as other: RecordValue) -> Bool {
    switch (self, other) {
    case (.string, .string), (.int64, .int64), (.double, .double), (.bytes, .bytes),
      (.timestamp, .timestamp), (.location, .location), (.reference, .reference), (.list, .list),
      (.asset, .asset):
      true
    default: false
    }
  }
}
