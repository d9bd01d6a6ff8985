import VencejoAPI
import VencejoStore

extension Record.Query {
  /// As ``stored(in:zone:caller:)``, of a request's field `query`.
  func checked(
    in database: DatabaseID, zone: ZoneID?, caller: RecordCaller
  ) throws(StoreError) -> RecordQuery {
    try checking("query") { () throws(RecordViolation) in
      try stored(in: database, zone: zone, caller: caller)
    }
  }

  /// The query in the store's words; checked there. References of a text filter name records of
  /// `zone`.
  func stored(
    in database: DatabaseID, zone: ZoneID?, caller: RecordCaller
  ) throws(RecordViolation) -> RecordQuery {
    var query = RecordQuery(type: recordType)
    switch criteria {
    case .predicate(let predicate)?:
      // One with nothing in it is a mistake of its client's; no condition has no criteria.
      query.predicate = try predicate.stored(in: database, caller: caller)
    case .filter(let filter)?:
      query.predicate = try Predicate(filter: filter, zone: zone?.zone ?? ZoneID.defaultZone)
    case nil: break
    }
    for key in sort {
      query.sort.append(
        SortKey(
          key.field, descending: key.descending,
          relativeTo: try key.relativeTo?.stored("sort.relative_to")))
    }
    return query
  }
}

extension Record.Predicate {
  /// Bounded by the depth of messages that the decoder accepts.
  func stored(
    in database: DatabaseID, caller: RecordCaller
  ) throws(RecordViolation) -> Predicate {
    switch kind {
    case .allOf(let compound)?: return .allOf(try compound.stored(in: database, caller: caller))
    case .anyOf(let compound)?: return .anyOf(try compound.stored(in: database, caller: caller))
    case .not(let inner)?: return .not(try inner.stored(in: database, caller: caller))
    case .comparison(let comparison)?:
      guard let comparator = Predicate.Comparator(comparison.comparator) else {
        throw RecordViolation("predicate.comparison.comparator", "not a known comparator")
      }
      guard let value = comparison.value else {
        throw RecordViolation("predicate.comparison.value", "a comparison needs a value")
      }
      return .comparison(
        field: comparison.field, comparator,
        try value.stored(comparison.field, in: database, caller: caller))
    case .in(let membership)?:
      return .isIn(
        field: membership.field,
        try Self.values(membership.values, membership.field, database, caller))
    case .beginsWith(let match)?: return .beginsWith(field: match.field, match.prefix)
    case .listContains(let contains)?:
      return .listContains(
        field: contains.field, try Self.values(contains.values, contains.field, database, caller),
        all: contains.all)
    case .search(let search)?:
      return .search(words: search.tokens, all: search.all, fields: search.fields)
    case .distance(let distance)?:
      guard let center = distance.center else {
        throw RecordViolation("predicate.distance.center", "a distance needs a center")
      }
      return .distance(
        field: distance.field, center: try center.stored(distance.field),
        radiusMeters: distance.radiusMeters)
    case .presence(let presence)?: return .present(field: presence.field)
    case nil: throw RecordViolation("predicate", "a predicate has no kind")
    }
  }

  private static func values(
    _ values: [Record.Value], _ field: String, _ database: DatabaseID, _ caller: RecordCaller
  ) throws(RecordViolation) -> [RecordValue] {
    var stored: [RecordValue] = []
    for value in values {
      stored.append(try value.stored(field, in: database, caller: caller))
    }
    return stored
  }
}

extension Record.Compound {
  fileprivate func stored(
    in database: DatabaseID, caller: RecordCaller
  ) throws(RecordViolation) -> [Predicate] {
    var parts: [Predicate] = []
    for part in predicates { parts.append(try part.stored(in: database, caller: caller)) }
    return parts
  }
}

extension Predicate.Comparator {
  fileprivate init?(_ comparator: Record.Comparator) {
    switch comparator {
    case .equal: self = .equal
    case .notEqual: self = .notEqual
    case .lessThan: self = .lessThan
    case .lessThanOrEqual: self = .lessThanOrEqual
    case .greaterThan: self = .greaterThan
    case .greaterThanOrEqual: self = .greaterThanOrEqual
    default: return nil
    }
  }
}
