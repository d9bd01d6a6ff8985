import VencejoCrypto

/// A batch of saves and deletes.
public struct ModifyBatch: Sendable {
  public var operations: [RecordOperation]
  /// All or nothing per zone; nil: where the zone supports it.
  public var atomic: Bool?
  /// Empty: not remembered.
  public var requestID: String
  /// Answers what would happen and changes nothing.
  public var validateOnly: Bool
  /// The fields that the answer will show; nil: all.
  public var answerKeys: Set<String>?
  /// Creator, last modifier and times are the given ones, where they are given: of an import, for
  /// who may administer the database.
  public var keepsSystemFields = false
  /// Tests put values of several types into one field, as a changed schema leaves them.
  var checksTypes = true

  public init(
    operations: [RecordOperation], atomic: Bool? = nil, requestID: String = "",
    validateOnly: Bool = false, answerKeys: Set<String>? = nil
  ) {
    self.operations = operations
    self.atomic = atomic
    self.requestID = requestID
    self.validateOnly = validateOnly
    self.answerKeys = answerKeys
  }

  /// Says whether a second request with the same id is the same request.
  var fingerprint: [UInt8] {
    var writer = KeysetWriter()
    writer.optional(atomic.map { Int64($0 ? 1 : 0) })
    for operation in operations {
      writer.text(operation.id.name)
      switch operation {
      case .save(let record, let changedKeys, let policy):
        writer.int(policy.number)
        writer.text(record.type)
        writer.text(record.changeTag)
        writer.text(record.parent)
        writer.raw(RecordCoding.encode(record.fields))
        writer.int(Int64(changedKeys.count))
        for key in changedKeys { writer.text(key) }
      case .delete(_, let changeTag, let allowMissing):
        writer.int(0)
        writer.text(changeTag)
        writer.int(allowMissing ? 1 : 0)
      }
    }
    return SHA256.digest(writer.bytes)
  }
}

/// What became of one operation.
public enum ModifyResult: Sendable, Hashable {
  case saved(StoredRecord)
  case deleted(DeletedRecord)
  case failed(RecordFailure)
}

/// What became of a batch.
public struct ModifyOutcome: Sendable {
  /// One for each operation, in order.
  public var results: [ModifyResult]
  /// The zones that changed, with the position of their newest change.
  public var zones: [StoredZone]

  /// Nothing failed.
  public var isComplete: Bool {
    !results.contains { if case .failed = $0 { true } else { false } }
  }
}
