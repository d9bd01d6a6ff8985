import Testing

@testable import VencejoStore

/// Saved subscriptions: what fires, how often, and what remains of it.
@Suite struct SubscriptionTests {
  private typealias Reason = SavedSubscription.Reason

  private func subscription(
    _ bench: RecordBench, _ name: String, _ kind: SavedSubscription.Kind,
    _ info: NotificationInfo = NotificationInfo()
  ) throws -> SavedSubscription {
    SavedSubscription(
      id: try SubscriptionID(database: bench.database, subscription: name), kind: kind, info: info)
  }

  private func open(
    _ kind: SavedSubscription.Kind, _ info: NotificationInfo = NotificationInfo(),
    name: String = "s"
  ) async throws -> RecordBench {
    let bench = try RecordBench()
    try await bench.makeZone()
    try await bench.subscribe(subscription(bench, name, kind, info))
    return bench
  }

  private static let high = RecordQuery(
    type: "Note", predicate: .comparison(field: "n", .greaterThan, .int64(10)))

  /// CloudKit's rule: the record as it is decides, and of a deleted one what it was.
  @Test("Rule 11: a deletion is filtered by what the record was")
  func theImagesTellCreationUpdateAndDeletionApart() async throws {
    let bench = try await open(
      .query(Self.high, firesOn: [.creation, .update, .deletion], once: false, zone: nil))
    try await bench.save([bench.record("low", ["n": .int64(1)])])
    #expect(try await bench.reasons() == [])
    try await bench.save([bench.record("high", ["n": .int64(11)])])
    // Comes in, stays in, goes out, and is deleted outside.
    for number in [12, 13, 2] {
      try await bench.save([bench.record("low", ["n": .int64(Int64(number))])], policy: .replace)
    }
    try await bench.delete(["low", "high"])
    #expect(
      try await bench.reasons() == [
        "high creation", "low update", "low update", "high deletion",
      ])
  }

  @Test func onlyTheReasonsAskedForFire() async throws {
    let bench = try await open(.query(Self.high, firesOn: [.deletion], once: false, zone: nil))
    try await bench.save([bench.record("a", ["n": .int64(11)])])
    try await bench.save([bench.record("a", ["n": .int64(12)])], policy: .replace)
    try await bench.delete(["a"])
    #expect(try await bench.reasons() == ["a deletion"])
  }

  /// One firing for each commit, whatever it changed; none for what failed or was only asked.
  @Test func aZoneFiresOncePerCommit() async throws {
    let bench = try await open(.zone("z", type: "Note"))
    try await bench.save((0..<5).map { try bench.record("r\($0)", ["n": .int64(1)]) })
    #expect(try await bench.reasons().count == 1)
    let again = try await bench.save([bench.record("r0")])
    #expect(again[0].reason == "RECORD_CHANGED")
    try await bench.modify(
      ModifyBatch(
        operations: [.save(try bench.record("x"), changedKeys: [], .replace)], validateOnly: true))
    var other = try bench.record("other")
    other.type = "Other"
    try await bench.save([other])
    #expect(try await bench.reasons().count == 1)
    // A repeat of a request changes nothing and fires nothing.
    let batch = ModifyBatch(
      operations: [.save(try bench.record("y"), changedKeys: [], .replace)], requestID: "1")
    try await bench.modify(batch)
    try await bench.modify(batch)
    #expect(try await bench.reasons().count == 2)
  }

  @Test func aDatabaseFiresForItsZones() async throws {
    let bench = try await open(.database(type: nil))
    let zone = try ZoneID(database: bench.database, zone: "second")
    let caller = bench.caller
    _ = try await bench.store.writeRecords(bench.database, caller: caller) {
      try $0.createZone(zone, in: $1, caller: caller)
    }
    try await bench.store.writeRecords(bench.database, caller: caller) {
      try $0.deleteZone(zone, etag: "", in: $1, caller: caller)
    }
    let firings = try await bench.firings().firings
    #expect(firings.map(\.reason) == [.creation, .deletion])
    #expect(firings.map(\.zone) == [zone, zone])
    #expect(firings.allSatisfy { $0.record == nil })
  }

  @Test func whatFiresOnceFiresOnce() async throws {
    let bench = try await open(.query(Self.high, firesOn: [.creation], once: true, zone: nil))
    // Two in one commit: the second finds it gone.
    try await bench.save([
      bench.record("a", ["n": .int64(11)]), bench.record("b", ["n": .int64(11)]),
    ])
    try await bench.save([bench.record("c", ["n": .int64(11)])])
    #expect(try await bench.reasons() == ["a creation"])
    let caller = bench.caller
    #expect(
      try await bench.store.readRecords(bench.database, caller: caller) {
        try $0.subscriptions(in: $1, caller: caller)
      } == [])
  }

  @Test func theBadgeCountsWhatIsNotAcknowledged() async throws {
    let info = NotificationInfo(
      title: "{title}", body: "{n} of {missing}{", desiredKeys: ["n", "blob", "title"],
      incrementsBadge: true, collapseField: "thread")
    let bench = try await open(
      .query(Self.high, firesOn: [.creation], once: false, zone: "z"), info)
    func note(_ name: String, _ thread: String?) throws -> StoredRecord {
      try bench.record(
        name,
        [
          "n": .int64(11), "title": .string("T\(name)"), "blob": .bytes([1]),
          "thread": thread.map { .string($0) } ?? .int64(5),
        ])
    }
    try await bench.save([note("a", "x"), note("b", "y"), note("c", "x")])
    var page = try await bench.firings()
    #expect(page.firings.map(\.title) == ["Tb", "Tc"])
    #expect(page.firings.map(\.badge) == [2, 2] && page.badge == 2)
    #expect(page.firings[0].body == "11 of {")
    #expect(page.firings[0].fields == ["n": .int64(11), "title": .string("Tb")])
    let (caller, first) = (bench.caller, page.firings[0].id)
    #expect(
      try await bench.store.writeRecords(bench.database, caller: caller) {
        try $0.acknowledgeFirings([first, first, "nonsense"], in: $1, caller: caller)
      } == 1)
    let position = page.position
    try await bench.save([note("d", "z")])
    #expect(try await bench.firings(after: position).firings.map(\.title) == ["Td"])
    #expect(
      try await bench.store.writeRecords(bench.database, caller: caller) {
        try $0.acknowledgeFirings(of: nil, upTo: position, in: $1, caller: caller)
      } == 1)
    page = try await bench.firings()
    #expect(page.firings.map(\.title) == ["Td"] && page.badge == 1)
    // Gone with its subscription.
    try await bench.store.writeRecords(bench.database, caller: caller) {
      let id = try SubscriptionID(database: bench.database, subscription: "s")
      try $0.deleteSubscription(id, allowMissing: false, in: $1, caller: caller)
    }
    page = try await bench.firings()
    #expect(page.firings.isEmpty && page.badge == 0)
  }

  @Test func firingsAreReadInPages() async throws {
    let bench = try await open(.query(Self.high, firesOn: [.creation], once: false, zone: nil))
    // Two of one position stay together.
    try await bench.subscribe(
      subscription(
        bench, "t", .query(Self.high, firesOn: [.creation], once: false, zone: nil)))
    try await bench.save((0..<5).map { try bench.record("r\($0)", ["n": .int64(11)]) })
    var (position, sizes, names): (Int64, [Int], [String]) = (0, [], [])
    while true {
      let page = try await bench.firings(after: position, pageSize: 3)
      sizes.append(page.firings.count)
      names += page.firings.compactMap { $0.record?.record }
      position = page.position
      if !page.moreComing { break }
    }
    #expect(sizes == [4, 4, 2])
    #expect(names == ["r0", "r0", "r1", "r1", "r2", "r2", "r3", "r3", "r4", "r4"])
  }

  /// What is in memory must follow what is on disk, also when a transaction is undone.
  @Test func undoneSubscriptionsNeverFire() async throws {
    let bench = try RecordBench()
    try await bench.makeZone()
    let wanted = try subscription(bench, "s", .zone("z", type: nil))
    let caller = bench.caller
    struct Undo: Error {}
    for _ in 0..<3 {
      _ = try? await bench.store.writeRecords(bench.database, caller: caller) {
        _ = try $0.createSubscription(wanted, in: $1, caller: caller)
        let operation = RecordOperation.save(
          try bench.record("inside"), changedKeys: [], .replace)
        _ = try $0.modifyRecords(
          ModifyBatch(operations: [operation]), in: $1, caller: caller)
        throw Undo()
      }
      try await bench.save([bench.record("after")], policy: .replace)
    }
    #expect(try await bench.firings().firings.isEmpty)
    try await bench.subscribe(wanted)
    try await bench.save([bench.record("after")], policy: .replace)
    #expect(try await bench.firings().firings.count == 1)
  }

  @Test func badSubscriptionsAreRefused() async throws {
    let bench = try RecordBench()
    try await bench.makeZone()
    func refused(_ kind: SavedSubscription.Kind, _ name: String = "s") async -> String? {
      await reason { try await bench.subscribe(subscription(bench, name, kind)) }
    }
    #expect(
      await refused(.query(Self.high, firesOn: [], once: false, zone: nil)) == "INVALID_REQUEST")
    #expect(await refused(.zone("missing", type: nil)) == "ZONE_NOT_FOUND")
    #expect(
      await refused(
        .query(
          RecordQuery(type: "Note", predicate: .present(field: "a b")), firesOn: [.creation],
          once: false, zone: nil)) == "INVALID_REQUEST")
    #expect(await refused(.database(type: nil)) == nil)
    #expect(await refused(.database(type: nil)) == nil)
    #expect(await refused(.zone("z", type: nil)) == "SUBSCRIPTION_EXISTS")
    for number in 1..<RecordRules.maxSubscriptions {
      #expect(await refused(.database(type: nil), "s\(number)") == nil)
    }
    #expect(await refused(.database(type: nil), "more") == "LIMIT_EXCEEDED")
  }

  /// Every predicate comes back from its bytes, and fires by the same records.
  @Test(arguments: 0..<20) func definitionsComeBack(seed: UInt64) throws {
    var generator = RecordGenerator(seed: seed)
    let id = try SubscriptionID(
      database: DatabaseID(container: "c", database: "u-ana"), subscription: "s")
    for _ in 0..<50 {
      let query = RecordQuery(
        type: "Note", predicate: generator.predicate(), sort: generator.sort())
      let saved = SavedSubscription(
        id: id, kind: .query(query, firesOn: [.creation, .deletion], once: true, zone: "z"),
        info: NotificationInfo(
          title: "t", body: "b", desiredKeys: ["a"], incrementsBadge: true, collapseField: "c"),
        createTime: 5, message: [1])
      #expect(
        SavedSubscription(
          id: id, definition: saved.definition, createTime: 5, message: [1]) == saved)
    }
  }

  /// Numbers from `date -u -d @…`.
  @Test(
    arguments: [
      (0, "1970-01-01T00:00:00Z"), (-1, "1969-12-31T23:59:59.999999Z"),
      (951_782_400_000_000, "2000-02-29T00:00:00Z"),
      (253_402_300_799_500_000, "9999-12-31T23:59:59.5Z"),
      (-62_135_596_800_000_000, "0001-01-01T00:00:00Z"),
      (1_800_000_000_000_000, "2027-01-15T08:00:00Z"),
    ] as [(Int64, String)])
  func timesAreWritten(microseconds: Int64, text: String) {
    #expect(RFC3339.text(microseconds: microseconds) == text)
    #expect(RFC3339.microseconds(text) == microseconds)
  }
}

extension RecordBench {
  func subscribe(_ subscription: SavedSubscription) async throws {
    _ = try await store.writeRecords(database, caller: caller) { [caller] in
      try $0.createSubscription(subscription, in: $1, caller: caller)
    }
  }

  func firings(after position: Int64 = 0, pageSize: Int = 1_000) async throws -> FiringPage {
    try await store.readRecords(database, caller: caller) { [caller] in
      try $0.firings(of: nil, in: $1, caller: caller, after: position, pageSize: pageSize)
    }
  }

  /// Record and reason of every firing that waits.
  func reasons() async throws -> [String] {
    try await firings().firings.map { "\($0.record?.record ?? "-") \($0.reason)" }
  }

  func delete(_ names: [String]) async throws {
    let operations = try names.map {
      RecordOperation.delete(try id($0), changeTag: "", allowMissing: false)
    }
    try await modify(ModifyBatch(operations: operations))
  }
}
