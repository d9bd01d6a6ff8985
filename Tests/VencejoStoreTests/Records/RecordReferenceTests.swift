import Testing

@testable import VencejoStore

/// References that bind, and what a deletion takes with it.
@Suite struct RecordReferenceTests {
  private let bench: RecordBench
  init() throws { bench = try RecordBench() }

  private func child(_ name: String, of target: String) throws -> StoredRecord {
    try bench.record(
      name,
      ["p": .reference(RecordReference(zone: "z", record: target, action: .deleteSelf))])
  }

  private func delete(_ name: String) async throws -> ModifyOutcome {
    try await bench.modify(
      ModifyBatch(operations: [.delete(bench.id(name), changeTag: "", allowMissing: false)]))
  }

  @Test("Rule 25: a deletion takes its referrers along, each a tombstone")
  func aDeletionTakesItsReferrersAlong() async throws {
    defer { bench.store.close() }
    try await bench.makeZone()
    // A tree, a circle, and one that only mentions.
    try await bench.save([bench.record("root"), bench.record("other")])
    try await bench.save([
      child("a", of: "root"), child("b", of: "root"), child("aa", of: "a"), child("ab", of: "a"),
      bench.record("m", ["p": .reference(RecordReference(zone: "z", record: "root"))]),
      bench.record(
        "l",
        [
          "ps": .list([
            .reference(RecordReference(zone: "z", record: "other", action: .deleteSelf)),
            .reference(RecordReference(zone: "z", record: "aa", action: .deleteSelf)),
          ])
        ]),
    ])
    try await bench.save([child("root", of: "ab")], policy: .allKeys)
    let before = try await changes(after: 0)
    #expect(try await delete("root").isComplete)
    let after = try await changes(after: before.position)
    var gone: [String: Bool] = [:]
    for case .deleted(let record) in after.changes { gone[record.id.record] = record.cascaded }
    #expect(
      gone == ["root": false, "a": true, "b": true, "aa": true, "ab": true, "l": true])
    let left = try await bench.query(RecordQuery(type: "Note")).records.map(\.id.record)
    #expect(left == ["m", "other"])
    // Nothing of them is left in the index; a name that comes again is not bound.
    try await bench.save([bench.record("root"), bench.record("a")])
    #expect(try await delete("root").isComplete)
    #expect(try await bench.query(RecordQuery(type: "Note")).records.count == 3)
  }

  @Test func aTargetMustBeThere() async throws {
    defer { bench.store.close() }
    try await bench.makeZone()
    let failed = try await bench.save([child("a", of: "nothing")])
    #expect(failed.map(\.reason) == ["REFERENCE_VIOLATION"])
    // It may come with the same batch, in any order.
    let saved = try await bench.save([child("a", of: "t"), bench.record("t")])
    #expect(saved.allSatisfy { $0.saved != nil })
    let both = try await bench.modify(
      ModifyBatch(operations: [
        .delete(bench.id("t"), changeTag: "", allowMissing: false),
        .save(child("b", of: "t"), changedKeys: [], .ifServerRecordUnchanged),
      ]))
    #expect(both.results.map(\.reason) == ["BATCH_ABORTED", "REFERENCE_VIOLATION"])
    // One that lets go in the same batch stays.
    let outcome = try await bench.modify(
      ModifyBatch(operations: [
        .delete(bench.id("t"), changeTag: "", allowMissing: false),
        .save(bench.record("a"), changedKeys: [], .replace),
      ]))
    #expect(outcome.isComplete)
    #expect(try await bench.query(RecordQuery(type: "Note")).records.map(\.id.record) == ["a"])
  }

  /// CloudKit's number.
  /// In a batch that may fail in part, what fails brings nothing for the others.
  @Test func whatFailsIsNotThereForTheOthers() async throws {
    defer { bench.store.close() }
    try await bench.makeZone()
    func below(_ name: String, _ parent: String) throws -> StoredRecord {
      var record = try bench.record(name)
      record.parent = parent
      return record
    }
    try await bench.save([bench.record("there")])
    // Whichever comes first: `c` hangs by `b`, that by `a`, and that by nothing.
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
      let records = try [
        below("c", "b"), child("b", of: "a"), below("a", "nothing"), below("d", "there"),
      ]
      let results = try await bench.modify(
        ModifyBatch(
          operations: order.map { .save(records[$0], changedKeys: [], .replace) }, atomic: false)
      ).results
      for (place, result) in zip(order, results) {
        #expect(
          result.reason == (place == 3 ? nil : "REFERENCE_VIOLATION"), "\(records[place].id)")
      }
      let left = try await bench.query(RecordQuery(type: "Note")).records.map(\.id.record)
      #expect(left == ["d", "there"])
    }
    // A deletion takes along what the batch names but cannot save.
    try await bench.save([bench.record("top"), child("bound", of: "top")])
    let outcome = try await bench.modify(
      ModifyBatch(
        operations: [
          .delete(bench.id("top"), changeTag: "", allowMissing: false),
          .save(child("bound", of: "top"), changedKeys: [], .replace),
        ], atomic: false))
    #expect(outcome.results.map(\.reason) == [nil, "REFERENCE_VIOLATION"])
    let left = try await bench.query(RecordQuery(type: "Note")).records.map(\.id.record)
    #expect(left == ["d", "there"])
  }

  @Test("Rule 25: a cascade is bounded")
  func aRecordHas750Referrers() async throws {
    defer { bench.store.close() }
    try await bench.makeZone()
    try await bench.save([bench.record("t")])
    for part in [0..<400, 400..<750] {
      let saved = try await bench.save(part.map { try child("c\($0)", of: "t") })
      #expect(saved.allSatisfy { $0.saved != nil })
    }
    let failed = try await bench.save([child("more", of: "t")])
    #expect(failed.map(\.reason) == ["LIMIT_EXCEEDED"])
    #expect(try await delete("t").isComplete)
    #expect(try await bench.query(RecordQuery(type: "Note")).records.isEmpty)
  }

  private func changes(after position: Int64) async throws -> ZoneChanges {
    try await bench.store.readRecords(bench.database, caller: bench.caller) {
      [zone = bench.zone, caller = bench.caller] in
      try $0.zoneChanges(
        $0.recordZone(zone, in: $1), in: $1, after: position, types: [], pageSize: 1_000,
        caller: caller)
    }
  }
}
