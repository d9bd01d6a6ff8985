import VencejoSQLite

extension Store {
  /// Runs `body` on a snapshot, with the database that `id` names. A database
  /// comes into being when it is first asked for; its container only when an
  /// administrator asks.
  ///
  /// - Throws: `NOT_YOUR_DATABASE`, `CONTAINER_NOT_FOUND`, and what `body` throws.
  public func readRecords<R: Sendable>(
    _ id: DatabaseID, caller: RecordCaller,
    _ body: @Sendable @escaping (ReadTransaction, RecordDatabase) throws -> R
  ) async throws(StoreError) -> R {
    let found = try await read { transaction -> R? in
      guard let database = try transaction.recordDatabase(id, for: caller) else {
        return nil
      }
      return try body(transaction, database)
    }
    if let found { return found }
    try caller.checkAccess(to: id)
    _ = try await write { try $0.openRecordDatabase(id, caller: caller) }
    return try await read { transaction in
      guard let database = try transaction.recordDatabase(id, for: caller) else {
        throw StoreError.containerNotFound(id)
      }
      return try body(transaction, database)
    }
  }

  /// As ``readRecords(_:caller:_:)``, on the writer's thread.
  public func writeRecords<R: Sendable>(
    _ id: DatabaseID, caller: RecordCaller,
    _ body: @Sendable @escaping (WriteTransaction, RecordDatabase) throws -> R
  ) async throws(StoreError) -> R {
    try await write { transaction in
      try body(transaction, transaction.openRecordDatabase(id, caller: caller))
    }
  }
}

extension WriteTransaction {
  /// The database, made with its default zone when it is new.
  ///
  /// - Throws: `CONTAINER_NOT_FOUND` unless the caller may make the container.
  public func openRecordDatabase(
    _ id: DatabaseID, caller: RecordCaller
  ) throws(StoreError) -> RecordDatabase {
    if let known = try recordDatabase(id, for: caller) { return known }
    try caller.checkAccess(to: id)
    var container = try first(
      "SELECT container_key FROM record_container WHERE name = ?", id.container
    ) { $0.int(0) }
    if container == nil {
      guard caller.isAdministrator else { throw .containerNotFound(id) }
      try run(
        "INSERT INTO record_container(name, create_us, update_us) VALUES (?, ?, ?)", id.container,
        now, now)
      container = lastInsertRowID
    }
    try run(
      "INSERT INTO record_database(container_key, name) VALUES (?, ?)", container, id.database)
    try insertZone(
      ZoneID.defaultZone, in: RecordDatabase(id: id, key: lastInsertRowID))
    guard let database = try recordDatabase(id, for: caller) else { throw .damagedRecord }
    return database
  }

  /// Makes a zone. In the public database only administrators may.
  ///
  /// - Throws: `ZONE_EXISTS`, `NOT_AN_ADMINISTRATOR`.
  public func createZone(
    _ id: ZoneID, in database: RecordDatabase, caller: RecordCaller
  ) throws(StoreError) -> StoredZone {
    try checkZoneRights(database)
    let exists = try first(
      "SELECT 1 FROM record_zone WHERE database_key = ? AND zone = ? AND deleted = 0",
      database.key, id.zone
    ) { _ in true }
    guard exists == nil else {
      throw StoreError(
        .alreadyExists, "ZONE_EXISTS", "\(id) exists already", metadata: ["resource": id.name],
        details: [.resource(type: "vencejo.record.v1.Zone", name: id.name)])
    }
    let fired = try fire(id, .creation, in: database, by: caller)
    try insertZone(id.zone, in: database, fired: fired)
    return try recordZone(id, in: database)
  }

  /// Deletes a zone with everything in it. The default zone stays.
  ///
  /// - Throws: `ZONE_NOT_FOUND`, `DEFAULT_ZONE`, `ETAG_MISMATCH`, `NOT_AN_ADMINISTRATOR`.
  public func deleteZone(
    _ id: ZoneID, etag: String, in database: RecordDatabase, caller: RecordCaller
  ) throws(StoreError) {
    try checkZoneRights(database)
    guard !id.isDefault else {
      throw StoreError(
        .failedPrecondition, "DEFAULT_ZONE", "the default zone cannot be deleted",
        metadata: ["resource": id.name])
    }
    let zone = try recordZone(id, in: database)
    guard etag.isEmpty || etag == zone.etag else {
      throw StoreError(
        .aborted, "ETAG_MISMATCH", "\(id) is not the zone of this etag any more",
        metadata: ["resource": id.name])
    }
    let fired = try fire(id, .deletion, in: database, by: caller)
    try purge(zone, in: database, fired: fired)
  }

  /// Takes a zone away with all it holds; the log speaks of that only from here on.
  func purge(
    _ zone: StoredZone, in database: RecordDatabase, fired: [FiringAddress] = []
  ) throws(StoreError) {
    try endShares(ofZone: zone)
    try letGoAssets(ofZone: zone, in: database)
    try RecordIndexer.removeZone(zone.key, self)
    try run("DELETE FROM record WHERE zone_key = ?", zone.key)
    try run("DELETE FROM record_echo WHERE zone_key = ?", zone.key)
    // The images before changes go too: the log speaks only of the deletion from here on.
    try run("UPDATE event SET keys = x'' WHERE zone_id = ?", zone.key)
    let position = append(
      .zoneDeleted, zone: zone.key,
      payload: RecordsTouched(database: database.key, change: .zoneDeleted, fired: fired))
    try run(
      "UPDATE record_zone SET deleted = 1, update_us = ?, change = ? WHERE zone_key = ?", now,
      position, zone.key)
  }

  /// Forgets up to 1,000 of the oldest tombstones past the time the log is kept; answers whether
  /// there may be more. Change tokens from before them expire.
  @discardableResult
  public func pruneTombstones() throws(StoreError) -> Bool {
    let cutoff = now - Int64(Self.logRetentionDays) * TokenAuthority.microsecondsPerDay
    let old = try all(
      """
      SELECT record_key, zone_key, change FROM record
      WHERE deleted = 1 AND modified_us < ? ORDER BY modified_us LIMIT 1000
      """, cutoff
    ) { (key: $0.int(0), zone: $0.int(1), change: $0.int(2)) }
    for row in old {
      try run("DELETE FROM record WHERE record_key = ?", row.key)
      try run(
        "UPDATE record_zone SET tombstone_floor = max(tombstone_floor, ?) WHERE zone_key = ?",
        row.change, row.zone)
    }
    return old.count == 1000
  }

  private func checkZoneRights(_ database: RecordDatabase) throws(StoreError) {
    guard case .all = database.access.scope else {
      throw StoreError(
        .permissionDenied, "NOT_AN_ADMINISTRATOR",
        "zones are made and deleted by a database's owner, of the public one by administrators",
        metadata: ["resource": database.id.name])
    }
  }

  /// Fires what waits for the next event, which tells of a zone.
  private func fire(
    _ zone: ZoneID, _ reason: SavedSubscription.Reason, in database: RecordDatabase,
    by caller: RecordCaller
  ) throws(StoreError) -> [FiringAddress] {
    var round = try FiringRound(self, database, actor: caller.user)
    defer { round.end() }
    return try round.place(zone, reason, type: nil, position: head() + 1)
  }

  func insertZone(
    _ zone: String, in database: RecordDatabase, fired: [FiringAddress] = []
  ) throws(StoreError) {
    try run(
      "INSERT INTO record_zone(database_key, zone, create_us, update_us, change) VALUES (?, ?, ?, ?, 0)",
      database.key, zone, now, now)
    let key = lastInsertRowID
    let position = append(
      .zoneCreated, zone: key,
      payload: RecordsTouched(database: database.key, change: .zoneCreated, fired: fired))
    // A token from before is of an older zone of this name: too old.
    try run(
      "UPDATE record_zone SET change = ?, tombstone_floor = ? WHERE zone_key = ?", position,
      position, key)
  }
}

extension StoreError {
  static func containerNotFound(_ id: DatabaseID) -> StoreError { containerNotFound(id.container) }

  static func containerNotFound(_ container: String) -> StoreError {
    StoreError(
      .notFound, "CONTAINER_NOT_FOUND",
      "containers/\(container) does not exist; an administrator makes it, or uses it first",
      metadata: ["resource": "containers/\(container)"],
      details: [.resource(type: "vencejo.record.v1.Container", name: "containers/\(container)")])
  }
}
