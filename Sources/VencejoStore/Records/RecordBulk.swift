import VencejoCrypto
import VencejoSQLite

/// What became of a part of an import.
public struct BulkOutcome: Sendable {
  public var imported = 0
  /// Records that were there already, or that the schema refuses; each with why.
  public var failures: [(record: RecordID, error: StoreError)] = []

  public init() {}
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
    try bulk(rows.count, into: id, in: database, caller, indexing) {
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
    /// Of rows of a table, once one of the form was checked.
    var forms: [[UInt8]: Shape] = [:]

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

  /// A record that is to be written, with others in one statement.
  private struct Waiting {
    var id: RecordID
    var kind: Kind
    var blob: [UInt8]
    var change: Int64
    /// Which of the import's it is.
    var at: Int
    var shape: Shape
    var system: System
  }

  private let transaction: WriteTransaction
  private let database: RecordDatabase
  private let zone: StoredZone
  private let caller: RecordCaller
  private let indexing: BulkIndexing
  private let statement: RepeatedStatement
  private let tags: [UInt8]
  private var waiting: [Waiting] = []
  private var failures: [(at: Int, record: RecordID, error: StoreError)] = []
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

  /// Without padding, so that the letters of many stand in one text.
  private static let tagBytes = 9
  private static let tagLetters = 12

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
    tags = Array(Base64URL.encode(SecureRandom.bytes(count * Self.tagBytes)).utf8)
    indexer = RecordIndexer(transaction)
    schema = database.access.schema
    statement = try transaction.repeated(Self.insert(Self.together))
  }

  /// Rows of one statement: its cursors stay at the end of their indexes from row to row.
  private static let together = 64

  private static func insert(_ rows: Int) -> String {
    let row = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)"
    return """
      INSERT OR IGNORE INTO record(zone_key, record_name, type_key, fields, change, change_tag,
        created_us, modified_us, creator, modifier, deleted, shape_key, parent)
      VALUES \(repeatElement(row, count: rows).joined(separator: ", "))
      """
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
    var columns: [Column] = []
    for name in rows.fields { columns.append(try column(name, of: kind)) }
    let system = System(
      created: transaction.now, updated: transaction.now, creator: caller.user,
      modifier: caller.user, parent: "")
    for row in rows.rows {
      try attempt(row.id) { bulk throws(StoreError) in
        guard row.elements <= RecordRules.maxElements else {
          throw .tooMany("elements in lists of a record", limit: RecordRules.maxElements)
        }
        let shape: Shape
        if let known = kind.forms[row.form] {
          shape = known
        } else {
          let fields = RecordCoding.decode(row.blob) ?? [:]
          let values = columns.map { fields[$0.name] }
          _ = try bulk.check(row.id, kind, columns, values)
          shape = try bulk.shape(Self.form(columns, values), of: kind)
          kind.forms[row.form] = shape
        }
        try bulk.add(row.id, kind, row.blob, shape, system)
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
        failures.append((at, id, error))
      default: throw error
      }
    }
    change += 1
    at += 1
    if waiting.count == Self.together { try flush() }
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
    var writer = RecordCoding.begin(try check(id, kind, columns, values))
    for (column, value) in zip(columns, values) {
      guard let value else { continue }
      writer.text(column.name)
      RecordCoding.write(value, to: &writer)
    }
    let shape = try self.shape(Self.form(columns, values), of: kind)
    try add(id, kind, writer.bytes, shape, system)
  }

  private static func form(_ columns: [Column], _ values: [RecordValue?]) -> [Int64] {
    var form: [Int64] = []
    for (column, value) in zip(columns, values) {
      if let shape = value.flatMap({ RecordShape.form(of: $0) })?.rawValue.asciiValue {
        form.append(column.key << 8 | Int64(shape))
      }
    }
    return form
  }

  private mutating func add(
    _ id: RecordID, _ kind: Kind, _ blob: [UInt8], _ shape: Shape, _ system: System
  ) throws(StoreError) {
    guard blob.count <= RecordRules.maxRecordBytes else {
      throw .tooMany("bytes of a record", limit: RecordRules.maxRecordBytes)
    }
    waiting.append(
      Waiting(
        id: id, kind: kind, blob: blob, change: change, at: at, shape: shape, system: system))
  }

  /// Writes what waits.
  private mutating func flush() throws(StoreError) {
    guard let first = waiting.first, let last = waiting.last else { return }
    let records = waiting
    waiting.removeAll(keepingCapacity: true)
    let statement =
      records.count == Self.together
      ? self.statement : try transaction.repeated(Self.insert(records.count))
    var place: Int32 = 0
    for record in records {
      statement.bind(place + 1, zone.key)
      statement.bind(place + 2, record.id.record)
      statement.bind(place + 3, record.kind.key)
      statement.bind(place + 4, record.blob)
      statement.bind(place + 5, record.change)
      let start = record.at * Self.tagLetters
      let tag = tags[start..<start + Self.tagLetters]
      statement.bind(place + 6, String(decoding: tag, as: UTF8.self))
      statement.bind(place + 7, record.system.created)
      statement.bind(place + 8, record.system.updated)
      statement.bind(place + 9, record.system.creator)
      statement.bind(place + 10, record.system.modifier)
      statement.bind(place + 11, record.shape.key)
      statement.bind(place + 12, record.system.parent)
      place += 12
    }
    let inserted = try transaction.run(statement)
    // The keys of new rows follow one another.
    let end = transaction.lastInsertRowID
    if inserted == records.count, indexing == .later {
      for record in records { note(record) }
      extend(end - Int64(inserted) + 1)
      extend(end)
      return
    }
    let found = try transaction.all(
      "SELECT change, record_key FROM record WHERE zone_key = ? AND change BETWEEN ? AND ?",
      zone.key, first.change, last.change
    ) { ($0.int(0), $0.int(1)) }
    let written = Dictionary(found) { first, _ in first }
    for record in records {
      guard let key = written[record.change] else {
        failures.append(
          (
            record.at, record.id,
            StoreError(
              .alreadyExists, "RECORD_EXISTS", "\(record.id) is there, or was and is deleted",
              metadata: ["record": record.id.name])
          ))
        continue
      }
      note(record)
      extend(key)
      guard indexing == .now else { continue }
      var fields: [(key: Int64, value: RecordValue)] = []
      for (name, value) in RecordCoding.decode(record.blob) ?? [:] {
        fields.append((try indexer.word(name), value))
      }
      entries.add(key: key, name: record.id.record, type: record.kind.key, fields)
    }
  }

  private mutating func note(_ record: Waiting) {
    record.shape.more += 1
    usage.records += 1
    usage.recordBytes += Int64(record.blob.count)
    outcome.imported += 1
  }

  private mutating func extend(_ key: Int64) {
    keys = min(keys?.lowerBound ?? key, key)...max(keys?.upperBound ?? key, key)
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
    try flush()
    outcome.failures = failures.sorted { $0.at < $1.at }.map { ($0.record, $0.error) }
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
