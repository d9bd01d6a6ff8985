import VencejoCrypto
import VencejoSQLite

/// Saved subscriptions in memory, found by what changed: on the writer's thread, which fires them
/// in the transaction of the change.
///
/// What it holds of a database fits one value of `record_database.subscriptions`; a transaction
/// that is undone leaves another value there, and then it is read anew.
final class SubscriptionBoard {
  struct Entry {
    var subscription: SavedSubscription
    var user: Int64
    /// Internal key of the hook that its firings are posted to.
    var hook: Int64?
  }

  struct Listing {
    var version: Int64
    private(set) var entries: [Int64: Entry] = [:]
    private(set) var queries = TargetIndex<Int64>()
    private(set) var zones: [String: Set<Int64>] = [:]
    /// Those of the whole database.
    private(set) var all: Set<Int64> = []

    init(version: Int64) { self.version = version }

    mutating func add(_ key: Int64, _ entry: Entry) {
      entries[key] = entry
      switch entry.subscription.kind {
      case .query(let query, _, _, _):
        if let checked = try? query.checked() { queries.add(key, checked) }
      case .zone(let zone, _): zones[zone, default: []].insert(key)
      case .database: all.insert(key)
      }
    }

    mutating func remove(_ key: Int64) {
      guard let entry = entries.removeValue(forKey: key) else { return }
      switch entry.subscription.kind {
      case .query: queries.remove(key)
      case .zone(let zone, _): zones[zone]?.remove(key)
      case .database: all.remove(key)
      }
    }

    /// Queries that one of the images matches.
    mutating func matches(old: StoredRecord?, new: StoredRecord?) -> Set<Int64> {
      queries.matches(old: old, new: new)
    }
  }

  private var databases: [Int64: Listing] = [:]

  /// The subscriptions of a database, brought up to date; nil when there are none.
  func listing(
    of database: RecordDatabase, _ transaction: WriteTransaction
  ) throws(StoreError) -> Listing? {
    let version =
      try transaction.first(
        "SELECT subscriptions FROM record_database WHERE database_key = ?", database.key
      ) { $0.int(0) } ?? 0
    guard version != 0 else {
      databases[database.key] = nil
      return nil
    }
    if let known = databases[database.key], known.version == version { return known }
    var listing = Listing(version: version)
    let rows = try transaction.all(
      """
      SELECT subscription_key, user_id, name, definition, create_us, hook_id
      FROM record_subscription WHERE database_key = ?
      """, database.key
    ) {
      (
        key: $0.int(0), user: $0.int(1), name: $0.text(2), body: $0.blob(3), time: $0.int(4),
        hook: $0.optionalInt(5)
      )
    }
    for row in rows {
      guard let id = try? SubscriptionID(database: database.id, subscription: row.name),
        let saved = SavedSubscription(
          id: id, definition: row.body, createTime: row.time, message: [])
      else { throw .damagedRecord }
      listing.add(row.key, Entry(subscription: saved, user: row.user, hook: row.hook))
    }
    databases[database.key] = listing
    return listing
  }

  /// Takes the listing out, to change it without a copy; `keep` brings it back.
  func take(_ database: RecordDatabase, _ transaction: WriteTransaction) throws(StoreError)
    -> Listing?
  {
    _ = try listing(of: database, transaction)
    return databases.removeValue(forKey: database.key)
  }

  func keep(_ listing: Listing, of database: RecordDatabase) { databases[database.key] = listing }

  /// Notes a change of the table: the listing is of the new version.
  func change(
    _ database: RecordDatabase, _ transaction: WriteTransaction, _ listing: inout Listing
  ) throws(StoreError) {
    // Random: two transactions of which one is undone never leave the same number.
    let version = SecureRandom.bytes(7).reduce(Int64(0)) { $0 << 8 | Int64($1) } | 1
    try transaction.run(
      "UPDATE record_database SET subscriptions = ? WHERE database_key = ?", version, database.key)
    listing.version = version
  }
}
