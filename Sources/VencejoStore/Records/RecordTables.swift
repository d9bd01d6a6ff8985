import VencejoSQLite

/// A zone as the store knows it.
public struct StoredZone: Sendable, Hashable {
  public var id: ZoneID
  /// Internal key; of this incarnation of the name.
  public var key: Int64
  /// Microseconds since 1970.
  public var createTime: Int64
  /// Of the newest change.
  public var updateTime: Int64
  /// Position of the newest change.
  public var change: Int64
  /// Tombstones up to this position may be gone.
  public var tombstoneFloor: Int64

  /// Batches are all or nothing, and changes can be fetched: in zones that a
  /// user made in a private database, as in CloudKit.
  public var isAtomic: Bool { !id.database.isPublic && !id.isDefault }
  /// Changes can be fetched.
  public var fetchesChanges: Bool { isAtomic }

  /// Opaque; differs for a new zone of the same name.
  public var etag: String { String(key, radix: 36) + "-" + String(createTime, radix: 36) }
}

/// A database that exists, with its internal key and what its caller may do in it.
public struct RecordDatabase: Sendable {
  public var id: DatabaseID
  public var key: Int64
  /// Internal key of the container.
  var container: Int64 = 0
  var environment: RecordEnvironment = .development
  var access: RecordAccess = .all("", RecordSchema())

  /// All of it is the caller's, or theirs to administer.
  public var isWhole: Bool { access.isAll }

  init(id: DatabaseID, key: Int64) {
    self.id = id
    self.key = key
  }
}

/// Who asks.
public struct RecordCaller: Sendable, Hashable {
  /// Internal key of the user.
  public var key: Int64
  /// The user's identifier, as in `users/{user}`.
  public var user: String
  public var isAdministrator: Bool

  public init(key: Int64, user: String, isAdministrator: Bool) {
    self.key = key
    self.user = user
    self.isAdministrator = isAdministrator
  }

  /// Throws unless the caller may look into the database: the public one, or
  /// the caller's own.
  func checkAccess(to database: DatabaseID) throws(StoreError) {
    guard database.isPublic || database.owner == user else { throw .notYourDatabase(database) }
  }
}

/// One row of `record`.
struct RecordRow {
  var key: Int64
  var zoneKey: Int64
  var change: Int64
  var isDeleted: Bool
  var isCascaded: Bool
  /// Of a tombstone: without fields.
  var record: StoredRecord
  var blobSize: Int

  /// The row with the columns of `QuerySQL.columns`; nil when it is damaged.
  init?(_ row: Row, in database: DatabaseID) {
    let blob = row.blob(5)
    isDeleted = row.bool(12)
    isCascaded = row.bool(13)
    guard let zone = try? ZoneID(database: database, zone: row.text(2)),
      let id = try? RecordID(zone: zone, record: row.text(3)),
      let fields = isDeleted ? [:] : RecordCoding.decode(blob)
    else { return nil }
    key = row.int(0)
    zoneKey = row.int(1)
    change = row.int(6)
    blobSize = blob.count
    record = StoredRecord(
      id: id, type: row.text(4), fields: fields, changeTag: row.text(7), createTime: row.int(8),
      updateTime: row.int(9), creator: row.text(10), lastModifier: row.text(11),
      parent: row.text(14), share: row.text(15))
  }

  var tombstone: DeletedRecord {
    DeletedRecord(
      id: record.id, type: record.type, deleteTime: record.updateTime, cascaded: isCascaded)
  }
}

extension StoreError {
  /// The answer to who asks for what only the owner of a database may know.
  public static func notYours(_ database: DatabaseID) -> StoreError { notYourDatabase(database) }

  static func notYourDatabase(_ database: DatabaseID) -> StoreError {
    StoreError(
      .permissionDenied, "NOT_YOUR_DATABASE",
      "\(database) belongs to another user, who shares nothing of it with you",
      metadata: ["resource": database.name])
  }

  static let damagedRecord = StoreError(
    .dataLoss, "STORAGE_DAMAGED", "a stored record cannot be read")
}

extension ReadTransaction {
  /// Bytes of stored fields after which a page ends, so that an answer stays
  /// below the 4 MiB a peer accepts.
  static let pageBytes = 2 << 20

  /// The database, or nil when nobody has used it yet.
  func recordDatabase(_ id: DatabaseID) throws(StoreError) -> RecordDatabase? {
    try first(
      """
      SELECT database_key FROM record_database JOIN record_container USING (container_key)
      WHERE record_container.name = ? AND record_database.name = ?
      """, id.container, id.database
    ) { RecordDatabase(id: id, key: $0.int(0)) }
  }

  /// The database with the rights that a caller has in it.
  func recordDatabase(
    _ id: DatabaseID, for caller: RecordCaller
  ) throws(StoreError) -> RecordDatabase? {
    let found = try first(
      """
      SELECT d.database_key, c.container_key, c.environment
      FROM record_database d JOIN record_container c USING (container_key)
      WHERE c.name = ? AND d.name = ?
      """, id.container, id.database
    ) { (key: $0.int(0), container: $0.int(1), environment: $0.int(2)) }
    guard let found else { return nil }
    var database = RecordDatabase(id: id, key: found.key)
    database.container = found.container
    database.environment = RecordEnvironment(rawValue: found.environment) ?? .production
    let schema = try schema(ofContainer: found.container, database.environment)
    if id.isPublic {
      database.access = RecordAccess(
        caller.user, isAdministrator: try isAdministrator(caller, ofContainer: found.container),
        in: schema)
    } else if id.owner == caller.user {
      database.access = .all(caller.user, schema)
    } else {
      let parts = try sharedParts(of: found.key, user: caller.user)
      guard !parts.isEmpty else { throw .notYourDatabase(id) }
      database.access = RecordAccess(scope: .shared(parts), user: caller.user, schema: schema)
    }
    return database
  }

  private static func zone(_ row: Row, _ database: DatabaseID) -> StoredZone? {
    guard let id = try? ZoneID(database: database, zone: row.text(1)) else { return nil }
    return StoredZone(
      id: id, key: row.int(0), createTime: row.int(2), updateTime: row.int(3), change: row.int(4),
      tombstoneFloor: row.int(5))
  }

  /// The zone.
  ///
  /// - Throws: `ZONE_NOT_FOUND`.
  public func recordZone(_ id: ZoneID, in database: RecordDatabase) throws(StoreError) -> StoredZone
  {
    let zone = try first(
      """
      SELECT zone_key, zone, create_us, update_us, change, tombstone_floor FROM record_zone
      WHERE database_key = ? AND zone = ? AND deleted = 0
      """, database.key, id.zone
    ) { Self.zone($0, database.id) }
    guard case .some(.some(let zone)) = zone, database.access.sees(zone.id.zone) else {
      throw .notFound("ZONE_NOT_FOUND", type: "vencejo.record.v1.Zone", name: id.name)
    }
    return zone
  }

  /// Zones by name, after `name`.
  public func recordZones(
    in database: RecordDatabase, after name: String, limit: Int
  ) throws(StoreError) -> [StoredZone] {
    try all(
      """
      SELECT zone_key, zone, create_us, update_us, change, tombstone_floor FROM record_zone
      WHERE database_key = ? AND zone > ? AND deleted = 0 ORDER BY zone LIMIT ?
      """, database.key, name, limit
    ) { Self.zone($0, database.id) }.compactMap { $0 }.filter {
      database.access.sees($0.id.zone)
    }
  }

  /// The row of a name in a zone, tombstones included.
  func recordRow(
    _ name: String, zone: Int64, in database: DatabaseID
  ) throws(StoreError) -> RecordRow? {
    let sql =
      "SELECT \(QuerySQL.columns) FROM \(QuerySQL.tables)"
      + " WHERE r.zone_key = ? AND r.record_name = ?"
    return try recordRows(SQLText(sql, [zone, name]), in: database).first
  }

  /// The row of a key.
  func recordRow(key: Int64, in database: DatabaseID) throws(StoreError) -> RecordRow? {
    let sql = "SELECT \(QuerySQL.columns) FROM \(QuerySQL.tables) WHERE r.record_key = ?"
    return try recordRows(SQLText(sql, [key]), in: database).first
  }

  /// The key of a type's or a field's name; nil when it was never saved.
  func wordKey(_ word: String) throws(StoreError) -> Int64? {
    try first("SELECT word_key FROM record_word WHERE word = ?", word) { $0.int(0) }
  }

  /// Rows until `stop` says so.
  func recordRows(
    _ text: SQLText, in database: DatabaseID, until stop: (RecordRow) -> Bool = { _ in false }
  ) throws(StoreError) -> [RecordRow] {
    var rows: [RecordRow] = []
    var isDamaged = false
    try each(dynamic: text.sql, text.values) { row in
      guard let row = RecordRow(row, in: database) else {
        isDamaged = true
        return false
      }
      rows.append(row)
      return !stop(row)
    }
    if isDamaged { throw .damagedRecord }
    return rows
  }
}
