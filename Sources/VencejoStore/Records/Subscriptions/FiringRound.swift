import VencejoCrypto
import VencejoSQLite

/// Fires the saved subscriptions that one batch of changes in a database concerns, in its own
/// transaction: once for each change a query selects, once for a zone or a database however much
/// changed in it.
struct FiringRound {
  private let transaction: WriteTransaction
  private let database: RecordDatabase
  private let actor: String
  private var listing: SubscriptionBoard.Listing?
  private var done: Set<Int64> = []
  /// The databases of those who take part, by zone and share.
  private var guests: [GuestPlace: [RecordDatabase]] = [:]

  private struct GuestPlace: Hashable {
    var zone: String
    /// Nil: of any share.
    var share: String?
  }

  /// `end` must follow.
  init(
    _ transaction: WriteTransaction, _ database: RecordDatabase, actor: String
  ) throws(StoreError) {
    self.transaction = transaction
    self.database = database
    self.actor = actor
    listing = try transaction.board.take(database, transaction)
  }

  /// Gives the subscriptions back to the board.
  func end() {
    if let listing { transaction.board.keep(listing, of: database) }
  }

  /// A change of a record, which the event at `position` tells. Answers whom it concerns.
  mutating func record(
    old: StoredRecord?, new: StoredRecord?, position: Int64
  ) throws(StoreError) -> [FiringAddress] {
    guard let image = new ?? old else { return [] }
    let keys = listing?.matches(old: old, new: new) ?? []
    let reason: SavedSubscription.Reason = new == nil ? .deletion : old == nil ? .creation : .update
    var fired: [FiringAddress] = []
    for key in keys.sorted() {
      guard let entry = listing?.entries[key],
        case .query(let query, let firesOn, let once, let zone) = entry.subscription.kind,
        firesOn.contains(reason), zone == nil || zone == image.id.zone.zone,
        // The old image is what a deletion is told by; what an update brings in counts, and what
        // it takes out does not, as in CloudKit.
        try query.checked().matches(image), try mayRead(entry, image)
      else { continue }
      fired.append(try fire(entry, in: database, reason, image.id.zone, image, position))
      if Mutation.fireTwice.isOn {
        _ = try fire(entry, in: database, reason, image.id.zone, image, position)
      }
      if once { try remove(key) }
    }
    fired += try own(image.id.zone, reason, type: image.type, position: position)
    for share in Set([old?.share, new?.share].compactMap { $0 }) {
      fired += try others(image.id.zone, share, reason, type: image.type, position: position)
    }
    return fired
  }

  /// A change of a zone as a whole.
  mutating func place(
    _ zone: ZoneID, _ reason: SavedSubscription.Reason, type: String?, position: Int64
  ) throws(StoreError) -> [FiringAddress] {
    try own(zone, reason, type: type, position: position)
      + others(zone, nil, reason, type: type, position: position)
  }

  /// For who takes part in a share of the zone.
  private mutating func others(
    _ zone: ZoneID, _ share: String?, _ reason: SavedSubscription.Reason, type: String?,
    position: Int64
  ) throws(StoreError) -> [FiringAddress] {
    guard let owner = database.id.owner else { return [] }
    let place = GuestPlace(zone: zone.zone, share: share)
    if guests[place] == nil {
      guests[place] = try transaction.all(
        """
        SELECT DISTINCT d.database_key, d.name FROM record_zone z
          JOIN record_share s USING (zone_key) JOIN record_participant p USING (share_key)
          JOIN record_database d ON d.container_key = ?1 AND d.name = 's-' || p.user
        WHERE z.database_key = ?2 AND z.zone = ?3 AND z.deleted = 0 AND p.accepted = 1
          AND p.user <> ?4 AND d.subscriptions <> 0
          AND (?5 IS NULL OR s.root = '' OR s.share = ?5)
          AND CASE p.role WHEN 4 THEN s.public_permission ELSE p.permission END <> ?6
        """, try transaction.recordContainer(of: database), database.key, zone.zone, owner, share,
        SharePermission.none.rawValue
      ) { (key: $0.int(0), name: $0.text(1)) }.compactMap { row in
        (try? DatabaseID(container: database.id.container, database: row.name)).map {
          RecordDatabase(id: $0, key: row.key)
        }
      }
    }
    var fired: [FiringAddress] = []
    for view in guests[place] ?? [] {
      guard let listing = try transaction.board.listing(of: view, transaction) else { continue }
      for key in listing.all.sorted() where !done.contains(key) {
        guard let entry = listing.entries[key], entry.subscription.waits(for: type) else {
          continue
        }
        done.insert(key)
        fired.append(try fire(entry, in: view, reason, zone, nil, position))
      }
    }
    return fired
  }

  private mutating func own(
    _ zone: ZoneID, _ reason: SavedSubscription.Reason, type: String?, position: Int64
  ) throws(StoreError) -> [FiringAddress] {
    guard let listing else { return [] }
    var fired: [FiringAddress] = []
    for key in (listing.zones[zone.zone] ?? []).union(listing.all).sorted()
    where !done.contains(key) {
      guard let entry = listing.entries[key], entry.subscription.waits(for: type) else { continue }
      done.insert(key)
      fired.append(try fire(entry, in: database, reason, zone, nil, position))
    }
    return fired
  }

  /// Whether the subscription's user may read the record now.
  private func mayRead(
    _ entry: SubscriptionBoard.Entry, _ record: StoredRecord
  ) throws(StoreError) -> Bool {
    guard database.id.isPublic else { return true }
    let everybody = RecordAccess("", isAdministrator: false, in: database.access.schema)
    if everybody.mayRead(record) { return true }
    guard let user = try transaction.userID(entry.user) else { return false }
    let caller = RecordCaller(
      key: entry.user, user: "\(user)",
      isAdministrator: try transaction.isServerAdministrator(entry.user))
    return RecordAccess(
      caller.user,
      isAdministrator: try transaction.isAdministrator(caller, ofContainer: database.container),
      in: database.access.schema
    ).mayRead(record)
  }

  private mutating func remove(_ key: Int64) throws(StoreError) {
    try transaction.run("DELETE FROM record_subscription WHERE subscription_key = ?", key)
    guard var listing else { return }
    self.listing = nil
    listing.remove(key)
    try transaction.board.change(database, transaction, &listing)
    self.listing = listing
  }

  private func fire(
    _ entry: SubscriptionBoard.Entry, in database: RecordDatabase,
    _ reason: SavedSubscription.Reason, _ zone: ZoneID, _ record: StoredRecord?, _ position: Int64
  ) throws(StoreError) -> FiringAddress {
    let (info, id) = (entry.subscription.info, entry.subscription.id)
    let collapse = record?.fields[info.collapseField].map(FiringText.text)
    var counts = info.incrementsBadge ? 1 : 0
    var more = 1
    if let collapse {
      let replaced = try transaction.first(
        """
        DELETE FROM record_firing WHERE user_id = ? AND database_key = ? AND subscription = ?
          AND collapse = ? RETURNING counts
        """, entry.user, database.key, id.subscription, collapse
      ) { $0.int(0) }
      if let replaced {
        more = 0
        counts -= Int(replaced)
      }
    }
    let badge = try transaction.raiseBadge(of: entry.user, in: database, by: Int64(counts))
    var fields: [String: RecordValue] = [:]
    for key in info.desiredKeys { fields[key] = record?.fields[key].flatMap(FiringText.brief) }
    var content = KeysetWriter()
    content.int(reason.rawValue)
    content.text(record?.id.record ?? "")
    content.text(record?.type ?? "")
    content.raw(RecordCoding.encode(fields))
    content.text(FiringText.filled(info.title, from: record))
    content.text(FiringText.filled(info.body, from: record))
    content.int(badge)
    content.text(actor)
    let uuid = UUID.v7(milliseconds: transaction.now / 1000)
    try transaction.run(
      """
      INSERT INTO record_firing(uuid, database_key, user_id, subscription, position, collapse,
        counts, zone, content, fire_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """, uuid, database.key, entry.user,
      id.subscription, position, collapse, info.incrementsBadge,
      database.id.isSharedView ? zone.name : zone.zone, content.bytes,
      transaction.now)
    if let hook = entry.hook {
      var keys = KeysetWriter()
      keys.raw(uuid.bytes)
      try transaction.enqueue(.firing, keys, for: hook, eventTime: transaction.now)
    }
    if more > 0 { try transaction.keepFew(entry.user, database, id.subscription) }
    return FiringAddress(user: entry.user, database: database.key, subscription: id.subscription)
  }
}

extension SavedSubscription {
  /// Of a zone or a database: whether it hears of records of the type, nil being any.
  fileprivate func waits(for type: String?) -> Bool {
    switch kind {
    case .zone(_, let wanted), .database(let wanted):
      wanted == nil || type == nil || wanted == type
    case .query: false
    }
  }
}

/// Whose subscription fired.
struct FiringAddress: Hashable, Sendable {
  var user: Int64
  var database: Int64
  var subscription: String
}

/// The words of a firing.
enum FiringText {
  /// A value as text: what a person reads, and what firings collapse by.
  static func text(_ value: RecordValue) -> String {
    switch value {
    case .string(let text): text
    case .int64(let number): String(number)
    case .double(let number): String(number)
    case .timestamp(let time): RFC3339.text(microseconds: time)
    case .reference(let target): target.record
    case .location(let place): "\(place.latitude), \(place.longitude)"
    case .asset(let asset): asset.fileName
    case .bytes, .list: ""
    }
  }

  /// Scalars that are short; CloudKit copies these into a notification too.
  static func brief(_ value: RecordValue) -> RecordValue? {
    switch value {
    case .string(let text): .string(cut(text))
    case .bytes, .list, .asset: nil
    case .int64, .double, .timestamp, .reference, .location: value
    }
  }

  /// A template with `{field}` replaced; what has no such field stays as it is written.
  static func filled(_ template: String, from record: StoredRecord?) -> String {
    guard template.utf8.contains(UInt8(ascii: "{")) else { return template }
    var result = ""
    var rest = template[...]
    while let open = rest.firstIndex(of: "{") {
      result += rest[..<open]
      rest = rest[open...]
      guard let close = rest.firstIndex(of: "}") else { break }
      let name = String(rest[rest.index(after: open)..<close])
      guard RecordNaming.isWord(name) else {
        result.append("{")
        rest = rest.dropFirst()
        continue
      }
      result += record?.fields[name].map(text) ?? ""
      rest = rest[rest.index(after: close)...]
    }
    return cut(result + rest)
  }

  private static func cut(_ text: String) -> String {
    text.utf8.count <= NotificationInfo.maxText
      ? text : String(text.prefix(NotificationInfo.maxText / 4))
  }
}

extension WriteTransaction {
  /// Changes a user's badge in a container and answers it.
  func raiseBadge(
    of user: Int64, in database: RecordDatabase, by change: Int64
  ) throws(StoreError) -> Int64 {
    let container = try recordContainer(of: database)
    if change != 0 {
      try run(
        """
        INSERT INTO record_badge(user_id, container_key, badge) VALUES (?, ?, max(0, ?))
        ON CONFLICT DO UPDATE SET badge = max(0, badge + ?)
        """, user, container, change, change)
    }
    return try recordBadge(of: user, in: database)
  }

  /// What the hook of a subscription is known by.
  func hookSubject(_ subscription: String, _ user: Int64, _ database: RecordDatabase) -> [UInt8] {
    var writer = KeysetWriter()
    writer.int(database.key)
    writer.int(user)
    writer.text(subscription)
    return writer.bytes
  }

  /// Counts one more firing that waits, and drops the oldest of too many.
  fileprivate func keepFew(
    _ user: Int64, _ database: RecordDatabase, _ subscription: String
  ) throws(StoreError) {
    let waiting = try first(
      """
      UPDATE record_subscription SET waiting = waiting + 1
      WHERE database_key = ? AND user_id = ? AND name = ? RETURNING waiting
      """, database.key, user, subscription
    ) { $0.int(0) }
    guard let waiting, waiting > RecordRules.maxWaiting else { return }
    let oldest = try first(
      """
      SELECT firing_key FROM record_firing
      WHERE user_id = ? AND database_key = ? AND subscription = ? ORDER BY position LIMIT 1
      """, user, database.key, subscription
    ) { $0.int(0) }
    if let oldest { try forgetFiring(oldest, of: user, in: database) }
  }

  /// Takes a firing away and what it did to the badge.
  func forgetFiring(
    _ key: Int64, of user: Int64, in database: RecordDatabase
  ) throws(StoreError) {
    let gone = try first(
      "DELETE FROM record_firing WHERE firing_key = ? RETURNING counts, subscription", key
    ) { (counts: $0.int(0), subscription: $0.text(1)) }
    guard let gone else { return }
    let known = try run(
      """
      UPDATE record_subscription SET waiting = max(0, waiting - 1)
      WHERE database_key = ? AND user_id = ? AND name = ?
      """, database.key, user, gone.subscription)
    // What fired once is gone, and its hook was kept for its last words.
    if known == 0 {
      try deleteHooks(.subscription, of: hookSubject(gone.subscription, user, database))
    }
    if gone.counts != 0 { _ = try raiseBadge(of: user, in: database, by: -1) }
  }
}
