import VencejoCrypto
import VencejoSQLite

/// What became of a part of an import.
public struct BulkOutcome: Sendable {
  public var imported = 0
  /// Records that were there already, or that the schema refuses; each with why.
  public var failures: [(record: RecordID, error: StoreError)] = []

  public init() {}
}

extension WriteTransaction {
  /// Takes new records in, many at once: without an event for each, without firings. Feeds of the
  /// zone tell of them; streams of the database start afresh.
  ///
  /// Their system fields count where they are given: creator, last modifier, times.
  ///
  /// - Throws: `ZONE_NOT_FOUND`, `QUOTA_EXCEEDED`, `NOT_YOUR_DATABASE`.
  public func importRecords(
    _ records: [StoredRecord], into id: ZoneID, in database: RecordDatabase, caller: RecordCaller
  ) throws(StoreError) -> BulkOutcome {
    guard database.isWhole else { throw .notYours(database.id) }
    let zone = try recordZone(id, in: database)
    let first = reserve(records.count)
    var bulk = RecordBulk(self, database, zone, caller)
    for (index, record) in records.enumerated() {
      try bulk.add(record, change: first + Int64(index))
    }
    let outcome = try bulk.finish()
    guard outcome.imported > 0 else { return outcome }
    append(
      .accessChanged, zone: zone.key,
      payload: RecordsTouched(database: database.key, change: .accessChanged))
    try run(
      "UPDATE record_zone SET change = ?, update_us = ? WHERE zone_key = ?",
      first + Int64(records.count) - 1, now, zone.key)
    return outcome
  }
}

private struct RecordBulk {
  private struct Entry {
    var record: Int64
    var name: String
    var field: Int64
    var type: Int64
    var entry: IndexEntry
  }

  private let transaction: WriteTransaction
  private let database: RecordDatabase
  private let zone: StoredZone
  private let caller: RecordCaller
  private var indexer: RecordIndexer
  private var schema: RecordSchema
  private var didGrow = false
  private var shapes: [String: (key: Int64, more: Int64)] = [:]
  private var entries: [Entry] = []
  private var usage = UsageChange()
  private var outcome = BulkOutcome()

  init(
    _ transaction: WriteTransaction, _ database: RecordDatabase, _ zone: StoredZone,
    _ caller: RecordCaller
  ) {
    self.transaction = transaction
    self.database = database
    self.zone = zone
    self.caller = caller
    indexer = RecordIndexer(transaction)
    schema = database.access.schema
  }

  mutating func add(_ record: StoredRecord, change: Int64) throws(StoreError) {
    do throws(StoreError) {
      guard RecordNaming.isWord(record.type) else {
        throw .invalid("record_type", "INVALID_RECORD_TYPE", "\(record.type) is no record type")
      }
      do throws(RecordViolation) {
        try RecordRules.check(fields: record.fields, in: zone.id.zone)
      } catch { throw StoreError(error) }
      let isNew = !schema.knows(record.type, record.fields)
      try schema.admit(
        type: record.type, fields: record.fields, old: [:], in: database.environment)
      didGrow = didGrow || isNew
      let blob = RecordCoding.encode(record.fields)
      guard blob.count <= RecordRules.maxRecordBytes else {
        throw .tooMany("bytes of a record", limit: RecordRules.maxRecordBytes)
      }
      guard record.assets.isEmpty, record.owners.isEmpty else {
        throw .invalid(
          "fields", "NOT_IMPORTED", "files and references that bind are saved, not imported")
      }
      try insert(record, blob, change)
    } catch {
      switch error.code {
      case .invalidArgument, .failedPrecondition, .alreadyExists:
        outcome.failures.append((record.id, error))
      default: throw error
      }
    }
  }

  private mutating func insert(
    _ record: StoredRecord, _ blob: [UInt8], _ change: Int64
  ) throws(StoreError) {
    let type = try indexer.word(record.type)
    let shape = try self.shape(of: record, type)
    let now = transaction.now
    let created = record.createTime == 0 ? now : record.createTime
    let inserted = try transaction.run(
      """
      INSERT OR IGNORE INTO record(zone_key, record_name, type_key, fields, change, change_tag,
        created_us, modified_us, creator, modifier, deleted, shape_key, parent)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)
      """, zone.key, record.id.record, type, blob, change, Base64URL.encode(SecureRandom.bytes(9)),
      created, record.updateTime == 0 ? created : record.updateTime,
      record.creator.isEmpty ? caller.user : record.creator,
      record.lastModifier.isEmpty ? caller.user : record.lastModifier, shape.key, record.parent)
    guard inserted == 1 else {
      throw StoreError(
        .alreadyExists, "RECORD_EXISTS", "\(record.id) is there, or was and is deleted",
        metadata: ["record": record.id.name])
    }
    shapes[shape.text]?.more += 1
    let key = transaction.lastInsertRowID
    for (name, value) in record.fields {
      let field = try indexer.word(name)
      for found in IndexEntry.entries(of: value) {
        entries.append(
          Entry(record: key, name: record.id.record, field: field, type: type, entry: found))
      }
    }
    for word in RecordWords.all(in: record) {
      entries.append(
        Entry(
          record: key, name: record.id.record, field: 0, type: type,
          entry: IndexEntry(kind: .word, value: .text(word))))
    }
    usage.records += 1
    usage.recordBytes += Int64(blob.count)
    outcome.imported += 1
  }

  private mutating func shape(
    of record: StoredRecord, _ type: Int64
  ) throws(StoreError) -> (text: String, key: Int64) {
    var forms: [Int64: RecordShape.Form] = [:]
    for (name, value) in record.fields {
      if let form = RecordShape.form(of: value) { forms[try indexer.word(name)] = form }
    }
    let text = RecordShape(forms: forms).text
    let id = "\(type):\(text)"
    if let known = shapes[id] { return (id, known.key) }
    try transaction.run(
      """
      INSERT OR IGNORE INTO record_shape(zone_key, type_key, shape, records) VALUES (?, ?, ?, 0)
      """, zone.key, type, text)
    let key = try transaction.first(
      "SELECT shape_key FROM record_shape WHERE zone_key = ? AND type_key = ? AND shape = ?",
      zone.key, type, text
    ) { $0.int(0) }
    guard let key else { throw .damagedRecord }
    shapes[id] = (key, 0)
    return (id, key)
  }

  mutating func finish() throws(StoreError) -> BulkOutcome {
    // In the order of the index: neighbours are written together.
    entries.sort {
      ($0.field, $0.entry.kind.rawValue) != ($1.field, $1.entry.kind.rawValue)
        ? ($0.field, $0.entry.kind.rawValue) < ($1.field, $1.entry.kind.rawValue)
        : IndexScalar.order($0.entry.value, $1.entry.value) < 0
    }
    for entry in entries {
      try indexer.insert(
        entry.entry, entry.field, record: entry.record, name: entry.name, zone: zone.key,
        type: entry.type)
    }
    for shape in shapes.values where shape.more > 0 {
      try transaction.run(
        "UPDATE record_shape SET records = records + ? WHERE shape_key = ?", shape.more, shape.key)
    }
    if didGrow { try transaction.keep(schema, of: database.container, database.environment) }
    try transaction.note(usage, in: database)
    try transaction.checkQuota(usage, in: database)
    return outcome
  }
}
