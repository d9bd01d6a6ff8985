import VencejoSQLite

// Records of a large import are there at once, and in the index a little later: nothing that
// needs the index of their zone is answered until then.

extension ReadTransaction {
  /// Whether the index of a zone lacks records.
  func isIndexPending(ofZone zone: Int64) throws(StoreError) -> Bool {
    try first("SELECT 1 FROM record_pending WHERE zone_key = ? LIMIT 1", zone) { _ in true }
      ?? false
  }

  /// How many imported records are not in the index yet, about.
  public func pendingRecords() throws(StoreError) -> Int64 {
    try first("SELECT coalesce(sum(last_key - first_key + 1), 0) FROM record_pending") { $0.int(0) }
      ?? 0
  }
}

extension WriteTransaction {
  /// Indexes some of the records that wait for it; answers whether there may be more. A step of
  /// 2,000 is a commit that no other write has to wait for long; a longer one costs less a record.
  @discardableResult
  public func indexPendingRecords(step: Int = 2_000) throws(StoreError) -> Bool {
    let range = try first(
      "SELECT first_key, last_key, zone_key FROM record_pending ORDER BY first_key LIMIT 1"
    ) { (first: $0.int(0), last: $0.int(1), zone: $0.int(2)) }
    guard let range else { return false }
    var keys: [String: Int64] = [:]
    var batch = EntryBatch()
    var last = range.first - 1
    var indexer = RecordIndexer(self)
    var found: [(key: Int64, name: String, type: Int64, fields: [String: RecordValue])] = []
    try each(
      """
      SELECT record_key, record_name, type_key, fields, deleted FROM record
      WHERE record_key BETWEEN ? AND ? ORDER BY record_key LIMIT ?
      """, [range.first, range.last, step]
    ) { row in
      last = row.int(0)
      // A damaged record is told to who reads it; the others are still to be found.
      if !row.bool(4), let fields = RecordCoding.decode(row.blob(3)) {
        found.append((last, row.text(1), row.int(2), fields))
      }
      return true
    }
    for record in found {
      var fields: [(key: Int64, value: RecordValue)] = []
      for (name, value) in record.fields {
        let key: Int64
        if let known = keys[name] {
          key = known
        } else {
          key = try indexer.word(name)
          keys[name] = key
        }
        fields.append((key, value))
      }
      batch.add(key: record.key, name: record.name, type: record.type, fields)
    }
    try batch.write(self, zone: range.zone)
    try run("DELETE FROM record_pending WHERE first_key = ?", range.first)
    if last >= range.first, last < range.last {
      try run(
        "INSERT INTO record_pending(first_key, last_key, zone_key) VALUES (?, ?, ?)", last + 1,
        range.last, range.zone)
    }
    return true
  }
}

extension StoreError {
  /// CloudKit's zoneBusy.
  static let indexPending = StoreError(
    .unavailable, "ZONE_BUSY",
    "records of an import are still being indexed: ask again in a moment",
    details: [.retry(afterMilliseconds: 2_000)])
}
