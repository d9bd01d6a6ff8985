import VencejoSQLite

extension Schema {
  /// References that delete the record that holds them, by their target.
  static let recordReferences = Migration(
    name: "record references",
    sql: """
      CREATE TABLE record_ref(
        zone_key INTEGER NOT NULL,
        target TEXT NOT NULL,
        record_key INTEGER NOT NULL,
        PRIMARY KEY(zone_key, target, record_key)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX record_ref_by_record ON record_ref(record_key);
      ALTER TABLE record ADD COLUMN cascaded INTEGER NOT NULL DEFAULT 0;
      """)
}

extension RecordRules {
  /// References with DELETE_SELF that one record may be the target of (CloudKit's limit).
  public static let maxReferences = 750
  /// Records that one deletion may take with it.
  public static let maxCascade = 10_000
}

extension RecordIndexer {
  /// Brings the references that bind from the old image to the new one.
  func updateReferences(
    _ saved: StoredRecord, old: StoredRecord?, key: Int64, zone: Int64
  ) throws(StoreError) {
    let (before, after) = (old?.owners ?? [], saved.owners)
    for target in before.subtracting(after) {
      try transaction.run(
        "DELETE FROM record_ref WHERE zone_key = ? AND target = ? AND record_key = ?", zone,
        String(decoding: target, as: UTF8.self), key)
    }
    for target in after.subtracting(before) {
      try transaction.run(
        "INSERT OR IGNORE INTO record_ref(zone_key, target, record_key) VALUES (?, ?, ?)", zone,
        String(decoding: target, as: UTF8.self), key)
    }
  }
}

extension ReadTransaction {
  /// Records that refer to a target and are deleted with it; at most `limit`.
  func referrers(
    of target: String, zone: Int64, limit: Int
  ) throws(StoreError) -> [(key: Int64, name: String)] {
    try all(
      """
      SELECT f.record_key, r.record_name FROM record_ref f JOIN record r USING (record_key)
      WHERE f.zone_key = ? AND f.target = ? LIMIT ?
      """, zone, target, limit
    ) { ($0.int(0), $0.text(1)) }
  }

  /// Everything that goes with a record, breadth first, but for what `isKept`.
  ///
  /// - Throws: `LIMIT_EXCEEDED`.
  func cascade(
    of id: RecordID, zone: Int64, isKept: (RecordID) -> Bool
  ) throws(StoreError) -> [Int64] {
    var keys: [Int64] = []
    var seen: Set<Int64> = []
    var next = [id.record]
    while !next.isEmpty {
      var found: [String] = []
      for target in next {
        for record in try referrers(of: target, zone: zone, limit: RecordRules.maxCascade + 1)
        where seen.insert(record.key).inserted {
          guard let other = try? RecordID(zone: id.zone, record: record.name), other != id,
            !isKept(other)
          else { continue }
          keys.append(record.key)
          found.append(record.name)
          guard keys.count <= RecordRules.maxCascade else {
            throw StoreError(
              .invalidArgument, "LIMIT_EXCEEDED",
              "more than \(RecordRules.maxCascade) records would go with \(id): delete some first",
              metadata: ["record": id.name, "limit": String(RecordRules.maxCascade)],
              details: [
                .quota(
                  subject: id.name,
                  description: "at most \(RecordRules.maxCascade) records go with one")
              ])
          }
        }
      }
      next = found
    }
    return keys
  }
}

extension StoreError {
  static func referenceViolation(_ target: String, in id: RecordID) -> StoreError {
    StoreError(
      .failedPrecondition, "REFERENCE_VIOLATION",
      "\(id) refers to \(target), with which it would be deleted, and that does not exist",
      metadata: ["record": id.name, "target": target],
      details: [.field("fields", description: "no record \(target) in the zone")])
  }

  static func parentViolation(_ parent: String, of id: RecordID) -> StoreError {
    StoreError(
      .failedPrecondition, "REFERENCE_VIOLATION",
      "\(id) cannot be below \(parent): there is no such record in the zone, or it is below it",
      metadata: ["record": id.name, "target": parent],
      details: [.field("parent", description: "no record \(parent) above")])
  }

  static func tooManyReferences(_ target: String, in id: RecordID) -> StoreError {
    StoreError(
      .invalidArgument, "LIMIT_EXCEEDED",
      "\(target) is the target of \(RecordRules.maxReferences) references with DELETE_SELF",
      metadata: ["record": id.name, "target": target, "limit": String(RecordRules.maxReferences)],
      details: [
        .quota(
          subject: target, description: "at most \(RecordRules.maxReferences) such references")
      ])
  }
}
