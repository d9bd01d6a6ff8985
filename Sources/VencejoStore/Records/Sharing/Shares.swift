import VencejoCrypto
import VencejoSQLite

extension WriteTransaction {
  /// Shares a zone, or a record with all below it. For the owner of the database.
  ///
  /// - Throws: `PERMISSION_FAILURE`, `NOT_SHAREABLE`, `ALREADY_SHARED`, `RECORD_NOT_FOUND`,
  ///   `ZONE_NOT_FOUND`, `TOO_MANY_PARTICIPANTS`, `LIMIT_EXCEEDED`.
  public func createShare(
    _ place: ZoneID, root: RecordID?, _ change: ShareChange, in database: RecordDatabase,
    caller: RecordCaller
  ) throws(StoreError) -> RecordShare {
    guard database.id.owner == caller.user else {
      throw .permissionFailure(place.name, "OWNER")
    }
    let zone = try recordZone(place, in: database)
    guard zone.isAtomic else {
      throw StoreError(
        .failedPrecondition, "NOT_SHAREABLE",
        "\(place) cannot be shared: make a zone of your own for it",
        metadata: ["resource": place.name])
    }
    try checkUnshared(zone, root)
    let id = UUID.v7(milliseconds: now / 1000)
    try run(
      """
      INSERT INTO record_share(database_key, zone_key, share, root, title, share_type,
        public_permission, link, link_expire_us, create_us, update_us, version)
      VALUES (?, ?, ?, ?, '', '', 1, ?, 0, ?, ?, 1)
      """, database.key, zone.key, "\(id)", root?.record ?? "", Self.newLink(), now, now)
    let key = lastInsertRowID
    if let root { try cover(root, by: "\(id)", zone, database, caller) }
    try apply(change, to: key, caller: caller)
    guard let share = try share(key: key) else { throw .damagedRecord }
    return share
  }

  private static func newLink() -> String { Base64URL.encode(SecureRandom.bytes(18)) }

  private func checkUnshared(_ zone: StoredZone, _ root: RecordID?) throws(StoreError) {
    guard let root else {
      // A zone of which a part is shared is not shared as a whole.
      let any = try first("SELECT 1 FROM record_share WHERE zone_key = ?", zone.key) { _ in true }
      guard any == nil else {
        throw StoreError(
          .failedPrecondition, "ALREADY_SHARED", "\(zone.id) is shared already, or a part of it",
          metadata: ["resource": zone.id.name],
          details: [
            .precondition(type: "ALREADY_SHARED", subject: zone.id.name, description: "shared")
          ])
      }
      return
    }
    let whole = try first(
      "SELECT 1 FROM record_share WHERE zone_key = ? AND root = ''", zone.key
    ) { _ in true }
    guard let stored = try hierarchy(of: root.record, zone: zone.key), !stored.isDeleted else {
      throw RecordPlan.notFound(root).error
    }
    guard whole == nil, stored.share.isEmpty, try !holdsShare(root.record, zone.key) else {
      throw .alreadyShared(root)
    }
  }

  /// Whether a record below this one is the root of a share.
  func holdsShare(_ name: String, _ zone: Int64) throws(StoreError) -> Bool {
    let any = try first(
      "SELECT 1 FROM record_share WHERE zone_key = ? AND root <> ''", zone
    ) { _ in true }
    guard any != nil else { return false }
    var next = [name]
    var count = 0
    while let above = next.popLast() {
      for child in try children(of: above, zone: zone) {
        if try share(withRoot: child, zone: zone) != nil { return true }
        count += 1
        guard count <= CoverageUpdate.maxRecords else {
          throw .tooMany("records of a hierarchy", limit: CoverageUpdate.maxRecords)
        }
        next.append(child)
      }
    }
    return false
  }

  private func cover(
    _ root: RecordID, by share: String, _ zone: StoredZone, _ database: RecordDatabase,
    _ caller: RecordCaller
  ) throws(StoreError) {
    let update = CoverageUpdate(
      transaction: self, database: database, zone: zone, caller: caller)
    _ = try update.set(share, of: root.record)
    try update.below(root.record)
  }

  /// Changes a share; its participants only by who has seen the newest state of them.
  ///
  /// - Throws: `SHARE_NOT_FOUND`, `PERMISSION_FAILURE`, `ETAG_MISMATCH`, `TOO_MANY_PARTICIPANTS`.
  public func updateShare(
    _ id: ShareID, etag: String, _ change: ShareChange, caller: RecordCaller
  ) throws(StoreError) -> RecordShare {
    guard let share = try anyShare(id), share.permission(of: caller.user) != nil else {
      throw .shareNotFound(id.name)
    }
    let role = share.participants.first { $0.user == caller.user }?.role
    guard caller.user == share.owner || role == .administrator else {
      throw .permissionFailure(id.name, "ADMINISTRATOR")
    }
    guard change.participants == nil && etag.isEmpty || etag == share.etag else {
      throw StoreError(
        .aborted, "ETAG_MISMATCH",
        "\(id.name) was changed since this etag; participants are only changed with one",
        metadata: ["resource": id.name])
    }
    try apply(change, to: share.key, caller: caller)
    guard let changed = try self.share(key: share.key) else { throw .damagedRecord }
    return changed.seen(by: caller.user)
  }

  private func apply(
    _ change: ShareChange, to key: Int64, caller: RecordCaller
  ) throws(StoreError) {
    guard let share = try share(key: key) else { throw .damagedRecord }
    if let title = change.title {
      guard title.utf8.count <= 255 else {
        throw StoreError(RecordViolation("share.title", "a title has at most 255 bytes"))
      }
      try run("UPDATE record_share SET title = ? WHERE share_key = ?", title, key)
    }
    if let type = change.type {
      guard type.utf8.count <= 255 else {
        throw StoreError(RecordViolation("share.share_type", "a type has at most 255 bytes"))
      }
      try run("UPDATE record_share SET share_type = ? WHERE share_key = ?", type, key)
    }
    if let time = change.linkExpireTime {
      try run("UPDATE record_share SET link_expire_us = ? WHERE share_key = ?", time, key)
    }
    if change.rotatesLink {
      try run("UPDATE record_share SET link = ? WHERE share_key = ?", Self.newLink(), key)
    }
    var concerned: Set<String> = []
    if let permission = change.publicPermission, permission != share.publicPermission {
      try run(
        "UPDATE record_share SET public_permission = ? WHERE share_key = ?", permission.rawValue,
        key)
      concerned.formUnion(
        share.participants.filter { $0.role == .publicUser && $0.isAccepted }.map(\.user))
    }
    if let participants = change.participants {
      concerned.formUnion(try set(participants, of: share))
    }
    try run(
      "UPDATE record_share SET update_us = ?, version = version + 1 WHERE share_key = ?", now, key)
    for user in concerned.sorted() { try changeAccess(of: user, to: share, caller: caller) }
  }

  /// Makes these the participants; answers whose access is another one now.
  private func set(
    _ participants: [ShareParticipant], of share: RecordShare
  ) throws(StoreError) -> Set<String> {
    guard participants.count <= RecordShare.maxParticipants else {
      throw StoreError(
        .invalidArgument, "TOO_MANY_PARTICIPANTS",
        "a share has at most \(RecordShare.maxParticipants) participants",
        metadata: ["limit": String(RecordShare.maxParticipants)],
        details: [
          .quota(
            subject: share.id.name, description: "at most \(RecordShare.maxParticipants)")
        ])
    }
    var wanted: [String: ShareParticipant] = [:]
    for one in participants where one.user != share.owner && one.role != .publicUser {
      guard one.role != .owner, wanted.updateValue(one, forKey: one.user) == nil else {
        throw StoreError(
          RecordViolation("share.participants", "\(one.user) occurs twice, or as an owner"))
      }
    }
    var concerned: Set<String> = []
    for old in share.participants where old.role != .publicUser && wanted[old.user] == nil {
      // Somebody who came by the link is named to be let in, not to be kept out.
      try run(
        "DELETE FROM record_participant WHERE share_key = ? AND user = ?", share.key, old.user)
      if old.isAccepted { concerned.insert(old.user) }
    }
    for one in wanted.values {
      let old = share.participants.first { $0.user == one.user }
      if let old, old.role == one.role, old.permission == one.permission { continue }
      if old?.isAccepted == true, share.permission(of: one.user) != one.permission {
        concerned.insert(one.user)
      }
      try run(
        """
        INSERT INTO record_participant(share_key, user, role, permission, accepted, add_us)
        VALUES (?, ?, ?, ?, 0, ?)
        ON CONFLICT DO UPDATE SET role = excluded.role, permission = excluded.permission
        """, share.key, one.user, one.role.rawValue, one.permission.rawValue, now)
    }
    return concerned
  }

  /// Notes that a user sees more or less of a zone: their tokens of it expire, and their streams
  /// start afresh or end.
  func changeAccess(
    of user: String, to share: RecordShare, caller: RecordCaller
  ) throws(StoreError) {
    guard let database = try recordDatabase(share.id.database) else { throw .damagedRecord }
    var keys = KeysetWriter()
    keys.text(user)
    let change = append(
      .accessChanged, zone: share.zoneKey, keys: keys.bytes,
      payload: RecordsTouched(database: database.key, change: .accessChanged))
    try run(
      """
      INSERT INTO record_access(user, zone_key, container_key, change) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET change = excluded.change
      """, user, share.zoneKey, try recordContainer(of: database), change)
  }

  /// Takes up an invitation, by the link or by the share's name; or comes in by a public link.
  ///
  /// - Throws: `SHARE_NOT_FOUND`, `PARTICIPANT_MAY_NEED_VERIFICATION`, `TOO_MANY_PARTICIPANTS`,
  ///   `OWN_SHARE`.
  public func acceptShare(
    link: String, id: ShareID?, caller: RecordCaller
  ) throws(StoreError) -> RecordShare {
    let share: RecordShare
    if let id {
      guard let found = try anyShare(id), found.permission(of: caller.user) != nil else {
        throw .shareNotFound(id.name)
      }
      share = found
    } else {
      share = try self.share(link: link)
    }
    guard share.owner != caller.user else {
      throw StoreError(
        .failedPrecondition, "OWN_SHARE", "\(share.id.name) is your own",
        metadata: ["resource": share.id.name])
    }
    let known = share.participants.first { $0.user == caller.user }
    if known?.isAccepted == true { return share.seen(by: caller.user) }
    if known == nil {
      guard share.publicPermission != .none else {
        throw StoreError(
          .permissionDenied, "PARTICIPANT_MAY_NEED_VERIFICATION",
          "this share is for those its owner invited", metadata: ["resource": share.id.name])
      }
      guard
        share.participants.count(where: { $0.role == .publicUser })
          < RecordShare.maxPublicParticipants
      else {
        throw StoreError(
          .resourceExhausted, "TOO_MANY_PARTICIPANTS", "too many came by this link",
          metadata: ["resource": share.id.name])
      }
    }
    try run(
      """
      INSERT INTO record_participant(share_key, user, role, permission, accepted, add_us)
      VALUES (?, ?, ?, ?, 1, ?) ON CONFLICT DO UPDATE SET accepted = 1
      """, share.key, caller.user, ShareRole.publicUser.rawValue, SharePermission.none.rawValue,
      now)
    try run("UPDATE record_share SET version = version + 1 WHERE share_key = ?", share.key)
    try changeAccess(of: caller.user, to: share, caller: caller)
    guard let joined = try self.share(key: share.key) else { throw .damagedRecord }
    return joined.seen(by: caller.user)
  }

  /// Ends a share when its owner asks; a participant leaves it.
  ///
  /// - Throws: `SHARE_NOT_FOUND`, `ETAG_MISMATCH`.
  public func deleteShare(
    _ id: ShareID, etag: String, caller: RecordCaller
  ) throws(StoreError) {
    guard let share = try anyShare(id), share.permission(of: caller.user) != nil else {
      throw .shareNotFound(id.name)
    }
    guard etag.isEmpty || etag == share.etag else {
      throw StoreError(
        .aborted, "ETAG_MISMATCH", "\(id.name) was changed since this etag",
        metadata: ["resource": id.name])
    }
    guard share.owner == caller.user else {
      try run(
        "DELETE FROM record_participant WHERE share_key = ? AND user = ?", share.key, caller.user)
      try run("UPDATE record_share SET version = version + 1 WHERE share_key = ?", share.key)
      return try changeAccess(of: caller.user, to: share, caller: caller)
    }
    try end(share, caller: caller)
  }

  /// Ends a share: nobody but the owner sees what it covered.
  func end(_ share: RecordShare, caller: RecordCaller) throws(StoreError) {
    try run("DELETE FROM record_share WHERE share_key = ?", share.key)
    if let root = share.root, let database = try recordDatabase(share.id.database) {
      let zone = try recordZone(share.zone, in: database)
      if let stored = try hierarchy(of: root.record, zone: zone.key) {
        let update = CoverageUpdate(
          transaction: self, database: database, zone: zone, caller: caller)
        let above = try coverage(of: root.record, parent: stored.parent, zone: zone.key)
        _ = try update.set(stored.isDeleted ? "" : above, of: root.record)
        try update.below(root.record)
      }
    }
    for one in share.participants where one.isAccepted {
      try changeAccess(of: one.user, to: share, caller: caller)
    }
  }

  /// Ends the shares of a zone that goes.
  func endShares(ofZone zone: StoredZone) throws(StoreError) {
    let keys = try all("SELECT share_key FROM record_share WHERE zone_key = ?", zone.key) {
      $0.int(0)
    }
    for key in keys {
      guard let share = try share(key: key) else { continue }
      for one in share.participants where one.isAccepted {
        try changeAccess(
          of: one.user, to: share,
          caller: RecordCaller(key: 0, user: share.owner, isAdministrator: false))
      }
      try run("DELETE FROM record_share WHERE share_key = ?", key)
    }
    try run("DELETE FROM record_unshared WHERE zone_key = ?", zone.key)
  }
}
