import VencejoSQLite

// Where a batch puts records in their hierarchies, and what shares cover them there.
extension RecordModification {
  /// Checks the place of a save in its hierarchy.
  func place(
    _ id: RecordID, under parent: String, old: StoredRecord?, zone: StoredZone
  ) throws(StoreError) {
    let isMoved = !(old?.parent ?? "").utf8.elementsEqual(parent.utf8)
    guard !parent.isEmpty && isMoved || database.access.isShared else { return }
    if !parent.isEmpty, isMoved {
      guard let above = try? RecordID(zone: id.zone, record: parent), above != id,
        try willBe(above, in: zone)
      else { throw .parentViolation(parent, of: id) }
      try checkCircle(id, under: parent, zone: zone)
    }
    let share = try coverage(of: id, parent: parent, zone: zone)
    guard database.access.mayWrite(in: id.zone.zone, share: share) else {
      throw .permissionFailure(id.name, "WRITE")
    }
    guard isMoved, !share.isEmpty, old != nil else { return }
    let own = try transaction.share(withRoot: id.record, zone: zone.key)
    let above = own == nil ? share : try coverage(above: parent, zone: zone, from: id)
    if !above.isEmpty, own != nil {
      throw .alreadyShared(id)
    }
    if own == nil, share != old?.share, try transaction.holdsShare(id.record, zone.key) {
      throw .alreadyShared(id)
    }
  }

  /// Whether a record is there once the batch is written.
  private func willBe(_ id: RecordID, in zone: StoredZone) throws(StoreError) -> Bool {
    if let saved = named[id] { return saved }
    guard let stored = try transaction.hierarchy(of: id.record, zone: zone.key) else {
      return false
    }
    return !stored.isDeleted
  }

  /// The share that will cover a record once the batch is written.
  private func coverage(
    of id: RecordID, parent: String, zone: StoredZone
  ) throws(StoreError) -> String {
    if let own = try transaction.share(withRoot: id.record, zone: zone.key) { return own }
    return try coverage(above: parent, zone: zone, from: id)
  }

  /// The share that covers `parent`; walks over what the batch itself saves.
  private func coverage(
    above parent: String, zone: StoredZone, from id: RecordID
  ) throws(StoreError) -> String {
    var name = parent
    for _ in 0..<ReadTransaction.maxDepth {
      guard !name.isEmpty else { return "" }
      if let own = try transaction.share(withRoot: name, zone: zone.key) { return own }
      let stored = try transaction.hierarchy(of: name, zone: zone.key)
      guard let next = newParents[name.utf8Key] else {
        return stored.map { $0.isDeleted ? "" : $0.share } ?? ""
      }
      name = next.isEmpty ? try storedParent(of: name, zone) : next
    }
    throw .tooMany("records above one another", limit: ReadTransaction.maxDepth)
  }

  /// What is stored above a record; nothing above one that is deleted, whatever it was.
  private func storedParent(of name: String, _ zone: StoredZone) throws(StoreError) -> String {
    guard let stored = try transaction.hierarchy(of: name, zone: zone.key), !stored.isDeleted
    else { return "" }
    return stored.parent
  }

  /// Nothing is above itself, and no chain is longer than it may be.
  private func checkCircle(
    _ id: RecordID, under parent: String, zone: StoredZone
  ) throws(StoreError) {
    var name = parent
    for _ in 0..<ReadTransaction.maxDepth {
      guard !name.isEmpty else { return }
      if name.utf8.elementsEqual(id.record.utf8) { throw .parentViolation(parent, of: id) }
      let new = newParents[name.utf8Key] ?? ""
      name = new.isEmpty ? try storedParent(of: name, zone) : new
    }
    throw .tooMany("records above one another", limit: ReadTransaction.maxDepth)
  }

  func update(_ zone: StoredZone) -> CoverageUpdate {
    CoverageUpdate(transaction: transaction, database: database, zone: zone, caller: caller)
  }

  /// Whether hierarchies matter in a zone.
  mutating func isSharing(_ zone: StoredZone) throws(StoreError) -> Bool {
    if let known = hasShares[zone.key] { return known }
    let any = try transaction.first(
      "SELECT 1 FROM record_share WHERE zone_key = ? LIMIT 1", zone.key
    ) { _ in true }
    hasShares[zone.key] = any ?? false
    return any ?? false
  }
}
