import VencejoCrypto
import VencejoSQLite

/// What became of a part of an import.
public struct BulkOutcome: Sendable {
  public var imported = 0
  /// Records that were there already, or that the schema refuses; each with why.
  public var failures: [(record: RecordID, error: StoreError)] = []

  public init() {}
}

/// Records of one type, as a table has them.
public struct BulkRows: Sendable {
  public var type: String
  /// The fields of its columns.
  public var fields: [String]
  /// Each with a value, or none, for every field.
  public var rows: [(id: RecordID, values: [RecordValue?])] = []

  public init(type: String, fields: [String]) {
    self.type = type
    self.fields = fields
  }
}

/// When imported records come into the index.
public enum BulkIndexing: Sendable {
  /// In the same commit.
  case now
  /// With ``WriteTransaction/indexPendingRecords()``: until then what needs the index of the zone
  /// is refused with `ZONE_BUSY`.
  case later
}

extension WriteTransaction {
  /// Takes new records in, many at once: without an event for each, without firings. Feeds of the
  /// zone tell of them; streams of the database start afresh.
  ///
  /// Their system fields count where they are given: creator, last modifier, times.
  ///
  /// - Throws: `ZONE_NOT_FOUND`, `QUOTA_EXCEEDED`, `NOT_YOUR_DATABASE`.
  public func importRecords(
    _ records: [StoredRecord], into id: ZoneID, in database: RecordDatabase,
    caller: RecordCaller, indexing: BulkIndexing = .now
  ) throws(StoreError) -> BulkOutcome {
    try bulk(records.count, into: id, in: database, caller, indexing) {
      (bulk: inout RecordBulk) throws(StoreError) in
      for record in records { try bulk.add(record) }
    }
  }

  /// As ``importRecords(_:into:in:caller:indexing:)``, of a table's rows.
  ///
  /// - Throws: As that.
  public func importRows(
    _ rows: BulkRows, into id: ZoneID, in database: RecordDatabase, caller: RecordCaller,
    indexing: BulkIndexing
  ) throws(StoreError) -> BulkOutcome {
    try bulk(rows.rows.count, into: id, in: database, caller, indexing) {
      (bulk: inout RecordBulk) throws(StoreError) in
      try bulk.add(rows)
    }
  }

  private func bulk(
    _ count: Int, into id: ZoneID, in database: RecordDatabase, _ caller: RecordCaller,
    _ indexing: BulkIndexing, _ add: (inout RecordBulk) throws(StoreError) -> Void
  ) throws(StoreError) -> BulkOutcome {
    guard database.isWhole else { throw .notYours(database.id) }
    let zone = try recordZone(id, in: database)
    let first = reserve(count)
    var bulk = try RecordBulk(self, database, zone, caller, count: count, change: first, indexing)
    try add(&bulk)
    let outcome = try bulk.finish()
    guard outcome.imported > 0 else { return outcome }
    append(
      .accessChanged, zone: zone.key,
      payload: RecordsTouched(database: database.key, change: .accessChanged))
    try run(
      "UPDATE record_zone SET change = ?, update_us = ? WHERE zone_key = ?",
      first + Int64(count) - 1, now, zone.key)
    return outcome
  }
}

/// One part of an import on its way. What records have in common, names and the schema's word on
/// them, is looked up once for each field of a type.
struct RecordBulk {
  private final class Column {
    let name: String
    let key: Int64
    /// As the schema has it; nil until a value says what it is.
    var field: RecordSchema.Field?

    init(_ name: String, key: Int64, _ field: RecordSchema.Field?) {
      self.name = name
      self.key = key
      self.field = field
    }
  }

  private final class Kind {
    let name: String
    let key: Int64
    var columns: [String: Column] = [:]
    /// By columns and their forms.
    var shapes: [[Int64]: Shape] = [:]

    init(_ name: String, key: Int64) {
      self.name = name
      self.key = key
    }
  }

  private final class Shape {
    let key: Int64
    var more: Int64 = 0
    init(key: Int64) { self.key = key }
  }

  /// What a record has beside its fields.
  private struct System {
    var created: Int64
    var updated: Int64
    var creator: String
    var modifier: String
    var parent: String
  }

  private let transaction: WriteTransaction
  private let database: RecordDatabase
  private let zone: StoredZone
  private let caller: RecordCaller
  private let indexing: BulkIndexing
  private let statement: RepeatedStatement
  private let tags: [UInt8]
  private var change: Int64
  private var at = 0
  private var indexer: RecordIndexer
  private var schema: RecordSchema
  private var didGrow = false
  private var kinds: [String: Kind] = [:]
  private var entries = EntryBatch()
  private var keys: ClosedRange<Int64>?
  private var usage = UsageChange()
  private var outcome = BulkOutcome()

  private static let tagBytes = 9

  init(
    _ transaction: WriteTransaction, _ database: RecordDatabase, _ zone: StoredZone,
    _ caller: RecordCaller, count: Int, change: Int64, _ indexing: BulkIndexing
  ) throws(StoreError) {
    self.transaction = transaction
    self.database = database
    self.zone = zone
    self.caller = caller
    self.change = change
    self.indexing = indexing
    tags = SecureRandom.bytes(count * Self.tagBytes)
    indexer = RecordIndexer(transaction)
    schema = database.access.schema
    statement = try transaction.repeated(
      """
      INSERT OR IGNORE INTO record(zone_key, record_name, type_key, fields, change, change_tag,
        created_us, modified_us, creator, modifier, deleted, shape_key, parent)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, ?11, ?12)
      """)
    statement.bind(1, zone.key)
  }

  // MARK: Records

  mutating func add(_ record: StoredRecord) throws(StoreError) {
    let created = record.createTime == 0 ? transaction.now : record.createTime
    let system = System(
      created: created, updated: record.updateTime == 0 ? created : record.updateTime,
      creator: record.creator.isEmpty ? caller.user : record.creator,
      modifier: record.lastModifier.isEmpty ? caller.user : record.lastModifier,
      parent: record.parent)
    try attempt(record.id) { bulk throws(StoreError) in
      let kind = try bulk.kind(record.type)
      let sorted = record.fields.sorted { $0.key < $1.key }
      var columns: [Column] = []
      for (name, _) in sorted { columns.append(try bulk.column(name, of: kind)) }
      try bulk.add(record.id, kind, columns, sorted.map { $0.value }, system)
    }
  }

  mutating func add(_ rows: BulkRows) throws(StoreError) {
    let kind = try self.kind(rows.type)
    let order = rows.fields.indices.sorted { rows.fields[$0] < rows.fields[$1] }
    var columns: [Column] = []
    for index in order { columns.append(try column(rows.fields[index], of: kind)) }
    let system = System(
      created: transaction.now, updated: transaction.now, creator: caller.user,
      modifier: caller.user, parent: "")
    for row in rows.rows {
      try attempt(row.id) { bulk throws(StoreError) in
        try bulk.add(row.id, kind, columns, order.map { row.values[$0] }, system)
      }
    }
  }

  /// A record that is refused is told; whatever else fails ends the import.
  private mutating func attempt(
    _ id: RecordID, _ body: (inout RecordBulk) throws(StoreError) -> Void
  ) throws(StoreError) {
    do throws(StoreError) {
      try body(&self)
    } catch {
      switch error.code {
      case .invalidArgument, .failedPrecondition, .alreadyExists:
        outcome.failures.append((id, error))
      default: throw error
      }
    }
    change += 1
    at += 1
  }

  private mutating func kind(_ name: String) throws(StoreError) -> Kind {
    if let known = kinds[name] { return known }
    guard RecordNaming.isWord(name) else {
      throw .invalid("record_type", "INVALID_RECORD_TYPE", "\(name) is no record type")
    }
    let kind = Kind(name, key: try indexer.word(name))
    kinds[name] = kind
    return kind
  }

  private mutating func column(_ name: String, of kind: Kind) throws(StoreError) -> Column {
    if let known = kind.columns[name] { return known }
    guard RecordNaming.isWord(name) else {
      throw .invalid(
        "fields", "INVALID_ARGUMENT",
        "a field name is A-Z a-z 0-9 _, starts with a letter and has at most 255")
    }
    let column = Column(
      name, key: try indexer.word(name), schema.types[kind.name]?.fields[name])
    kind.columns[name] = column
    return column
  }

  private mutating func add(
    _ id: RecordID, _ kind: Kind, _ columns: [Column], _ values: [RecordValue?], _ system: System
  ) throws(StoreError) {
    let count = try check(id, kind, columns, values)
    var writer = RecordCoding.begin(count)
    var form: [Int64] = []
    for (column, value) in zip(columns, values) {
      guard let value else { continue }
      writer.text(column.name)
      RecordCoding.write(value, to: &writer)
      if let shape = RecordShape.form(of: value)?.rawValue.asciiValue {
        form.append(column.key << 8 | Int64(shape))
      }
    }
    guard writer.bytes.count <= RecordRules.maxRecordBytes else {
      throw .tooMany("bytes of a record", limit: RecordRules.maxRecordBytes)
    }
    let shape = try self.shape(form, of: kind)
    statement.bind(2, id.record)
    statement.bind(3, kind.key)
    statement.bind(4, writer.bytes)
    statement.bind(5, change)
    let start = at * Self.tagBytes
    statement.bind(6, Base64URL.encode(Array(tags[start..<start + Self.tagBytes])))
    statement.bind(7, system.created)
    statement.bind(8, system.updated)
    statement.bind(9, system.creator)
    statement.bind(10, system.modifier)
    statement.bind(11, shape.key)
    statement.bind(12, system.parent)
    guard try transaction.run(statement) == 1 else {
      throw StoreError(
        .alreadyExists, "RECORD_EXISTS", "\(id) is there, or was and is deleted",
        metadata: ["record": id.name])
    }
    let key = transaction.lastInsertRowID
    shape.more += 1
    keys = min(keys?.lowerBound ?? key, key)...max(keys?.upperBound ?? key, key)
    if indexing == .now {
      var fields: [(key: Int64, value: RecordValue)] = []
      for (column, value) in zip(columns, values) {
        if let value { fields.append((column.key, value)) }
      }
      entries.add(key: key, name: id.record, type: kind.key, fields)
    }
    usage.records += 1
    usage.recordBytes += Int64(writer.bytes.count)
    outcome.imported += 1
  }

  /// What a save would be refused for; answers how many fields there are. A field that is new
  /// enters the schema.
  private mutating func check(
    _ id: RecordID, _ kind: Kind, _ columns: [Column], _ values: [RecordValue?]
  ) throws(StoreError) -> Int {
    var count = 0
    var elements = 0
    var isNew = schema.types[kind.name] == nil
    for (column, value) in zip(columns, values) {
      guard let value else { continue }
      count += 1
      if case .list(let list) = value { elements += list.count }
      isNew = isNew || column.field == nil
      do throws(RecordViolation) {
        try RecordRules.check(value, field: column.name, zone: zone.id.zone)
      } catch { throw StoreError(error) }
      guard value.assets.isEmpty, value.owners.isEmpty else {
        throw .invalid(
          "fields", "NOT_IMPORTED", "files and references that bind are saved, not imported")
      }
      if let field = column.field, !field.holds(value) {
        throw .typeMismatch(column.name, field, in: kind.name)
      }
    }
    guard count <= RecordRules.maxFields, elements <= RecordRules.maxElements else {
      throw .tooMany(
        count > RecordRules.maxFields ? "fields of a record" : "elements in lists of a record",
        limit: count > RecordRules.maxFields ? RecordRules.maxFields : RecordRules.maxElements)
    }
    guard isNew else { return count }
    var fields: [String: RecordValue] = [:]
    for (column, value) in zip(columns, values) { fields[column.name] = value }
    var grown = schema
    try grown.admit(type: kind.name, fields: fields, old: [:], in: database.environment)
    schema = grown
    didGrow = true
    for column in columns { column.field = schema.types[kind.name]?.fields[column.name] }
    return count
  }

  private mutating func shape(_ form: [Int64], of kind: Kind) throws(StoreError) -> Shape {
    if let known = kind.shapes[form] { return known }
    var forms: [Int64: RecordShape.Form] = [:]
    for part in form {
      let letter = Character(UnicodeScalar(UInt8(truncatingIfNeeded: part & 0xff)))
      forms[part >> 8] = RecordShape.Form(rawValue: letter)
    }
    let text = RecordShape(forms: forms).text
    try transaction.run(
      """
      INSERT OR IGNORE INTO record_shape(zone_key, type_key, shape, records) VALUES (?, ?, ?, 0)
      """, zone.key, kind.key, text)
    let key = try transaction.first(
      "SELECT shape_key FROM record_shape WHERE zone_key = ? AND type_key = ? AND shape = ?",
      zone.key, kind.key, text
    ) { $0.int(0) }
    guard let key else { throw .damagedRecord }
    let shape = Shape(key: key)
    kind.shapes[form] = shape
    return shape
  }

  mutating func finish() throws(StoreError) -> BulkOutcome {
    switch indexing {
    case .now: try entries.write(transaction, zone: zone.key)
    case .later:
      if let keys {
        try transaction.run(
          "INSERT INTO record_pending(first_key, last_key, zone_key) VALUES (?, ?, ?)",
          keys.lowerBound, keys.upperBound, zone.key)
      }
    }
    for kind in kinds.values {
      for shape in kind.shapes.values where shape.more > 0 {
        try transaction.run(
          "UPDATE record_shape SET records = records + ? WHERE shape_key = ?", shape.more,
          shape.key)
      }
    }
    if didGrow { try transaction.keep(schema, of: database.container, database.environment) }
    try transaction.note(usage, in: database)
    try transaction.checkQuota(usage, in: database)
    return outcome
  }
}
