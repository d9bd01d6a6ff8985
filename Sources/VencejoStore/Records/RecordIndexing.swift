import VencejoSQLite

/// Which fields a record has, and what each can be found by.
struct RecordShape: Sendable, Hashable {
  enum Form: Character {
    case value = "v"
    case place = "p"
    case list = "l"
    case asset = "a"
  }

  var forms: [Int64: Form]

  /// The form of a field's value; nil when the index knows nothing of it.
  static func form(of value: RecordValue) -> Form? {
    switch value {
    case .location: .place
    case .list: .list
    case .string, .int64, .double, .bytes, .timestamp, .reference: .value
    case .asset: .asset
    }
  }

  var text: String {
    forms.sorted { $0.key < $1.key }.map { "\($0.key)\($0.value.rawValue)" }
      .joined(separator: ",")
  }

  init(forms: [Int64: Form]) { self.forms = forms }

  init(text: String) {
    forms = [:]
    for part in text.split(separator: ",") {
      guard let form = part.last.flatMap({ Form(rawValue: $0) }), let key = Int64(part.dropLast())
      else { continue }
      forms[key] = form
    }
  }
}

/// Keeps the index in step with the records, for the length of one batch.
struct RecordIndexer {
  let transaction: WriteTransaction
  private var words: [String: Int64] = [:]

  init(_ transaction: WriteTransaction) { self.transaction = transaction }

  /// The key of a type's or a field's name.
  mutating func word(_ word: String) throws(StoreError) -> Int64 {
    if let known = words[word] { return known }
    try transaction.run("INSERT OR IGNORE INTO record_word(word) VALUES (?)", word)
    let key = try transaction.first("SELECT word_key FROM record_word WHERE word = ?", word) {
      $0.int(0)
    }
    guard let key else { throw .damagedRecord }
    words[word] = key
    return key
  }

  /// Brings the index from the old image to the new one. A record keeps its type.
  mutating func update(
    _ saved: StoredRecord, old: StoredRecord?, key: Int64, zone: Int64, typeKey: Int64
  ) throws(StoreError) {
    let place = Place(record: key, name: saved.id.record, zone: zone, type: typeKey)
    let names = Set(saved.fields.keys).union(old.map { Set($0.fields.keys) } ?? [])
    for name in names where saved.fields[name] != old?.fields[name] {
      let fieldKey = try word(name)
      if let value = old?.fields[name] { try remove(value, fieldKey, place) }
      guard let value = saved.fields[name] else { continue }
      for found in IndexEntry.entries(of: value) { try insert(found, fieldKey, place) }
    }
    try updateWords(saved, old: old, place)
    try updateReferences(saved, old: old, key: key, zone: zone)
    try updateShape(saved, key: key, zone: zone, typeKey: typeKey)
  }

  /// Forgets a record that is deleted.
  mutating func remove(_ old: StoredRecord, key: Int64, zone: Int64) throws(StoreError) {
    let place = Place(record: key, name: old.id.record, zone: zone, type: try word(old.type))
    for (name, value) in old.fields { try remove(value, try word(name), place) }
    for word in RecordWords.all(in: old) {
      try remove(IndexEntry(kind: .word, value: .text(word)), 0, place)
    }
    try transaction.run("DELETE FROM record_ref WHERE record_key = ?", key)
    try count(-1, record: key)
    try transaction.run("UPDATE record SET shape_key = NULL WHERE record_key = ?", key)
  }

  /// Forgets everything of a zone.
  static func removeZone(_ zone: Int64, _ transaction: WriteTransaction) throws(StoreError) {
    try transaction.run(
      """
      DELETE FROM record_geo WHERE place_key IN (
        SELECT place_key FROM record_entry WHERE zone_key = ? AND place_key IS NOT NULL)
      """, zone)
    try transaction.run("DELETE FROM record_entry WHERE zone_key = ?", zone)
    try transaction.run("DELETE FROM record_pending WHERE zone_key = ?", zone)
    try transaction.run("DELETE FROM record_ref WHERE zone_key = ?", zone)
    try transaction.run("DELETE FROM record_shape WHERE zone_key = ?", zone)
    try transaction.run("DELETE FROM record_scope WHERE zone_key = ?", zone)
  }

  // MARK: Parts

  /// Whose entries they are.
  struct Place {
    var record: Int64
    var name: String
    var zone: Int64
    var type: Int64
  }

  /// Adds an entry unless it is there: a list that holds a value twice has it once.
  func insert(_ found: IndexEntry, _ field: Int64, _ at: Place) throws(StoreError) {
    let inserted = try transaction.run(
      """
      INSERT OR IGNORE INTO record_entry(
        zone_key, type_key, field_key, kind, value, record_name, record_key)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      """, at.zone, at.type, field, found.kind.rawValue, found.value, at.name, at.record)
    guard inserted == 1, found.kind == .location, case .real(let z) = found.value else { return }
    try transaction.run(
      "INSERT OR IGNORE INTO record_scope(zone_key, type_key, field_key) VALUES (?, ?, ?)",
      at.zone, at.type, field)
    try transaction.run(
      """
      INSERT INTO record_geo(
        x0, x1, y0, y1, z0, z1, s0, s1, record_key, record_name, x, y, z)
      SELECT ?1, ?1, ?2, ?2, ?3, ?3, scope_key, scope_key, ?4, ?5, ?1, ?2, ?3
      FROM record_scope WHERE zone_key = ?6 AND type_key = ?7 AND field_key = ?8
      """, found.x, found.y, z, at.record, at.name, at.zone, at.type, field)
    try transaction.run(
      """
      UPDATE record_entry SET place_key = ?
      WHERE zone_key = ? AND type_key = ? AND field_key = ? AND kind = ? AND value = ?
        AND record_name = ?
      """, transaction.lastInsertRowID, at.zone, at.type, field, found.kind.rawValue, found.value,
      at.name)
  }

  private func remove(
    _ value: RecordValue, _ field: Int64, _ at: Place
  ) throws(StoreError) {
    for entry in IndexEntry.entries(of: value) { try remove(entry, field, at) }
  }

  private func remove(_ entry: IndexEntry, _ field: Int64, _ at: Place) throws(StoreError) {
    if entry.kind == .location {
      try transaction.run(
        """
        DELETE FROM record_geo WHERE place_key = (
          SELECT place_key FROM record_entry
          WHERE zone_key = ? AND type_key = ? AND field_key = ? AND kind = ? AND value = ?
            AND record_name = ?)
        """, at.zone, at.type, field, entry.kind.rawValue, entry.value, at.name)
    }
    try transaction.run(
      """
      DELETE FROM record_entry
      WHERE zone_key = ? AND type_key = ? AND field_key = ? AND kind = ? AND value = ?
        AND record_name = ?
      """, at.zone, at.type, field, entry.kind.rawValue, entry.value, at.name)
  }

  private func updateWords(
    _ saved: StoredRecord, old: StoredRecord?, _ at: Place
  ) throws(StoreError) {
    let before = old.map { RecordWords.all(in: $0) } ?? []
    let after = RecordWords.all(in: saved)
    for word in before.subtracting(after) {
      try remove(IndexEntry(kind: .word, value: .text(word)), 0, at)
    }
    for word in after.subtracting(before) {
      try insert(IndexEntry(kind: .word, value: .text(word)), 0, at)
    }
  }

  private mutating func updateShape(
    _ saved: StoredRecord, key: Int64, zone: Int64, typeKey: Int64
  ) throws(StoreError) {
    var forms: [Int64: RecordShape.Form] = [:]
    for (name, value) in saved.fields {
      if let form = RecordShape.form(of: value) { forms[try word(name)] = form }
    }
    let shape = RecordShape(forms: forms).text
    try count(-1, record: key)
    try transaction.run(
      """
      INSERT INTO record_shape(zone_key, type_key, shape, records) VALUES (?, ?, ?, 1)
      ON CONFLICT DO UPDATE SET records = records + 1
      """, zone, typeKey, shape)
    try transaction.run(
      """
      UPDATE record SET shape_key = (
        SELECT shape_key FROM record_shape WHERE zone_key = ? AND type_key = ? AND shape = ?)
      WHERE record_key = ?
      """, zone, typeKey, shape, key)
  }

  private func count(_ change: Int64, record: Int64) throws(StoreError) {
    try transaction.run(
      """
      UPDATE record_shape SET records = records + ?
      WHERE shape_key = (SELECT shape_key FROM record WHERE record_key = ?)
      """, change, record)
  }
}
