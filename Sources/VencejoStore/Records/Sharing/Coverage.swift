import VencejoSQLite

/// Which share covers a record: that of the nearest record above it, itself included, that is
/// the root of one. Kept in `record.share`, so that queries and feeds find it there.
extension ReadTransaction {
  /// Records above one another, counted from the top.
  static let maxDepth = 100

  /// The hierarchical share whose root this record is.
  func share(withRoot name: String, zone: Int64) throws(StoreError) -> String? {
    try first(
      "SELECT share FROM record_share WHERE zone_key = ? AND root = ? AND root <> ''", zone, name
    ) { $0.text(0) }
  }

  /// Parent and coverage of a stored record.
  func hierarchy(
    of name: String, zone: Int64
  ) throws(StoreError) -> (key: Int64, parent: String, share: String, isDeleted: Bool)? {
    try first(
      """
      SELECT record_key, parent, share, deleted FROM record
      WHERE zone_key = ? AND record_name = ?
      """, zone, name
    ) { ($0.int(0), $0.text(1), $0.text(2), $0.bool(3)) }
  }

  /// The share that covers a record with this parent.
  func coverage(of name: String, parent: String, zone: Int64) throws(StoreError) -> String {
    if let own = try share(withRoot: name, zone: zone) { return own }
    guard !parent.isEmpty, let above = try hierarchy(of: parent, zone: zone), !above.isDeleted
    else { return "" }
    return above.share
  }

  func children(of name: String, zone: Int64) throws(StoreError) -> [String] {
    try all(
      "SELECT record_name FROM record WHERE zone_key = ? AND parent = ? AND parent <> '' AND deleted = 0",
      zone, name
    ) { $0.text(0) }
  }
}

/// Brings `record.share` up to date where a hierarchy changed.
struct CoverageUpdate {
  /// Most records that one change may take into a share or out of it.
  static let maxRecords = 10_000

  let transaction: WriteTransaction
  let database: RecordDatabase
  let zone: StoredZone
  let caller: RecordCaller

  /// Everything below a record whose own coverage is stored.
  func below(_ name: String) throws(StoreError) {
    var next = Mutation.skipSubtree.isOn ? [] : [name]
    var count = 0
    while let above = next.popLast() {
      guard let stored = try transaction.hierarchy(of: above, zone: zone.key) else { continue }
      let share = stored.isDeleted ? "" : stored.share
      for child in try transaction.children(of: above, zone: zone.key) {
        // The root of a share below is that share's.
        guard try transaction.share(withRoot: child, zone: zone.key) == nil else { continue }
        guard try set(share, of: child) else { continue }
        count += 1
        guard count <= Self.maxRecords else {
          throw .tooMany("records of a hierarchy", limit: Self.maxRecords)
        }
        next.append(child)
      }
    }
  }

  /// Stores a record's coverage, and tells of it; false when it is that already.
  func set(_ share: String, of name: String) throws(StoreError) -> Bool {
    guard let row = try transaction.recordRow(name, zone: zone.key, in: database.id),
      row.record.share != share
    else { return false }
    var new = row.record
    new.share = share
    let change = transaction.append(
      .recordChanged, zone: zone.key,
      keys: RecordEventKeys(
        recordKey: row.key, recordName: name, actor: caller.key, requestID: "",
        old: row.isDeleted ? nil : row.record
      ).bytes,
      payload: RecordsTouched(
        database: database.key,
        change: .record(zone: zone.id.zone, old: row.isDeleted ? nil : row.record, new: new)))
    try transaction.run(
      "UPDATE record SET share = ?, change = ? WHERE record_key = ?", share, change, row.key)
    try transaction.moved(
      name, key: row.key, from: row.record.share, to: share, zone: zone.key, change: change)
    try transaction.run(
      "UPDATE record_zone SET change = ?, update_us = ? WHERE zone_key = ?", change,
      transaction.now, zone.key)
    return true
  }
}

extension WriteTransaction {
  /// Notes for the participants of a share that a record left it, or is in it again.
  func moved(
    _ name: String, key: Int64, from old: String, to new: String, zone: Int64, change: Int64
  ) throws(StoreError) {
    guard old != new else { return }
    if !old.isEmpty, !Mutation.dropLeaving.isOn {
      try run(
        """
        INSERT INTO record_unshared(zone_key, share, record_name, type_key, change, leave_us)
        SELECT ?, ?, ?, type_key, ?, ? FROM record WHERE record_key = ?
        ON CONFLICT DO UPDATE SET change = excluded.change, leave_us = excluded.leave_us
        """, zone, old, name, change, now, key)
    }
    if !new.isEmpty {
      try run(
        "DELETE FROM record_unshared WHERE zone_key = ? AND share = ? AND record_name = ?", zone,
        new, name)
    }
  }

  /// Forgets up to 1,000 of the oldest of these notes past the time the log is kept; answers
  /// whether there may be more.
  @discardableResult
  public func pruneUnshared() throws(StoreError) -> Bool {
    let cutoff = now - Int64(Self.logRetentionDays) * TokenAuthority.microsecondsPerDay
    let old = try all(
      """
      SELECT zone_key, share, record_name, change FROM record_unshared
      WHERE leave_us < ? ORDER BY leave_us LIMIT 1000
      """, cutoff
    ) { (zone: $0.int(0), share: $0.text(1), name: $0.text(2), change: $0.int(3)) }
    for row in old {
      try run(
        "DELETE FROM record_unshared WHERE zone_key = ? AND share = ? AND record_name = ?",
        row.zone, row.share, row.name)
      try run(
        "UPDATE record_zone SET tombstone_floor = max(tombstone_floor, ?) WHERE zone_key = ?",
        row.change, row.zone)
    }
    return old.count == 1000
  }
}
