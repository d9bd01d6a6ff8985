extension EventKind {
  /// A record was saved or deleted.
  static let recordChanged = EventKind(rawValue: 100)
  /// A zone was deleted with all its records.
  static let zoneDeleted = EventKind(rawValue: 101)
  /// A zone came into being.
  static let zoneCreated = EventKind(rawValue: 102)
  /// Other rights count: who follows starts afresh.
  static let accessChanged = EventKind(rawValue: 103)
}

/// Rides on events of a commit, for who wakes subscribers: what happened in a database.
public struct RecordsTouched: Sendable {
  /// Internal key.
  public let database: Int64
  let change: Change
  /// Saved subscriptions that fired.
  var fired: [FiringAddress] = []

  /// Other databases in which subscriptions fired: the shared ones of who takes part.
  public var otherDatabases: Set<Int64> {
    fired.isEmpty ? [] : Set(fired.map(\.database)).subtracting([database])
  }

  enum Change: Sendable {
    case record(zone: String, old: StoredRecord?, new: StoredRecord?)
    /// Of interest to all.
    case zoneDeleted
    case zoneCreated
    /// Of interest to all.
    case accessChanged
  }
}

/// What the log keeps of a change: who did it, and the image before it, so that
/// a reader knows whether a query's result lost the record. The image after it
/// is not kept: it is the record's row, or the image before the next change.
struct RecordEventKeys: Sendable {
  var recordKey: Int64
  var recordName: String
  /// Internal key of the user who did it.
  var actor: Int64
  var requestID: String
  /// Nil: there was no such record.
  var old: StoredRecord?

  var bytes: [UInt8] {
    var writer = KeysetWriter()
    writer.int(recordKey)
    writer.text(recordName)
    writer.int(actor)
    writer.text(requestID)
    writer.int(old == nil ? 0 : 1)
    if let old {
      writer.text(old.type)
      writer.text(old.changeTag)
      writer.int(old.createTime)
      writer.int(old.updateTime)
      writer.text(old.creator)
      writer.text(old.lastModifier)
      writer.raw(RecordCoding.encode(old.fields))
      writer.text(old.parent)
      writer.text(old.share)
    }
    return writer.bytes
  }

  init(
    recordKey: Int64, recordName: String, actor: Int64, requestID: String, old: StoredRecord?
  ) {
    self.recordKey = recordKey
    self.recordName = recordName
    self.actor = actor
    self.requestID = requestID
    self.old = old
  }

  /// Nil when the bytes are damaged.
  init?(_ bytes: [UInt8], zone: ZoneID) {
    var reader = KeysetReader(bytes)
    guard let key = reader.int(), let name = reader.text(), let actor = reader.int(),
      let requestID = reader.text(), let hasOld = reader.int()
    else { return nil }
    recordKey = key
    recordName = name
    self.actor = actor
    self.requestID = requestID
    guard hasOld == 1 else { return }
    guard let type = reader.text(), let tag = reader.text(), let created = reader.int(),
      let updated = reader.int(), let creator = reader.text(), let modifier = reader.text(),
      let blob = reader.raw(), let fields = RecordCoding.decode(blob),
      let id = try? RecordID(zone: zone, record: name)
    else { return nil }
    old = StoredRecord(
      id: id, type: type, fields: fields, changeTag: tag, createTime: created, updateTime: updated,
      creator: creator, lastModifier: modifier, parent: reader.text() ?? "",
      share: reader.text() ?? "")
  }
}
