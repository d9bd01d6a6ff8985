import Glibc
import TestSupport
import Testing
import VencejoSQLite

@testable import VencejoStore

/// What a query reads: counted, and seen in SQLite's own plan.
@Suite struct QueryIndexTests {
  static let count = 3_000
  static let center = RecordLocation(latitude: 48, longitude: 2)

  /// Records of one type in two zones; the second is small.
  private static func fill(_ bench: RecordBench, _ count: Int = count) async throws {
    try await bench.makeZone()
    var random = SeededGenerator(state: 7)
    for start in stride(from: 0, to: count, by: 400) {
      let records = try (start..<min(start + 400, count)).map { index in
        var fields: [String: RecordValue] = [
          "n": .int64(Int64(index)), "group": .int64(Int64(index % 10)),
          "title": .string("title \(index)"), "text": .string("Café number\(index % 20) of all"),
          "tags": .list([.string("t\(index % 10)"), .string("x\(index % 7)")]),
          "flag": .int64(1),
          "place": .location(
            RecordLocation(
              latitude: 48 + Double.random(in: -2...2, using: &random),
              longitude: 2 + Double.random(in: -2...2, using: &random))),
        ]
        if index % 2 == 0 { fields["half"] = .double(Double(index) / 3) }
        return try bench.record("r\(index)", fields)
      }
      try await bench.save(records, mixed: true)
    }
  }

  struct Case: Sendable {
    var name: String
    var predicate: Predicate?
    var sort: [SortKey] = []
  }

  static let cases: [Case] =
    [
      Case(name: "everything"),
      Case(name: "="), Case(name: "!="), Case(name: "<"), Case(name: "<="), Case(name: ">"),
      Case(name: ">="),
    ].enumerated().map { index, found in
      let comparators: [Predicate.Comparator] = [
        .equal, .notEqual, .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual,
      ]
      var found = found
      if index > 0 {
        found.predicate = .comparison(field: "group", comparators[index - 1], .int64(4))
      }
      return found
    } + [
      Case(name: "!= most", predicate: .comparison(field: "flag", .notEqual, .int64(1))),
      Case(
        name: "not =", predicate: .not(.comparison(field: "flag", .equal, .int64(1)))),
      Case(name: "in", predicate: .isIn(field: "group", [.int64(1), .double(2), .string("x")])),
      Case(name: "begins with", predicate: .beginsWith(field: "title", "title 1")),
      Case(
        name: "contains any",
        predicate: .listContains(field: "tags", [.string("t1"), .string("x2")], all: false)),
      Case(
        name: "contains all",
        predicate: .listContains(field: "tags", [.string("t1")], all: true)),
      Case(
        name: "search any",
        predicate: .search(words: ["cafe", "NUMBER3"], all: false, fields: [])),
      Case(name: "search in", predicate: .search(words: ["number3"], all: true, fields: ["text"])),
      Case(
        name: "distance",
        predicate: .distance(field: "place", center: center, radiusMeters: 150_000)
      ),
      Case(name: "present", predicate: .present(field: "half")),
      Case(name: "not present", predicate: .not(.present(field: "half"))),
      Case(
        name: "or",
        predicate: .anyOf([
          .comparison(field: "group", .equal, .int64(1)),
          .comparison(field: "n", .equal, .int64(12)),
        ])),
      Case(
        name: "and",
        predicate: .allOf([
          .comparison(field: "flag", .equal, .int64(1)),
          .comparison(field: "n", .greaterThan, .int64(2_950)),
        ])),
      Case(name: "creator", predicate: .comparison(field: "___creator", .equal, .string("ada"))),
      Case(
        name: "created", predicate: .comparison(field: "___createTime", .greaterThan, .timestamp(0))
      ),
      Case(name: "sort", sort: [SortKey("n")]),
      Case(name: "sort down", sort: [SortKey("n", descending: true)]),
      Case(name: "sort few values", sort: [SortKey("group", descending: true)]),
      Case(name: "sort half", sort: [SortKey("half")]),
      Case(name: "sort half down", sort: [SortKey("half", descending: true)]),
      Case(name: "sort two", sort: [SortKey("n"), SortKey("half", descending: true)]),
      Case(name: "sort one value then", sort: [SortKey("flag"), SortKey("n", descending: true)]),
      Case(name: "sort time", sort: [SortKey("___createTime", descending: true)]),
      Case(name: "sort name", sort: [SortKey("___recordName", descending: true)]),
      Case(name: "sort distance", sort: [SortKey("place", relativeTo: center)]),
      Case(
        name: "sort distance down", sort: [SortKey("place", descending: true, relativeTo: center)]),
      Case(
        name: "range sorted by it",
        predicate: .comparison(field: "n", .greaterThan, .int64(100)),
        sort: [SortKey("n", descending: true)]),
    ]

  /// The bound: rows read at most four times the page. A row is an entry of the index or
  /// a record.
  @Test func readsAtMostFourTimesThePage() async throws {
    let bench = try RecordBench()
    defer { bench.store.close() }
    try await Self.fill(bench)
    let pageSize = 100
    for test in Self.cases {
      let query = RecordQuery(type: "Note", predicate: test.predicate, sort: test.sort)
      var token = ""
      // The first pages and then, from the middle, some more.
      for _ in 0..<4 {
        let (page, rows, plans) = try await measure(bench, query, pageSize, token)
        #expect(rows <= 4 * pageSize, "\(test.name) read \(rows)")
        #expect(
          page.nextPageToken == nil || page.records.count == pageSize,
          "\(test.name): \(page.records.count)")
        for plan in plans {
          let isScan = plan.contains("SCAN") && !plan.contains("VIRTUAL TABLE INDEX")
          #expect(!isScan && !plan.contains("TEMP B-TREE"), "\(test.name): \(plan)")
        }
        guard let next = page.nextPageToken else { break }
        token = next
      }
    }
  }

  /// For every operator with every sort; `Scripts/bench/records` has more.
  private static let few =
    getenv("VENCEJO_BENCH_RECORDS").flatMap { Int(String(cString: $0)) } ?? 1_000

  /// Each is asked for alone and together with the one after it.
  static let operators: [(name: String, field: String, predicate: Predicate)] = [
    ("=", "group", .comparison(field: "group", .equal, .int64(4))),
    ("!=", "group", .comparison(field: "group", .notEqual, .int64(4))),
    ("<", "n", .comparison(field: "n", .lessThan, .int64(700))),
    ("<=", "n", .comparison(field: "n", .lessThanOrEqual, .int64(700))),
    (">", "n", .comparison(field: "n", .greaterThan, .int64(300))),
    (">=", "n", .comparison(field: "n", .greaterThanOrEqual, .int64(300))),
    ("in", "group", .isIn(field: "group", [.int64(1), .int64(2)])),
    ("begins with", "title", .beginsWith(field: "title", "title 1")),
    ("contains", "tags", .listContains(field: "tags", [.string("t1")], all: false)),
    (
      "contains all", "tags",
      .listContains(field: "tags", [.string("t1"), .string("x2")], all: true)
    ),
    ("search", "text", .search(words: ["number3"], all: true, fields: ["text"])),
    ("distance", "place", .distance(field: "place", center: center, radiusMeters: 150_000)),
    ("present", "half", .present(field: "half")),
    ("not present", "half", .not(.present(field: "half"))),
    ("creator", "___creator", .comparison(field: "___creator", .equal, .string("ada"))),
  ]

  static let sorts: [[SortKey]] =
    ["n", "group", "title", "half", "___recordName", "___updateTime"].flatMap {
      [[SortKey($0)], [SortKey($0, descending: true)]]
    } + [
      [], [SortKey("place", relativeTo: center)],
      [SortKey("group"), SortKey("n", descending: true)],
      [SortKey("half", descending: true), SortKey("title")],
      [SortKey("flag"), SortKey("place", relativeTo: center)],
    ]

  /// Every operator, and every two neighbours of them, with every sort: whatever the size of the
  /// page, an answer reads at most four rows for each record asked for, and the pages together have
  /// every record once, in order. Who asks for larger pages when some come short, as
  /// clients do, comes to the end soon.
  @Test func everyOperatorWithEverySort() async throws {
    let bench = try RecordBench()
    defer { bench.store.close() }
    try await Self.fill(bench, Self.few)
    let predicates =
      Self.operators.map { ($0.name, $0.predicate) }
      + zip(Self.operators, Self.operators.dropFirst()).map {
        ("\($0.name) and \($1.name)", .allOf([$0.predicate, $1.predicate]))
      }
    var most = 0.0
    var pairs = 0
    for (name, predicate) in predicates {
      var expected: Int?
      let sorts = stride(from: 0, to: Self.sorts.count, by: name.contains(" and ") ? 3 : 1).map {
        Self.sorts[$0]
      }
      for sort in sorts {
        let query = RecordQuery(type: "Note", predicate: predicate, sort: sort)
        let what = "\(name) by \(sort.map { ($0.field, $0.descending) })"
        let plan = try query.checked().plan
        var (token, found, pages) = ("", 0, 0)
        var last: SortPosition?
        repeat {
          let size = pages < 8 ? [22, 50, 1, 2, 3, 22, 5, 100][pages] : 1_000
          let (page, rows, plans) = try await measure(bench, query, size, token, zone: bench.zone)
          most = max(most, Double(rows) / Double(max(size, 4)))
          #expect(rows <= max(4 * size, 16), "\(what) read \(rows) for \(size)")
          for plan in plans {
            let isScan = plan.contains("SCAN") && !plan.contains("VIRTUAL TABLE INDEX")
            #expect(!isScan, "\(what): \(plan)")
          }
          found += page.records.count
          for record in page.records {
            let position = SortPosition(of: record, in: plan)
            if let last { #expect(SortPosition.order(last, position, in: plan) < 0, "\(what)") }
            last = position
          }
          // An answer is a step forward.
          #expect(page.nextPageToken != token, "\(what)")
          token = page.nextPageToken ?? ""
          pages += 1
        } while !token.isEmpty && pages < 40 + Self.few / 40
        #expect(token.isEmpty, "\(what)")
        if let expected { #expect(found == expected, "\(what)") }
        expected = expected ?? found
        pairs += 1
      }
    }
    print("rows of \(pairs) conditions with sorts, \(Self.few) records: \(most) for each asked for")
  }

  /// Where no single range has both order and condition, an answer still ends.
  @Test func readsABoundedPartForAnyCondition() async throws {
    let bench = try RecordBench()
    defer { bench.store.close() }
    try await Self.fill(bench)
    let conditions: [(Predicate, Int)] = [
      (.not(.isIn(field: "flag", [.int64(1), .int64(2)])), 0),
      (
        .anyOf([
          .comparison(field: "n", .lessThan, .int64(2)),
          .comparison(field: "half", .greaterThan, .double(999)),
        ]), 2 + 1
      ),
    ]
    for (predicate, expected) in conditions {
      let query = RecordQuery(type: "Note", predicate: predicate)
      var token = ""
      var found = 0
      var pages = 0
      repeat {
        let (page, rows, _) = try await measure(bench, query, 100, token)
        #expect(rows <= 400)
        found += page.records.count
        token = page.nextPageToken ?? ""
        pages += 1
      } while !token.isEmpty && pages < 100
      #expect(found == expected)
      #expect(pages > 2)
    }
  }

  @Test func counts() async throws {
    let bench = try RecordBench()
    defer { bench.store.close() }
    try await Self.fill(bench)
    func count(_ predicate: Predicate?, limit: Int64 = 0) async throws -> [Int64] {
      let result = try await bench.store.readRecords(bench.database, caller: bench.caller) {
        try $0.countRecords(
          RecordQuery(type: "Note", predicate: predicate), zone: nil, in: $1, limit: limit)
      }
      return [result.count, result.isExact ? 1 : 0]
    }
    #expect(try await count(nil) == [3_000, 1])
    #expect(try await count(nil, limit: 10) == [10, 0])
    #expect(try await count(.comparison(field: "group", .equal, .int64(1))) == [300, 1])
    #expect(try await count(.comparison(field: "group", .lessThan, .int64(5)), limit: 7) == [7, 0])
    try await bench.modify(
      ModifyBatch(operations: [.delete(bench.id("r1"), changeTag: "", allowMissing: false)]))
    #expect(try await count(nil) == [2_999, 1])
    #expect(try await count(.comparison(field: "group", .equal, .int64(1))) == [299, 1])
  }

  /// A database from before these indexes.
  @Test func oldDatabasesAreIndexed() async throws {
    let scratch = try Scratch()
    let path = scratch.path + "/vencejo.sqlite"
    let zone = try ZoneID(database: DatabaseID(container: "notes", database: "u-ada"), zone: "z")
    var generator = RecordGenerator(seed: 5)
    let records = try (0..<60).map { try generator.record("r\($0)", zone: zone) }
    try Self.writeOld(records, path: path)
    let store = try scratch.open()
    defer { store.close() }
    let caller = RecordCaller(key: 1, user: "ada", isAdministrator: true)
    for _ in 0..<150 {
      let query = RecordQuery(
        type: "Note", predicate: generator.predicate(), sort: generator.sort())
      let checked = try query.checked()
      let expected = Set(records.filter { checked.matches($0) }.map(\.id.record))
      let found = try await store.readRecords(zone.database, caller: caller) {
        try $0.queryRecords(query, zone: nil, in: $1, pageSize: 1_000, pageToken: "").records
      }
      #expect(Set(found.map(\.id.record)) == expected, "\(query)")
    }
  }

  /// As the version before these indexes wrote it.
  private static func writeOld(_ records: [StoredRecord], path: String) throws {
    let connection = try Connection(path: path)
    let old = Schema.migrations.prefix { $0.name != Schema.recordIndexes.name }
    try connection.migrate(Array(old), application: Schema.application)
    try connection.execute(
      """
      INSERT INTO record_container VALUES (1, 'notes', 0);
      INSERT INTO record_database VALUES (1, 1, 'u-ada');
      INSERT INTO record_zone VALUES (1, 1, 'z', 0, 0, 0, 0, 0);
      INSERT INTO record_word VALUES (1, 'Note');
      """)
    for (index, record) in records.enumerated() {
      try connection.run(
        "INSERT INTO record VALUES (?, 1, ?, 1, ?, ?, 't', 0, 0, '', '', 0)", index + 1,
        record.id.record, RecordCoding.encode(record.fields), index + 1)
      for (name, value) in record.fields {
        try connection.run("INSERT OR IGNORE INTO record_word(word) VALUES (?)", name)
        for entry in IndexEntry.entries(of: value) {
          let isPlace = entry.kind == .location
          try connection.run(
            """
            INSERT OR IGNORE INTO record_index(
              record_key, field_key, kind, value, zone_key, type_key, x, y)
            VALUES (?, (SELECT word_key FROM record_word WHERE word = ?), ?, ?, 1, 1, ?, ?)
            """, index + 1, name, entry.kind.rawValue, entry.value, isPlace ? entry.x : nil,
            isPlace ? entry.y : nil)
        }
      }
    }
  }

  private func measure(
    _ bench: RecordBench, _ query: RecordQuery, _ pageSize: Int, _ token: String,
    zone: ZoneID? = nil
  ) async throws -> (QueryPage, Int, [String]) {
    try await bench.store.readRecords(bench.database, caller: bench.caller) { transaction, base in
      let meter = QueryMeter(pageSize: pageSize)
      meter.statements = []
      let page = try transaction.queryRecords(
        query, zone: zone, in: base, pageSize: pageSize, pageToken: token, meter: meter)
      var plans: [String] = []
      var seen: Set<String> = []
      for text in meter.statements ?? [] where seen.insert(text.sql).inserted {
        var lines: [String] = []
        try transaction.each(dynamic: "EXPLAIN QUERY PLAN " + text.sql, text.values) {
          lines.append($0.text(3))
          return true
        }
        plans.append(lines.joined(separator: "; "))
      }
      return (page, meter.rows, plans)
    }
  }
}
