import Synchronization
import VencejoCrypto

/// How a container treats record types and fields it does not know.
public enum RecordEnvironment: Int64, Sendable, Hashable {
  /// They appear as they are used.
  case development = 1
  /// They are refused.
  case production = 2
}

/// The record types of a container, and who may do what with them in its public database.
public struct RecordSchema: Sendable, Hashable {
  public var types: [String: RecordType]
  /// Roles beside the built-in ones, each with its users' identifiers.
  public var roles: [String: Set<String>]

  public init(types: [String: RecordType] = [:], roles: [String: Set<String>] = [:]) {
    self.types = types
    self.roles = roles
  }

  /// Roles that every container has.
  public enum Role {
    /// Everybody.
    public static let world = "_world"
    /// Everybody who signed in (CloudKit's `_icloud`).
    public static let authenticated = "_authenticated"
    /// Who made the record.
    public static let creator = "_creator"
    static let builtIn: Set<String> = [world, authenticated, creator]
  }

  public struct RecordType: Sendable, Hashable {
    public var fields: [String: Field]
    /// Nil: ``standardGrants``.
    public var grants: [String: Permissions]?

    public init(fields: [String: Field] = [:], grants: [String: Permissions]? = nil) {
      self.fields = fields
      self.grants = grants
    }

    /// What a type without grants of its own allows, as in CloudKit.
    public static let standardGrants: [String: Permissions] = [
      Role.world: .read, Role.authenticated: .create, Role.creator: [.read, .write],
    ]
  }

  public struct Permissions: OptionSet, Sendable, Hashable {
    public let rawValue: Int64
    public init(rawValue: Int64) { self.rawValue = rawValue }
    public static let create = Permissions(rawValue: 1)
    public static let read = Permissions(rawValue: 2)
    public static let write = Permissions(rawValue: 4)
  }

  public enum FieldKind: Int64, Sendable, Hashable, CaseIterable {
    case string = 1
    case int64 = 2
    case double = 3
    case bytes = 4
    case timestamp = 5
    case location = 6
    case reference = 7
    case asset = 8

    /// The kind of a scalar; nil of a list.
    init?(_ value: RecordValue) {
      switch value {
      case .string: self = .string
      case .int64: self = .int64
      case .double: self = .double
      case .bytes: self = .bytes
      case .timestamp: self = .timestamp
      case .location: self = .location
      case .reference: self = .reference
      case .asset: self = .asset
      case .list: return nil
      }
    }
  }

  public struct Field: Sendable, Hashable {
    public var kind: FieldKind
    public var isList: Bool
    public var isQueryable: Bool
    public var isSortable: Bool
    public var isSearchable: Bool
    /// It appeared with a save.
    public var isInferred: Bool

    public init(
      _ kind: FieldKind, isList: Bool = false, queryable: Bool = false, sortable: Bool = false,
      searchable: Bool = false, inferred: Bool = false
    ) {
      self.kind = kind
      self.isList = isList
      isQueryable = queryable
      isSortable = sortable
      isSearchable = searchable
      isInferred = inferred
    }

    /// As a first value makes it, everything possible on; nil of an empty list, which has no type.
    init?(inferredFrom value: RecordValue) {
      if case .list(let elements) = value {
        guard let kind = elements.first.flatMap({ FieldKind($0) }) else { return nil }
        self.init(
          kind, isList: true, queryable: kind != .location && kind != .asset,
          searchable: kind == .string, inferred: true)
      } else {
        guard let kind = FieldKind(value) else { return nil }
        self.init(
          kind, queryable: kind != .asset, sortable: kind != .asset, searchable: kind == .string,
          inferred: true)
      }
    }

    /// Whether the field can hold the value.
    func holds(_ value: RecordValue) -> Bool {
      if case .list(let elements) = value {
        return isList && elements.allSatisfy { FieldKind($0) == kind }
      }
      return !isList && FieldKind(value) == kind
    }
  }

  /// Record types of a container.
  static let maxTypes = 1_000
  /// Fields of all its types.
  static let maxFields = 10_000
  static let maxRoles = 100
  static let maxRoleUsers = 10_000
}

// MARK: Bytes

extension RecordSchema {
  var bytes: [UInt8] {
    var writer = KeysetWriter()
    writer.int(Int64(types.count))
    for (name, type) in types.sorted(by: { $0.key < $1.key }) {
      writer.text(name)
      writer.int(Int64(type.fields.count))
      for (name, field) in type.fields.sorted(by: { $0.key < $1.key }) {
        writer.text(name)
        writer.int(field.kind.rawValue)
        let flags = [
          field.isList, field.isQueryable, field.isSortable, field.isSearchable, field.isInferred,
        ]
        writer.int(flags.reversed().reduce(0) { $0 << 1 | ($1 ? 1 : 0) })
      }
      writer.int(type.grants == nil ? 0 : 1)
      guard let grants = type.grants else { continue }
      writer.int(Int64(grants.count))
      for (role, permissions) in grants.sorted(by: { $0.key < $1.key }) {
        writer.text(role)
        writer.int(permissions.rawValue)
      }
    }
    writer.int(Int64(roles.count))
    for (role, users) in roles.sorted(by: { $0.key < $1.key }) {
      writer.text(role)
      writer.int(Int64(users.count))
      for user in users.sorted() { writer.text(user) }
    }
    return writer.bytes
  }

  /// Nil when the bytes are damaged.
  init?(bytes: [UInt8]) {
    var reader = KeysetReader(bytes)
    func count() -> Int64? { reader.int().flatMap { $0 >= 0 ? $0 : nil } }
    self.init()
    guard let typeCount = count() else { return nil }
    for _ in 0..<typeCount {
      guard let name = reader.text(), let fieldCount = count() else { return nil }
      var type = RecordType()
      for _ in 0..<fieldCount {
        guard let field = reader.text(), let kind = reader.int().flatMap(FieldKind.init),
          let flags = reader.int()
        else { return nil }
        type.fields[field] = Field(
          kind, isList: flags & 1 != 0, queryable: flags & 2 != 0, sortable: flags & 4 != 0,
          searchable: flags & 8 != 0, inferred: flags & 16 != 0)
      }
      guard let hasGrants = reader.int() else { return nil }
      if hasGrants == 1 {
        guard let grantCount = count() else { return nil }
        var grants: [String: Permissions] = [:]
        for _ in 0..<grantCount {
          guard let role = reader.text(), let bits = reader.int() else { return nil }
          grants[role] = Permissions(rawValue: bits)
        }
        type.grants = grants
      }
      types[name] = type
    }
    guard let roleCount = count() else { return nil }
    for _ in 0..<roleCount {
      guard let role = reader.text(), let userCount = count() else { return nil }
      var users: Set<String> = []
      for _ in 0..<userCount {
        guard let user = reader.text() else { return nil }
        users.insert(user)
      }
      roles[role] = users
    }
  }

  static func digest(_ bytes: [UInt8]) -> Int64 {
    SHA256.digest(bytes).prefix(8).reduce(Int64(0)) { $0 << 8 | Int64($1) }
  }

  /// Schemas by the digest of their bytes: whatever store they are of, one digest is one schema.
  private static let known = Mutex<[Int64: RecordSchema]>([:])

  static func known(_ digest: Int64) -> RecordSchema? { known.withLock { $0[digest] } }

  static func remember(_ schema: RecordSchema, _ digest: Int64) {
    known.withLock { known in
      if known.count >= 256 { known.removeAll() }
      known[digest] = schema
    }
  }
}

// MARK: Rules

extension RecordSchema {
  /// Adds what a save brings, or refuses it.
  ///
  /// - Throws: `UNKNOWN_RECORD_TYPE`, `UNKNOWN_FIELD`, `TYPE_MISMATCH`, `LIMIT_EXCEEDED`.
  mutating func admit(
    type: String, fields: [String: RecordValue], old: [String: RecordValue],
    in environment: RecordEnvironment
  ) throws(StoreError) {
    if types[type] == nil {
      guard environment == .development else { throw .unknownType(type) }
      guard types.count < Self.maxTypes else {
        throw .tooMany("record types", limit: Self.maxTypes)
      }
      types[type] = RecordType()
    }
    for (name, value) in fields where old[name] != value {
      if let field = types[type]?.fields[name] {
        guard field.holds(value) else { throw .typeMismatch(name, field, in: type) }
      } else {
        guard environment == .development else { throw .unknownField(name, in: type) }
        guard let field = Field(inferredFrom: value) else { continue }
        guard types.values.reduce(0, { $0 + $1.fields.count }) < Self.maxFields else {
          throw .tooMany("fields of a container", limit: Self.maxFields)
        }
        types[type]?.fields[name] = field
      }
    }
  }

  /// Whether a save brings nothing new.
  func knows(_ type: String, _ fields: [String: RecordValue]) -> Bool {
    guard let known = types[type] else { return false }
    return fields.keys.allSatisfy { known.fields[$0] != nil }
  }

  /// Checks names, kinds and bounds of a schema that an operator gives.
  public func check() throws(RecordViolation) {
    guard types.count <= Self.maxTypes, roles.count <= Self.maxRoles,
      types.values.reduce(0, { $0 + $1.fields.count }) <= Self.maxFields
    else {
      throw RecordViolation(
        "schema",
        "at most \(Self.maxTypes) types, \(Self.maxFields) fields and \(Self.maxRoles) roles")
    }
    for (role, users) in roles {
      guard RecordNaming.isWord(role), users.count <= Self.maxRoleUsers else {
        throw RecordViolation(
          "security_roles", "a role is a word and has at most \(Self.maxRoleUsers) users")
      }
    }
    for (name, type) in types {
      guard RecordNaming.isWord(name) else {
        throw RecordViolation("record_types", "\(name) is no name of a type")
      }
      for (fieldName, field) in type.fields {
        guard RecordNaming.isWord(fieldName) else {
          throw RecordViolation(name, "\(fieldName) is no name of a field")
        }
        if field.isSearchable, field.kind != .string {
          throw RecordViolation("\(name).\(fieldName)", "only strings are searchable")
        }
        if field.isSortable, field.isList || field.kind == .asset {
          throw RecordViolation("\(name).\(fieldName)", "lists and assets have no order")
        }
        if field.isQueryable, field.kind == .asset {
          throw RecordViolation("\(name).\(fieldName)", "assets are not queried")
        }
      }
      for role in (type.grants ?? [:]).keys
      where !Role.builtIn.contains(role) && roles[role] == nil {
        throw RecordViolation(name, "there is no role \(role)")
      }
    }
  }
}

extension StoreError {
  static func unknownType(_ type: String) -> StoreError {
    StoreError(
      .failedPrecondition, "UNKNOWN_RECORD_TYPE",
      "the production schema has no record type \(type): add it in development and deploy",
      metadata: ["record_type": type],
      details: [.field("record_type", description: "not in the production schema")])
  }

  static func unknownField(_ field: String, in type: String) -> StoreError {
    StoreError(
      .failedPrecondition, "UNKNOWN_FIELD",
      "the production schema has no field \(field) in \(type): add it in development and deploy",
      metadata: ["record_type": type, "field": field],
      details: [.field(field, description: "not in the production schema")])
  }

  static func typeMismatch(
    _ name: String, _ field: RecordSchema.Field, in type: String
  ) -> StoreError {
    let kind = field.isList ? "a list of \(field.kind)" : "\(field.kind)"
    return StoreError(
      .failedPrecondition, "TYPE_MISMATCH", "the field \(name) of \(type) is \(kind)",
      metadata: ["record_type": type, "field": name, "type": kind],
      details: [.field(name, description: "must be \(kind)")])
  }
}
