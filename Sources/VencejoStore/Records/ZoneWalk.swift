import VencejoSQLite

/// A record found, and where it stands.
struct FoundRecord {
  var row: RecordRow
  var position: SortPosition
}

/// Reads one zone's part of a query's answer, in order, from any place in it.
///
/// Ranges of the index hand over candidates in the query's order; each is read and asked whether
/// it matches. Where a range has the order but not all of the condition, candidates may be many:
/// the meter then ends the answer early, with the place where it goes on.
final class ZoneWalk {
  let transaction: ReadTransaction
  let zone: Int64
  let database: DatabaseID
  let type: Int64
  let query: CheckedQuery
  let meter: QueryMeter
  let conjuncts: [IndexTest]
  private var fieldKeys: [String: Int64] = [:]
  private var isIndexed = false
  private lazy var shapes: Result<[(key: Int64, shape: RecordShape, records: Int64)], StoreError> =
    readShapes()

  // Of the page under way.
  private var after: SortPosition?
  private var limit = 0
  private var bytes = 0
  private var found: [FoundRecord] = []
  /// The last candidate looked at: everything up to there is known.
  private(set) var frontier: SortPosition?

  var keys: [SortPlan.Key] { query.plan.keys }
  var namesDescend: Bool { query.plan.namesDescend }

  init(
    _ transaction: ReadTransaction, zone: Int64, database: DatabaseID, type: Int64,
    query: CheckedQuery, meter: QueryMeter
  ) {
    self.transaction = transaction
    self.zone = zone
    self.database = database
    self.type = type
    self.query = query
    self.meter = meter
    conjuncts = query.test?.conjuncts ?? []
  }

  /// Up to `limit` records after a place. `isAtEnd`: there are no more.
  func page(
    after: SortPosition?, limit: Int
  ) throws(StoreError) -> (found: [FoundRecord], isAtEnd: Bool) {
    self.after = after
    self.limit = limit
    bytes = 0
    found = []
    frontier = after
    let isAtEnd = try walk()
    return (found, isAtEnd)
  }

  // MARK: The way

  private func walk() throws(StoreError) -> Bool {
    let best = try cheapest()
    if let best, case .names(let source, _) = best, keys.isEmpty {
      return try walkNames(source, prefix: [], isNil: false)
    }
    if let best { return try gather(best) }
    if keys.isEmpty { return try walkNames(.type, prefix: [], isNil: false) }
    return try walkKeys(0, prefix: [], followsCursor: true)
  }

  private enum Candidates {
    /// `known`: how many there are, when that is counted already.
    case names(QuerySQL.Names, known: Int64? = nil)
    case ranges([IndexSegment], FieldPath)
  }

  /// The part of the condition that fewest records satisfy, if that is few enough to sort them
  /// or if names are the order anyway. Nil: the order's own range is the way.
  private func cheapest() throws(StoreError) -> Candidates? {
    var options: [Candidates] = []
    var paths: [FieldPath] = []
    for conjunct in conjuncts {
      if let names = try names(of: conjunct) {
        options.append(.names(names.source, known: names.known))
      } else if let key = conjunct.naturalKey, key.center == nil, !paths.contains(key.path) {
        paths.append(key.path)
        options.append(
          .ranges(IndexSegment.segments(of: key.path, in: conjuncts).segments, key.path))
      }
    }
    if keys.isEmpty {
      let byName = options.filter { if case .names = $0 { true } else { false } }
      if byName.count == 1, conjuncts.count == 1 { return byName[0] }
    } else if let first = keys.first, first.center == nil,
      options.allSatisfy({
        if case .ranges(_, first.path) = $0 { true } else { false }
      }), keys.count == 1
    {
      return nil
    }
    // Of a range that begins with nothing there may be more than its segments hold.
    options = options.prefix(4).filter {
      if case .ranges(_, let path) = $0 { requiresValue(path) } else { true }
    }
    // In rounds, so that finding the smallest costs a few times the smallest.
    var round = 25
    while round <= meter.budget / 4 {
      for option in options where try count(option, upTo: round + 1) <= round { return option }
      round *= 4
    }
    // Too many to sort; by name, any option that comes by name will do.
    guard keys.isEmpty else { return nil }
    return options.first { if case .names = $0 { true } else { false } }
  }

  /// Whether the condition cannot hold without a sortable value of the field.
  private func requiresValue(_ path: FieldPath) -> Bool {
    if case .system = path { return true }
    return conjuncts.contains {
      switch $0 {
      case .entry(path, .compare), .entry(path, .range), .entry(path, .oneOf): true
      default: false
      }
    }
  }

  private func names(
    of test: IndexTest
  ) throws(StoreError) -> (source: QuerySQL.Names, known: Int64?)? {
    if test.isOfShape {
      let some = try shapes.get().filter { test.admits($0.shape, key: self.key) }
      guard some.count <= 200 else { return nil }
      return (.shapes(some.map(\.key)), some.reduce(0) { $0 + $1.records })
    }
    guard let parts = test.equalities, parts.count <= Predicate.maxValues else { return nil }
    var entries: [(field: Int64, kind: IndexKind, value: IndexScalar)] = []
    for part in parts {
      switch part.path {
      case .words: entries.append((0, part.kind, part.value))
      case .user(let name): entries.append((key(name), part.kind, part.value))
      case .system(let field):
        // Several values of one field, each once.
        let values = parts.map(\.value)
        guard parts.allSatisfy({ $0.path == part.path && $0.kind == field.kind }),
          values.count == 1 || Set(values).count == values.count
        else { return nil }
        return (.system(field, values), nil)
      }
    }
    return (.entries(entries), nil)
  }

  private func count(_ option: Candidates, upTo limit: Int) throws(StoreError) -> Int {
    switch option {
    case .names(_, let known?): return Int(clamping: known)
    case .names(let source, nil): return try entries(of: source, after: nil, limit: limit).count
    case .ranges(let segments, let path):
      var count = 0
      for segment in segments where count < limit {
        count += try entries(of: segment, path, cursor: nil, limit: limit - count).count
      }
      return count
    }
  }

  /// Reads all candidates and sorts them.
  private func gather(_ option: Candidates) throws(StoreError) -> Bool {
    var keys: [Int64] = []
    switch option {
    case .names(let source, _):
      keys = try entries(of: source, after: nil, limit: meter.budget).map(\.key)
    case .ranges(let segments, let path):
      for segment in segments {
        keys += try entries(of: segment, path, cursor: nil, limit: meter.budget).map(\.key)
      }
    }
    var all: [FoundRecord] = []
    for key in keys { if let record = try read(key) { all.append(record) } }
    return take(sorted: all)
  }

  /// Sorts candidates and takes them.
  func take(sorted records: [FoundRecord], prefix: [SortPosition.Part?] = []) -> Bool {
    let plan = query.plan
    for record in records.sorted(by: {
      SortPosition.order($0.position, $1.position, in: plan) < 0
    }) where !take(record, prefix: prefix) { return false }
    return true
  }

  // MARK: Records

  func read(_ key: Int64) throws(StoreError) -> FoundRecord? {
    meter.read()
    let row = try transaction.recordRow(key: key, in: database)
    guard let row, !row.isDeleted else { return nil }
    return FoundRecord(row: row, position: SortPosition(of: row.record, in: query.plan))
  }

  /// Takes a candidate; false when the page is full or enough was read. From the range of a key
  /// come also records that differ in the keys before it, `prefix`: they are passed over.
  func take(_ candidate: FoundRecord, prefix: [SortPosition.Part?] = []) -> Bool {
    var place = candidate.position
    var agrees = true
    for (index, part) in prefix.enumerated() where index < place.parts.count {
      agrees = agrees && SortPosition.areEqual(place.parts[index], part)
      place.parts[index] = part
    }
    if let after, SortPosition.order(place, after, in: query.plan) <= 0 { return true }
    frontier = place
    meter.visit()
    if agrees, query.matches(candidate.row.record) {
      found.append(candidate)
      bytes += candidate.row.blobSize
    }
    return found.count < limit && bytes <= ReadTransaction.pageBytes && !meter.isSpent
  }

  var chunk: Int { min(max(limit - found.count, 4), 512) }
  var cursor: SortPosition? { after }
  /// Records of one value of a key that are sorted at once.
  var groupLimit: Int { max(limit - 1, 64) }

  // MARK: Entries

  /// Throws while the index lacks records of the zone.
  func checkIndexed() throws(StoreError) {
    guard !isIndexed else { return }
    guard try !transaction.isIndexPending(ofZone: zone) else { throw .indexPending }
    isIndexed = true
  }

  typealias Entry = (value: IndexScalar?, name: String, key: Int64)

  func entries(
    of source: QuerySQL.Names, after name: String?, limit: Int
  ) throws(StoreError) -> [Entry] {
    if case .shapes(let keys) = source, keys.isEmpty { return [] }
    if case .entries = source { try checkIndexed() }
    let text = QuerySQL.names(
      source, zone: zone, type: type, after: name, descending: namesDescend, limit: limit)
    meter.note(text)
    var found: [Entry] = []
    try transaction.each(dynamic: text.sql, text.values) { row in
      found.append((nil, row.text(0), row.int(1)))
      return true
    }
    meter.read(found.count)
    return found
  }

  func entries(
    of segment: IndexSegment, _ path: FieldPath, cursor: QuerySQL.Cursor?, descending: Bool = false,
    limit: Int
  ) throws(StoreError) -> [Entry] {
    var field: Int64 = 0
    if case .user(let name) = path {
      field = key(name)
      try checkIndexed()
    }
    let text = QuerySQL.range(
      segment, of: path, field: field, zone: zone, type: type, cursor: cursor,
      descending: descending, limit: limit)
    meter.note(text)
    var found: [Entry] = []
    try transaction.each(dynamic: text.sql, text.values) { row in
      found.append((IndexScalar(row.value(0)), row.text(1), row.int(2)))
      return true
    }
    meter.read(found.count)
    return found
  }

  /// The key of a field's name; of none that was ever saved, one that nothing has.
  func key(_ name: String) -> Int64 {
    if let known = fieldKeys[name] { return known }
    let key = (try? transaction.wordKey(name)).flatMap { $0 } ?? -1
    fieldKeys[name] = key
    return key
  }

  private func readShapes() -> Result<
    [(key: Int64, shape: RecordShape, records: Int64)], StoreError
  > {
    Result { () throws(StoreError) in
      try transaction.all(
        """
        SELECT shape_key, shape, records FROM record_shape
        WHERE zone_key = ? AND type_key = ? AND records > 0
        """, zone, type
      ) { ($0.int(0), RecordShape(text: $0.text(1)), $0.int(2)) }
    }
  }

  /// The shapes of the records that a key has nothing to sort by.
  func shapes(
    without key: SortPlan.Key
  ) throws(StoreError) -> [(key: Int64, shape: RecordShape, records: Int64)] {
    guard case .user(let name) = key.path else { return [] }
    let form: RecordShape.Form = key.center == nil ? .value : .place
    return try shapes.get().filter { entry in
      entry.shape.forms[self.key(name)] != form
        && conjuncts.allSatisfy { $0.admits(entry.shape, key: self.key) }
    }
  }
}
