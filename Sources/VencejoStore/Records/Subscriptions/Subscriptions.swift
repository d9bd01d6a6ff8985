import VencejoCrypto
import VencejoSQLite

extension ReadTransaction {
  /// The container that a database is in, by internal key.
  func recordContainer(of database: RecordDatabase) throws(StoreError) -> Int64 {
    let key = try first(
      "SELECT container_key FROM record_database WHERE database_key = ?", database.key
    ) { $0.int(0) }
    guard let key else { throw .damagedRecord }
    return key
  }

  /// Firings with a badge that a user has not acknowledged, in the database's container.
  func recordBadge(of user: Int64, in database: RecordDatabase) throws(StoreError) -> Int64 {
    try first(
      "SELECT badge FROM record_badge WHERE user_id = ? AND container_key = ?", user,
      try recordContainer(of: database)
    ) { $0.int(0) } ?? 0
  }

  /// A subscription of the caller's.
  ///
  /// - Throws: `SUBSCRIPTION_NOT_FOUND`.
  public func subscription(
    _ id: SubscriptionID, in database: RecordDatabase, caller: RecordCaller
  ) throws(StoreError) -> SavedSubscription {
    let found = try subscriptions(
      in: database, caller: caller, "AND name = ?", [id.subscription])
    guard let saved = found.first else {
      throw .notFound(
        "SUBSCRIPTION_NOT_FOUND", type: "vencejo.record.v1.Subscription", name: id.name)
    }
    return saved
  }

  /// The caller's subscriptions, by name: there are at most ``RecordRules/maxSubscriptions``.
  public func subscriptions(
    in database: RecordDatabase, caller: RecordCaller
  ) throws(StoreError) -> [SavedSubscription] {
    try subscriptions(in: database, caller: caller, "ORDER BY name", [])
  }

  private func subscriptions(
    in database: RecordDatabase, caller: RecordCaller, _ clause: String,
    _ values: [any SQLiteBindable]
  ) throws(StoreError) -> [SavedSubscription] {
    var found: [SavedSubscription?] = []
    try each(
      dynamic: """
        SELECT name, definition, create_us, message FROM record_subscription
        WHERE database_key = ? AND user_id = ? \(clause)
        """, [database.key, caller.key] + values
    ) { row in
      let id = try? SubscriptionID(database: database.id, subscription: row.text(0))
      found.append(
        id.flatMap {
          SavedSubscription(
            id: $0, definition: row.blob(1), createTime: row.int(2), message: row.blob(3))
        })
      return true
    }
    let whole = found.compactMap { $0 }
    guard whole.count == found.count else { throw .damagedRecord }
    return whole
  }

  /// The caller's firings after `position`, of one subscription or of all, that are not
  /// acknowledged.
  public func firings(
    of subscription: SubscriptionID?, in database: RecordDatabase, caller: RecordCaller,
    after position: Int64, pageSize: Int
  ) throws(StoreError) -> FiringPage {
    let head = try head()
    guard position <= head else { throw .changeTokenExpired }
    // Firings of one position stay together: a token never points between them.
    var found = try firings(
      of: subscription?.subscription, in: database, user: caller.key, after: position,
      limit: pageSize + RecordRules.maxSubscriptions + 1)
    var count = min(pageSize, found.count)
    while count > 0, count < found.count, found[count].position == found[count - 1].position {
      count += 1
    }
    let hasMore = count < found.count
    found.removeSubrange(count...)
    return FiringPage(
      firings: found, position: hasMore ? found.last?.position ?? head : head, moreComing: hasMore,
      badge: try recordBadge(of: caller.key, in: database))
  }

  /// The firing that a delivery tells; nil once it is acknowledged or replaced.
  public func firing(of delivery: HookDelivery) throws(StoreError) -> Firing? {
    var keys = KeysetReader(delivery.keys)
    guard let id = keys.raw().flatMap({ UUID(bytes: $0) }) else { return nil }
    let place = try first(
      """
      SELECT f.database_key, f.position, d.name, c.name, f.subscription FROM record_firing f
        JOIN record_database d USING (database_key) JOIN record_container c USING (container_key)
      WHERE f.uuid = ?
      """, id
    ) {
      (
        key: $0.int(0), position: $0.int(1), database: $0.text(2), container: $0.text(3),
        subscription: $0.text(4)
      )
    }
    guard let place,
      let database = try? DatabaseID(container: place.container, database: place.database)
    else { return nil }
    return try firings(
      of: place.subscription, in: RecordDatabase(id: database, key: place.key),
      user: delivery.hook.user, after: place.position - 1, limit: 2
    ).first { $0.id == "\(id)" }
  }

  func firings(
    of subscription: String?, in database: RecordDatabase, user: Int64, after position: Int64,
    limit: Int
  ) throws(StoreError) -> [Firing] {
    var text = SQLText(
      """
      SELECT uuid, subscription, zone, content, fire_us, position FROM record_firing
      WHERE user_id = ? AND database_key = ? AND position > ?
      """, [user, database.key, position])
    if let subscription { text += SQLText(" AND subscription = ?", [subscription]) }
    text += SQLText(" ORDER BY position LIMIT ?", [limit])
    var found: [Firing?] = []
    try each(dynamic: text.sql, text.values) { row in
      found.append(Firing(row, in: database.id))
      return true
    }
    let whole = found.compactMap { $0 }
    guard whole.count == found.count else { throw .damagedRecord }
    return whole
  }
}

extension Firing {
  fileprivate init?(_ row: Row, in database: DatabaseID) {
    var reader = KeysetReader(row.blob(3))
    guard let id = row.uuid(0),
      let subscription = try? SubscriptionID(database: database, subscription: row.text(1)),
      // Of the shared database: another's zone, by its full name.
      let zone = try? database.isSharedView
        ? ZoneID(parsing: row.text(2), caller: "") : ZoneID(database: database, zone: row.text(2)),
      let number = reader.int(), let reason = SavedSubscription.Reason(rawValue: number),
      let record = reader.text(), let type = reader.text(),
      let fields = reader.raw().flatMap({ RecordCoding.decode($0) }), let title = reader.text(),
      let body = reader.text(), let badge = reader.int(), let actor = reader.text()
    else { return nil }
    self.init(
      id: "\(id)", subscription: subscription, reason: reason, zone: zone,
      record: record.isEmpty ? nil : try? RecordID(zone: zone, record: record), type: type,
      fields: fields, title: title, body: body, badge: badge, fireTime: row.int(4), actor: actor,
      position: row.int(5))
  }
}

extension WriteTransaction {
  /// Saves a subscription. The same one again changes nothing.
  ///
  /// - Throws: `INVALID_REQUEST`, `SUBSCRIPTION_EXISTS`, `LIMIT_EXCEEDED`, `ZONE_NOT_FOUND`.
  public func createSubscription(
    _ new: SavedSubscription, hookSecret: [UInt8] = [], in database: RecordDatabase,
    caller: RecordCaller
  ) throws(StoreError) -> SavedSubscription {
    guard !database.access.isShared else { throw .permissionFailure(database.id.name, "OWNER") }
    try new.check()
    let known = try subscriptions(in: database, caller: caller)
    if let same = known.first(where: { $0.id == new.id }) {
      guard same.kind == new.kind, same.info == new.info else {
        throw StoreError(
          .alreadyExists, "SUBSCRIPTION_EXISTS",
          "\(new.id.name) exists and waits for something else; delete it first",
          metadata: ["resource": new.id.name],
          details: [.resource(type: "vencejo.record.v1.Subscription", name: new.id.name)])
      }
      return same
    }
    guard known.count < RecordRules.maxSubscriptions else {
      throw .tooMany("subscriptions", limit: RecordRules.maxSubscriptions)
    }
    switch new.kind {
    case .query(_, _, _, let zone?), .zone(let zone, _):
      guard let id = try? ZoneID(database: database.id, zone: zone) else { break }
      _ = try recordZone(id, in: database)
    case .query, .database: break
    }
    var listing =
      try board.take(database, self) ?? SubscriptionBoard.Listing(version: 0)
    var saved = new
    saved.createTime = now
    try run(
      """
      INSERT INTO record_subscription(database_key, user_id, name, definition, message, create_us)
      VALUES (?, ?, ?, ?, ?, ?)
      """, database.key, caller.key, new.id.subscription, new.definition, new.message, now)
    let key = lastInsertRowID
    var entry = SubscriptionBoard.Entry(subscription: saved, user: caller.key)
    if !new.info.hookURI.isEmpty {
      entry.hook = try createHook(
        NewHook(
          .subscription, subject: hookSubject(new.id.subscription, caller.key, database),
          uri: new.info.hookURI, secret: hookSecret), by: caller.key)?.key
      try run(
        "UPDATE record_subscription SET hook_id = ? WHERE subscription_key = ?", entry.hook, key)
    }
    listing.add(key, entry)
    try board.change(database, self, &listing)
    board.keep(listing, of: database)
    return saved
  }

  /// Deletes a subscription with what it has to tell.
  ///
  /// - Throws: `SUBSCRIPTION_NOT_FOUND`.
  public func deleteSubscription(
    _ id: SubscriptionID, allowMissing: Bool, in database: RecordDatabase, caller: RecordCaller
  ) throws(StoreError) {
    let key = try first(
      "SELECT subscription_key FROM record_subscription WHERE database_key = ? AND user_id = ? AND name = ?",
      database.key, caller.key, id.subscription
    ) { $0.int(0) }
    let waiting = try firings(
      of: id.subscription, in: database, user: caller.key, after: 0,
      limit: Int(RecordRules.maxWaiting) + 1)
    // What fired once is gone but for its firing.
    guard key != nil || !waiting.isEmpty || allowMissing else {
      throw .notFound(
        "SUBSCRIPTION_NOT_FOUND", type: "vencejo.record.v1.Subscription", name: id.name)
    }
    try acknowledgeFirings(waiting.map(\.id), in: database, caller: caller)
    try deleteHooks(.subscription, of: hookSubject(id.subscription, caller.key, database))
    guard let key else { return }
    try run("DELETE FROM record_subscription WHERE subscription_key = ?", key)
    guard var listing = try board.take(database, self) else { return }
    listing.remove(key)
    try board.change(database, self, &listing)
    board.keep(listing, of: database)
  }

  /// Takes firings away that their user has seen; unknown ones are no error. Answers the badge.
  @discardableResult
  public func acknowledgeFirings(
    _ ids: [String], in database: RecordDatabase, caller: RecordCaller
  ) throws(StoreError) -> Int64 {
    for id in ids {
      guard let uuid = UUID(parsing: id) else { continue }
      let key = try first(
        "SELECT firing_key FROM record_firing WHERE uuid = ? AND user_id = ? AND database_key = ?",
        uuid, caller.key, database.key
      ) { $0.int(0) }
      if let key { try forgetFiring(key, of: caller.key, in: database) }
    }
    return try recordBadge(of: caller.key, in: database)
  }

  /// As above, of all firings up to a position.
  @discardableResult
  public func acknowledgeFirings(
    of subscription: SubscriptionID?, upTo position: Int64, in database: RecordDatabase,
    caller: RecordCaller
  ) throws(StoreError) -> Int64 {
    while true {
      let some = try firings(
        of: subscription?.subscription, in: database, user: caller.key, after: 0, limit: 1_000)
      let seen = some.filter { $0.position <= position }
      try acknowledgeFirings(seen.map(\.id), in: database, caller: caller)
      guard seen.count == 1_000 else { break }
    }
    return try recordBadge(of: caller.key, in: database)
  }

  /// Forgets up to 1,000 firings that nobody acknowledged while the log was kept; answers whether
  /// there may be more.
  @discardableResult
  public func pruneFirings() throws(StoreError) -> Bool {
    let cutoff = now - Int64(Self.logRetentionDays) * TokenAuthority.microsecondsPerDay
    let old = try all(
      """
      SELECT firing_key, user_id, database_key FROM record_firing
      WHERE fire_us < ? ORDER BY fire_us LIMIT 1000
      """, cutoff
    ) { (key: $0.int(0), user: $0.int(1), database: $0.int(2)) }
    for row in old {
      let database = RecordDatabase(id: .unnamed, key: row.database)
      try forgetFiring(row.key, of: row.user, in: database)
    }
    return old.count == 1000
  }
}
