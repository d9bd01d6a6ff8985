import Testing
import VencejoSQLite

@testable import VencejoStore

/// Records taken in many at once.
@Suite struct BulkTests {
  /// Records of every kind of value, some without each field.
  private func records(_ count: Int, in bench: RecordBench) throws -> [StoredRecord] {
    var generator = RecordGenerator(seed: 11)
    return try (0..<count).map { index in
      var fields: [String: RecordValue] = [:]
      func add(_ name: String, _ value: RecordValue) {
        if generator.below(4) > 0 { fields[name] = value }
      }
      add("n", .int64(generator.pick(RecordGenerator.integers)))
      add("d", .double(generator.pick(RecordGenerator.doubles)))
      add("s", .string(generator.pick(RecordGenerator.words)))
      add("t", .timestamp(generator.pick([-1, 0, 1, 5])))
      add("b", .bytes(Array(generator.pick(RecordGenerator.words).utf8)))
      add("p", .location(generator.place()))
      add("r", .reference(RecordReference(zone: "z", record: generator.pick(["r1", "r2"]))))
      add("l", .list((0..<generator.below(4)).map { _ in .string(generator.pick(["x", "y y"])) }))
      return try bench.record("r\(index * 7919 % count)", fields)
    }
  }

  private static let queries: [RecordQuery] =
    [
      .comparison(field: "n", .greaterThan, .int64(0)), .comparison(field: "d", .equal, .double(1)),
      .beginsWith(field: "s", "a"), .comparison(field: "t", .notEqual, .timestamp(0)),
      .comparison(field: "b", .lessThan, .bytes([0x62])), .present(field: "p"),
      .distance(
        field: "p", center: RecordLocation(latitude: 48.8566, longitude: 2.3522),
        radiusMeters: 10_000), .listContains(field: "l", [.string("x")], all: false),
      .search(words: ["y"], all: true, fields: ["l"]), .search(words: ["e"], all: true, fields: []),
      .comparison(field: "r", .equal, .reference(RecordReference(zone: "z", record: "r1"))),
      .not(.present(field: "l")),
    ].map { RecordQuery(type: "Note", predicate: $0) } + [
      RecordQuery(type: "Note", sort: [SortKey("n"), SortKey("s", descending: true)]),
      RecordQuery(
        type: "Note",
        sort: [
          SortKey("p", relativeTo: RecordLocation(latitude: 0, longitude: 0))
        ]),
    ]

  private func answers(_ bench: RecordBench) async throws -> [[String]] {
    var answers: [[String]] = []
    for query in Self.queries {
      answers.append(try await bench.query(query).records.map(\.id.record))
    }
    return answers
  }

  private func add(
    _ records: [StoredRecord], to bench: RecordBench, _ indexing: BulkIndexing
  ) async throws -> BulkOutcome {
    try await bench.store.writeRecords(bench.database, caller: bench.caller) {
      [zone = bench.zone, caller = bench.caller] in
      try $0.importRecords(records, into: zone, in: $1, caller: caller, indexing: indexing)
    }
  }

  @Test func importedRecordsAreFoundAsSavedOnes() async throws {
    let saved = try RecordBench()
    let imported = try RecordBench()
    let pending = try RecordBench()
    let benches = [saved, imported, pending]
    defer { for bench in benches { bench.store.close() } }
    for bench in benches { try await bench.makeZone() }
    let records = try self.records(300, in: saved)
    try await saved.save(records)
    for (bench, indexing) in [(imported, BulkIndexing.now), (pending, .later)] {
      for start in stride(from: 0, to: records.count, by: 100) {
        let outcome = try await add(Array(records[start..<start + 100]), to: bench, indexing)
        #expect(outcome.imported == 100 && outcome.failures.isEmpty)
      }
    }
    // Not in the index: read, counted and listed by name, but not looked for.
    let known = try await pending.store.readRecords(pending.database, caller: pending.caller) {
      [id = try pending.id("r5")] in try $0.record(id, in: $1)
    }
    #expect(known.fields == records.first { $0.id.record == "r5" }?.fields)
    #expect(try await pending.query(RecordQuery(type: "Note")).records.count == 300)
    #expect(try await pending.store.read { try $0.pendingRecords() } == 300)
    // Refused, or answered rightly by what is not the index.
    var refused = 0
    for query in Self.queries {
      do throws(StoreError) {
        let found = try await pending.page(query).records.map(\.id.record)
        let expected = try await saved.page(query).records.map(\.id.record)
        #expect(found == expected, "\(query)")
      } catch {
        #expect(error == .indexPending)
        refused += 1
      }
    }
    #expect(refused >= 10)
    // What is changed and deleted meanwhile is found, or not, as it is by then.
    for bench in benches {
      try await bench.save(
        [try bench.record("r7", ["n": .int64(2), "s": .string("a new one"), "l": .list([])])],
        policy: .replace)
      try await bench.modify(
        ModifyBatch(operations: [
          .delete(try bench.id("r8"), changeTag: "", allowMissing: false)
        ]))
      try await bench.save([try bench.record("r8", ["s": .string("again")])], policy: .replace)
      try await bench.modify(
        ModifyBatch(operations: [
          .delete(try bench.id("r9"), changeTag: "", allowMissing: false)
        ]))
    }
    while try await pending.store.write({ try $0.indexPendingRecords() }) {}
    let expected = try await answers(saved)
    #expect(expected.allSatisfy { !$0.isEmpty })
    #expect(try await answers(imported) == expected)
    #expect(try await answers(pending) == expected)
    // And gone from the index with the zone.
    for bench in benches {
      try await bench.store.writeRecords(bench.database, caller: bench.caller) {
        [zone = bench.zone, caller = bench.caller] in
        try $0.deleteZone(zone, etag: "", in: $1, caller: caller)
      }
      let rows = try await bench.store.read {
        try $0.first(
          "SELECT (SELECT count(*) FROM record_entry) + (SELECT count(*) FROM record_geo)"
        ) { $0.int(0) }
      }
      #expect(rows == 0)
    }
  }

  @Test func whatASaveRefusesIsToldAndTheRestTaken() async throws {
    let bench = try RecordBench()
    defer { bench.store.close() }
    try await bench.makeZone()
    try await bench.save([try bench.record("there", ["n": .int64(1)])])
    let outcome = try await add(
      [
        try bench.record("a", ["n": .int64(1)]), try bench.record("there", ["n": .int64(2)]),
        try bench.record("b", ["n": .string("x")]), try bench.record("a", ["n": .int64(3)]),
        try bench.record("c", ["d": .double(.nan)]),
        try bench.record("d", ["no name": .int64(1)]),
        try bench.record("e", ["big": .bytes([UInt8](repeating: 0, count: 1 << 20))]),
        try bench.record("f", ["fresh": .string("x")]),
      ], to: bench, .now)
    #expect(outcome.imported == 2)
    #expect(
      outcome.failures.map { "\($0.record.record) \($0.error.reason)" } == [
        "there RECORD_EXISTS", "b TYPE_MISMATCH", "a RECORD_EXISTS", "c INVALID_REQUEST",
        "d INVALID_ARGUMENT", "e LIMIT_EXCEEDED",
      ])
    #expect(try await bench.query(RecordQuery(type: "Note")).records.count == 3)
  }
}

extension RecordBench {
  fileprivate func page(_ query: RecordQuery) async throws(StoreError) -> QueryPage {
    try await store.readRecords(database, caller: caller) { [zone] in
      try $0.queryRecords(query, zone: zone, in: $1, pageSize: 1_000, pageToken: "")
    }
  }
}
