import TestSupport
import Testing

@testable import VencejoStore

/// Change fetching and subscriptions: whoever applies what they say has, in the
/// end, what the store has.
@Suite struct RecordFeedTests {
  let bench: RecordBench
  init() throws { bench = try RecordBench() }

  @Test("Rule 9: what came and went between two looks is told as gone")
  func fetchedChangesAreCompacted() async throws {
    defer { bench.store.close() }
    try await bench.makeZone()
    try await bench.save([bench.record("a"), bench.record("b"), bench.record("c")])
    let first = try await changes(after: 0, pageSize: 2)
    #expect(first.names == ["a", "b"])
    #expect(first.moreComing)
    let second = try await changes(after: first.position, pageSize: 2)
    #expect(second.names == ["c"])
    #expect(!second.moreComing)
    try await bench.save([bench.record("a", ["n": .int64(1)])], policy: .replace)
    try await bench.save([bench.record("a", ["n": .int64(2)])], policy: .replace)
    try await bench.modify(
      ModifyBatch(
        operations: [.delete(bench.id("b"), changeTag: "", allowMissing: false)], requestID: "bye"))
    let third = try await changes(after: second.position)
    #expect(third.names == ["a", "-b"])
    #expect(third.lastRequestID == "bye")
    #expect(try await changes(after: third.position).changes.isEmpty)
    #expect(try await changes(after: 0).names == ["c", "a"])
    // Deletions older than the tombstones kept cannot be told any more.
    try await bench.store.write { [position = third.position] in
      try $0.run("UPDATE record_zone SET tombstone_floor = ?", position)
    }
    #expect(
      await reason { _ = try await changes(after: second.position) } == "CHANGE_TOKEN_EXPIRED")
    #expect(try await changes(after: third.position).changes.isEmpty)
  }

  @Test("Rule 8: a token older than the tombstones has expired")
  func oldTombstonesGoWithTheTokensThatNeedThem() async throws {
    let clock = ManualClock()
    let bench = try RecordBench { $0.clock = { clock.now } }
    defer { bench.store.close() }
    try await bench.makeZone()
    try await bench.save([bench.record("a"), bench.record("b")])
    let zone = bench.zone
    let caller = bench.caller
    func changes(after position: Int64) async throws -> ZoneChanges {
      try await bench.store.readRecords(bench.database, caller: caller) {
        try $0.zoneChanges(
          $0.recordZone(zone, in: $1), in: $1, after: position, types: [], pageSize: 9,
          caller: caller)
      }
    }
    let before = try await changes(after: 0).position
    try await bench.modify(
      ModifyBatch(operations: [.delete(bench.id("a"), changeTag: "", allowMissing: false)]))
    let after = try await changes(after: before).position
    clock.advance(seconds: 31 * 86_400)
    try await bench.store.write { _ = try $0.pruneTombstones() }
    #expect(await reason { _ = try await changes(after: before) } == "CHANGE_TOKEN_EXPIRED")
    #expect(try await changes(after: after).changes.isEmpty)
    #expect(try await changes(after: 0).names == ["b"])
    // The name is free again.
    #expect(try await bench.save([bench.record("a")])[0].saved != nil)
  }

  /// However old what it comes to is: a walk knows of what is gone since it began.
  @Test func aWalkFromTheBeginningEnds() async throws {
    let clock = ManualClock()
    let bench = try RecordBench { $0.clock = { clock.now } }
    defer { bench.store.close() }
    try await bench.makeZone()
    try await bench.save(try (0..<9).map { try bench.record("r\($0)") })
    try await bench.save([bench.record("gone")])
    try await bench.modify(
      ModifyBatch(operations: [.delete(bench.id("gone"), changeTag: "", allowMissing: false)]))
    clock.advance(seconds: 31 * 86_400)
    try await bench.store.write { _ = try $0.pruneTombstones() }
    var names: [String] = []
    var (position, since) = (Int64(0), Int64(0))
    for _ in 0..<5 {
      let page = try await bench.store.readRecords(bench.database, caller: bench.caller) {
        [zone = bench.zone, caller = bench.caller, position, since] transaction, database in
        // As the client has it: through a token.
        let token = transaction.tokens.changeToken(
          zone, position: position, since: since, now: transaction.now)
        let place =
          position == 0
          ? (0, 0)
          : try transaction.tokens.place(ofChangeToken: token, zone, now: transaction.now)
        return try transaction.zoneChanges(
          transaction.recordZone(zone, in: database), in: database, after: place.0,
          since: place.1, types: [], pageSize: 2, caller: caller)
      }
      names += page.names
      (position, since) = (page.position, page.since)
      #expect(page.moreComing == (names.count < 9))
    }
    #expect(names == (0..<9).map { "r\($0)" })
    // What is gone before a token is not known to its walk.
    await #expect(throws: StoreError.changeTokenExpired) {
      try await bench.store.readRecords(bench.database, caller: bench.caller) {
        [zone = bench.zone, caller = bench.caller] in
        try $0.zoneChanges(
          $0.recordZone(zone, in: $1), in: $1, after: 3, types: [], pageSize: 2, caller: caller)
      }
    }
  }

  @Test func tokensFitTheirZoneOnly() throws {
    defer { bench.store.close() }
    let tokens = bench.store.tokens
    let other = try ZoneID(database: bench.database, zone: "other")
    let token = tokens.changeToken(bench.zone, position: 7, now: 0)
    #expect(try tokens.position(ofChangeToken: token, bench.zone, now: 0) == 7)
    #expect(throws: StoreError.self) { try tokens.position(ofChangeToken: token, other, now: 0) }
    let wide = tokens.databaseToken(bench.database, position: 8, now: 0)
    #expect(try tokens.position(ofChangeToken: wide, other, now: 0) == 8)
    let feed = try RecordFeed(database: bench.database, targets: [(1, .zone(bench.zone))])
    #expect(try tokens.position(ofSubscriptionToken: wide, feed, now: 0) == 8)
    #expect(throws: TokenAuthority.Refusal.mismatch) {
      try tokens.position(ofSubscriptionToken: token, feed, now: 0)
    }
    let mine = tokens.subscriptionToken(feed, position: 9, now: 0)
    #expect(try tokens.position(ofSubscriptionToken: mine, feed, now: 0) == 9)
    let wider = try RecordFeed(
      database: bench.database, targets: [(1, .zone(bench.zone)), (2, .zone(other))])
    #expect(throws: TokenAuthority.Refusal.mismatch) {
      try tokens.position(ofSubscriptionToken: mine, wider, now: 0)
    }
  }

  /// A client that listens to a query and a zone through random changes, pages
  /// of random length and reads at random moments holds a fresh query's result.
  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func followersConverge(seed: UInt64) async throws {
    defer { bench.store.close() }
    try await bench.makeZone()
    var random = SeededGenerator(state: seed)
    let query = RecordQuery(
      type: "Note", predicate: .comparison(field: "n", .greaterThan, .int64(4)))
    let feed = try RecordFeed(
      database: bench.database, targets: [(1, .query(query)), (2, .zone(bench.zone))])
    var follower = Follower(bench: bench, feed: feed)
    for _ in 0..<20 { try await mutate(&random) }
    try await follower.snapshot()
    var partly = 0
    for _ in 0..<60 {
      for _ in 0..<4 {
        for _ in 0..<Int.random(in: 0...2, using: &random) { try await mutate(&random) }
        // A part of the log is read, and more is written before it is told.
        _ = try await follower.step(limit: Int.random(in: 1...4, using: &random)) {
          for _ in 0..<Int.random(in: 0...2, using: &random) { try await mutate(&random) }
        }
      }
      while try await !follower.step(limit: 3, between: {}) {}
      let all = try await bench.query(RecordQuery(type: "Note")).records
      let matching = try await bench.query(query).records.sorted { $0.id.name < $1.id.name }
      if !matching.isEmpty, matching.count < all.count { partly += 1 }
      #expect(follower.held[2]?.values.sorted { $0.id.name < $1.id.name } == all)
      #expect(follower.held[1]?.values.sorted { $0.id.name < $1.id.name } == matching)
    }
    #expect(partly > 20)
  }

  @Test func deletedZonesAreTold() async throws {
    defer { bench.store.close() }
    try await bench.makeZone()
    let feed = try RecordFeed(database: bench.database, targets: [(5, .zone(bench.zone))])
    var follower = Follower(bench: bench, feed: feed)
    try await bench.save([bench.record("a")])
    try await follower.snapshot()
    #expect(follower.held[5]?.count == 1)
    let zone = bench.zone
    try await bench.store.writeRecords(bench.database, caller: bench.caller) {
      [caller = bench.caller] in
      try $0.deleteZone(zone, etag: "", in: $1, caller: caller)
    }
    try await bench.makeZone()
    try await bench.save([bench.record("b")])
    while try await !follower.step(limit: 2, between: {}) {}
    #expect(follower.held[5]?.values.map(\.id.record) == ["b"])
  }

  @Test func echoesAreForTheirUserOnly() async throws {
    defer { bench.store.close() }
    try await bench.makeZone()
    let feed = try RecordFeed(database: bench.database, targets: [(1, .zone(bench.zone))])
    let start = try await bench.store.read { try $0.head() }
    try await bench.modify(
      ModifyBatch(
        operations: [.save(bench.record("a"), changedKeys: [], .replace)], requestID: "mine"))
    let caller = bench.caller
    let frames = try await bench.store.readRecords(bench.database, caller: caller) {
      transaction, database in
      let page = try transaction.feedPage(feed, in: database, after: start, limit: 10)
      let other = RecordCaller(key: 2, user: "ada", isAdministrator: false)
      return try [caller, other].map {
        try transaction.frames(
          page.entries[...], of: feed, in: database, caller: $0
        ).frames
      }
    }
    let ids = frames.map { frames -> String? in
      if case .matched(_, true, let id)? = frames.first?.event { id } else { nil }
    }
    #expect(ids == ["mine", ""])
  }

  private func changes(after position: Int64, pageSize: Int = 100) async throws -> ZoneChanges {
    let zone = bench.zone
    let caller = bench.caller
    return try await bench.store.readRecords(bench.database, caller: caller) {
      try $0.zoneChanges(
        $0.recordZone(zone, in: $1), in: $1, after: position, types: [], pageSize: pageSize,
        caller: caller)
    }
  }

  private func mutate(_ random: inout SeededGenerator) async throws {
    var operations: [RecordOperation] = []
    for index in 0..<4 where Int.random(in: 0..<2, using: &random) == 0 {
      if Int.random(in: 0..<3, using: &random) == 0 {
        operations.append(.delete(try bench.id("r\(index)"), changeTag: "", allowMissing: true))
      } else {
        let number = Int64.random(in: 0..<10, using: &random)
        operations.append(
          .save(try bench.record("r\(index)", ["n": .int64(number)]), changedKeys: [], .replace))
      }
    }
    try await bench.modify(ModifyBatch(operations: operations))
  }
}

/// A client's cache, fed by a subscription.
private struct Follower {
  let bench: RecordBench
  let feed: RecordFeed
  var position: Int64 = 0
  var held: [Int32: [RecordID: StoredRecord]] = [:]

  init(bench: RecordBench, feed: RecordFeed) {
    self.bench = bench
    self.feed = feed
    for target in feed.targets { held[target.id] = [:] }
  }

  mutating func snapshot() async throws {
    position = try await bench.store.read { try $0.head() }
    for (index, target) in feed.targets.enumerated() {
      var last: SnapshotPlace?
      repeat {
        let page = try await read { [feed, last] in
          try $0.feedSnapshot(feed, target: index, in: $1, after: last, limit: 3)
        }
        for record in page.records { held[target.id]?[record.id] = record }
        last = page.next
      } while last != nil
    }
  }

  /// Reads one part of the log; true at its head.
  mutating func step(limit: Int, between: () async throws -> Void) async throws -> Bool {
    let page = try await read { [feed, position] in
      try $0.feedPage(feed, in: $1, after: position, limit: limit)
    }
    try await between()
    let entries = page.entries
    let frames = try await read { [feed, caller = bench.caller] transaction, database in
      try transaction.frames(entries[...], of: feed, in: database, caller: caller).frames
    }
    for frame in frames {
      for target in frame.targets {
        switch frame.event {
        case .matched(let record, _, _): held[target]?[record.id] = record
        case .unmatched(let id): held[target]?[id] = nil
        case .deleted(let record): held[target]?[record.id] = nil
        case .zoneDeleted(let zone): held[target] = held[target]?.filter { $0.key.zone != zone }
        case .zoneChanged, .fired: break
        }
      }
    }
    position = page.position
    return page.isAtHead
  }

  private func read<R: Sendable>(
    _ body: @Sendable @escaping (ReadTransaction, RecordDatabase) throws -> R
  ) async throws -> R {
    try await bench.store.readRecords(bench.database, caller: bench.caller, body)
  }
}

extension ZoneChanges {
  fileprivate var names: [String] {
    changes.map {
      switch $0 {
      case .changed(let record): record.id.record
      case .deleted(let record): "-" + record.id.record
      }
    }
  }
}
