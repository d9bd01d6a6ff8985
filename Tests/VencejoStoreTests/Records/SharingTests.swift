import Testing

@testable import VencejoStore

/// Shares: what participants see, change, and lose.
@Suite struct SharingTests {
  private let bench: RecordBench
  private let ben = RecordCaller(key: 2, user: "ben", isAdministrator: false)
  private let cat = RecordCaller(key: 3, user: "cat", isAdministrator: false)

  init() throws { bench = try RecordBench() }

  private func prepare() async throws {
    try await bench.makeZone()
    // root > a > aa, and one beside.
    try await save([("root", ""), ("a", "root"), ("aa", "a"), ("other", "")])
  }

  private func record(_ name: String, under parent: String = "", _ number: Int64 = 1) throws
    -> StoredRecord
  {
    var record = try bench.record(name, ["n": .int64(number)])
    record.parent = parent
    return record
  }

  @discardableResult
  private func save(
    _ records: [(name: String, parent: String)], as caller: RecordCaller? = nil
  ) async throws -> [String?] {
    let operations = try records.map {
      RecordOperation.save(
        try record($0.name, under: $0.parent), changedKeys: [], .replace)
    }
    return try await bench.modify(ModifyBatch(operations: operations), as: caller).results.map(
      \.reason)
  }

  private func delete(_ name: String, as caller: RecordCaller) async throws -> String? {
    try await bench.modify(
      ModifyBatch(operations: [.delete(bench.id(name), changeTag: "", allowMissing: false)]),
      as: caller
    ).results[0].reason
  }

  private func share(
    _ root: String?, _ permission: SharePermission = .readOnly, with users: [String] = ["ben"],
    open: SharePermission = .none
  ) async throws -> RecordShare {
    var change = ShareChange()
    change.participants = users.map { ShareParticipant(user: $0, permission: permission) }
    change.publicPermission = open
    let id = try root.map { try bench.id($0) }
    return try await bench.store.writeRecords(bench.database, caller: bench.caller) {
      [change, zone = bench.zone, caller = bench.caller] in
      try $0.createShare(zone, root: id, change, in: $1, caller: caller)
    }
  }

  @discardableResult
  private func accept(_ share: RecordShare, as caller: RecordCaller) async throws -> RecordShare {
    try await bench.store.write { try $0.acceptShare(link: share.link, id: nil, caller: caller) }
  }

  private func end(_ share: RecordShare, as caller: RecordCaller) async throws {
    try await bench.store.write { try $0.deleteShare(share.id, etag: "", caller: caller) }
  }

  private func seen(by caller: RecordCaller) async throws -> [String] {
    try await bench.store.readRecords(bench.database, caller: caller) { [zone = bench.zone] in
      try $0.queryRecords(
        RecordQuery(type: "Note"), zone: zone, in: $1, pageSize: 100, pageToken: ""
      ).records.map(\.id.record)
    }
  }

  private func changes(_ caller: RecordCaller, after position: Int64, pageSize: Int = 100)
    async throws -> (names: [String], position: Int64)
  {
    try await bench.store.readRecords(bench.database, caller: caller) { [zone = bench.zone] in
      let changes = try $0.zoneChanges(
        $0.recordZone(zone, in: $1), in: $1, after: position, types: [], pageSize: pageSize,
        caller: caller)
      return (
        changes.changes.map {
          switch $0 {
          case .changed(let record): record.id.record
          case .deleted(let record): "-" + record.id.record
          }
        }, changes.position
      )
    }
  }

  @Test func aHierarchyIsSeenAndNothingElse() async throws {
    defer { bench.store.close() }
    try await prepare()
    let share = try await share("root")
    // Invited is not yet in.
    #expect(await reason { _ = try await seen(by: ben) } == "NOT_YOUR_DATABASE")
    try await accept(share, as: ben)
    #expect(try await seen(by: ben) == ["a", "aa", "root"])
    #expect(
      await reason { try await accept(share, as: cat) } == "PARTICIPANT_MAY_NEED_VERIFICATION")
    #expect(await reason { _ = try await seen(by: cat) } == "NOT_YOUR_DATABASE")
    let (id, hidden) = (try bench.id("aa"), try bench.id("other"))
    #expect(
      try await bench.store.readRecords(bench.database, caller: ben) {
        try $0.record(id, in: $1).share
      } == share.id.share)
    #expect(
      await reason {
        _ = try await bench.store.readRecords(bench.database, caller: ben) {
          try $0.record(hidden, in: $1)
        }
      } == "RECORD_NOT_FOUND")
    // A query of all zones, and zones beside, are not theirs.
    #expect(
      await reason {
        _ = try await bench.store.readRecords(bench.database, caller: ben) {
          try $0.queryRecords(
            RecordQuery(type: "Note"), zone: nil, in: $1, pageSize: 1, pageToken: "")
        }
      } == "INVALID_REQUEST")
    let zone = try ZoneID(database: bench.database, zone: ZoneID.defaultZone)
    #expect(
      await reason {
        _ = try await bench.store.readRecords(bench.database, caller: ben) {
          try $0.recordZone(zone, in: $1)
        }
      } == "ZONE_NOT_FOUND")
    #expect(
      try await bench.store.readRecords(bench.database, caller: ben) {
        try $0.countRecords(
          RecordQuery(type: "Note"), zone: ZoneID(database: $1.id, zone: "z"), in: $1, limit: 0
        ).count
      } == 3)
    // Reading is not writing.
    #expect(try await save([("a", "root")], as: ben) == ["PERMISSION_FAILURE"])
    #expect(try await delete("aa", as: ben) == "PERMISSION_FAILURE")
    #expect(
      await reason {
        try await bench.store.writeRecords(bench.database, caller: ben) {
          try $0.deleteZone(bench.zone, etag: "", in: $1, caller: ben)
        }
      } == "NOT_AN_ADMINISTRATOR")
  }

  @Test func whoMayWriteWritesInsideOnly() async throws {
    defer { bench.store.close() }
    try await prepare()
    let share = try await share("root", .readWrite)
    try await accept(share, as: ben)
    #expect(try await save([("b", "root"), ("bb", "b")], as: ben) == [nil, nil])
    #expect(try await save([("c", "")], as: ben) == ["PERMISSION_FAILURE"])
    #expect(try await save([("c", "other")], as: ben) == ["PERMISSION_FAILURE"])
    // Nor is anything moved out.
    #expect(try await save([("a", "other")], as: ben) == ["PERMISSION_FAILURE"])
    #expect(try await save([("a", "b")], as: ben) == [nil])
    #expect(try await seen(by: ben) == ["a", "aa", "b", "bb", "root"])
    #expect(try await delete("root", as: ben) == "PERMISSION_FAILURE")
    #expect(try await delete("bb", as: ben) == nil)
    // The owner's record outside stays unseen whatever points to it.
    #expect(try await save([("other", "missing")]) == ["REFERENCE_VIOLATION"])
    #expect(try await save([("root", "aa")]) == ["REFERENCE_VIOLATION"])
    // What is deleted has nothing above it any more: a chain ends there.
    #expect(try await save([("x", ""), ("y", "x"), ("z", "y")]) == [nil, nil, nil])
    #expect(try await delete("y", as: bench.caller) == nil)
    #expect(try await save([("x", "z")]) == [nil])
    #expect(try await save([("y", "x")]) == ["REFERENCE_VIOLATION"])
    // With its root a share ends.
    #expect(try await delete("root", as: bench.caller) == nil)
    #expect(await reason { _ = try await seen(by: ben) } == "NOT_YOUR_DATABASE")
    let id = try bench.id("a")
    #expect(
      try await bench.store.readRecords(bench.database, caller: bench.caller) {
        try $0.record(id, in: $1).share
      } == "")
  }

  @Test func feedsTellWhatComesInAndGoesOut() async throws {
    defer { bench.store.close() }
    try await prepare()
    let share = try await share("root")
    try await accept(share, as: ben)
    var (names, position) = try await changes(ben, after: 0)
    #expect(Set(names) == ["root", "a", "aa"])
    // Subtrees move with their top.
    try await save([("x", "other"), ("xx", "x")])
    (names, position) = try await changes(ben, after: position)
    #expect(names == [])
    try await save([("x", "root")])
    (names, position) = try await changes(ben, after: position)
    #expect(Set(names) == ["x", "xx"])
    let before = position
    try await save([("x", "other")])
    (names, position) = try await changes(ben, after: before)
    #expect(Set(names) == ["-x", "-xx"])
    // Out and in again is in.
    try await save([("x", "a")])
    (names, _) = try await changes(ben, after: before)
    #expect(Set(names) == ["x", "xx"])
    // In the middle of a page.
    try await save([("x", "")])
    var all: [String] = []
    var at = before
    for _ in 0..<3 {
      let page = try await changes(ben, after: at, pageSize: 1)
      all += page.names
      at = page.position
    }
    #expect(Set(all) == ["-x", "-xx"])
    // A deletion outside is none of theirs; one inside is.
    _ = try await delete("x", as: bench.caller)
    _ = try await delete("a", as: bench.caller)
    (names, _) = try await changes(ben, after: at)
    #expect(Set(names) == ["-a", "-aa"])
  }

  @Test func revokedMeansGoneAtOnce() async throws {
    defer { bench.store.close() }
    try await prepare()
    var share = try await share("root", with: ["ben", "cat"])
    try await accept(share, as: ben)
    try await accept(share, as: cat)
    let token = try await changes(ben, after: 0).position
    let start = try await bench.store.read {
      try $0.sharedChanges(container: "notes", after: 0, pageSize: 10, caller: ben)
    }
    #expect(start.changed.map(\.id) == [bench.zone] && start.lost.isEmpty)
    share = try await bench.store.read { [id = share.id, caller = bench.caller] in
      try $0.share(id, caller: caller)
    }
    var change = ShareChange()
    change.participants = share.participants.filter { $0.user == "cat" }
    let wanted = change
    #expect(
      await reason {
        try await bench.store.write { [id = share.id, caller = bench.caller] in
          _ = try $0.updateShare(id, etag: "", wanted, caller: caller)
        }
      } == "ETAG_MISMATCH")
    try await bench.store.write { [share, caller = bench.caller] in
      _ = try $0.updateShare(share.id, etag: share.etag, wanted, caller: caller)
    }
    #expect(await reason { _ = try await changes(ben, after: token) } == "NOT_YOUR_DATABASE")
    let after = try await bench.store.read {
      try $0.sharedChanges(
        container: "notes", after: start.position, pageSize: 10, caller: ben)
    }
    #expect(after.changed.isEmpty && after.lost.map(\.zone) == [bench.zone])
    #expect(after.lost.map(\.isDeleted) == [false])
    #expect(try await seen(by: cat).count == 3)
    // Back again: what was kept may be old, so the token is.
    change.participants?.append(ShareParticipant(user: "ben"))
    let again = change
    share = try await bench.store.write { [share, caller = bench.caller] in
      let now = try $0.share(share.id, caller: caller)
      return try $0.updateShare(share.id, etag: now.etag, again, caller: caller)
    }
    try await accept(share, as: ben)
    #expect(await reason { _ = try await changes(ben, after: token) } == "CHANGE_TOKEN_EXPIRED")
    #expect(try await changes(ben, after: 0).names.count == 3)
    // The owner's tokens go on.
    _ = try await changes(bench.caller, after: token)
    // Leaving is one's own affair.
    try await end(share, as: ben)
    #expect(await reason { _ = try await seen(by: ben) } == "NOT_YOUR_DATABASE")
    #expect(try await seen(by: cat).count == 3)
    try await end(share, as: bench.caller)
    #expect(await reason { _ = try await seen(by: cat) } == "NOT_YOUR_DATABASE")
    #expect(await reason { try await accept(share, as: cat) } == "SHARE_NOT_FOUND")
  }

  @Test func aZoneIsSharedAsAWholeAndPublicly() async throws {
    defer { bench.store.close() }
    try await prepare()
    let share = try await share(nil, with: ["ben"], open: .readWrite)
    #expect(await reason { _ = try await self.share("root") } == "ALREADY_SHARED")
    #expect(await reason { _ = try await self.share(nil) } == "ALREADY_SHARED")
    let joined = try await accept(share, as: cat)
    // Who comes by the link sees nobody but themselves.
    #expect(joined.participants.map(\.user) == ["cat"])
    #expect(try await seen(by: cat) == ["a", "aa", "other", "root"])
    #expect(try await save([("new", "")], as: cat) == [nil])
    try await accept(share, as: ben)
    // Invited, ben has what he was given, not what the link gives.
    #expect(try await save([("new2", "")], as: ben) == ["PERMISSION_FAILURE"])
    var change = ShareChange()
    change.publicPermission = SharePermission.none
    let closed = change
    try await bench.store.write { [share, caller = bench.caller] in
      _ = try $0.updateShare(share.id, etag: "", closed, caller: caller)
    }
    #expect(await reason { _ = try await seen(by: cat) } == "NOT_YOUR_DATABASE")
    #expect(try await seen(by: ben).count == 5)
    // With its zone a share ends.
    try await bench.store.writeRecords(bench.database, caller: bench.caller) {
      [zone = bench.zone, caller = bench.caller] in
      try $0.deleteZone(zone, etag: "", in: $1, caller: caller)
    }
    let changes = try await bench.store.read {
      try $0.sharedChanges(container: "notes", after: 1, pageSize: 10, caller: ben)
    }
    #expect(changes.lost.map(\.isDeleted) == [true])
    #expect(await reason { _ = try await seen(by: ben) } == "NOT_YOUR_DATABASE")
  }

  @Test func oneRecordIsInOneShare() async throws {
    defer { bench.store.close() }
    try await prepare()
    _ = try await share("a")
    #expect(await reason { _ = try await share("a") } == "ALREADY_SHARED")
    #expect(await reason { _ = try await share("aa") } == "ALREADY_SHARED")
    #expect(await reason { _ = try await share("root") } == "ALREADY_SHARED")
    #expect(await reason { _ = try await share(nil) } == "ALREADY_SHARED")
    #expect(await reason { _ = try await share("missing") } == "RECORD_NOT_FOUND")
    _ = try await share("other")
    // Nor do two meet by a move.
    #expect(try await save([("a", "other")]) == ["ALREADY_SHARED"])
    #expect(try await save([("root", "other")]) == ["ALREADY_SHARED"])
    #expect(
      await reason {
        try await bench.store.writeRecords(bench.database, caller: bench.caller) {
          [caller = bench.caller] in
          let zone = try ZoneID(database: $1.id, zone: ZoneID.defaultZone)
          _ = try $0.createShare(zone, root: nil, ShareChange(), in: $1, caller: caller)
        }
      } == "NOT_SHAREABLE")
  }

  /// Frames of a participant's stream: what the rights allow when they are sent.
  @Test func streamsAreCutAndStartAfresh() async throws {
    defer { bench.store.close() }
    try await prepare()
    let share = try await share("root")
    try await accept(share, as: ben)
    let feed = try RecordFeed(database: bench.database, targets: [(1, .zone(bench.zone))])
    func page(_ caller: RecordCaller, after: Int64) async throws -> ([String], Bool, Int64) {
      try await bench.store.readRecords(bench.database, caller: caller) {
        let page = try $0.feedPage(feed, in: $1, after: after, limit: 100)
        let frames = try $0.frames(page.entries[...], of: feed, in: $1, caller: caller).frames
        return (
          frames.map {
            switch $0.event {
            case .matched(let record, _, _): record.id.record
            case .unmatched(let id): "-" + id.record
            case .deleted(let record): "x" + record.id.record
            default: "?"
            }
          }, page.isReset, page.position
        )
      }
    }
    let head = try await bench.store.read { try $0.head() }
    try await save([("b", "root"), ("other", "")])
    var (names, reset, position) = try await page(ben, after: head)
    #expect(names == ["b"] && !reset)
    try await save([("b", "")])
    (names, reset, position) = try await page(ben, after: position)
    #expect(names == ["-b"])
    // Another share of the same zone: what it covers was never told.
    let second = try await self.share("other")
    try await accept(second, as: ben)
    (_, reset, position) = try await page(ben, after: position)
    #expect(reset)
    let owner = try await page(bench.caller, after: head)
    #expect(!owner.1)
    try await end(second, as: bench.caller)
    #expect(try await page(ben, after: position).1)
    try await end(share, as: bench.caller)
    #expect(await reason { _ = try await page(ben, after: position) } == "NOT_YOUR_DATABASE")
  }
}
