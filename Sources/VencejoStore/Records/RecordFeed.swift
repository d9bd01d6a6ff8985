import VencejoCrypto
import VencejoSQLite

/// What one subscription listens to: zones and queries of a database.
public struct RecordFeed: Sendable {
  /// Most targets of one subscription.
  public static let maxTargets = 64

  public enum Target: Sendable, Hashable {
    case zone(ZoneID)
    /// In every zone of the database; its sort order does not matter.
    case query(RecordQuery)
    /// What a saved subscription of a user (by internal key) fires.
    case subscription(SubscriptionID, user: Int64)
    /// Which zones change, without their records.
    case database
  }

  public let database: DatabaseID
  /// Says whether two feeds have the same targets.
  let fingerprint: [UInt8]
  private(set) var targets: [(id: Int32, target: Checked)]

  enum Checked: Sendable {
    case zone(ZoneID)
    case query(CheckedQuery, RecordQuery)
    case subscription(SubscriptionID, user: Int64)
    case database

    func matches(_ record: StoredRecord) -> Bool {
      switch self {
      case .zone(let zone): record.id.zone == zone
      case .query(let query, _): query.matches(record)
      case .subscription, .database: false
      }
    }
  }

  /// Checks the targets.
  ///
  /// - Throws: `INVALID_REQUEST`, `LIMIT_EXCEEDED`.
  public init(
    database: DatabaseID, targets: [(id: Int32, target: Target)]
  ) throws(StoreError) {
    guard !targets.isEmpty else {
      throw StoreError(RecordViolation("targets", "name at least one target"))
    }
    guard
      !database.isSharedView
        || targets.allSatisfy({ if case .subscription = $0.target { true } else { false } })
    else {
      throw StoreError(
        RecordViolation(
          "targets",
          "of the shared database, follow a saved subscription; zones and queries are followed in"
            + " the database they are in"))
    }
    guard targets.count <= Self.maxTargets else {
      throw .tooManyTargets
    }
    var writer = KeysetWriter()
    var checked: [(id: Int32, target: Checked)] = []
    for (id, target) in targets.sorted(by: { $0.id < $1.id }) {
      guard checked.last?.id != id else {
        throw StoreError(RecordViolation("targets", "target_id \(id) occurs twice"))
      }
      writer.int(Int64(id))
      switch target {
      case .zone(let zone):
        guard zone.database == database else {
          throw StoreError(RecordViolation("targets", "\(zone) is not in \(database)"))
        }
        writer.int(1)
        writer.text(zone.zone)
        checked.append((id, .zone(zone)))
      case .query(let query):
        writer.int(2)
        query.write(to: &writer)
        checked.append((id, .query(try query.checked(), query)))
      case .subscription(let subscription, let user):
        guard subscription.database == database else {
          throw StoreError(
            RecordViolation("targets", "\(subscription.name) is not in \(database)"))
        }
        writer.int(3)
        writer.text(subscription.subscription)
        checked.append((id, .subscription(subscription, user: user)))
      case .database:
        writer.int(4)
        checked.append((id, .database))
      }
    }
    self.database = database
    self.targets = checked
    fingerprint = Array(SHA256.digest(writer.bytes).prefix(16))
  }

  /// The feed as the database's schema and its caller's rights have it.
  ///
  /// - Throws: As ``RecordDatabase/prepared(_:)``.
  public func prepared(in database: RecordDatabase) throws(StoreError) -> RecordFeed {
    var copy = self
    for (index, target) in targets.enumerated() {
      guard case .query(_, let query) = target.target else { continue }
      copy.targets[index].target = .query(try database.prepared(query), query)
    }
    return copy
  }

  /// The targets' identifiers, ascending.
  public var targetIDs: [Int32] { targets.map(\.id) }

  /// The zones named, or nil when they are all of interest.
  var zoneNames: [String]? {
    var names: [String] = []
    for (_, target) in targets {
      switch target {
      case .zone(let zone): names.append(zone.zone)
      case .query, .database: return nil
      case .subscription: break
      }
    }
    return names
  }

  var databaseTargets: [Int32] {
    targets.compactMap { if case .database = $0.target { $0.id } else { nil } }
  }
}

/// Something that happened in a part of the log, without what it left behind:
/// `ReadTransaction.frames(_:of:)` looks that up.
public struct FeedEntry: Sendable {
  enum Kind: Sendable {
    case record(name: String)
    case zoneDeleted
    case zoneChanged
    case fired(Firing, target: Int32)
  }

  var kind: Kind
  var zone: ZoneID
  var zoneKey: Int64
  /// Position of the last event about it.
  var position: Int64
  var commitTime: Int64
  /// It did not exist before this part of the log.
  var isNew = false
  /// Indices of targets that an image before one of the events matched.
  var matchedBefore: Set<Int> = []
  var actor: Int64 = 0
  var requestID = ""
}

/// A part of the log.
public struct FeedPage: Sendable {
  public var entries: [FeedEntry]
  /// Everything up to here is in this page or before it.
  public var position: Int64
  public var isAtHead: Bool
  /// Other rights count from here on: the follower starts afresh.
  public var isReset = false
}

/// What a subscriber hears about one record or zone.
public struct FeedFrame: Sendable {
  public enum Event: Sendable {
    /// It matches now; `isNew` when it did not exist before.
    case matched(StoredRecord, isNew: Bool, requestID: String)
    case unmatched(RecordID)
    case deleted(DeletedRecord)
    case zoneDeleted(ZoneID)
    case zoneChanged(StoredZone)
    case fired(Firing)
  }

  public var targets: [Int32]
  public var event: Event
  /// Microseconds since 1970; 0 in a snapshot.
  public var commitTime: Int64
}

extension StoreError {
  /// The answer to a subscription with too many targets.
  public static let tooManyTargets = tooMany("targets", limit: RecordFeed.maxTargets)
}

extension ReadTransaction {
  /// The targets that name a zone or a subscription which does not exist, each with its
  /// `ZONE_NOT_FOUND` or `SUBSCRIPTION_NOT_FOUND`.
  ///
  /// - Throws: that error when there is no other target.
  public func missingTargets(
    of feed: RecordFeed, in database: RecordDatabase, caller: RecordCaller
  ) throws(StoreError) -> [(id: Int32, error: StoreError)] {
    var missing: [(id: Int32, error: StoreError)] = []
    for (id, target) in feed.targets {
      do throws(StoreError) {
        switch target {
        case .zone(let zone): _ = try recordZone(zone, in: database)
        case .subscription(let saved, _):
          _ = try subscription(saved, in: database, caller: caller)
        case .query, .database: break
        }
      } catch {
        guard error.code == .notFound else { throw error }
        missing.append((id, error))
      }
    }
    if missing.count == feed.targets.count, let first = missing.first { throw first.error }
    return missing
  }

  /// The next part of the log for a feed, in whole transactions. Several events
  /// about one record are one entry.
  ///
  /// A record that leaves a result is noticed by the images *before* the events:
  /// whoever saw a state that matched sees the event that ended it later, with
  /// that state before it. So any such image counts, not only the first.
  public func feedPage(
    _ feed: RecordFeed, in database: RecordDatabase, after position: Int64, limit: Int
  ) throws(StoreError) -> FeedPage {
    let head = try head()
    var builder = FeedBuilder(feed: feed, access: database.access)
    var end = try addFirings(of: feed, in: database, after: position, limit: limit, to: &builder)
    guard feed.zoneNames != [] else {
      return FeedPage(entries: builder.ordered, position: end, isAtHead: end == head)
    }
    let most = end
    var text = SQLText(
      """
      SELECT e.pos, e.zone_id, z.zone, e.kind, e.keys, e.commit_us FROM event e
      JOIN record_zone z ON z.zone_key = e.zone_id
      WHERE e.zone_id IN (SELECT zone_key FROM record_zone WHERE database_key = ?
      """, [database.key])
    if let names = feed.zoneNames {
      let marks = repeatElement("?", count: names.count).joined(separator: ",")
      text += SQLText(" AND zone IN (\(marks))", names)
    }
    text += SQLText(") AND e.pos > ? ORDER BY e.pos", [position])
    var failure: StoreError?
    try each(dynamic: text.sql, text.values) { row in
      let at = row.int(0)
      guard at <= end else { return false }
      builder.add(row)
      if end == most, builder.count >= limit || builder.bytes >= Self.pageBytes {
        do throws(StoreError) {
          end = try min(most, endOfTransaction(at) ?? head)
        } catch {
          failure = error
          return false
        }
      }
      return true
    }
    if let failure { throw failure }
    builder.dropFirings(after: end)
    return FeedPage(
      entries: builder.ordered, position: end, isAtHead: end == head,
      isReset: builder.isReset)
  }

  /// The end of the transaction that a position lies in: a token never points into one.
  private func endOfTransaction(_ position: Int64) throws(StoreError) -> Int64? {
    try first("SELECT min(pos) FROM event WHERE pos >= ? AND last = 1", position) {
      $0.optionalInt(0)
    } ?? nil
  }

  /// Adds what the feed's saved subscriptions fired; answers where the page has to end at most.
  private func addFirings(
    of feed: RecordFeed, in database: RecordDatabase, after position: Int64, limit: Int,
    to builder: inout FeedBuilder
  ) throws(StoreError) -> Int64 {
    var end = try head()
    for (id, target) in feed.targets {
      guard case .subscription(let saved, let user) = target else { continue }
      let found = try firings(
        of: saved.subscription, in: database, user: user, after: position, limit: limit)
      for firing in found { builder.add(firing, target: id) }
      if found.count == limit, let last = found.last {
        end = min(end, try endOfTransaction(last.position) ?? end)
      }
    }
    return end
  }

  /// What the first of `entries` have to tell, as things are now, and how many
  /// entries that were: as many as fit an answer, at least one.
  public func frames(
    _ entries: ArraySlice<FeedEntry>, of feed: RecordFeed, in database: RecordDatabase,
    caller: RecordCaller
  ) throws(StoreError) -> (frames: [FeedFrame], used: Int) {
    var frames: [FeedFrame] = []
    var size = 0
    var used = 0
    for entry in entries {
      used += 1
      size += try add(entry, of: feed, in: database, caller: caller, to: &frames)
      if size > Self.pageBytes { break }
    }
    return (frames, used)
  }

  private func add(
    _ entry: FeedEntry, of feed: RecordFeed, in database: RecordDatabase, caller: RecordCaller,
    to frames: inout [FeedFrame]
  ) throws(StoreError) -> Int {
    func ids(_ indices: some Sequence<Int>) -> [Int32] {
      indices.sorted().map { feed.targets[$0].id }
    }
    let name: String
    switch entry.kind {
    case .record(let record): name = record
    case .fired(let firing, let target):
      frames.append(
        FeedFrame(targets: [target], event: .fired(firing), commitTime: entry.commitTime))
      return 1_000
    case .zoneChanged:
      guard let zone = try? recordZone(entry.zone, in: database), zone.key == entry.zoneKey
      else { return 0 }
      frames.append(
        FeedFrame(
          targets: feed.databaseTargets, event: .zoneChanged(zone), commitTime: entry.commitTime))
      return 0
    case .zoneDeleted:
      let targets = feed.targets.filter {
        switch $0.target {
        case .zone(let zone): zone == entry.zone
        case .query, .database: true
        case .subscription: false
        }
      }
      frames.append(
        FeedFrame(
          targets: targets.map(\.id), event: .zoneDeleted(entry.zone), commitTime: entry.commitTime)
      )
      return 0
    }
    // No row: the zone is gone, and its own entry says so.
    guard let row = try recordRow(name, zone: entry.zoneKey, in: feed.database) else { return 0 }
    if row.isDeleted {
      if !entry.matchedBefore.isEmpty {
        frames.append(
          FeedFrame(
            targets: ids(entry.matchedBefore), event: .deleted(row.tombstone),
            commitTime: entry.commitTime))
      }
      return 0
    }
    let now =
      database.access.mayRead(row.record)
      ? feed.targets.indices.filter { feed.targets[$0].target.matches(row.record) } : []
    if !now.isEmpty {
      frames.append(
        FeedFrame(
          targets: ids(now),
          event: .matched(
            row.record, isNew: entry.isNew,
            requestID: entry.actor == caller.key ? entry.requestID : ""),
          commitTime: entry.commitTime))
    }
    let gone = entry.matchedBefore.subtracting(now)
    if !gone.isEmpty {
      frames.append(
        FeedFrame(
          targets: ids(gone), event: .unmatched(row.record.id), commitTime: entry.commitTime))
    }
    return row.blobSize
  }

  /// A page of what a feed's target matches now, by record name. `next`: where the page after it
  /// begins; nil when there is none.
  public func feedSnapshot(
    _ feed: RecordFeed, target index: Int, in database: RecordDatabase,
    after last: SnapshotPlace?, limit: Int
  ) throws(StoreError) -> (records: [StoredRecord], next: SnapshotPlace?) {
    guard feed.targets.indices.contains(index) else { return ([], nil) }
    switch feed.targets[index].target {
    case .subscription, .database: return ([], nil)
    case .zone(let id):
      guard let zone = try? recordZone(id, in: database) else { return ([], nil) }
      let text = SQLText(
        "SELECT \(QuerySQL.columns) FROM \(QuerySQL.tables) WHERE r.zone_key = ?"
          + " AND r.deleted = 0 AND r.record_name > ? ORDER BY r.record_name LIMIT ?",
        [zone.key, last?.position.recordName ?? "", limit])
      var size = 0
      let rows = try recordRows(text, in: database.id) { row in
        size += row.blobSize
        return size > Self.pageBytes
      }
      let next = rows.last.map {
        SortPosition(parts: [], recordName: $0.record.id.record, zone: "")
      }
      return (
        rows.map(\.record).filter { database.access.mayRead($0) },
        next.map { SnapshotPlace(position: $0) }
      )
    case .query(let query, _):
      let run = QueryRun(
        self, query: query.byName, zones: try liveZones(of: database), database: database.id,
        meter: QueryMeter(pageSize: limit))
      let page = try run.page(after: last?.position, limit: limit)
      return (
        page.rows.map(\.record).filter { database.access.mayRead($0) },
        page.isAtEnd ? nil : page.frontier.map { SnapshotPlace(position: $0) }
      )
    }
  }
}

/// Where a snapshot goes on.
public struct SnapshotPlace: Sendable {
  let position: SortPosition
}

/// Gathers the events of a page, one entry for each record.
private struct FeedBuilder {
  private struct Key: Hashable {
    var zone: Int64
    var record: Int64
  }

  let feed: RecordFeed
  private(set) var count = 0
  private(set) var bytes = 0
  private var entries: [Key: FeedEntry] = [:]

  let access: RecordAccess
  private(set) var isReset = false

  init(feed: RecordFeed, access: RecordAccess) {
    self.feed = feed
    self.access = access
  }

  private var firings: [FeedEntry] = []

  var ordered: [FeedEntry] {
    (Array(entries.values) + firings).sorted { $0.position < $1.position }
  }

  mutating func add(_ firing: Firing, target: Int32) {
    firings.append(
      FeedEntry(
        kind: .fired(firing, target: target), zone: firing.zone, zoneKey: 0,
        position: firing.position, commitTime: firing.fireTime))
  }

  mutating func dropFirings(after end: Int64) { firings.removeAll { $0.position > end } }

  mutating func add(_ row: Row) {
    count += 1
    guard let zone = try? ZoneID(database: feed.database, zone: row.text(2)) else { return }
    let zoneKey = row.int(1)
    let kind = EventKind(rawValue: row.int(3))
    if kind == .zoneDeleted {
      entries[Key(zone: zoneKey, record: -1)] = nil
      entries[Key(zone: zoneKey, record: 0)] = FeedEntry(
        kind: .zoneDeleted, zone: zone, zoneKey: zoneKey, position: row.int(0),
        commitTime: row.int(5))
      return
    }
    guard kind != .accessChanged else {
      // Of one user, or of everybody.
      var keys = KeysetReader(row.blob(4))
      let user = keys.text()
      if user == nil || user == access.user { isReset = true }
      return
    }
    if !feed.databaseTargets.isEmpty {
      // -1: no record has it.
      entries[Key(zone: zoneKey, record: -1)] = FeedEntry(
        kind: .zoneChanged, zone: zone, zoneKey: zoneKey, position: row.int(0),
        commitTime: row.int(5))
    }
    let blob = row.blob(4)
    bytes += blob.count
    guard kind == .recordChanged, let keys = RecordEventKeys(blob, zone: zone) else { return }
    let key = Key(zone: zoneKey, record: keys.recordKey)
    var entry =
      entries[key]
      ?? FeedEntry(
        kind: .record(name: keys.recordName), zone: zone, zoneKey: zoneKey, position: 0,
        commitTime: 0, isNew: keys.old == nil)
    entry.position = row.int(0)
    entry.commitTime = row.int(5)
    entry.actor = keys.actor
    entry.requestID = keys.requestID
    if let old = keys.old, access.mayRead(old) {
      for (index, target) in feed.targets.enumerated() where target.target.matches(old) {
        entry.matchedBefore.insert(index)
      }
    }
    entries[key] = entry
  }
}
