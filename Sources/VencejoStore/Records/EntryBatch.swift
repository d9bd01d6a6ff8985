import Glibc
import VencejoSQLite

/// Index entries of many records, written in the order of the index: neighbours go to the same
/// page while it is at hand.
struct EntryBatch {
  private struct Group: Hashable {
    var type: Int64
    var field: Int64
    var kind: IndexKind
  }

  private struct Item {
    var value: IndexScalar
    /// The value's first eight bytes, or the number, so that most comparisons are one of words.
    var prefix: UInt64
    var record: Int
    /// Only of locations.
    var x = 0.0
    var y = 0.0
  }

  private var groups: [Group: [Item]] = [:]
  private var records: [(key: Int64, name: String)] = []

  var count: Int { records.count }

  /// Adds all entries of a record; the keys of its fields' names come with the values.
  mutating func add(
    key: Int64, name: String, type: Int64, _ fields: [(key: Int64, value: RecordValue)]
  ) {
    let record = records.count
    records.append((key, name))
    var words: Set<String> = []
    for field in fields {
      for found in IndexEntry.entries(of: field.value) {
        groups[Group(type: type, field: field.key, kind: found.kind), default: []].append(
          Item(
            value: found.value, prefix: Self.prefix(found.value), record: record, x: found.x,
            y: found.y))
      }
      words.formUnion(RecordWords.words(of: field.value))
    }
    for word in words {
      let value = IndexScalar.text(word)
      groups[Group(type: type, field: 0, kind: .word), default: []].append(
        Item(value: value, prefix: Self.prefix(value), record: record))
    }
  }

  /// Orders as the value does, as far as it goes. Reals have none: they may stand among integers.
  private static func prefix(_ value: IndexScalar) -> UInt64 {
    switch value {
    case .integer(let number): UInt64(bitPattern: number ^ Int64.min)
    case .real: 0
    case .text(let text): prefix(text.utf8)
    case .blob(let bytes): prefix(bytes)
    }
  }

  private static func prefix(_ bytes: some Sequence<UInt8>) -> UInt64 {
    var word: UInt64 = 0
    var count: UInt64 = 0
    for byte in bytes {
      guard count < 8 else { break }
      word = word << 8 | UInt64(byte)
      count += 1
    }
    return count == 0 ? 0 : word << (8 * (8 - count))
  }

  /// Rows of one statement: its cursor stays where the last one went.
  private static let together = 64

  /// Zone, type, field and kind are given once for all rows.
  private static func insert(_ rows: Int) -> String {
    let values = (0..<rows).map {
      "(?1, ?2, ?3, ?4, ?\(5 + 3 * $0), ?\(6 + 3 * $0), ?\(7 + 3 * $0))"
    }
    return """
      INSERT OR IGNORE INTO record_entry(
        zone_key, type_key, field_key, kind, value, record_name, record_key)
      VALUES \(values.joined(separator: ", "))
      """
  }

  /// Writes all of it.
  func write(_ transaction: WriteTransaction, zone: Int64) throws(StoreError) {
    let one = try transaction.repeated(Self.insert(1))
    let many = try transaction.repeated(Self.insert(Self.together))
    let areNamesOrdered = zip(records, records.dropFirst()).allSatisfy {
      Self.order($0.name, $1.name) < 0
    }
    for (group, items) in groups.sorted(by: {
      ($0.key.type, $0.key.field, $0.key.kind.rawValue)
        < ($1.key.type, $1.key.field, $1.key.kind.rawValue)
    }) {
      let items = sorted(items, areNamesOrdered)
      guard group.kind != .location else {
        try writePlaces(items, group, transaction, zone: zone)
        continue
      }
      for statement in [one, many] {
        statement.bind(1, zone)
        statement.bind(2, group.type)
        statement.bind(3, group.field)
        statement.bind(4, group.kind.rawValue)
      }
      var start = 0
      while start < items.count {
        let rows = items.count - start >= Self.together ? Self.together : 1
        let statement = rows == 1 ? one : many
        var place: Int32 = 5
        for item in items[start..<start + rows] {
          bind(item, to: statement, at: place)
          place += 3
        }
        try transaction.run(statement)
        start += rows
      }
    }
  }

  private func bind(_ item: Item, to statement: RepeatedStatement, at place: Int32) {
    switch item.value {
    case .integer(let number): statement.bind(place, number)
    case .real(let number): statement.bind(place, number)
    case .text(let text): statement.bind(place, text)
    case .blob(let bytes): statement.bind(place, bytes)
    }
    let record = records[item.record]
    statement.bind(place + 1, record.name)
    statement.bind(place + 2, record.key)
  }

  private func writePlaces(
    _ items: [Item], _ group: Group, _ transaction: WriteTransaction, zone: Int64
  ) throws(StoreError) {
    let indexer = RecordIndexer(transaction)
    for item in items {
      let record = records[item.record]
      try indexer.insert(
        IndexEntry(kind: .location, value: item.value, x: item.x, y: item.y), group.field,
        RecordIndexer.Place(record: record.key, name: record.name, zone: zone, type: group.type))
    }
  }

  private func sorted(_ items: [Item], _ areNamesOrdered: Bool) -> [Item] {
    let hasReals = items.contains { if case .real = $0.value { true } else { false } }
    return items.sorted { a, b in
      if !hasReals, a.prefix != b.prefix { return a.prefix < b.prefix }
      let order =
        switch (a.value, b.value) {
        case (.integer(let x), .integer(let y)): x < y ? -1 : x > y ? 1 : 0
        case (.text(let x), .text(let y)): Self.order(x, y)
        default: IndexScalar.order(a.value, b.value)
        }
      if order != 0 { return order < 0 }
      return areNamesOrdered
        ? a.record < b.record : Self.order(records[a.record].name, records[b.record].name) < 0
    }
  }

  /// By bytes, as SQLite compares texts.
  static func order(_ a: String, _ b: String) -> Int {
    var (a, b) = (a, b)
    return a.withUTF8 { x in
      b.withUTF8 { y in
        let common = min(x.count, y.count)
        if common > 0, let left = x.baseAddress, let right = y.baseAddress {
          let result = memcmp(left, right, common)
          if result != 0 { return Int(result) }
        }
        return x.count - y.count
      }
    }
  }
}
