import VencejoCrypto

/// How a save treats what the store has (CloudKit's `CKRecordSavePolicy`, and one more).
public enum SavePolicy: Sendable, Hashable {
  /// The change tag must be the stored one, or absent for a new record; writes
  /// the changed keys.
  case ifServerRecordUnchanged
  /// Writes the changed keys over whatever is there.
  case changedKeys
  /// Writes every field given; fields only the store has stay.
  case allKeys
  /// The record becomes exactly the one given.
  case replace

  var number: Int64 {
    switch self {
    case .ifServerRecordUnchanged: 1
    case .changedKeys: 2
    case .allKeys: 3
    case .replace: 4
    }
  }
}

/// One operation of a batch.
public enum RecordOperation: Sendable, Hashable {
  /// Of the record its identity, type, fields and change tag count.
  /// `changedKeys` names the fields to write, and one the record lacks is
  /// removed; empty means all given.
  case save(StoredRecord, changedKeys: [String], SavePolicy)
  /// An empty change tag deletes whatever version is there.
  case delete(RecordID, changeTag: String, allowMissing: Bool)

  public var id: RecordID {
    switch self {
    case .save(let record, _, _): record.id
    case .delete(let id, _, _): id
    }
  }
}

/// Why one operation of a batch failed.
public struct RecordFailure: Error, Sendable, Hashable {
  public var error: StoreError
  /// For RECORD_CHANGED: what the store has (nil: no such record), and what the
  /// client sent.
  public var conflict: Conflict?

  public struct Conflict: Sendable, Hashable {
    public var server: StoredRecord?
    public var client: StoredRecord?
  }

  public init(_ error: StoreError, conflict: Conflict? = nil) {
    self.error = error
    self.conflict = conflict
  }
}

/// What an operation would make of a record: pure, so that the policies are
/// tested without a database.
enum RecordPlan: Sendable, Hashable {
  /// Type, fields and parent to store.
  case save(type: String, fields: [String: RecordValue], parent: String)
  case delete
  /// A delete of nothing that is not an error.
  case nothing

  init(_ operation: RecordOperation, current: StoredRecord?) throws(RecordFailure) {
    switch operation {
    case .save(let record, let changedKeys, let policy):
      self = try Self.save(record, changedKeys, policy, current)
    case .delete(let id, let changeTag, let allowMissing):
      guard let current else {
        guard allowMissing else { throw Self.notFound(id) }
        self = .nothing
        return
      }
      guard changeTag.isEmpty || changeTag == current.changeTag else {
        throw Self.changed(id, server: current, client: nil)
      }
      self = .delete
    }
  }

  private static func save(
    _ record: StoredRecord, _ changedKeys: [String], _ policy: SavePolicy, _ current: StoredRecord?
  ) throws(RecordFailure) -> RecordPlan {
    if policy == .ifServerRecordUnchanged {
      if record.changeTag.isEmpty {
        guard current == nil else { throw changed(record.id, server: current, client: record) }
      } else {
        guard let current else { throw notFound(record.id) }
        guard current.changeTag == record.changeTag else {
          throw changed(record.id, server: current, client: record)
        }
      }
    }
    let type = record.type.isEmpty ? current?.type ?? "" : record.type
    guard RecordNaming.isWord(type) else {
      throw RecordFailure(
        .invalid(
          "record_type", "INVALID_RECORD_TYPE",
          "a record type is A-Z a-z 0-9 _, starts with a letter and has at most 255"))
    }
    if let current, current.type != type {
      throw RecordFailure(
        StoreError(
          .failedPrecondition, "TYPE_MISMATCH",
          "\(record.id) is a \(current.type) and cannot become a \(type)",
          metadata: ["record": record.id.name, "record_type": current.type],
          details: [.field("record_type", description: "stored as \(current.type)")]))
    }
    var fields = policy == .replace ? [:] : current?.fields ?? [:]
    if changedKeys.isEmpty || policy == .allKeys || policy == .replace {
      fields.merge(record.fields) { _, new in new }
    } else {
      for key in changedKeys { fields[key] = record.fields[key] }
    }
    do throws(RecordViolation) {
      try RecordRules.check(fields: fields, in: record.id.zone.zone)
    } catch {
      throw RecordFailure(StoreError(error))
    }
    return .save(
      type: type, fields: fields, parent: parent(of: record, changedKeys, policy, current))
  }

  /// How a save writes the parent into its changed keys.
  static let parentKey = "___parent"

  /// The parent as a save leaves it: one that is given is written, like a key; that it goes has to
  /// be said by a changed key, or by the policy.
  static func parent(
    of record: StoredRecord, _ changedKeys: [String], _ policy: SavePolicy,
    _ current: StoredRecord?
  ) -> String {
    guard let current, policy != .replace, !changedKeys.contains(parentKey) else {
      return record.parent
    }
    let isWritten = changedKeys.isEmpty || policy == .allKeys
    return isWritten && !record.parent.isEmpty ? record.parent : current.parent
  }

  static func notFound(_ id: RecordID) -> RecordFailure {
    RecordFailure(.notFound("RECORD_NOT_FOUND", type: "vencejo.record.v1.Record", name: id.name))
  }

  private static func changed(
    _ id: RecordID, server: StoredRecord?, client: StoredRecord?
  ) -> RecordFailure {
    RecordFailure(
      StoreError(
        .aborted, "RECORD_CHANGED",
        client?.changeTag.isEmpty == true
          ? "\(id) exists already" : "\(id) was changed since this change tag",
        metadata: ["record": id.name]),
      conflict: RecordFailure.Conflict(server: server, client: client))
  }
}

extension RecordID {
  /// A record that the client leaves to the server to name. With a request_id
  /// the name follows from it, so that a repeat names the same record.
  public init(
    unnamed index: Int, in zone: ZoneID, caller: RecordCaller, requestID: String
  ) throws(RecordViolation) {
    guard !requestID.isEmpty else {
      try self.init(zone: zone, record: UUID.v7().description)
      return
    }
    var writer = KeysetWriter()
    writer.text(caller.user)
    writer.text(requestID)
    writer.int(Int64(index))
    try self.init(
      zone: zone, record: Base64URL.encode(Array(SHA256.digest(writer.bytes).prefix(15))))
  }
}

extension StoreError {
  /// A request's fault in the store's words.
  public init(_ violation: RecordViolation) {
    self = .invalid(violation.field, "INVALID_REQUEST", violation.description)
  }
}
