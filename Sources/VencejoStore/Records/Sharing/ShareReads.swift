import VencejoCrypto
import VencejoSQLite

extension ReadTransaction {
  /// A share, as the caller sees it.
  ///
  /// - Throws: `SHARE_NOT_FOUND`, also for who takes no part.
  public func share(_ id: ShareID, caller: RecordCaller) throws(StoreError) -> RecordShare {
    guard let found = try anyShare(id), found.permission(of: caller.user) != nil else {
      throw .shareNotFound(id.name)
    }
    return found.seen(by: caller.user)
  }

  func anyShare(_ id: ShareID) throws(StoreError) -> RecordShare? {
    try shares(
      "WHERE s.share = ? AND d.name = ? AND c.name = ?",
      [
        id.share, id.database.database, id.database.container,
      ]
    ).first
  }

  func share(key: Int64) throws(StoreError) -> RecordShare? {
    try shares("WHERE s.share_key = ?", [key]).first
  }

  /// The shares of a database, by identifier.
  public func shares(
    in id: DatabaseID, after: String, limit: Int, caller: RecordCaller
  ) throws(StoreError) -> [RecordShare] {
    guard let database = try recordDatabase(id) else { return [] }
    return try shares(
      "WHERE s.database_key = ? AND s.share > ? ORDER BY s.share LIMIT ?",
      [database.key, after, limit]
    ).filter { $0.permission(of: caller.user) != nil }.map { $0.seen(by: caller.user) }
  }

  /// What others share with the caller in a container, invitations included; by identifier.
  public func sharesWith(
    _ caller: RecordCaller, container: String, after: String, limit: Int
  ) throws(StoreError) -> [RecordShare] {
    try shares(
      """
      JOIN record_participant p ON p.share_key = s.share_key AND p.user = ?
      WHERE c.name = ? AND s.share > ? ORDER BY s.share LIMIT ?
      """, [caller.user, container, after, limit]
    ).map { $0.seen(by: caller.user) }
  }

  /// What a link leads to.
  ///
  /// - Throws: `SHARE_NOT_FOUND`, also when the link has expired.
  public func share(link: String) throws(StoreError) -> RecordShare {
    guard !link.isEmpty, let found = try shares("WHERE s.link = ?", [link]).first,
      found.linkExpireTime == 0 || found.linkExpireTime > now
    else { throw .shareNotFound("the link") }
    return found
  }

  private func shares(
    _ clause: String, _ values: [any SQLiteBindable]
  ) throws(StoreError) -> [RecordShare] {
    var found: [RecordShare?] = []
    try each(
      dynamic: """
        SELECT s.share_key, s.zone_key, s.share, s.root, s.title, s.share_type,
          s.public_permission, s.link, s.link_expire_us, s.create_us, s.update_us, s.version,
          z.zone, d.name, c.name
        FROM record_share s JOIN record_zone z USING (zone_key)
          JOIN record_database d ON d.database_key = s.database_key
          JOIN record_container c USING (container_key) \(clause)
        """, values
    ) { row in
      found.append(RecordShare(row))
      return true
    }
    var shares: [RecordShare] = []
    for share in found {
      guard var share else { throw .damagedRecord }
      share.participants = try all(
        """
        SELECT user, role, permission, accepted, add_us FROM record_participant
        WHERE share_key = ? ORDER BY add_us, user
        """, share.key
      ) {
        ShareParticipant(
          user: $0.text(0), role: ShareRole(rawValue: $0.int(1)) ?? .privateUser,
          permission: SharePermission(rawValue: $0.int(2)) ?? .none, isAccepted: $0.bool(3),
          addTime: $0.int(4))
      }
      shares.append(share)
    }
    return shares
  }
}

extension RecordShare {
  fileprivate init?(_ row: Row) {
    guard let database = try? DatabaseID(container: row.text(14), database: row.text(13)),
      let id = try? ShareID(database: database, share: row.text(2)),
      let zone = try? ZoneID(database: database, zone: row.text(12))
    else { return nil }
    let root = row.text(3)
    self.init(
      id: id, zone: zone, root: root.isEmpty ? nil : try? RecordID(zone: zone, record: root),
      publicPermission: SharePermission(rawValue: row.int(6)) ?? .none, participants: [],
      title: row.text(4), type: row.text(5), link: row.text(7), linkExpireTime: row.int(8),
      createTime: row.int(9), updateTime: row.int(10), key: row.int(0), zoneKey: row.int(1),
      version: row.int(11))
  }
}

extension ReadTransaction {
  /// Whether there is a user of this identifier.
  public func isUser(_ id: String) throws(StoreError) -> Bool {
    guard let uuid = UUID(parsing: id) else { return false }
    return try first("SELECT 1 FROM user WHERE uuid = ?", uuid) { _ in true } ?? false
  }
}

// MARK: Rights

/// What one share lets a user see of another's database.
struct SharedPart: Sendable, Hashable {
  var share: String
  var zone: String
  /// Name of the root; empty: the whole zone.
  var root: String
  var permission: SharePermission
}

extension ReadTransaction {
  /// What a user sees of another's database.
  func sharedParts(
    of database: Int64, user: String
  ) throws(StoreError) -> [SharedPart] {
    try all(
      """
      SELECT s.share, z.zone, s.root,
        CASE p.role WHEN 4 THEN s.public_permission ELSE p.permission END
      FROM record_participant p JOIN record_share s USING (share_key)
        JOIN record_zone z USING (zone_key)
      WHERE p.user = ? AND p.accepted = 1 AND s.database_key = ?
      """, user, database
    ) {
      SharedPart(
        share: $0.text(0), zone: $0.text(1), root: $0.text(2),
        permission: SharePermission(rawValue: $0.int(3)) ?? .none)
    }.filter { $0.permission != .none }
  }

  /// Position of the last change of what a user may see of another's zone.
  func accessChange(of user: String, zone: Int64) throws(StoreError) -> Int64 {
    if Mutation.keepTokens.isOn { return 0 }
    return try first(
      "SELECT change FROM record_access WHERE user = ? AND zone_key = ?", user, zone
    ) { $0.int(0) } ?? 0
  }
}

// MARK: Changes of the shared database

/// Which zones of others changed for a user, or came to them, or went.
public struct SharedChanges: Sendable {
  public var changed: [StoredZone]
  /// Zones the user sees no more; `isDeleted`: because they are gone.
  public var lost: [(zone: ZoneID, isDeleted: Bool)]
  public var position: Int64
  public var moreComing: Bool
}

extension ReadTransaction {
  /// Every zone in a container that others share with a user.
  private func sharedZones(
    with user: String, container: String
  ) throws(StoreError) -> [(key: Int64, database: String, zone: String, change: Int64)] {
    try all(
      """
      SELECT DISTINCT z.zone_key, d.name, z.zone, max(z.change, ifnull(a.change, 0))
      FROM record_participant p JOIN record_share s USING (share_key)
        JOIN record_zone z ON z.zone_key = s.zone_key AND z.deleted = 0
        JOIN record_database d ON d.database_key = s.database_key
        JOIN record_container c ON c.container_key = d.container_key AND c.name = ?2
        LEFT JOIN record_access a ON a.user = ?1 AND a.zone_key = z.zone_key
      WHERE p.user = ?1 AND p.accepted = 1
        AND CASE p.role WHEN 4 THEN s.public_permission ELSE p.permission END > 1
      """, user, container
    ) { ($0.int(0), $0.text(1), $0.text(2), $0.int(3)) }
  }

  /// The zones that others share with the caller, by database and name.
  public func sharedZones(
    container: String, caller: RecordCaller
  ) throws(StoreError) -> [StoredZone] {
    var zones: [StoredZone] = []
    for row in try sharedZones(with: caller.user, container: container) {
      zones.append(try sharedZone(row.database, row.zone, container))
    }
    return zones.sorted {
      ($0.id.database.database, $0.id.zone) < ($1.id.database.database, $1.id.zone)
    }
  }

  private func sharedZone(
    _ database: String, _ zone: String, _ container: String
  ) throws(StoreError) -> StoredZone {
    guard let id = try? DatabaseID(container: container, database: database),
      let zone = try? ZoneID(database: id, zone: zone), let open = try recordDatabase(id)
    else { throw .damagedRecord }
    return try recordZone(zone, in: open)
  }

  /// What changed after `position` in the zones that others share with the caller.
  ///
  /// - Throws: `CHANGE_TOKEN_EXPIRED` for a position that was never reached.
  public func sharedChanges(
    container: String, after position: Int64, pageSize: Int, caller: RecordCaller
  ) throws(StoreError) -> SharedChanges {
    let head = try head()
    guard position <= head else { throw .changeTokenExpired }
    let visible = try sharedZones(with: caller.user, container: container)
    let keys = Set(visible.map(\.key))
    let lost = try all(
      """
      SELECT a.zone_key, d.name, z.zone, a.change, z.deleted
      FROM record_access a JOIN record_zone z USING (zone_key)
        JOIN record_database d USING (database_key)
        JOIN record_container c ON c.container_key = a.container_key
      WHERE a.user = ? AND c.name = ? AND a.change > ?
      """, caller.user, container, position
    ) {
      (
        key: $0.int(0), database: $0.text(1), zone: $0.text(2), change: $0.int(3),
        deleted: $0.bool(4)
      )
    }
    var news: [(change: Int64, database: String, zone: String, lost: Bool, deleted: Bool)] = []
    for row in visible where row.change > position {
      news.append((row.change, row.database, row.zone, false, false))
    }
    // Of the beginning nobody needs to hear what is no more.
    for row in lost where position > 0 && !keys.contains(row.key) {
      // A new zone of the name is told of as changed.
      guard !visible.contains(where: { $0.database == row.database && $0.zone == row.zone })
      else { continue }
      news.append((row.change, row.database, row.zone, true, row.deleted))
    }
    news.sort { $0.change < $1.change }
    let hasMore = news.count > pageSize
    var changes = SharedChanges(
      changed: [], lost: [], position: hasMore ? news[pageSize - 1].change : head,
      moreComing: hasMore)
    for row in news.prefix(pageSize) {
      if row.lost {
        guard let id = try? DatabaseID(container: container, database: row.database),
          let zone = try? ZoneID(database: id, zone: row.zone)
        else { throw .damagedRecord }
        changes.lost.append((zone, row.deleted))
      } else {
        changes.changed.append(try sharedZone(row.database, row.zone, container))
      }
    }
    return changes
  }
}
