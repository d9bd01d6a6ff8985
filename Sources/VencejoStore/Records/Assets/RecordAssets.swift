public import VencejoCrypto
import VencejoSQLite

extension Schema {
  /// Files that fields hold, and the bytes that a database takes.
  static let recordAssets = Migration(
    name: "record assets",
    sql: """
      CREATE TABLE record_asset(
        attachment_id INTEGER NOT NULL REFERENCES attachment,
        record_key INTEGER NOT NULL,
        PRIMARY KEY(attachment_id, record_key)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX record_asset_by_record ON record_asset(record_key);
      -- A saved subscription that posts what it fires.
      ALTER TABLE record_subscription ADD COLUMN hook_id INTEGER;
      -- What each database holds, in bytes and pieces.
      ALTER TABLE record_database ADD COLUMN record_count INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE record_database ADD COLUMN record_bytes INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE record_database ADD COLUMN asset_count INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE record_database ADD COLUMN asset_bytes INTEGER NOT NULL DEFAULT 0;
      UPDATE record_database SET
        record_count = (SELECT count(*) FROM record r JOIN record_zone z USING (zone_key)
          WHERE z.database_key = record_database.database_key AND r.deleted = 0),
        record_bytes = (SELECT ifnull(sum(length(fields)), 0)
          FROM record r JOIN record_zone z USING (zone_key)
          WHERE z.database_key = record_database.database_key AND r.deleted = 0);
      """)
}

/// A file that a field holds.
public struct RecordAsset: Sendable, Hashable {
  public var id: UUID
  public var sha256: [UInt8]
  public var size: Int64
  public var contentType: String
  public var fileName: String

  /// A save names it by its identifier; the rest is the server's.
  public init(
    id: UUID, sha256: [UInt8] = [], size: Int64 = 0, contentType: String = "",
    fileName: String = ""
  ) {
    self.id = id
    self.sha256 = sha256
    self.size = size
    self.contentType = contentType
    self.fileName = fileName
  }
}

extension RecordValue {
  /// The files in it.
  var assets: [RecordAsset] {
    switch self {
    case .asset(let asset): [asset]
    case .list(let elements): elements.flatMap(\.assets)
    default: []
    }
  }

  /// With what the server knows of each file.
  fileprivate func settingAssets(_ known: [UUID: RecordAsset]) -> RecordValue {
    switch self {
    case .asset(let asset): .asset(known[asset.id] ?? asset)
    case .list(let elements): .list(elements.map { $0.settingAssets(known) })
    default: self
    }
  }
}

extension StoredRecord {
  var assets: [RecordAsset] { fields.values.flatMap(\.assets) }
}

extension ReadTransaction {
  /// What a save's files are: those that the caller uploaded, or that a record holds which the
  /// caller may read.
  ///
  /// - Throws: `ASSET_NOT_FOUND`.
  func settingAssets(
    of fields: [String: RecordValue], old: [String: RecordValue], in database: RecordDatabase,
    caller: RecordCaller
  ) throws(StoreError) -> [String: RecordValue] {
    var known: [UUID: RecordAsset] = [:]
    for asset in old.values.flatMap(\.assets) { known[asset.id] = asset }
    var result = fields
    for (name, value) in fields {
      let assets = value.assets
      guard !assets.isEmpty else { continue }
      for asset in assets where known[asset.id] == nil {
        known[asset.id] = try usableAsset(asset.id, in: database, caller: caller)
      }
      result[name] = value.settingAssets(known)
    }
    return result
  }

  private func usableAsset(
    _ id: UUID, in database: RecordDatabase, caller: RecordCaller
  ) throws(StoreError) -> RecordAsset {
    let found = try first(
      """
      SELECT attachment_id, sha256, size, content_type, file_name, uploader_id FROM attachment
      WHERE uuid = ? AND (expire_us IS NULL OR expire_us > ?)
      """, id, now
    ) {
      (
        key: $0.int(0),
        asset: RecordAsset(
          id: id, sha256: $0.blob(1), size: $0.int(2), contentType: $0.text(3),
          fileName: $0.text(4)), uploader: $0.int(5)
      )
    }
    let missing = StoreError.notFound(
      "ASSET_NOT_FOUND", type: "vencejo.record.v1.Asset", name: "\(id)")
    guard let found else { throw missing }
    if found.uploader == caller.key { return found.asset }
    // Held by a record of this database that the caller reads.
    let holders = try all(
      """
      SELECT a.record_key FROM record_asset a JOIN record r USING (record_key)
        JOIN record_zone z USING (zone_key)
      WHERE a.attachment_id = ? AND z.database_key = ? LIMIT 1000
      """, found.key, database.key
    ) { $0.int(0) }
    for holder in holders {
      if let row = try recordRow(key: holder, in: database.id), database.access.mayRead(row.record)
      {
        return found.asset
      }
    }
    throw missing
  }

  /// The file in a field of a record that the caller may read; of a list, its element.
  ///
  /// - Throws: `ZONE_NOT_FOUND`, `RECORD_NOT_FOUND`, `ASSET_NOT_FOUND`.
  public func asset(
    of id: RecordID, field: String, index: Int, in database: RecordDatabase
  ) throws(StoreError) -> RecordAsset {
    let record = try record(id, in: database)
    let assets = record.fields[field]?.assets ?? []
    guard assets.indices.contains(index) else {
      throw .notFound(
        "ASSET_NOT_FOUND", type: "vencejo.record.v1.Asset", name: "\(id.name) \(field)")
    }
    return assets[index]
  }
}

/// What a database holds.
public struct DatabaseUsage: Sendable, Hashable {
  public var records: Int64
  public var recordBytes: Int64
  public var assets: Int64
  public var assetBytes: Int64
  public var quota: Int64
}

extension ReadTransaction {
  /// What a database holds, and may hold.
  public func usage(of database: RecordDatabase) throws(StoreError) -> DatabaseUsage {
    let found = try first(
      """
      SELECT record_count, record_bytes, asset_count, asset_bytes, quota
      FROM record_database JOIN record_container USING (container_key) WHERE database_key = ?
      """, database.key
    ) {
      DatabaseUsage(
        records: $0.int(0), recordBytes: $0.int(1), assets: $0.int(2), assetBytes: $0.int(3),
        quota: $0.int(4))
    }
    guard let found else { throw .damagedRecord }
    return found
  }

  /// What a container's databases hold together; the quota is one database's.
  public func usage(of container: RecordContainer) throws(StoreError) -> DatabaseUsage {
    try first(
      """
      SELECT sum(record_count), sum(record_bytes), sum(asset_count), sum(asset_bytes)
      FROM record_database WHERE container_key = ?
      """, container.key
    ) {
      DatabaseUsage(
        records: $0.optionalInt(0) ?? 0, recordBytes: $0.optionalInt(1) ?? 0,
        assets: $0.optionalInt(2) ?? 0, assetBytes: $0.optionalInt(3) ?? 0,
        quota: container.quota)
    }
      ?? DatabaseUsage(
        records: 0, recordBytes: 0, assets: 0, assetBytes: 0, quota: container.quota)
  }
}

/// What a batch adds to a database and takes from it.
struct UsageChange {
  var records: Int64 = 0
  var recordBytes: Int64 = 0
  var assets: Int64 = 0
  var assetBytes: Int64 = 0
}

extension WriteTransaction {
  /// Ties a record's files to it, and lets go of those it holds no more.
  func holdAssets(
    of record: StoredRecord?, old: StoredRecord?, key: Int64, _ usage: inout UsageChange
  ) throws(StoreError) {
    // Most records have none.
    let after = Dictionary(
      record?.assets.map { ($0.id, $0) } ?? [], uniquingKeysWith: { first, _ in first })
    let before = Dictionary(
      old?.assets.map { ($0.id, $0) } ?? [], uniquingKeysWith: { first, _ in first })
    for (id, asset) in after where before[id] == nil {
      try run(
        """
        INSERT OR IGNORE INTO record_asset(attachment_id, record_key)
        SELECT attachment_id, ? FROM attachment WHERE uuid = ?
        """, key, id)
      try run("UPDATE attachment SET expire_us = NULL WHERE uuid = ?", id)
      usage.assets += 1
      usage.assetBytes += asset.size
    }
    for (id, asset) in before where after[id] == nil {
      try run(
        """
        DELETE FROM record_asset WHERE record_key = ?
          AND attachment_id = (SELECT attachment_id FROM attachment WHERE uuid = ?)
        """, key, id)
      try letGo("uuid = ?", id)
      usage.assets -= 1
      usage.assetBytes -= asset.size
    }
  }

  /// Files that nothing holds are collected a day later.
  private func letGo(_ condition: String, _ value: any SQLiteBindable) throws(StoreError) {
    try run(
      dynamic: """
        UPDATE attachment SET expire_us = ? WHERE \(condition)
          AND NOT EXISTS (SELECT 1 FROM attachment_ref r
            WHERE r.attachment_id = attachment.attachment_id)
          AND NOT EXISTS (SELECT 1 FROM record_asset r
            WHERE r.attachment_id = attachment.attachment_id)
        """, [now + AttachmentLimits.patience, value])
  }

  /// Lets go of all the files of a zone.
  func letGoAssets(ofZone zone: StoredZone, in database: RecordDatabase) throws(StoreError) {
    let held = try all(
      """
      SELECT DISTINCT a.attachment_id FROM record_asset a JOIN record r USING (record_key)
      WHERE r.zone_key = ?
      """, zone.key
    ) { $0.int(0) }
    var usage = UsageChange()
    let files = try first(
      """
      SELECT count(*), sum(f.size) FROM record_asset a JOIN record r USING (record_key)
        JOIN attachment f USING (attachment_id) WHERE r.zone_key = ?
      """, zone.key
    ) { (count: $0.int(0), bytes: $0.optionalInt(1) ?? 0) }
    let records = try first(
      "SELECT count(*), sum(length(fields)) FROM record WHERE zone_key = ? AND deleted = 0",
      zone.key
    ) { (count: $0.int(0), bytes: $0.optionalInt(1) ?? 0) }
    usage.assets = -(files?.count ?? 0)
    usage.assetBytes = -(files?.bytes ?? 0)
    usage.records = -(records?.count ?? 0)
    usage.recordBytes = -(records?.bytes ?? 0)
    if !held.isEmpty {
      try run(
        """
        DELETE FROM record_asset
        WHERE record_key IN (SELECT record_key FROM record WHERE zone_key = ?)
        """, zone.key)
      for attachment in held { try letGo("attachment_id = ?", attachment) }
    }
    try note(usage, in: database)
  }

  /// Adds to what a database holds.
  func note(_ change: UsageChange, in database: RecordDatabase) throws(StoreError) {
    try run(
      """
      UPDATE record_database SET record_count = record_count + ?, record_bytes = record_bytes + ?,
        asset_count = asset_count + ?, asset_bytes = asset_bytes + ? WHERE database_key = ?
      """, change.records, change.recordBytes, change.assets, change.assetBytes, database.key)
  }

  /// - Throws: `QUOTA_EXCEEDED` when a batch that adds something leaves more than there may be.
  func checkQuota(_ change: UsageChange, in database: RecordDatabase) throws(StoreError) {
    guard change.recordBytes + change.assetBytes > 0 else { return }
    let usage = try usage(of: database)
    guard usage.recordBytes + usage.assetBytes <= usage.quota else {
      throw StoreError(
        .resourceExhausted, "QUOTA_EXCEEDED",
        "\(database.id) may hold \(usage.quota) bytes",
        metadata: ["resource": database.id.name, "limit": String(usage.quota)],
        details: [
          .quota(subject: database.id.name, description: "at most \(usage.quota) bytes")
        ])
    }
  }
}
