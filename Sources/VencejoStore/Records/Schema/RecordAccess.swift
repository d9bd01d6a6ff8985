/// What a caller may do in a database, as things are in one transaction.
public struct RecordAccess: Sendable {
  enum Scope: Sendable {
    /// Everything: the owner of a private database, an administrator of a public one.
    case all
    /// By the grants of the schema.
    case granted
    /// What the owner of a private database shares.
    case shared([SharedPart])
  }

  var scope: Scope
  var user: String
  var schema: RecordSchema
  /// The caller's roles.
  var roles: Set<String> = []

  /// What any of the caller's roles may do with records of a type.
  private func permissions(_ type: String) -> RecordSchema.Permissions {
    let grants = schema.types[type]?.grants ?? RecordSchema.RecordType.standardGrants
    return roles.reduce(into: []) { $0.formUnion(grants[$1] ?? []) }
  }

  private func creatorPermissions(_ type: String) -> RecordSchema.Permissions {
    let grants = schema.types[type]?.grants ?? RecordSchema.RecordType.standardGrants
    return grants[RecordSchema.Role.creator] ?? []
  }

  private func may(_ what: RecordSchema.Permissions, _ record: StoredRecord) -> Bool {
    switch scope {
    case .all: true
    case .granted:
      permissions(record.type).contains(what)
        || record.creator == user && creatorPermissions(record.type).contains(what)
    case .shared(let parts):
      parts.contains {
        $0.covers(zone: record.id.zone.zone, share: record.share)
          && (what == .read || $0.permission == .readWrite)
      }
    }
  }

  /// Whether anything of a zone may be seen.
  func sees(_ zone: String) -> Bool {
    guard case .shared(let parts) = scope else { return true }
    return parts.contains { $0.zone == zone }
  }

  /// Whether records may be saved where this share covers them.
  func mayWrite(in zone: String, share: String) -> Bool {
    guard case .shared(let parts) = scope else { return true }
    return parts.contains { $0.permission == .readWrite && $0.covers(zone: zone, share: share) }
  }

  /// Of the top of a hierarchy only its owner disposes.
  func mayDelete(_ record: StoredRecord) -> Bool {
    guard mayWrite(record) else { return false }
    guard case .shared(let parts) = scope else { return true }
    return !parts.contains {
      $0.share == record.share
        && $0.root.utf8.elementsEqual(record.id.record.utf8)
    }
  }

  /// The whole database is the caller's, or they administer it.
  var isAll: Bool { if case .all = scope { true } else { false } }
  var isShared: Bool { if case .shared = scope { true } else { false } }

  func mayRead(_ record: StoredRecord) -> Bool { may(.read, record) }
  func mayWrite(_ record: StoredRecord) -> Bool { may(.write, record) }

  func mayCreate(_ type: String) -> Bool {
    switch scope {
    case .all: true
    case .granted: permissions(type).contains(.create)
    // Where it is to be decides.
    case .shared: true
    }
  }

  /// What a query of a type has to ask beside its own condition; nil: nothing.
  ///
  /// - Throws: `PERMISSION_FAILURE` when the caller reads nothing of the type.
  func restriction(of type: String, zone: String?) throws(StoreError) -> IndexTest? {
    switch scope {
    case .all: return nil
    case .shared(let parts):
      let here = parts.filter { zone == nil || $0.zone == zone }
      // A zone shared as a whole; of several zones the rest is left to who reads the rows.
      guard !here.contains(where: { $0.root.isEmpty }) else { return nil }
      return .entry(
        .system(.share), .oneOf(.string, Set(here.map(\.share)).sorted().map { .text($0) }))
    case .granted:
      if permissions(type).contains(.read) { return nil }
      guard creatorPermissions(type).contains(.read) else {
        throw StoreError(
          .permissionDenied, "PERMISSION_FAILURE", "you may not read records of type \(type)",
          metadata: ["record_type": type, "required_permission": "READ"])
      }
      return .entry(.system(.creator), .compare(.string, .equal, .text(user)))
    }
  }

  static func all(_ user: String, _ schema: RecordSchema) -> RecordAccess {
    RecordAccess(scope: .all, user: user, schema: schema)
  }

  /// In a public database.
  init(_ user: String, isAdministrator: Bool, in schema: RecordSchema) {
    self.init(scope: isAdministrator ? .all : .granted, user: user, schema: schema)
    roles = [RecordSchema.Role.world, RecordSchema.Role.authenticated]
    for (role, users) in schema.roles where users.contains(user) { roles.insert(role) }
  }

  init(scope: Scope, user: String, schema: RecordSchema) {
    self.scope = scope
    self.user = user
    self.schema = schema
  }
}

extension RecordDatabase {
  /// Checks a query against the schema, and brings it into the form that this caller's rights
  /// allow.
  ///
  /// - Throws: `FIELD_NOT_QUERYABLE`, `FIELD_NOT_SORTABLE`, `FIELD_NOT_SEARCHABLE`,
  ///   `UNKNOWN_RECORD_TYPE`, `PERMISSION_FAILURE`.
  func prepared(
    _ query: RecordQuery, zone: String? = nil
  ) throws(StoreError) -> CheckedQuery {
    var prepared = query
    let type = access.schema.types[query.type]
    if type == nil, environment == .production, RecordNaming.isWord(query.type) {
      throw .unknownType(query.type)
    }
    if let type, let predicate = query.predicate {
      prepared.predicate = try predicate.prepared(for: type, query.type)
    }
    for key in query.sort {
      if let field = type?.fields[key.field], !field.isSortable {
        throw .notIndexed(key.field, query.type, "SORTABLE")
      }
    }
    let checked = try prepared.checked()
    guard let restriction = try access.restriction(of: query.type, zone: zone) else {
      return checked
    }
    return CheckedQuery(
      type: checked.type, test: .all([restriction] + (checked.test.map { [$0] } ?? [])),
      plan: checked.plan)
  }
}

extension Predicate {
  fileprivate func prepared(
    for type: RecordSchema.RecordType, _ name: String
  ) throws(StoreError) -> Predicate {
    func all(_ parts: [Predicate]) throws(StoreError) -> [Predicate] {
      var prepared: [Predicate] = []
      for part in parts { prepared.append(try part.prepared(for: type, name)) }
      return prepared
    }
    switch self {
    case .allOf(let parts): return .allOf(try all(parts))
    case .anyOf(let parts): return .anyOf(try all(parts))
    case .not(let part): return .not(try part.prepared(for: type, name))
    case .comparison(let field, _, _), .isIn(let field, _), .beginsWith(let field, _),
      .listContains(let field, _, _), .distance(let field, _, _), .present(let field):
      if let known = type.fields[field], !known.isQueryable {
        throw .notIndexed(field, name, "QUERYABLE")
      }
      return self
    case .search(let words, let every, let fields):
      for field in fields {
        if let known = type.fields[field], !known.isSearchable {
          throw .notIndexed(field, name, "SEARCHABLE")
        }
      }
      // Without fields it means the searchable ones: named when there are others.
      let others = type.fields.contains { $0.value.kind == .string && !$0.value.isSearchable }
      guard fields.isEmpty, others else { return self }
      let searchable = type.fields.filter { $0.value.isSearchable }.keys.sorted()
      guard !searchable.isEmpty else { throw .notIndexed("", name, "SEARCHABLE") }
      return .search(words: words, all: every, fields: searchable)
    }
  }
}

extension StoreError {
  static func notIndexed(_ field: String, _ type: String, _ what: String) -> StoreError {
    StoreError(
      .failedPrecondition, "FIELD_NOT_\(what)",
      field.isEmpty
        ? "no field of \(type) is marked \(what.lowercased())"
        : "the field \(field) of \(type) is not marked \(what.lowercased()) in the schema",
      metadata: ["record_type": type, "field": field],
      details: [.field(field, description: "not \(what.lowercased())")])
  }
}

extension SharedPart {
  /// Whether a record of a zone, in such a share, is part of it.
  func covers(zone: String, share: String) -> Bool {
    self.zone == zone && (root.isEmpty || self.share == share)
  }
}
