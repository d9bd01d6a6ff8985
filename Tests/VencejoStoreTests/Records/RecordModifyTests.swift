import Testing

@testable import VencejoStore

/// Save policies, batches and their memory.
@Suite struct RecordModifyTests {
  let bench: RecordBench
  init() throws { bench = try RecordBench() }

  @Test func unchangedPolicyComparesTags() async throws {
    defer { bench.store.close() }
    try await bench.makeZone()
    let first = try #require(
      try await bench.save([bench.record("a", ["n": .int64(1), "t": .string("x")])])[0].saved)
    #expect(!first.changeTag.isEmpty)
    #expect(first.creator == "ada")
    // No tag: must not exist.
    let again = try await bench.save([bench.record("a", ["n": .int64(2)])])[0]
    #expect(again.reason == "RECORD_CHANGED")
    #expect(again.failure?.error.code == .aborted)
    #expect(again.failure?.conflict?.server == first)
    #expect(again.failure?.conflict?.client?.fields == ["n": .int64(2)])
    // The right tag; other fields stay, and a changed key that is missing goes.
    let second = try #require(
      try await bench.modify(
        ModifyBatch(operations: [
          .save(
            bench.record("a", ["n": .int64(2), "z": .int64(9)], tag: first.changeTag),
            changedKeys: ["n", "t"], .ifServerRecordUnchanged)
        ])
      ).results[0].saved)
    #expect(second.fields == ["n": .int64(2)])
    #expect(second.changeTag != first.changeTag)
    #expect(second.createTime == first.createTime)
    // The old tag, and a tag for nothing.
    let stale = try await bench.save([bench.record("a", tag: first.changeTag)])[0]
    #expect(stale.reason == "RECORD_CHANGED")
    #expect(try await bench.save([bench.record("b", tag: "x")])[0].reason == "RECORD_NOT_FOUND")
  }

  @Test func otherPoliciesOverwrite() async throws {
    defer { bench.store.close() }
    try await bench.makeZone()
    try await bench.save([bench.record("a", ["n": .int64(1), "t": .string("x")])])
    func save(_ fields: [String: RecordValue], _ keys: [String], _ policy: SavePolicy) async throws
      -> [String: RecordValue]?
    {
      try await bench.modify(
        ModifyBatch(operations: [.save(bench.record("a", fields), changedKeys: keys, policy)])
      ).results[0].saved?.fields
    }
    #expect(
      try await save(["n": .int64(2), "u": .int64(0)], ["n"], .changedKeys)
        == ["n": .int64(2), "t": .string("x")])
    #expect(
      try await save(["n": .int64(3), "u": .int64(1)], ["n"], .allKeys)
        == ["n": .int64(3), "t": .string("x"), "u": .int64(1)])
    #expect(try await save(["u": .int64(5)], [], .replace) == ["u": .int64(5)])
  }

  @Test func oneFailureAbortsAnAtomicZone() async throws {
    defer { bench.store.close() }
    try await bench.makeZone()
    try await bench.save([bench.record("a")])
    let other = try ZoneID(database: bench.database, zone: ZoneID.defaultZone)
    let elsewhere = StoredRecord(
      id: try RecordID(zone: other, record: "x"), type: "Note", fields: [:])
    let results = try await bench.modify(
      ModifyBatch(
        operations: [
          .save(bench.record("b"), changedKeys: [], .ifServerRecordUnchanged),
          .save(bench.record("a"), changedKeys: [], .ifServerRecordUnchanged),
          .save(elsewhere, changedKeys: [], .ifServerRecordUnchanged),
        ])
    ).results
    #expect(results.map(\.reason) == ["BATCH_ABORTED", "RECORD_CHANGED", nil])
    #expect(try await bench.query(RecordQuery(type: "Note")).records.map(\.id.record) == ["a"])
    // Not atomic: the innocent is saved.
    let partial = try await bench.modify(
      ModifyBatch(
        operations: [
          .save(bench.record("b"), changedKeys: [], .ifServerRecordUnchanged),
          .save(bench.record("a"), changedKeys: [], .ifServerRecordUnchanged),
        ], atomic: false)
    ).results
    #expect(partial.map(\.reason) == [nil, "RECORD_CHANGED"])
  }

  @Test func defaultZonesAreNotAtomic() async throws {
    defer { bench.store.close() }
    let zone = try ZoneID(database: bench.database, zone: ZoneID.defaultZone)
    let record = StoredRecord(id: try RecordID(zone: zone, record: "x"), type: "N", fields: [:])
    let save = RecordOperation.save(record, changedKeys: [], .ifServerRecordUnchanged)
    #expect(
      await reason { try await bench.modify(ModifyBatch(operations: [save], atomic: true)) }
        == "NOT_ATOMIC")
    #expect(try await bench.modify(ModifyBatch(operations: [save])).results[0].saved != nil)
  }

  @Test("Rule 8: what is deleted leaves a tombstone")
  func deletesLeaveTombstones() async throws {
    defer { bench.store.close() }
    try await bench.makeZone()
    let saved = try #require(try await bench.save([bench.record("a", ["n": .int64(1)])])[0].saved)
    func delete(_ name: String, _ tag: String = "", _ missing: Bool = false) async throws
      -> ModifyResult
    {
      try await bench.modify(
        ModifyBatch(operations: [.delete(bench.id(name), changeTag: tag, allowMissing: missing)])
      ).results[0]
    }
    #expect(try await delete("a", "stale").reason == "RECORD_CHANGED")
    #expect(try await delete("nobody").reason == "RECORD_NOT_FOUND")
    guard case .deleted = try await delete("nobody", "", true) else {
      Issue.record("allow_missing")
      return
    }
    guard case .deleted(let tombstone) = try await delete("a", saved.changeTag) else {
      Issue.record("delete")
      return
    }
    #expect(tombstone.type == "Note")
    #expect(try await delete("a").reason == "RECORD_NOT_FOUND")
    // A new record under the old name starts from nothing.
    let again = try #require(try await bench.save([bench.record("a", ["m": .int64(2)])])[0].saved)
    #expect(again.fields == ["m": .int64(2)])
  }

  @Test func requestsAreRemembered() async throws {
    defer { bench.store.close() }
    try await bench.makeZone()
    var batch = ModifyBatch(
      operations: [.save(try bench.record("a"), changedKeys: [], .ifServerRecordUnchanged)],
      requestID: "r1")
    let first = try await bench.modify(batch)
    let head = try await bench.store.read { try $0.head() }
    let second = try await bench.modify(batch)
    #expect(first.results == second.results)
    #expect(try await bench.store.read { try $0.head() } == head)
    batch.operations = [.save(try bench.record("a"), changedKeys: ["n"], .ifServerRecordUnchanged)]
    #expect(await reason { try await bench.modify(batch) } == "REQUEST_ID_REUSED")
    // A failure is remembered as one.
    batch.requestID = "r2"
    let failed = try await bench.modify(batch)
    #expect(failed.results[0].reason == "RECORD_CHANGED")
    #expect(try await bench.modify(batch).results[0].failure?.conflict?.server != nil)
    // Another user's id is another id.
    let bob = RecordCaller(key: 2, user: "bob", isAdministrator: false)
    let shared = try DatabaseID(container: "notes", database: "public")
    let zone = try ZoneID(database: shared, zone: ZoneID.defaultZone)
    let record = StoredRecord(id: try RecordID(zone: zone, record: "x"), type: "N", fields: [:])
    let other = ModifyBatch(
      operations: [.save(record, changedKeys: [], .ifServerRecordUnchanged)], requestID: "r1")
    let outcome = try await bench.store.writeRecords(shared, caller: bob) {
      try $0.modifyRecords(other, in: $1, caller: bob)
    }
    #expect(outcome.results[0].saved != nil)
  }

  @Test func validateOnlyChangesNothing() async throws {
    defer { bench.store.close() }
    try await bench.makeZone()
    let head = try await bench.store.read { try $0.head() }
    let outcome = try await bench.modify(
      ModifyBatch(
        operations: [
          .save(try bench.record("a", ["n": .int64(1)]), changedKeys: [], .ifServerRecordUnchanged)
        ], requestID: "v", validateOnly: true))
    #expect(outcome.results[0].saved?.fields == ["n": .int64(1)])
    #expect(try await bench.store.read { try $0.head() } == head)
    #expect(try await bench.query(RecordQuery(type: "Note")).records.isEmpty)
  }

  @Test func limitsHold() async throws {
    defer { bench.store.close() }
    try await bench.makeZone()
    let many = try (0...400).map {
      RecordOperation.save(
        try bench.record("r\($0)"), changedKeys: [], .ifServerRecordUnchanged)
    }
    #expect(
      await reason { try await bench.modify(ModifyBatch(operations: many)) } == "LIMIT_EXCEEDED")
    #expect(
      await reason { try await bench.modify(ModifyBatch(operations: [many[0], many[0]])) }
        == "DUPLICATE_RECORD")
    let half = [UInt8](repeating: 1, count: 700_000)
    let heavy = try (0..<3).map { try bench.record("h\($0)", ["b": .bytes(half)]) }
    #expect(await reason { try await bench.save(heavy) } == "LIMIT_EXCEEDED")
    let fits = try bench.record("fits", ["b": .bytes([UInt8](repeating: 1, count: (1 << 20) - 64))])
    #expect(try await bench.save([fits])[0].saved != nil)
    let large = try bench.record("large", ["b": .bytes([UInt8](repeating: 1, count: 1 << 20))])
    #expect(try await bench.save([large])[0].reason == "LIMIT_EXCEEDED")
    for fields in [
      ["1a": RecordValue.int64(1)], ["d": .double(.nan)],
      ["l": .list([.int64(1), .string("x")])], ["l": .list([.list([])])],
      ["p": .location(RecordLocation(latitude: 90.5, longitude: 0))],
      ["r": .reference(RecordReference(zone: "elsewhere", record: "x"))],
      ["l": .list(Array(repeating: .int64(1), count: 10_001))],
    ] {
      #expect(try await bench.save([bench.record("bad", fields)])[0].reason == "INVALID_REQUEST")
    }
  }

  @Test func answersThatWouldNotArriveAreRefusedBeforeTheWrite() async throws {
    defer { bench.store.close() }
    try await bench.makeZone()
    let blob = RecordValue.bytes([UInt8](repeating: 1, count: 1_000_000))
    for index in 0..<4 { try await bench.save([bench.record("r\(index)", ["b": blob])]) }
    let small = try (0..<4).map {
      RecordOperation.save(
        try bench.record("r\($0)", ["n": .int64(1)]), changedKeys: ["n"], .changedKeys)
    }
    #expect(
      await reason { try await bench.modify(ModifyBatch(operations: small)) } == "LIMIT_EXCEEDED")
    let query = RecordQuery(type: "Note", predicate: .present(field: "n"))
    #expect(try await bench.query(query).records.isEmpty)
    let outcome = try await bench.modify(ModifyBatch(operations: small, answerKeys: ["n"]))
    #expect(outcome.isComplete)
  }

  @Test func rightsHold() async throws {
    defer { bench.store.close() }
    try await bench.makeZone()
    let bob = RecordCaller(key: 2, user: "bob", isAdministrator: false)
    #expect(
      await reason { try await bench.modify(ModifyBatch(operations: []), as: bob) }
        == "NOT_YOUR_DATABASE")
    let shared = try DatabaseID(container: "notes", database: "public")
    let zone = try ZoneID(database: shared, zone: ZoneID.defaultZone)
    let record = StoredRecord(id: try RecordID(zone: zone, record: "x"), type: "N", fields: [:])
    func save(_ caller: RecordCaller) async throws -> ModifyResult {
      try await bench.store.writeRecords(shared, caller: caller) {
        try $0.modifyRecords(
          ModifyBatch(operations: [.save(record, changedKeys: [], .replace)]), in: $1,
          caller: caller)
      }.results[0]
    }
    #expect(try await save(bob).saved?.creator == "bob")
    let eve = RecordCaller(key: 3, user: "eve", isAdministrator: false)
    #expect(try await save(eve).reason == "PERMISSION_FAILURE")
    #expect(try await save(bench.caller).saved?.creator == "bob")
    // Containers come into being only by an administrator's hand.
    let fresh = try DatabaseID(container: "fresh", database: "u-bob")
    #expect(
      await reason {
        try await bench.store.readRecords(fresh, caller: bob) { _, _ in }
      } == "CONTAINER_NOT_FOUND")
  }

  @Test func zonesComeAndGo() async throws {
    defer { bench.store.close() }
    try await bench.makeZone()
    #expect(await reason { try await bench.makeZone() } == "ZONE_EXISTS")
    try await bench.save([bench.record("a", ["n": .int64(1)])])
    let zone = bench.zone
    let caller = bench.caller
    func read<R: Sendable>(
      _ body: @Sendable @escaping (ReadTransaction, RecordDatabase) throws -> R
    ) async throws -> R {
      try await bench.store.readRecords(bench.database, caller: caller, body)
    }
    let names = try await read { try $0.recordZones(in: $1, after: "", limit: 10).map(\.id.zone) }
    #expect(names == ["_defaultZone", "z"])
    let old = try await read { try $0.recordZone(zone, in: $1) }
    func delete(_ id: ZoneID, _ etag: String) async throws {
      try await bench.store.writeRecords(bench.database, caller: caller) {
        try $0.deleteZone(id, etag: etag, in: $1, caller: caller)
      }
    }
    #expect(await reason { try await delete(zone, "x") } == "ETAG_MISMATCH")
    try await delete(zone, old.etag)
    #expect(await reason { try await delete(zone, "") } == "ZONE_NOT_FOUND")
    let standard = try ZoneID(database: bench.database, zone: ZoneID.defaultZone)
    #expect(await reason { try await delete(standard, "") } == "DEFAULT_ZONE")
    #expect(try await bench.save([bench.record("a")])[0].reason == "ZONE_NOT_FOUND")
    try await bench.makeZone()
    #expect(try await bench.query(RecordQuery(type: "Note")).records.isEmpty)
    // A token of the old zone is too old for the new one.
    let fresh = try await read { try $0.recordZone(zone, in: $1) }
    #expect(
      await reason {
        _ = try await read { transaction, database in
          try transaction.zoneChanges(
            fresh, in: database, after: old.change, types: [], pageSize: 10, caller: caller)
        }
      } == "CHANGE_TOKEN_EXPIRED")
  }
}
