import VencejoCrypto
import VencejoSQLite

extension WriteTransaction {
  /// Takes away a part of what a purged account had: its private databases zone by zone, its places
  /// in others' shares, its saved subscriptions. What it saved elsewhere stays, in public databases
  /// and in zones of others. Answers whether there may be more.
  func purgeRecords(of user: Int64) throws(StoreError) -> Bool {
    guard let id = try userID(user).map({ "\($0)" }) else { return false }
    let caller = RecordCaller(key: user, user: id, isAdministrator: false)
    if try purgeZone(of: id) { return true }
    if try leaveShare(caller) { return true }
    let databases = try all(
      "SELECT DISTINCT database_key FROM record_subscription WHERE user_id = ?", user
    ) { $0.int(0) }
    for database in databases {
      // Another version: what is known in memory is read anew.
      let version = SecureRandom.bytes(7).reduce(Int64(0)) { $0 << 8 | Int64($1) } | 1
      try run(
        "UPDATE record_database SET subscriptions = ? WHERE database_key = ?", version, database)
    }
    for table in ["record_subscription", "record_firing", "record_badge", "record_echo"] {
      try run(dynamic: "DELETE FROM \(table) WHERE user_id = ?", [user])
    }
    for table in ["record_access", "record_container_admin"] {
      try run(dynamic: "DELETE FROM \(table) WHERE user = ?", [id])
    }
    return false
  }

  private func purgeZone(of id: String) throws(StoreError) -> Bool {
    let found = try first(
      """
      SELECT d.database_key, d.name, c.name, z.zone FROM record_database d
        JOIN record_container c USING (container_key) JOIN record_zone z USING (database_key)
      WHERE d.name IN ('u-' || ?1, 's-' || ?1) AND z.deleted = 0 LIMIT 1
      """, id
    ) { (key: $0.int(0), database: $0.text(1), container: $0.text(2), zone: $0.text(3)) }
    guard let found else { return false }
    guard let name = try? DatabaseID(container: found.container, database: found.database),
      let zone = try? ZoneID(database: name, zone: found.zone)
    else { throw .damagedRecord }
    let database = RecordDatabase(id: name, key: found.key)
    try purge(try recordZone(zone, in: database), in: database)
    return true
  }

  private func leaveShare(_ caller: RecordCaller) throws(StoreError) -> Bool {
    let key = try first(
      "SELECT share_key FROM record_participant WHERE user = ? LIMIT 1", caller.user
    ) { $0.int(0) }
    guard let key else { return false }
    try run(
      "DELETE FROM record_participant WHERE share_key = ? AND user = ?", key, caller.user)
    guard let share = try share(key: key) else { return true }
    try run("UPDATE record_share SET version = version + 1 WHERE share_key = ?", key)
    try changeAccess(of: caller.user, to: share, caller: caller)
    return true
  }
}
