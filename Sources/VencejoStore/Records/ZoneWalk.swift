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
  /// No other zone's records come between.
  let isAlone: Bool
  let database: DatabaseID
  let type: Int64
  let query: CheckedQuery
  let meter: QueryMeter
  let conjuncts: [IndexTest]
  private var fieldKeys: [String: Int64] = [:]
  private var isIndexed = false
  private lazy var shapes: Result<[(key: Int64, shape: RecordShape, records: Int64)]?, StoreError> =
    readShapes()
  private var way: Way?

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
    _ transaction: ReadTransaction, zone: Int64, isAlone: Bool, database: DatabaseID, type: Int64,
    query: CheckedQuery, meter: QueryMeter
  ) {
    self.transaction = transaction
    self.zone = zone
    self.isAlone = isAlone
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

  private enum Candidates {
    /// `known`: how many there are, when that is counted already.
    case names(QuerySQL.Names, known: Int64? = nil)
    case ranges([IndexSegment], FieldPath)
  }

  private enum Way {
    /// These are all there are: read and sort them.
    case gather([Int64])
    /// By name, as the query's order is; `entries`: those after the cursor that are known already.
    case names(QuerySQL.Names, entries: [Entry]?)
    /// The order's own range, where each candidate is tried.
    case order
  }

  private func walk() throws(StoreError) -> Bool {
    let way: Way
    if let known = self.way { way = known } else { way = try choose() }
    switch way {
    case .gather(let keys):
      self.way = way
      var all: [FoundRecord] = []
      for key in keys { if let record = try read(key) { all.append(record) } }
      return take(sorted: all)
    case .names(let source, let known):
      // What is known is of this page; the next one begins elsewhere.
      self.way = .names(source, entries: nil)
      return try walkNames(source, prefix: [], isNil: false, known: known)
    case .order:
      self.way = way
      return try walkKeys(0, prefix: [], followsCursor: true)
    }
  }

  /// The part of the condition that so few records satisfy that they can be sorted, or, when names
  /// are the order, the one that gets furthest; else the order's own range.
  private func choose() throws(StoreError) -> Way {
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
      guard !options.isEmpty else { return .names(.type, entries: nil) }
      if options.count == 1, conjuncts.count == 1, case .names(let source, _) = options[0] {
        return .names(source, entries: nil)
      }
    } else if let first = keys.first, first.center == nil, keys.count == 1,
      options.allSatisfy({ if case .ranges(_, first.path) = $0 { true } else { false } })
    {
      return .order
    }
    // Of a range that begins with nothing there may be more than its segments hold.
    options = options.prefix(4).filter {
      if case .ranges(_, let path) = $0 { requiresValue(path) } else { true }
    }
    let share = min(meter.share(of: options.count), limit)
    guard share > 0 else {
      guard keys.isEmpty else { return .order }
      let names = options.lazy.compactMap {
        if case .names(let source, _) = $0 { source } else { nil }
      }
      return .names(names.first ?? .type, entries: nil)
    }
    var best: (source: QuerySQL.Names, entries: [Entry])?
    for option in options {
      switch option {
      case .ranges(let segments, let path):
        var found: [Int64] = []
        for segment in segments where found.count <= share {
          found += try entries(of: segment, path, cursor: nil, limit: share + 1 - found.count)
            .map(\.key)
        }
        if found.count <= share { return .gather(found) }
      case .names(let source, let known) where !keys.isEmpty:
        if let known, known > share { continue }
        let found = try entries(of: source, after: nil, limit: share + 1)
        if found.count <= share { return .gather(found.map(\.key)) }
      case .names(let source, _):
        let found = try entries(of: source, after: cursor?.recordName, limit: share)
        // Nothing beyond these: no other part can be smaller from here on.
        if found.count < share { return .names(source, entries: found) }
        if let best, let reached = best.entries.last?.name, let name = found.last?.name,
          namesDescend != (IndexScalar.order(.text(name), .text(reached)) <= 0)
        {
          continue
        }
        best = (source, found)
      }
    }
    if !keys.isEmpty { return .order }
    return .names(best?.source ?? .type, entries: best?.entries)
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
      guard let all = try shapes.get() else { return nil }
      let some = all.filter { test.admits($0.shape, key: self.key) }
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

  /// Sorts candidates and takes them.
  func take(sorted records: [FoundRecord], prefix: [SortPosition.Part?] = []) -> Bool {
    let plan = query.plan
    // Who differs in the keys before stands among the others as if it did not: the page may end
    // with it.
    let places = records.map { (record: $0, place: place(of: $0, prefix).place) }
    for (record, _) in places.sorted(by: { SortPosition.order($0.place, $1.place, in: plan) < 0 })
    where !take(record, prefix: prefix) { return false }
    return true
  }

  // MARK: Records

  func read(_ key: Int64) throws(StoreError) -> FoundRecord? {
    meter.read()
    let row = try transaction.recordRow(key: key, in: database)
    guard let row, !row.isDeleted else { return nil }
    return FoundRecord(row: row, position: SortPosition(of: row.record, in: query.plan))
  }

  private func place(
    of candidate: FoundRecord, _ prefix: [SortPosition.Part?]
  ) -> (place: SortPosition, agrees: Bool) {
    var place = candidate.position
    var agrees = true
    for (index, part) in prefix.enumerated() where index < place.parts.count {
      agrees = agrees && SortPosition.areEqual(place.parts[index], part)
      place.parts[index] = part
    }
    return (place, agrees)
  }

  /// Takes a candidate; false when the page is full or enough was read. From the range of a key
  /// come also records that differ in the keys before it, `prefix`: they are passed over.
  func take(_ candidate: FoundRecord, prefix: [SortPosition.Part?] = []) -> Bool {
    let (place, agrees) = place(of: candidate, prefix)
    if let after, SortPosition.order(place, after, in: query.plan) <= 0 { return true }
    frontier = place
    if agrees, query.matches(candidate.row.record) {
      found.append(candidate)
      bytes += candidate.row.blobSize
    }
    return found.count < limit && bytes <= ReadTransaction.pageBytes && !meter.isSpent
  }

  /// Entries to read at once.
  var chunk: Int { max(1, min(limit - found.count, 512, meter.affordable)) }
  var cursor: SortPosition? { after }
  /// Something was looked at already, so that the page may end.
  var hasMoved: Bool { frontier != after }

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
    [(key: Int64, shape: RecordShape, records: Int64)]?, StoreError
  > {
    Result { () throws(StoreError) in
      let some = try transaction.all(
        """
        SELECT shape_key, shape, records FROM record_shape
        WHERE zone_key = ? AND type_key = ? AND records > 0 LIMIT ?
        """, zone, type, Self.maxShapes + 1
      ) { ($0.int(0), RecordShape(text: $0.text(1)), $0.int(2)) }
      return some.count > Self.maxShapes ? nil : some
    }
  }

  /// Shapes of one type that are looked at; records of a type that has more are tried one by one.
  private static let maxShapes = 200

  /// The shapes of the records that a key has nothing to sort by; nil when there are too many.
  func shapes(
    without key: SortPlan.Key
  ) throws(StoreError) -> [(key: Int64, shape: RecordShape, records: Int64)]? {
    guard case .user(let name) = key.path else { return [] }
    let form: RecordShape.Form = key.center == nil ? .value : .place
    return try shapes.get()?.filter { entry in
      entry.shape.forms[self.key(name)] != form
        && conjuncts.allSatisfy { $0.admits(entry.shape, key: self.key) }
    }
  }
}
