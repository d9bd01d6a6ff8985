import VencejoCrypto
import VencejoSQLite

extension WriteTransaction {
  /// Saves and deletes.
  ///
  /// Operations fail one by one; in an atomic zone the failure of one aborts
  /// the others of its zone with `BATCH_ABORTED`.
  ///
  /// - Throws: `LIMIT_EXCEEDED`, `DUPLICATE_RECORD`, `NOT_ATOMIC`, `REQUEST_ID_REUSED`.
  public func modifyRecords(
    _ batch: ModifyBatch, in database: RecordDatabase, caller: RecordCaller
  ) throws(StoreError) -> ModifyOutcome {
    try Self.check(batch)
    if let known = try rememberedModify(batch, in: database, caller: caller) { return known }
    var modification = RecordModification(
      transaction: self, database: database, caller: caller, batch: batch)
    let outcome = try modification.run()
    if !batch.requestID.isEmpty, !batch.validateOnly {
      try rememberModify(batch, outcome, caller: caller)
    }
    return outcome
  }

  private static func check(_ batch: ModifyBatch) throws(StoreError) {
    guard batch.operations.count <= RecordRules.maxOperations else {
      throw .tooMany("operations", limit: RecordRules.maxOperations)
    }
    let size = batch.operations.reduce(0) { size, operation in
      if case .save(let record, _, _) = operation {
        size + RecordRules.size(of: record.fields)
      } else {
        size
      }
    }
    guard size <= RecordRules.maxRequestBytes else {
      throw .tooMany("bytes", limit: RecordRules.maxRequestBytes)
    }
    var seen: Set<RecordID> = []
    for operation in batch.operations where !seen.insert(operation.id).inserted {
      throw .invalid(
        "operations", "DUPLICATE_RECORD", "\(operation.id) occurs twice in one request")
    }
  }
}

/// One batch on its way: first every operation is planned against what is
/// stored, then what may be written is written. Nothing is written for an
/// operation or an atomic zone that fails, so nothing needs to be undone.
struct RecordModification {
  let transaction: WriteTransaction
  let database: RecordDatabase
  let caller: RecordCaller
  let batch: ModifyBatch

  struct Step {
    var zone: StoredZone
    var current: RecordRow?
    var plan: RecordPlan
    /// The encoded fields of a save.
    var blob: [UInt8] = []
    /// Keys of the records that a delete takes with it.
    var cascade: [Int64] = []
  }

  private var zones: [ZoneID: Result<StoredZone, StoreError>] = [:]
  /// What the batch names: whether it saves it.
  var named: [RecordID: Bool]
  /// Parents that the batch gives, by the bytes of the record's name; empty: the stored one.
  var newParents: [[UInt8]: String]
  var hasShares: [Int64: Bool] = [:]
  private var newReferences: [RecordID: Int] = [:]
  private var indexer: RecordIndexer
  private var firing: FiringRound?
  /// The schema as the batch would have it, and as what was written of it has.
  private var planned: RecordSchema
  private var grown: RecordSchema
  private var didGrow = false
  private var usage = UsageChange()

  init(
    transaction: WriteTransaction, database: RecordDatabase, caller: RecordCaller,
    batch: ModifyBatch
  ) {
    self.transaction = transaction
    self.database = database
    self.caller = caller
    self.batch = batch
    indexer = RecordIndexer(transaction)
    planned = database.access.schema
    grown = planned
    var named: [RecordID: Bool] = [:]
    var parents: [[UInt8]: String] = [:]
    for operation in batch.operations {
      if case .save(let record, _, _) = operation {
        named[operation.id] = true
        parents[record.id.record.utf8Key] = record.parent
      } else {
        named[operation.id] = false
      }
    }
    self.named = named
    newParents = parents
  }

  mutating func run() throws(StoreError) -> ModifyOutcome {
    var steps: [Result<Step, RecordFailure>] = []
    // The first operation that failed in each atomic zone.
    var guilty: [ZoneID: RecordID] = [:]
    for operation in batch.operations {
      let id = operation.id
      let step = try plan(operation)
      if case .failure = step, guilty[id.zone] == nil, isAtomic(id.zone) { guilty[id.zone] = id }
      steps.append(step)
    }
    try settle(&steps)
    try checkAnswer(steps)
    if !batch.validateOnly {
      firing = try FiringRound(transaction, database, actor: caller.user)
    }
    var results: [ModifyResult] = []
    var changed: [ZoneID] = []
    for (operation, step) in zip(batch.operations, steps) {
      switch step {
      case .failure(let failure): results.append(.failed(failure))
      case .success(let step):
        if let culprit = guilty[operation.id.zone] {
          results.append(.failed(Self.aborted(by: culprit)))
          continue
        }
        let result = try apply(step, to: operation)
        results.append(result)
        if !changed.contains(operation.id.zone), step.plan != .nothing {
          changed.append(operation.id.zone)
        }
      }
    }
    firing?.end()
    if !batch.validateOnly, !changed.isEmpty {
      try transaction.note(usage, in: database)
      try transaction.checkQuota(usage, in: database)
    }
    if didGrow { try transaction.keep(grown, of: database.container, database.environment) }
    return ModifyOutcome(results: results, zones: try finish(changed))
  }

  /// Nothing is written whose answer would not reach the client.
  private func checkAnswer(_ steps: [Result<Step, RecordFailure>]) throws(StoreError) {
    func size(_ fields: [String: RecordValue]) -> Int {
      guard let keys = batch.answerKeys else { return RecordRules.size(of: fields) }
      return RecordRules.size(of: fields.filter { keys.contains($0.key) })
    }
    var total = 0
    for step in steps {
      switch step {
      case .success(let step):
        if case .save(_, let fields, _) = step.plan { total += size(fields) }
      case .failure(let failure):
        total += size(failure.conflict?.server?.fields ?? [:])
        total += size(failure.conflict?.client?.fields ?? [:])
      }
    }
    guard total <= RecordRules.maxAnswerBytes else {
      throw StoreError(
        .invalidArgument, "LIMIT_EXCEEDED",
        "the answer would be larger than 3 MiB: ask for fewer desired_keys, or split the request",
        metadata: ["limit": String(RecordRules.maxAnswerBytes)],
        details: [.quota(subject: "answer", description: "at most 3 MiB of fields")])
    }
  }

  /// The zones that changed, as they are now.
  private func finish(_ changed: [ZoneID]) throws(StoreError) -> [StoredZone] {
    guard !batch.validateOnly else { return [] }
    var zones: [StoredZone] = []
    for id in changed {
      let zone = try transaction.recordZone(id, in: database)
      zones.append(zone)
      guard !batch.requestID.isEmpty else { continue }
      try transaction.run(
        """
        INSERT INTO record_echo(zone_key, user_id, request_id) VALUES (?, ?, ?)
        ON CONFLICT DO UPDATE SET request_id = excluded.request_id
        """, zone.key, caller.key, batch.requestID)
    }
    return zones
  }

  private mutating func zone(_ id: ZoneID) -> Result<StoredZone, StoreError> {
    if let known = zones[id] { return known }
    let zone = Result { () throws(StoreError) in try transaction.recordZone(id, in: database) }
    zones[id] = zone
    return zone
  }

  private mutating func isAtomic(_ id: ZoneID) -> Bool {
    guard case .success(let zone) = zone(id) else { return batch.atomic ?? false }
    return zone.isAtomic && batch.atomic ?? true
  }

  // MARK: Planning

  /// `isAgain`: what it brings is counted already.
  mutating func plan(
    _ operation: RecordOperation, isAgain: Bool = false
  ) throws(StoreError) -> Result<Step, RecordFailure> {
    let id = operation.id
    let zone: StoredZone
    switch self.zone(id.zone) {
    case .success(let found): zone = found
    case .failure(let error):
      guard error.code == .notFound else { throw error }
      return .failure(RecordFailure(error))
    }
    if batch.atomic == true, !zone.isAtomic {
      throw .invalid(
        "atomic", "NOT_ATOMIC", "\(id.zone) does not support atomic batches; leave atomic out")
    }
    let row = try transaction.recordRow(id.record, zone: zone.key, in: database.id)
    let current = row.flatMap { $0.isDeleted ? nil : $0 }
    if let current, !database.access.mayWrite(current.record) {
      return .failure(Self.denied(id, "WRITE"))
    }
    var step: Step
    do throws(RecordFailure) {
      step = Step(
        zone: zone, current: row, plan: try RecordPlan(operation, current: current?.record))
      if case .save(let type, var fields, let parent) = step.plan {
        fields = try settled(fields, old: current?.record.fields ?? [:])
        step.plan = .save(type: type, fields: fields, parent: parent)
        if current == nil, !database.access.mayCreate(type) { throw Self.denied(id, "CREATE") }
        if batch.checksTypes {
          try Self.admit(
            type, fields, old: current?.record.fields ?? [:], to: &planned, database.environment)
        }
        step.blob = RecordCoding.encode(fields)
        guard step.blob.count <= RecordRules.maxRecordBytes else { throw Self.tooLarge(id) }
      }
    } catch {
      return .failure(error)
    }
    do throws(StoreError) {
      try bind(&step, id, old: current?.record, isAgain)
    } catch {
      guard
        [.failedPrecondition, .invalidArgument, .permissionDenied].contains(error.code)
      else { throw error }
      return .failure(RecordFailure(error))
    }
    return .success(step)
  }

  /// The fields with what the server knows of their files.
  private func settled(
    _ fields: [String: RecordValue], old: [String: RecordValue]
  ) throws(RecordFailure) -> [String: RecordValue] {
    guard fields.values.contains(where: { !$0.assets.isEmpty }) else { return fields }
    do throws(StoreError) {
      return try transaction.settingAssets(
        of: fields, old: old, in: database, caller: caller)
    } catch { throw RecordFailure(error) }
  }

  /// As the schema's own, with an operation's error.
  private static func admit(
    _ type: String, _ fields: [String: RecordValue], old: [String: RecordValue],
    to schema: inout RecordSchema, _ environment: RecordEnvironment
  ) throws(RecordFailure) {
    do throws(StoreError) {
      try schema.admit(type: type, fields: fields, old: old, in: environment)
    } catch { throw RecordFailure(error) }
  }

  private static func denied(_ id: RecordID, _ permission: String) -> RecordFailure {
    RecordFailure(
      StoreError(
        .permissionDenied, "PERMISSION_FAILURE",
        "you have no \(permission) permission for \(id)",
        metadata: ["record": id.name, "required_permission": permission]))
  }

  /// Checks the references of a save that bind, and finds what a delete takes with it.
  private mutating func bind(
    _ step: inout Step, _ id: RecordID, old: StoredRecord?, _ isAgain: Bool
  ) throws(StoreError) {
    switch step.plan {
    case .nothing: return
    case .delete:
      // What the batch names itself goes its own way.
      let named = self.named
      step.cascade = try transaction.cascade(of: id, zone: step.zone.key) { named[$0] != nil }
      guard database.access.isShared, let old else { return }
      guard database.access.mayDelete(old) else { throw .permissionFailure(id.name, "OWNER") }
      for key in step.cascade {
        guard let other = try transaction.recordRow(key: key, in: database.id),
          database.access.mayDelete(other.record)
        else { throw .permissionFailure(id.name, "OWNER") }
      }
    case .save(let type, let fields, let parent):
      try place(id, under: parent, old: old, zone: step.zone)
      let before = old?.owners ?? []
      for owner in StoredRecord(id: id, type: type, fields: fields).owners {
        let name = String(decoding: owner, as: UTF8.self)
        guard let target = try? RecordID(zone: id.zone, record: name) else {
          throw .referenceViolation(name, in: id)
        }
        let stored = try transaction.recordRow(name, zone: step.zone.key, in: database.id)
        guard named[target] ?? (stored.map { !$0.isDeleted } ?? false) else {
          throw .referenceViolation(name, in: id)
        }
        guard !before.contains(owner), !isAgain else { continue }
        let limit = RecordRules.maxReferences
        let known = try transaction.referrers(of: name, zone: step.zone.key, limit: limit).count
        guard known + newReferences[target, default: 0] < limit else {
          throw .tooManyReferences(name, in: id)
        }
        newReferences[target, default: 0] += 1
      }
    }
  }

  private static func tooLarge(_ id: RecordID) -> RecordFailure {
    RecordFailure(
      StoreError(
        .invalidArgument, "LIMIT_EXCEEDED", "\(id) is larger than 1 MiB",
        metadata: ["record": id.name, "limit": String(RecordRules.maxRecordBytes)],
        details: [.quota(subject: id.name, description: "at most 1 MiB per record")]))
  }

  private static func aborted(by culprit: RecordID) -> RecordFailure {
    RecordFailure(
      StoreError(
        .aborted, "BATCH_ABORTED", "another operation of the atomic batch failed: \(culprit)",
        metadata: ["record": culprit.name],
        details: [
          // A detail's name, not a trap.
          .precondition(
            type: "BATCH_ABORTED", subject: culprit.name, description: "this operation failed")
        ]))
  }

  // MARK: Writing

  private mutating func apply(
    _ step: Step, to operation: RecordOperation
  ) throws(StoreError) -> ModifyResult {
    let id = operation.id
    let old = step.current.flatMap { $0.isDeleted ? nil : $0.record }
    if batch.checksTypes, !batch.validateOnly, case .save(let type, let fields, _) = step.plan,
      !grown.knows(type, fields)
    {
      try grown.admit(
        type: type, fields: fields, old: old?.fields ?? [:], in: database.environment)
      didGrow = true
    }
    switch step.plan {
    case .nothing:
      return .deleted(
        DeletedRecord(
          id: id, type: step.current?.record.type ?? "",
          deleteTime: step.current?.record.updateTime ?? transaction.now))
    case .delete:
      let deleted = DeletedRecord(id: id, type: old?.type ?? "", deleteTime: transaction.now)
      guard !batch.validateOnly, let row = step.current else { return .deleted(deleted) }
      try remove(row, step.zone, cascaded: false)
      for key in step.cascade {
        let other = try transaction.recordRow(key: key, in: database.id)
        if let other, !other.isDeleted { try remove(other, step.zone, cascaded: true) }
      }
      return .deleted(deleted)
    case .save(let type, let fields, let parent):
      var saved = StoredRecord(
        id: id, type: type, fields: fields,
        changeTag: batch.validateOnly ? "" : Base64URL.encode(SecureRandom.bytes(9)),
        createTime: old?.createTime ?? transaction.now, updateTime: transaction.now,
        creator: old?.creator ?? caller.user, lastModifier: caller.user, parent: parent,
        share: try isSharing(step.zone)
          ? transaction.coverage(of: id.record, parent: parent, zone: step.zone.key) : "")
      if batch.keepsSystemFields, database.isWhole, case .save(let given, _, _) = operation {
        saved.keepSystemFields(of: given)
      }
      if !batch.validateOnly { try store(saved, step, old: old) }
      return .saved(saved)
    }
  }

  private mutating func remove(
    _ row: RecordRow, _ zone: StoredZone, cascaded: Bool
  ) throws(StoreError) {
    let change = try append(row.key, row.record.id, zone, old: row.record, new: nil)
    try transaction.run(
      """
      UPDATE record SET fields = x'', change = ?, change_tag = '', modified_us = ?,
        modifier = ?, deleted = 1, cascaded = ?
      WHERE record_key = ?
      """, change, transaction.now, caller.user, cascaded, row.key)
    try indexer.remove(row.record, key: row.key, zone: zone.key)
    usage.records -= 1
    usage.recordBytes -= Int64(row.blobSize)
    try transaction.holdAssets(of: nil, old: row.record, key: row.key, &usage)
    try touch(zone, change)
    guard !row.record.share.isEmpty else { return }
    if let root = try transaction.share(withRoot: row.record.id.record, zone: zone.key),
      let share = try transaction.anyShare(
        ShareID(database: database.id, share: root, unchecked: ()))
    {
      try transaction.end(share, caller: caller)
    } else {
      try update(zone).below(row.record.id.record)
    }
  }

  private mutating func store(
    _ saved: StoredRecord, _ step: Step, old: StoredRecord?
  ) throws(StoreError) {
    let typeKey = try indexer.word(saved.type)
    var key = step.current?.key
    if key == nil {
      try transaction.run(
        """
        INSERT INTO record(zone_key, record_name, type_key, fields, change, change_tag, created_us,
          modified_us, creator, modifier, deleted)
        VALUES (?, ?, ?, x'', 0, '', 0, 0, '', '', 1)
        """, step.zone.key, saved.id.record, typeKey)
      key = transaction.lastInsertRowID
    }
    guard let key else { return }
    let change = try append(key, saved.id, step.zone, old: old, new: saved)
    try transaction.run(
      """
      UPDATE record SET type_key = ?, fields = ?, change = ?, change_tag = ?, created_us = ?,
        modified_us = ?, creator = ?, modifier = ?, deleted = 0, cascaded = 0, parent = ?,
        share = ?
      WHERE record_key = ?
      """, typeKey, step.blob, change, saved.changeTag, saved.createTime, saved.updateTime,
      saved.creator, saved.lastModifier, saved.parent, saved.share, key)
    try indexer.update(saved, old: old, key: key, zone: step.zone.key, typeKey: typeKey)
    usage.records += old == nil ? 1 : 0
    usage.recordBytes +=
      Int64(step.blob.count) - (old == nil ? 0 : Int64(step.current?.blobSize ?? 0))
    try transaction.holdAssets(of: saved, old: old, key: key, &usage)
    try touch(step.zone, change)
    let before = step.current?.record.share ?? ""
    guard before != saved.share || old == nil && !saved.share.isEmpty else { return }
    try transaction.moved(
      saved.id.record, key: key, from: before, to: saved.share, zone: step.zone.key,
      change: change)
    try update(step.zone).below(saved.id.record)
  }

  private mutating func append(
    _ key: Int64, _ id: RecordID, _ zone: StoredZone, old: StoredRecord?, new: StoredRecord?
  ) throws(StoreError) -> Int64 {
    let fired = try firing?.record(old: old, new: new, position: transaction.head() + 1) ?? []
    let keys = RecordEventKeys(
      recordKey: key, recordName: id.record, actor: caller.key, requestID: batch.requestID,
      old: old)
    return transaction.append(
      .recordChanged, zone: zone.key, keys: keys.bytes,
      payload: RecordsTouched(
        database: database.key, change: .record(zone: id.zone.zone, old: old, new: new),
        fired: fired))
  }

  private func touch(_ zone: StoredZone, _ change: Int64) throws(StoreError) {
    try transaction.run(
      "UPDATE record_zone SET change = ?, update_us = ? WHERE zone_key = ?", change,
      transaction.now, zone.key)
  }
}
