import VencejoAPI
import VencejoStore

extension Record.ModifyRecordsRequest {
  /// The batch in the store's words.
  func batch(in database: DatabaseID, caller: RecordCaller) throws(StoreError) -> ModifyBatch {
    // Before the work of translating: a batch of a million is refused at once.
    guard operations.count <= RecordRules.maxOperations else {
      throw .tooManyOperations
    }
    var batch = ModifyBatch(
      operations: [], atomic: atomic, requestID: requestId, validateOnly: validateOnly,
      answerKeys: desiredKeys?.keys)
    for (index, operation) in operations.enumerated() {
      batch.operations.append(
        try checking("operations[\(index)]") { () throws(RecordViolation) in
          try stored(operation, index, in: database, caller: caller)
        })
    }
    return batch
  }

  private func stored(
    _ operation: Record.RecordOperation, _ index: Int, in database: DatabaseID,
    caller: RecordCaller
  ) throws(RecordViolation) -> RecordOperation {
    switch operation.operation {
    case .save(let save)?:
      guard let record = save.record else {
        throw RecordViolation("save.record", "save.record is missing")
      }
      let id = try id(of: record.name, index, in: database, caller: caller)
      var fields: [String: RecordValue] = [:]
      for (name, value) in record.fields {
        fields[name] = try value.stored(name, in: database, caller: caller)
      }
      var parent = ""
      if let above = record.parent, !above.record.isEmpty {
        let target = try RecordID(parsing: above.record, caller: caller.user)
        guard target.zone == id.zone else {
          throw RecordViolation("save.record.parent", "a parent is in the same zone")
        }
        parent = target.record
      }
      return .save(
        StoredRecord(
          id: id, type: record.recordType, fields: fields, changeTag: record.changeTag,
          parent: parent),
        changedKeys: save.changedKeys, try policy(of: save))
    case .delete(let delete)?:
      return .delete(
        try Self.inside(database, try RecordID(parsing: delete.name, caller: caller.user)),
        changeTag: delete.changeTag, allowMissing: delete.allowMissing)
    case nil: throw RecordViolation("", "neither save nor delete")
    }
  }

  private func policy(of save: Record.SaveOperation) throws(RecordViolation) -> SavePolicy {
    let policy = save.savePolicy == .unspecified ? savePolicy : save.savePolicy
    switch policy {
    case .unspecified, .ifServerRecordUnchanged: return .ifServerRecordUnchanged
    case .changedKeys: return .changedKeys
    case .allKeys: return .allKeys
    case .replace: return .replace
    default: throw RecordViolation("save_policy", "not a known save policy")
    }
  }

  /// A record without a name, or with a zone's name and `/records/` but nothing after it, is
  /// named by the server; the former is in the default zone.
  private func id(
    of name: String, _ index: Int, in database: DatabaseID, caller: RecordCaller
  ) throws(RecordViolation) -> RecordID {
    let suffix = "/records/"
    guard name.isEmpty || name.utf8.suffix(suffix.utf8.count).elementsEqual(suffix.utf8) else {
      return try Self.inside(database, try RecordID(parsing: name, caller: caller.user))
    }
    let zone =
      name.isEmpty
      ? try ZoneID(database: database, zone: ZoneID.defaultZone)
      : try ZoneID(parsing: String(name.dropLast(suffix.count)), caller: caller.user)
    return try Self.inside(
      database,
      try RecordID(unnamed: index, in: zone, caller: caller, requestID: requestId))
  }

  private static func inside(
    _ database: DatabaseID, _ id: RecordID
  ) throws(RecordViolation) -> RecordID {
    guard id.zone.database == database else {
      throw RecordViolation("name", "\(id) is not in \(database)")
    }
    return id
  }
}

extension Record.OperationResult {
  init(_ result: ModifyResult, keeping keys: Set<String>?) {
    self.init()
    switch result {
    case .saved(let record): self.result = .record(Record.Record(record, keeping: keys))
    case .deleted(let record): self.result = .deleted(Record.DeletedRecord(record))
    case .failed(let failure): self.result = .error(Record.ItemStatus(failure, keeping: keys))
    }
  }
}
