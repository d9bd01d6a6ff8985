import VencejoSQLite

extension ReadTransaction {
  /// What changed for a participant in a zone after `position`: what their shares cover, what was
  /// deleted there, and what left.
  func sharedZoneChanges(
    _ zone: StoredZone, _ all: [SharedPart], after position: Int64, types: [String],
    pageSize: Int, caller: RecordCaller
  ) throws(StoreError) -> ZoneChanges {
    let parts = all.filter { $0.zone == zone.id.zone }
    let head = try head()
    let isWhole = parts.contains { $0.root.isEmpty }
    let shares = Set(parts.map(\.share)).sorted()
    var size = 0
    // Each share is a range of an index, in the order of changes; one row more than asked for.
    var text = SQLText()
    func select(_ condition: SQLText) -> SQLText {
      var one = SQLText("SELECT * FROM (SELECT \(QuerySQL.columns) FROM \(QuerySQL.tables) WHERE ")
      one += condition
      one += SQLText(" AND r.change > ?", [position])
      if position == 0 { one += " AND r.deleted = 0" }
      if !types.isEmpty {
        let marks = repeatElement("?", count: types.count).joined(separator: ",")
        one += SQLText(" AND w.word IN (\(marks))", types)
      }
      one += SQLText(" ORDER BY r.change LIMIT ?)", [pageSize + 1])
      return one
    }
    if isWhole {
      text += select(SQLText("r.zone_key = ?", [zone.key]))
    } else {
      text += .joined(
        shares.map {
          select(SQLText("r.zone_key = ? AND r.share = ? AND r.share <> ''", [zone.key, $0]))
        }, by: " UNION ALL ")
    }
    text += SQLText(" ORDER BY 7 LIMIT ?", [pageSize + 1])
    var rows = try recordRows(text, in: zone.id.database) { row in
      size += row.blobSize
      return size > Self.pageBytes
    }
    var hasMore = rows.count > pageSize || size > Self.pageBytes
    var gone: [(record: DeletedRecord, change: Int64)] = []
    if position > 0, !isWhole {
      for share in shares {
        gone += try left(share, zone, after: position, types: types, limit: pageSize + 1)
      }
      gone.sort { $0.change < $1.change }
    }
    if rows.count > pageSize { rows.removeLast() }
    // Up to here both are whole.
    let end = hasMore ? rows.last?.change ?? head : head
    var changes = rows.map { row -> (change: Int64, what: RecordChange) in
      (row.change, row.isDeleted ? .deleted(row.tombstone) : .changed(row.record))
    }
    for one in gone where one.change <= end {
      // It may have come into another share of theirs.
      if let now = try hierarchy(of: one.record.id.record, zone: zone.key), !now.isDeleted,
        shares.contains(now.share)
      {
        continue
      }
      changes.append((one.change, .deleted(one.record)))
    }
    changes.sort { $0.change < $1.change }
    var last = end
    if changes.count > pageSize {
      changes.removeSubrange(pageSize...)
      last = changes.last?.change ?? end
      hasMore = true
    }
    let echo = try first(
      "SELECT request_id FROM record_echo WHERE zone_key = ? AND user_id = ?", zone.key, caller.key
    ) { $0.text(0) }
    return ZoneChanges(
      changes: changes.map(\.what), position: last, moreComing: hasMore,
      lastRequestID: echo ?? "")
  }

  /// Records that left a share, oldest first.
  private func left(
    _ share: String, _ zone: StoredZone, after position: Int64, types: [String], limit: Int
  ) throws(StoreError) -> [(record: DeletedRecord, change: Int64)] {
    var text = SQLText(
      """
      SELECT u.record_name, w.word, u.change, u.leave_us
      FROM record_unshared u JOIN record_word w ON w.word_key = u.type_key
      WHERE u.zone_key = ? AND u.share = ? AND u.change > ?
      """, [zone.key, share, position])
    if !types.isEmpty {
      let marks = repeatElement("?", count: types.count).joined(separator: ",")
      text += SQLText(" AND w.word IN (\(marks))", types)
    }
    text += SQLText(" ORDER BY u.change LIMIT ?", [limit])
    var rows: [(name: String, type: String, change: Int64, time: Int64)] = []
    try each(dynamic: text.sql, text.values) {
      rows.append(($0.text(0), $0.text(1), $0.int(2), $0.int(3)))
      return true
    }
    var gone: [(record: DeletedRecord, change: Int64)] = []
    for row in rows {
      guard let id = try? RecordID(zone: zone.id, record: row.name) else { throw .damagedRecord }
      gone.append((DeletedRecord(id: id, type: row.type, deleteTime: row.time), row.change))
    }
    return gone
  }
}
