import VencejoSQLite

/// A page of a query.
public struct QueryPage: Sendable {
  /// May be fewer than asked for, even none, with more to come.
  public var records: [StoredRecord]
  /// For the page after this one; nil when there is none.
  public var nextPageToken: String?
  /// Position of the snapshot the page was read from.
  public var position: Int64
  /// How the page was found, when somebody asked.
  public var explanation: QueryExplanation?
}

/// How a page of a query was found.
public struct QueryExplanation: Sendable {
  /// Entries of the index and records read.
  public var rows: Int64
  /// The page ended because it had read enough, not because it was full.
  public var isCutShort: Bool
  /// What was run, each once, and SQLite's plan of it.
  public var steps: [(statement: String, plan: String)]
}

extension RecordQuery {
  /// Checks the query and brings it into the forms that are executed.
  ///
  /// - Throws: `INVALID_REQUEST`.
  public func checked() throws(StoreError) -> CheckedQuery {
    do throws(RecordViolation) {
      guard RecordNaming.isWord(type) else {
        throw RecordViolation("record_type", "a query names a record type")
      }
      let test = try predicate?.test()
      return CheckedQuery(type: type, test: test, plan: try SortPlan(sort, for: test))
    } catch {
      throw StoreError(error)
    }
  }
}

/// A query in the forms that are executed.
public struct CheckedQuery: Sendable {
  public let type: String
  let test: IndexTest?
  let plan: SortPlan

  /// Whether a record is among the query's results.
  public func matches(_ record: StoredRecord) -> Bool {
    record.type == type && (test?.holds(for: record) ?? true)
  }

  /// The same records in the order of their names.
  var byName: CheckedQuery {
    CheckedQuery(type: type, test: test, plan: SortPlan(keys: []))
  }
}

extension ReadTransaction {
  /// A page of the records that a query selects, in one zone or in all.
  ///
  /// It reads a bounded number of rows, whatever the table holds: when they do not fill the page,
  /// it is a short one with a token.
  ///
  /// - Throws: `INVALID_REQUEST`, `ZONE_NOT_FOUND`, `BAD_PAGE_TOKEN`, `PAGE_TOKEN_MISMATCH`.
  public func queryRecords(
    _ query: RecordQuery, zone: ZoneID?, in database: RecordDatabase, pageSize: Int,
    pageToken: String, explain: Bool = false
  ) throws(StoreError) -> QueryPage {
    let meter = QueryMeter(pageSize: pageSize)
    if explain { meter.statements = [] }
    var page = try queryRecords(
      query, zone: zone, in: database, pageSize: pageSize, pageToken: pageToken, meter: meter)
    if explain {
      page.explanation = QueryExplanation(
        rows: Int64(meter.rows),
        isCutShort: page.nextPageToken != nil && page.records.count < pageSize,
        steps: try steps(meter.statements ?? []))
    }
    return page
  }

  private func steps(_ statements: [SQLText]) throws(StoreError) -> [(String, String)] {
    var seen: Set<String> = []
    var steps: [(String, String)] = []
    for text in statements where seen.count < 20 && seen.insert(text.sql).inserted {
      var plan: [String] = []
      try each(dynamic: "EXPLAIN QUERY PLAN \(text.sql)", text.values) {
        plan.append($0.text(3))
        return true
      }
      steps.append((text.sql, plan.joined(separator: "; ")))
    }
    return steps
  }

  func queryRecords(
    _ query: RecordQuery, zone: ZoneID?, in database: RecordDatabase, pageSize: Int,
    pageToken: String, meter: QueryMeter
  ) throws(StoreError) -> QueryPage {
    try checkPlace(zone, in: database)
    let checked = try database.prepared(query, zone: zone?.zone)
    var arguments = KeysetWriter()
    arguments.text(zone?.name ?? database.id.name)
    query.write(to: &arguments)
    var position: SortPosition?
    if !pageToken.isEmpty {
      let keyset = try tokens.keyset(ofPageToken: pageToken, arguments: arguments)
      guard let start = SortPosition(keyset: keyset), start.parts.count == checked.plan.keys.count
      else { throw TokenAuthority.badPageToken }
      position = start
    }
    let run = QueryRun(
      self, query: checked, zones: try zones(zone, of: database), database: database.id,
      meter: meter)
    // One more than asked for, to know whether there are more.
    var (rows, frontier, isAtEnd) = try run.page(after: position, limit: pageSize + 1)
    if rows.count > pageSize {
      rows.removeLast()
      isAtEnd = false
      frontier = rows.last.map { SortPosition(of: $0.record, in: checked.plan) }
    }
    let token =
      isAtEnd ? nil : frontier.map { tokens.pageToken(keyset: $0.keyset, arguments: arguments) }
    return QueryPage(records: rows.map(\.record), nextPageToken: token, position: try head())
  }

  /// Most records that a count looks at.
  static let countBudget = 40_000

  /// How many records a query selects, up to `limit` (0: as far as the server counts). `isExact`
  /// is false when there may be more.
  ///
  /// - Throws: `INVALID_REQUEST`, `ZONE_NOT_FOUND`.
  public func countRecords(
    _ query: RecordQuery, zone: ZoneID?, in database: RecordDatabase, limit: Int64
  ) throws(StoreError) -> (count: Int64, isExact: Bool) {
    try checkPlace(zone, in: database)
    let checked = try database.prepared(query, zone: zone?.zone)
    let zones = try zones(zone, of: database)
    let limit = limit == 0 ? .max : limit
    if checked.test == nil {
      var count: Int64 = 0
      for zone in zones {
        count +=
          try first(
            """
            SELECT sum(records) FROM record_shape WHERE zone_key = ? AND type_key =
              (SELECT word_key FROM record_word WHERE word = ?)
            """, zone.key, checked.type
          ) { $0.int(0) } ?? 0
      }
      return (min(count, limit), count <= limit)
    }
    let meter = QueryMeter(budget: Self.countBudget)
    let run = QueryRun(
      self, query: checked, zones: zones, database: database.id, meter: meter)
    var count: Int64 = 0
    var place: SortPosition?
    while true {
      let most = limit == .max ? 1_000 : Int(min(1_000, limit + 1 - count))
      let page = try run.page(after: place, limit: most)
      count += Int64(page.rows.count)
      if page.isAtEnd || count > limit || meter.isSpent {
        return (min(count, limit), page.isAtEnd && count <= limit)
      }
      place = page.frontier
    }
  }

  /// As in CloudKit's shared database, a query there is of one zone.
  private func checkPlace(_ zone: ZoneID?, in database: RecordDatabase) throws(StoreError) {
    guard zone != nil || !database.access.isShared else {
      throw StoreError(
        RecordViolation("parent", "name a zone: the rest of \(database.id) is not yours"))
    }
  }

  private func zones(
    _ zone: ZoneID?, of database: RecordDatabase
  ) throws(StoreError) -> [QueryRun.Zone] {
    guard let zone else { return try liveZones(of: database) }
    return [QueryRun.Zone(key: try recordZone(zone, in: database).key, name: zone.zone)]
  }

  func liveZones(of database: RecordDatabase) throws(StoreError) -> [QueryRun.Zone] {
    try all(
      "SELECT zone_key, zone FROM record_zone WHERE database_key = ? AND deleted = 0",
      database.key
    ) { QueryRun.Zone(key: $0.int(0), name: $0.text(1)) }
    .filter { database.access.sees($0.name) }
  }
}

/// A query over zones: each zone's part is read in order, and they are merged.
struct QueryRun {
  struct Zone: Sendable {
    var key: Int64
    var name: String
  }

  let transaction: ReadTransaction
  let query: CheckedQuery
  let zones: [Zone]
  let database: DatabaseID
  let meter: QueryMeter

  init(
    _ transaction: ReadTransaction, query: CheckedQuery, zones: [Zone], database: DatabaseID,
    meter: QueryMeter
  ) {
    self.transaction = transaction
    self.query = query
    self.zones = zones
    self.database = database
    self.meter = meter
  }

  /// One zone's part, as far as it is read.
  private struct Part {
    var walk: ZoneWalk
    var waiting: ArraySlice<FoundRecord> = []
    /// Everything up to here is in `waiting` or was taken.
    var frontier: SortPosition?
    var isAtEnd = false
    var wasAsked = false
  }

  /// A page after a place: its rows, where the next one begins, and whether there is none.
  func page(
    after: SortPosition?, limit: Int
  ) throws(StoreError) -> (rows: [RecordRow], frontier: SortPosition?, isAtEnd: Bool) {
    guard let type = try transaction.wordKey(query.type) else { return ([], nil, true) }
    var parts: [Part] = []
    for zone in zones {
      guard try has(type, in: zone) else { continue }
      parts.append(
        Part(
          walk: ZoneWalk(
            transaction, zone: zone.key, isAlone: zones.count == 1, database: database, type: type,
            query: query, meter: meter), frontier: after))
    }
    meter.zones = max(1, parts.count)
    let chunk = parts.count <= 1 ? limit : limit / parts.count + 1
    var rows: [RecordRow] = []
    var bytes = 0
    while rows.count < limit, bytes <= ReadTransaction.pageBytes {
      for index in parts.indices where parts[index].waiting.isEmpty && !parts[index].isAtEnd {
        // Every zone gets a look, so that each answer is a step forward.
        guard !meter.isSpent || !parts[index].wasAsked else { continue }
        let page = try parts[index].walk.page(
          after: parts[index].frontier, limit: min(chunk, limit - rows.count))
        parts[index].wasAsked = true
        parts[index].waiting = page.found[...]
        parts[index].isAtEnd = page.isAtEnd
        parts[index].frontier = parts[index].walk.frontier
      }
      let starving = parts.filter { $0.waiting.isEmpty && !$0.isAtEnd }.compactMap(\.frontier)
      let bound = starving.min { SortPosition.order($0, $1, in: query.plan) < 0 }
      guard let next = first(parts), let record = parts[next].waiting.first,
        bound.map({ SortPosition.order(record.position, $0, in: query.plan) <= 0 }) ?? true
      else {
        // What is read only in part ends the page there.
        if let bound { return (rows, bound, false) }
        return (rows, nil, true)
      }
      parts[next].waiting.removeFirst()
      rows.append(record.row)
      bytes += record.row.blobSize
    }
    let isAtEnd = parts.allSatisfy { $0.waiting.isEmpty && $0.isAtEnd }
    return (rows, rows.last.map { SortPosition(of: $0.record, in: query.plan) }, isAtEnd)
  }

  private func first(_ parts: [Part]) -> Int? {
    var best: Int?
    for (index, part) in parts.enumerated() {
      guard let head = part.waiting.first else { continue }
      if let known = best, let other = parts[known].waiting.first,
        SortPosition.order(other.position, head.position, in: query.plan) <= 0
      {
        continue
      }
      best = index
    }
    return best
  }

  private func has(_ type: Int64, in zone: Zone) throws(StoreError) -> Bool {
    try transaction.first(
      "SELECT 1 FROM record_shape WHERE zone_key = ? AND type_key = ? AND records > 0 LIMIT 1",
      zone.key, type
    ) { _ in true } ?? false
  }
}
