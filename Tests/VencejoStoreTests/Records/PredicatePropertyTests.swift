import Testing

@testable import VencejoStore

/// The promise of "one evaluator": a predicate and an order mean in SQL what
/// they mean in memory.
@Suite struct PredicatePropertyTests {
  @Test(arguments: [1, 2, 3] as [UInt64])
  func sqlAndMemoryAgree(seed: UInt64) async throws {
    let bench = try RecordBench()
    defer { bench.store.close() }
    try await bench.makeZone()
    var generator = RecordGenerator(seed: seed)
    var records: [StoredRecord] = []
    for index in 0..<120 { records.append(try generator.record("r\(index)", zone: bench.zone)) }
    records.append(try generator.record("é", zone: bench.zone))
    records.append(try generator.record("e\u{301}", zone: bench.zone))
    let stored = try await bench.save(records, mixed: true).map { try #require($0.saved) }
    // Half of them change, so that the index goes through updates too.
    var changes: [StoredRecord] = []
    for record in stored.prefix(60) {
      var next = try generator.record(record.id.record, zone: bench.zone)
      next.changeTag = record.changeTag
      changes.append(next)
    }
    let changed = try await bench.save(changes, policy: .replace, mixed: true).map {
      try #require($0.saved)
    }
    let all = changed + stored.dropFirst(60)

    var matched = 0
    for _ in 0..<200 {
      let predicate = generator.predicate()
      let query = RecordQuery(type: "Note", predicate: predicate, sort: generator.sort())
      let checked = try query.checked()
      let expected = all.filter { checked.matches($0) }
        .map { (record: $0, position: SortPosition(of: $0, in: checked.plan)) }
        .sorted { SortPosition.order($0.position, $1.position, in: checked.plan) < 0 }
        .map(\.record)
      matched += expected.count
      var found: [StoredRecord] = []
      var token = ""
      let pageSize = 1 + generator.below(130)
      repeat {
        let page = try await bench.query(query, pageSize: pageSize, pageToken: token)
        found += page.records
        token = page.nextPageToken ?? ""
      } while !token.isEmpty && found.count <= all.count
      #expect(found.map(\.id) == expected.map(\.id), "seed \(seed), \(query)")
      #expect(found == expected, "seed \(seed), \(query)")
      if found != expected { return }
    }
    // The test would be idle if predicates selected all or nothing.
    #expect(matched > 200 && matched < 200 * all.count)
  }

  @Test func integersAndDoublesCompareExactly() {
    // 2^53 + 1 has no double; conversion would make it equal to 2^53.
    #expect(IndexScalar.order(.integer(9_007_199_254_740_993), .real(9_007_199_254_740_992)) == 1)
    #expect(IndexScalar.order(.integer(.max), .real(0x1p63)) == -1)
    #expect(IndexScalar.order(.integer(.min), .real(-0x1p63)) == 0)
    #expect(IndexScalar.order(.integer(-1), .real(-1.5)) == 1)
    #expect(IndexScalar.order(.real(.infinity), .integer(.max)) == 1)
  }

  @Test func prefixesEndAtTheNextScalar() {
    #expect(Predicate.successor(of: "ab") == "ac")
    #expect(Predicate.successor(of: "a\u{D7FF}") == "a\u{E000}")
    #expect(Predicate.successor(of: "a\u{10FFFF}") == "b")
    #expect(Predicate.successor(of: "\u{10FFFF}") == nil)
    #expect(Predicate.successor(of: "") == nil)
  }

  @Test func distancesAreGreatCircles() throws {
    // Paris to London, 343.56 km on the mean sphere (haversine worked out by hand with bc).
    let london = RecordLocation(latitude: 51.5074, longitude: -0.1278)
    let paris = RecordLocation(latitude: 48.8566, longitude: 2.3522)
    let zone = try ZoneID(database: DatabaseID(container: "c", database: "public"), zone: "z")
    let record = StoredRecord(
      id: try RecordID(zone: zone, record: "r"), type: "T", fields: ["p": .location(london)])
    func within(_ radius: Double) throws -> Bool {
      try Predicate.distance(field: "p", center: paris, radiusMeters: radius).test()
        .holds(for: record)
    }
    #expect(try within(344_000))
    #expect(try !within(343_000))
  }

  @Test func absentFieldsSatisfyNotButNotUnequal() throws {
    let zone = try ZoneID(database: DatabaseID(container: "c", database: "public"), zone: "z")
    let record = StoredRecord(id: try RecordID(zone: zone, record: "r"), type: "T", fields: [:])
    let equal = Predicate.comparison(field: "n", .equal, .int64(1))
    #expect(try Predicate.not(equal).test().holds(for: record))
    #expect(try !Predicate.comparison(field: "n", .notEqual, .int64(1)).test().holds(for: record))
  }

  @Test func theLargestPredicatesRun() async throws {
    let bench = try RecordBench()
    defer { bench.store.close() }
    try await bench.makeZone()
    try await bench.save([bench.record("a", ["n": .int64(1)])])
    let one = Predicate.comparison(field: "n", .notEqual, .int64(2))
    let leaves = Array(repeating: one, count: 399)
    let deep = (0..<19).reduce(Predicate.allOf(Array(repeating: one, count: 360))) { inner, _ in
      .not(.anyOf([inner]))
    }
    let values = (0..<250).map { RecordValue.int64(Int64($0)) }
    let large: [Predicate] = [
      .allOf(leaves), .anyOf(leaves),
      .not(.listContains(field: "n", values, all: true)),
      .anyOf(Array(repeating: .isIn(field: "n", values), count: 15)),
    ]
    for predicate in large {
      let page = try await bench.query(RecordQuery(type: "Note", predicate: predicate))
      #expect(page.records.count == 1)
    }
    #expect(throws: RecordViolation.self) { try deep.test() }
    let nested = (0..<9).reduce(Predicate.allOf(Array(repeating: one, count: 360))) { inner, _ in
      .not(.anyOf([inner]))
    }
    _ = try await bench.query(RecordQuery(type: "Note", predicate: nested))
  }

  @Test func malformedPredicatesAreRefused() {
    let bad: [Predicate] = [
      .comparison(field: "1n", .equal, .int64(1)), .comparison(field: "___nope", .equal, .int64(1)),
      .comparison(field: "n", .equal, .list([])),
      .comparison(field: "n", .lessThan, .double(.nan)),
      .comparison(field: "n", .lessThan, .reference(RecordReference(zone: "z", record: "r"))),
      .isIn(field: "n", []), .isIn(field: "n", Array(repeating: .int64(1), count: 251)),
      .listContains(field: "n", [], all: true),
      .distance(field: "p", center: RecordLocation(latitude: 91, longitude: 0), radiusMeters: 1),
      .distance(field: "p", center: RecordLocation(latitude: 0, longitude: 0), radiusMeters: -1),
      .distance(field: "p", center: RecordLocation(latitude: 0, longitude: 0), radiusMeters: .nan),
      (0..<30).reduce(.present(field: "n")) { inner, _ in .not(inner) },
      .allOf(Array(repeating: .present(field: "n"), count: 1_001)),
    ]
    for predicate in bad {
      #expect(throws: RecordViolation.self, "\(predicate)") { try predicate.test() }
    }
  }
}
