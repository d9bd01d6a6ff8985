/// A condition on a record. Two-valued: it holds or it does not, and `not` is
/// its exact complement. A comparison holds when the field is there, holds a
/// scalar of the comparable kind (integers and doubles compare as numbers; all
/// other types only with their own), and the comparison is true of it.
///
/// `notEqual` holds when the field is present and not equal; so a record
/// without the field satisfies `.not(f = v)` but not `f != v`.
public indirect enum Predicate: Sendable, Hashable {
  case allOf([Predicate])
  case anyOf([Predicate])
  case not(Predicate)
  case comparison(field: String, Comparator, RecordValue)
  /// The field equals one of the values.
  case isIn(field: String, [RecordValue])
  /// A string that starts with these bytes; case sensitive.
  case beginsWith(field: String, String)
  /// A list that holds any, or all, of the values.
  case listContains(field: String, [RecordValue], all: Bool)
  /// A location at most so many metres away, on a sphere of 6 371 008.8 m.
  case distance(field: String, center: RecordLocation, radiusMeters: Double)
  /// The field is there, whatever it holds.
  case present(field: String)
  /// A text has any, or all, of these words, whatever their case and accents. In the fields
  /// named, or in any field that holds text.
  case search(words: [String], all: Bool, fields: [String])

  public enum Comparator: Sendable, Hashable {
    case equal, notEqual, lessThan, lessThanOrEqual, greaterThan, greaterThanOrEqual
  }
}

/// One key of an order.
public struct SortKey: Sendable, Hashable {
  public var field: String
  public var descending: Bool
  /// Sorts by the distance from here instead of the value.
  public var relativeTo: RecordLocation?

  public init(_ field: String, descending: Bool = false, relativeTo: RecordLocation? = nil) {
    self.field = field
    self.descending = descending
    self.relativeTo = relativeTo
  }
}

/// A record type, a condition and an order. The record name follows as the
/// last key, in the direction of the key before it, so that the order is total and can be read
/// from an index both ways.
public struct RecordQuery: Sendable, Hashable {
  public var type: String
  public var predicate: Predicate?
  public var sort: [SortKey]

  public init(type: String, predicate: Predicate? = nil, sort: [SortKey] = []) {
    self.type = type
    self.predicate = predicate
    self.sort = sort
  }
}

/// Fields that every record has; their names start with three underscores.
enum SystemField: String, CaseIterable {
  case recordName = "___recordName"
  case createTime = "___createTime"
  case updateTime = "___updateTime"
  case creator = "___creator"
  case lastModifier = "___lastModifier"
  /// Only for what a caller may see: there is none of the name for clients.
  case share = ""

  var column: String {
    switch self {
    case .recordName: "r.record_name"
    case .createTime: "r.created_us"
    case .updateTime: "r.modified_us"
    case .creator: "r.creator"
    case .lastModifier: "r.modifier"
    case .share: "r.share"
    }
  }

  var kind: IndexKind {
    switch self {
    case .recordName, .creator, .lastModifier, .share: .string
    case .createTime, .updateTime: .timestamp
    }
  }

  func scalar(of record: StoredRecord) -> IndexScalar {
    switch self {
    case .recordName: .text(record.id.record)
    case .createTime: .integer(record.createTime)
    case .updateTime: .integer(record.updateTime)
    case .creator: .text(record.creator)
    case .lastModifier: .text(record.lastModifier)
    case .share: .text(record.share)
    }
  }
}

/// Where a condition looks: at a system column or at the index of a field.
enum FieldPath: Sendable, Hashable {
  case system(SystemField)
  case user(String)
  /// The words of these fields; of all of them when it names none.
  case words([String])

  init(_ name: String) throws(RecordViolation) {
    if name.utf8.starts(with: "___".utf8) {
      guard let field = SystemField(rawValue: name) else {
        let known = SystemField.allCases.map(\.rawValue).filter { !$0.isEmpty }
          .joined(separator: ", ")
        throw RecordViolation(name, "no such system field; there are \(known)")
      }
      self = .system(field)
    } else {
      guard RecordNaming.isWord(name) else {
        throw RecordViolation(
          name, "a field name is A-Z a-z 0-9 _, starts with a letter and has at most 255")
      }
      self = .user(name)
    }
  }
}
