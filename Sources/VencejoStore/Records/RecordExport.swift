import VencejoCrypto
import VencejoSQLite

/// A stretch of an export.
public struct ExportPage: Sendable {
  public var records: [StoredRecord]
  /// The files that its records hold, each once.
  public var files: [RecordAsset]
  /// Nil at the end.
  public var nextPageToken: String?
}

extension ReadTransaction {
  /// Records of a zone or of all zones of a database, each zone's in the order they changed last:
  /// one that changes meanwhile comes again.
  ///
  /// - Throws: `NOT_YOUR_DATABASE`, `ZONE_NOT_FOUND`, `BAD_PAGE_TOKEN`, `PAGE_TOKEN_MISMATCH`.
  public func exportPage(
    of zone: ZoneID?, in database: RecordDatabase, pageToken: String
  ) throws(StoreError) -> ExportPage {
    guard database.isWhole else { throw .notYours(database.id) }
    var arguments = KeysetWriter()
    arguments.text("export")
    arguments.text(zone?.name ?? database.id.name)
    var start = (zone: "", change: Int64(0))
    if !pageToken.isEmpty {
      var keyset = try tokens.keyset(ofPageToken: pageToken, arguments: arguments)
      guard let name = keyset.text(), let change = keyset.int(), keyset.isAtEnd else {
        throw TokenAuthority.badPageToken
      }
      start = (name, change)
    }
    func token(_ zone: String, _ change: Int64) -> String {
      var keyset = KeysetWriter()
      keyset.text(zone)
      keyset.int(change)
      return tokens.pageToken(keyset: keyset, arguments: arguments)
    }
    let current: StoredZone
    if let zone {
      current = try recordZone(zone, in: database)
    } else if let begun = try knownZone(start.zone, in: database) {
      current = begun
    } else {
      // Before the first, or of one that is gone meanwhile.
      guard let next = try recordZones(in: database, after: start.zone, limit: 1).first else {
        return ExportPage(records: [], files: [], nextPageToken: nil)
      }
      current = next
      start.change = 0
    }
    let limit = 500
    var size = 0
    let rows = try recordRows(
      SQLText(
        "SELECT \(QuerySQL.columns) FROM \(QuerySQL.tables) WHERE r.zone_key = ? AND r.change > ?"
          + " AND r.deleted = 0 ORDER BY r.change LIMIT ?", [current.key, start.change, limit]),
      in: database.id
    ) { row in
      size += row.blobSize
      return size > Self.pageBytes
    }
    var files: [UUID: RecordAsset] = [:]
    for asset in rows.flatMap(\.record.assets) { files[asset.id] = asset }
    var page = ExportPage(
      records: rows.map(\.record),
      files: files.values.sorted { $0.id.bytes.lexicographicallyPrecedes($1.id.bytes) },
      nextPageToken: nil)
    if let last = rows.last, rows.count == limit || size > Self.pageBytes {
      page.nextPageToken = token(current.id.zone, last.change)
    } else if zone == nil,
      let next = try recordZones(in: database, after: current.id.zone, limit: 1).first
    {
      page.nextPageToken = token(next.id.zone, 0)
    }
    return page
  }

  private func knownZone(
    _ name: String, in database: RecordDatabase
  ) throws(StoreError) -> StoredZone? {
    guard !name.isEmpty, let id = try? ZoneID(database: database.id, zone: name) else { return nil }
    do throws(StoreError) {
      return try recordZone(id, in: database)
    } catch {
      guard error.code == .notFound else { throw error }
      return nil
    }
  }
}

extension WriteTransaction {
  /// Saves a batch of an import, one result for each operation: nil of a record that the save
  /// policy REPLACE would leave as it is.
  ///
  /// - Throws: As ``modifyRecords(_:in:caller:)``, `NOT_YOUR_DATABASE`.
  public func importBatch(
    _ batch: ModifyBatch, in database: RecordDatabase, caller: RecordCaller
  ) throws(StoreError) -> [(id: RecordID, result: ModifyResult?)] {
    guard database.isWhole else { throw .notYours(database.id) }
    var batch = batch
    var results: [(id: RecordID, result: ModifyResult?)] = []
    var changed: [RecordOperation] = []
    for operation in batch.operations {
      guard case .save(let record, _, .replace) = operation,
        try isSame(record, in: database, batch.keepsSystemFields)
      else {
        changed.append(operation)
        continue
      }
      results.append((operation.id, nil))
    }
    guard !changed.isEmpty else { return results }
    batch.operations = changed
    let outcome = try modifyRecords(batch, in: database, caller: caller)
    for (operation, result) in zip(changed, outcome.results) {
      results.append((operation.id, result))
    }
    return results
  }

  private func isSame(
    _ record: StoredRecord, in database: RecordDatabase, _ withSystemFields: Bool
  ) throws(StoreError) -> Bool {
    let zone = try first(
      "SELECT zone_key FROM record_zone WHERE database_key = ? AND zone = ? AND deleted = 0",
      database.key, record.id.zone.zone
    ) { $0.int(0) }
    guard let zone, let row = try recordRow(record.id.record, zone: zone, in: database.id),
      !row.isDeleted, row.record.type == record.type, row.record.parent == record.parent,
      row.record.fields.count == record.fields.count,
      record.fields.allSatisfy({ row.record.fields[$0.key]?.isSame(as: $0.value) ?? false })
    else { return false }
    guard withSystemFields else { return true }
    var kept = row.record
    kept.keepSystemFields(of: record)
    return kept == row.record
  }
}

extension RecordValue {
  /// Equal; files when their contents and names are.
  fileprivate func isSame(as other: RecordValue) -> Bool {
    switch (self, other) {
    case (.asset(let a), .asset(let b)):
      a.id == b.id
        || (!b.sha256.isEmpty && a.sha256 == b.sha256 && a.fileName == b.fileName
          && a.contentType == b.contentType)
    case (.list(let a), .list(let b)):
      a.count == b.count && zip(a, b).allSatisfy { $0.isSame(as: $1) }
    default: self == other
    }
  }
}
