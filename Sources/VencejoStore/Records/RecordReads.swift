import VencejoSQLite

/// One record that changed, as it is now.
public enum RecordChange: Sendable, Hashable {
  case changed(StoredRecord)
  case deleted(DeletedRecord)
}

/// A page of a zone's changes.
public struct ZoneChanges: Sendable {
  /// Oldest change first, each record once.
  public var changes: [RecordChange]
  /// Continue from here.
  public var position: Int64
  /// What was deleted, or left the caller's shares, up to here need not be told: a walk from the
  /// beginning began when it was so already. It goes on however old the records are that it has
  /// come to.
  public var since: Int64 = 0
  public var moreComing: Bool
  /// The request_id of the caller's last ModifyRecords in the zone; or empty.
  public var lastRequestID: String
}

extension ReadTransaction {
  /// A record.
  ///
  /// - Throws: `ZONE_NOT_FOUND`, `RECORD_NOT_FOUND`.
  public func record(_ id: RecordID, in database: RecordDatabase) throws(StoreError) -> StoredRecord
  {
    let zone = try recordZone(id.zone, in: database)
    guard let row = try recordRow(id.record, zone: zone.key, in: database.id), !row.isDeleted,
      database.access.mayRead(row.record)
    else { throw RecordPlan.notFound(id).error }
    return row.record
  }

  /// A page of zones, by name.
  ///
  /// - Throws: `BAD_PAGE_TOKEN`, `PAGE_TOKEN_MISMATCH`.
  public func zonePage(
    in database: RecordDatabase, pageSize: Int, pageToken: String
  ) throws(StoreError) -> (zones: [StoredZone], nextPageToken: String?) {
    var arguments = KeysetWriter()
    arguments.text("zones")
    arguments.text(database.id.name)
    var after = ""
    if !pageToken.isEmpty {
      var keyset = try tokens.keyset(ofPageToken: pageToken, arguments: arguments)
      guard let name = keyset.text(), keyset.isAtEnd else { throw TokenAuthority.badPageToken }
      after = name
    }
    var zones = try recordZones(in: database, after: after, limit: pageSize + 1)
    guard zones.count > pageSize else { return (zones, nil) }
    zones.removeLast()
    var keyset = KeysetWriter()
    keyset.text(zones.last?.id.zone ?? "")
    return (zones, tokens.pageToken(keyset: keyset, arguments: arguments))
  }

  /// Records by name, each found or not on its own. Past 2 MiB of fields the
  /// rest fail with `LIMIT_EXCEEDED`: ask for them again.
  public func lookUpRecords(
    _ ids: [RecordID], in database: RecordDatabase
  ) throws(StoreError) -> [Result<StoredRecord, StoreError>] {
    guard ids.count <= RecordRules.maxOperations else {
      throw .tooMany("names", limit: RecordRules.maxOperations)
    }
    var zones: [ZoneID: Result<StoredZone, StoreError>] = [:]
    var results: [Result<StoredRecord, StoreError>] = []
    var size = 0
    for id in ids {
      if zones[id.zone] == nil {
        zones[id.zone] = Result { () throws(StoreError) in try recordZone(id.zone, in: database) }
      }
      switch zones[id.zone] {
      case .success(let zone)?:
        guard size <= Self.pageBytes else {
          results.append(
            .failure(
              StoreError(
                .resourceExhausted, "LIMIT_EXCEEDED", "the answer is full; look it up again",
                details: [
                  .quota(subject: "answer", description: "\(Self.pageBytes) bytes of fields")
                ])))
          continue
        }
        let row = try recordRow(id.record, zone: zone.key, in: database.id)
        if let row, !row.isDeleted, database.access.mayRead(row.record) {
          size += row.blobSize
          results.append(.success(row.record))
        } else {
          results.append(.failure(RecordPlan.notFound(id).error))
        }
      case .failure(let error)?: results.append(.failure(error))
      case nil: results.append(.failure(RecordPlan.notFound(id).error))
      }
    }
    return results
  }

  /// What changed in a zone after `position`, deletions included.
  ///
  /// - Throws: `CHANGE_TOKEN_EXPIRED` when tombstones since then may be gone,
  ///   `NO_FETCH_CHANGES` in a zone without that capability.
  public func zoneChanges(
    _ zone: StoredZone, in database: RecordDatabase, after position: Int64, since: Int64? = nil,
    types: [String], pageSize: Int, caller: RecordCaller
  ) throws(StoreError) -> ZoneChanges {
    guard zone.fetchesChanges else {
      throw StoreError(
        .failedPrecondition, "NO_FETCH_CHANGES",
        "\(zone.id) keeps no changes to fetch: query it, or use a zone of your own",
        metadata: ["resource": zone.id.name])
    }
    guard types.count <= Predicate.maxValues else {
      throw .tooMany("record_types", limit: Predicate.maxValues)
    }
    let head = try head()
    let known = position == 0 ? head : since ?? position
    // A position that was never reached: the database went back without telling.
    guard position <= head, known <= head else { throw .changeTokenExpired }
    var floor = zone.tombstoneFloor
    var changes: ZoneChanges
    if case .shared(let parts) = database.access.scope {
      floor = max(floor, try accessChange(of: caller.user, zone: zone.key))
      guard position == 0 || known >= floor else { throw .changeTokenExpired }
      changes = try sharedZoneChanges(
        zone, parts, after: position, types: types, pageSize: pageSize, caller: caller)
    } else {
      guard position == 0 || known >= floor else { throw .changeTokenExpired }
      changes = try ownZoneChanges(
        zone, after: position, types: types, pageSize: pageSize, caller: caller)
    }
    changes.since = max(known, changes.position)
    return changes
  }

  private func ownZoneChanges(
    _ zone: StoredZone, after position: Int64, types: [String], pageSize: Int,
    caller: RecordCaller
  ) throws(StoreError) -> ZoneChanges {
    let head = try head()
    // One more than asked for, to know whether there are more.
    var text = SQLText(
      "SELECT \(QuerySQL.columns) FROM \(QuerySQL.tables) WHERE r.zone_key = ? AND r.change > ?",
      [zone.key, position])
    if position == 0 { text += " AND r.deleted = 0" }
    if !types.isEmpty {
      let marks = repeatElement("?", count: types.count).joined(separator: ",")
      text += SQLText(" AND w.word IN (\(marks))", types)
    }
    text += SQLText(" ORDER BY r.change LIMIT ?", [pageSize + 1])
    var size = 0
    var rows = try recordRows(text, in: zone.id.database) { row in
      size += row.blobSize
      return size > Self.pageBytes
    }
    let hasMore = rows.count > pageSize || size > Self.pageBytes
    if rows.count > pageSize { rows.removeLast() }
    let echo = try first(
      "SELECT request_id FROM record_echo WHERE zone_key = ? AND user_id = ?", zone.key, caller.key
    ) { $0.text(0) }
    return ZoneChanges(
      changes: rows.map { $0.isDeleted ? .deleted($0.tombstone) : .changed($0.record) },
      position: hasMore ? (rows.last?.change ?? head) + (Mutation.feedAhead.isOn ? 1 : 0) : head,
      moreComing: hasMore,
      lastRequestID: echo ?? "")
  }
}

extension StoreError {
  /// The answer to a batch that is too long.
  public static let tooManyOperations = tooMany("operations", limit: RecordRules.maxOperations)

  /// The answer to more firings than can be acknowledged at once.
  public static let tooManyFirings = tooMany("names", limit: RecordRules.maxPageSize)

  static func tooMany(_ field: String, limit: Int) -> StoreError {
    StoreError(
      .invalidArgument, "LIMIT_EXCEEDED", "more than \(limit) \(field); split the request in half",
      metadata: ["field": field, "limit": String(limit)],
      details: [.quota(subject: field, description: "at most \(limit) per request")])
  }

  /// The answer to a change token whose part of the history is gone.
  public static let changeTokenExpired = StoreError(
    .failedPrecondition, "CHANGE_TOKEN_EXPIRED",
    "the change token is too old; drop the cache and fetch from the beginning")
}
