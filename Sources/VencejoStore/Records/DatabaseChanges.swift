import VencejoSQLite

/// A page of a database's changes: which zones, not which records.
public struct DatabaseChanges: Sendable {
  /// Oldest change first, each zone once.
  public var changed: [StoredZone]
  /// Zones that are gone, and of whose name there is none now.
  public var deleted: [ZoneID]
  /// Continue from here.
  public var position: Int64
  public var moreComing: Bool
}

extension ReadTransaction {
  /// Which zones of a database changed after `position`.
  ///
  /// - Throws: `CHANGE_TOKEN_EXPIRED` for a position that was never reached.
  public func databaseChanges(
    in database: RecordDatabase, after position: Int64, pageSize: Int
  ) throws(StoreError) -> DatabaseChanges {
    let head = try head()
    guard position <= head else { throw .changeTokenExpired }
    var rows = try all(
      """
      SELECT zone, change, deleted FROM record_zone
      WHERE database_key = ? AND change > ? ORDER BY change LIMIT ?
      """, database.key, position, pageSize + 1
    ) { (zone: $0.text(0), change: $0.int(1), isDeleted: $0.bool(2)) }
    let hasMore = rows.count > pageSize
    if hasMore { rows.removeLast() }
    var changes = DatabaseChanges(
      changed: [], deleted: [], position: hasMore ? rows.last?.change ?? head : head,
      moreComing: hasMore)
    for row in rows {
      guard let id = try? ZoneID(database: database.id, zone: row.zone) else {
        throw .damagedRecord
      }
      // What is not shared any more is told by FetchDatabaseChanges of the shared database.
      guard database.access.sees(row.zone) else { continue }
      if !row.isDeleted {
        changes.changed.append(try recordZone(id, in: database))
      } else if position > 0, try !hasZone(id, in: database), !changes.deleted.contains(id) {
        // From the beginning nobody knows of zones that are gone.
        changes.deleted.append(id)
      }
    }
    return changes
  }

  private func hasZone(_ id: ZoneID, in database: RecordDatabase) throws(StoreError) -> Bool {
    try first(
      "SELECT 1 FROM record_zone WHERE database_key = ? AND zone = ? AND deleted = 0",
      database.key, id.zone
    ) { _ in true } ?? false
  }
}
