import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoStore

/// Takes in what ``RecordExporter`` tells: records in batches, those whose targets are not there
/// yet again at the end.
struct RecordImporter {
  struct Outcome {
    var imported: Int64 = 0
    var unchanged: Int64 = 0
    var failed: Int64 = 0
    /// The first of them, by the names they were sent with.
    var failures: [(name: String, failure: RecordFailure)] = []
  }

  private static let maxFailures = 1_000
  /// Records that wait for others, at most.
  private static let maxWaiting = 100_000

  private struct Item {
    var name: String
    var record: StoredRecord
    /// Bytes of the fields, about.
    var size: Int
  }

  private let store: Store
  private let caller: RecordCaller
  private let database: DatabaseID
  private let zone: ZoneID?
  private let policy: SavePolicy
  private let keepsSystemFields: Bool
  private let validateOnly: Bool
  private(set) var outcome = Outcome()

  private var batch: [RecordID: Item] = [:]
  private var batchSize = 0
  private var waiting: [(item: Item, failure: RecordFailure)] = []
  /// The zones that are known to be there.
  private var zones: Set<ZoneID> = []
  /// Of a mere look: what the import would have brought.
  private var seen: Set<RecordID> = []
  /// Files by the id they are told with.
  private var files: [String: UUID] = [:]
  private var upload: (upload: Upload, offset: Int64, id: String)?

  /// - Throws: `INVALID_ARGUMENT` for a parent or a policy that is none, `NOT_AN_ADMINISTRATOR`.
  init(_ store: Store, _ header: Record.ImportHeader, by caller: RecordCaller) throws(StoreError) {
    self.store = store
    self.caller = caller
    if header.parent.utf8.count(where: { $0 == UInt8(ascii: "/") }) > 3 {
      let zone = try checking("header.parent") { () throws(RecordViolation) in
        try ZoneID(parsing: header.parent, caller: caller.user)
      }
      self.zone = zone
      database = zone.database
    } else {
      zone = nil
      database = try checking("header.parent") { () throws(RecordViolation) in
        try DatabaseID(parsing: header.parent, caller: caller.user)
      }
    }
    switch header.savePolicy {
    case .unspecified, .replace: policy = .replace
    case .ifServerRecordUnchanged: policy = .ifServerRecordUnchanged
    case .changedKeys: policy = .changedKeys
    case .allKeys: policy = .allKeys
    default:
      throw .invalid("header.save_policy", "INVALID_ARGUMENT", "not a known save policy")
    }
    guard !header.preserveSystemFields || caller.isAdministrator else {
      throw StoreError(
        .permissionDenied, "NOT_AN_ADMINISTRATOR",
        "only administrators of the server may keep system fields")
    }
    keepsSystemFields = header.preserveSystemFields
    validateOnly = header.validateOnly
  }

  // MARK: Records

  mutating func take(_ record: Record.Record) async throws {
    let item: Item
    do throws(StoreError) {
      item = try self.item(record)
    } catch {
      fail(record.name, RecordFailure(error))
      return
    }
    try await add(item)
  }

  /// Below what one request may bring.
  private static let batchBytes = RecordRules.maxRequestBytes / 2

  private func item(_ record: Record.Record) throws(StoreError) -> Item {
    let id = try place(record.name)
    var fields: [String: RecordValue] = [:]
    for (name, value) in record.fields {
      // Files are not taken by a mere look, so no record can hold them.
      if validateOnly, value.holds(anyOf: files) { continue }
      fields[name] = try checking(name) { () throws(RecordViolation) in
        try self.stored(value, name)
      }
    }
    var parent = ""
    if let above = record.parent, !above.record.isEmpty { parent = try place(above.record).record }
    var item = StoredRecord(id: id, type: record.recordType, fields: fields, parent: parent)
    if policy == .ifServerRecordUnchanged { item.changeTag = record.changeTag }
    item.createTime = record.createTime?.microseconds ?? 0
    item.updateTime = record.updateTime?.microseconds ?? 0
    item.creator = Self.user(record.creator)
    item.lastModifier = Self.user(record.lastModifier)
    return Item(name: record.name, record: item, size: RecordRules.size(of: fields))
  }

  private static func user(_ name: String) -> String {
    name.hasPrefix("users/") ? String(name.dropFirst(6)) : ""
  }

  /// Where a record of that name goes.
  private func place(_ name: String) throws(StoreError) -> RecordID {
    try checking("record.name") { () throws(RecordViolation) in
      let id = try RecordID(parsing: name, caller: caller.user)
      return try RecordID(zone: here(id.zone), record: id.record)
    }
  }

  private func here(_ other: ZoneID) throws(RecordViolation) -> ZoneID {
    if let zone { return zone }
    return try ZoneID(database: database, zone: other.zone)
  }

  /// A value with its references and files as they are here.
  private func stored(
    _ value: Record.Value, _ field: String
  ) throws(RecordViolation) -> RecordValue {
    var value = value
    switch value.kind {
    case .referenceValue(var reference)?:
      let target = try RecordID(parsing: reference.record, caller: caller.user)
      reference.record = "\(try here(target.zone).name)/records/\(target.record)"
      value.kind = .referenceValue(reference)
    case .assetValue(let asset)?:
      guard let id = files[asset.assetId] ?? UUID(parsing: asset.assetId) else {
        throw RecordViolation(field, "an asset is named by the asset_id of its upload")
      }
      return .asset(
        RecordAsset(
          id: id, sha256: asset.sha256, size: asset.sizeBytes, contentType: asset.contentType,
          fileName: asset.fileName))
    case .listValue(let list)?:
      var elements: [RecordValue] = []
      for element in list.values {
        if case .listValue? = element.kind {
          throw RecordViolation(field, "a list holds no lists")
        }
        elements.append(try stored(element, field))
      }
      return .list(elements)
    default: break
    }
    return try value.stored(field, in: database, caller: caller)
  }

  private mutating func fail(_ name: String, _ failure: RecordFailure) {
    outcome.failed += 1
    if outcome.failures.count < Self.maxFailures { outcome.failures.append((name, failure)) }
  }

  // MARK: Files

  /// Takes a stretch of a file.
  ///
  /// - Throws: `BAD_UPLOAD`, `BAD_CHUNK`, and what an upload throws.
  mutating func take(_ part: Record.AssetPart) async throws {
    if let asset = part.asset {
      guard upload == nil else {
        throw StoreError.invalid("asset_part", "UPLOAD_INCOMPLETE", "the file before has no end")
      }
      if validateOnly {
        files[asset.assetId] = UUID.v7()
        return
      }
      let begun = try await store.write { [caller] in
        try $0.beginUpload(
          NewUpload(
            id: UUID.v7(), sha256: asset.sha256, size: asset.sizeBytes, fileName: asset.fileName,
            contentType: asset.contentType), by: caller.key)
      }
      upload = (begun, 0, asset.assetId)
    }
    guard !validateOnly else { return }
    guard let (begun, offset, id) = upload else {
      throw StoreError.invalid("asset_part", "BAD_UPLOAD", "a file's first part has its asset")
    }
    guard part.data.count <= AttachmentLimits.chunkBytes,
      Int64(part.data.count) <= begun.size - offset
    else {
      throw StoreError.invalid(
        "asset_part.data", "BAD_CHUNK",
        "a part has at most \(AttachmentLimits.chunkBytes) bytes, all of them at most size_bytes")
    }
    try await store.files.write(part.data, toUpload: begun.key, at: offset)
    let end = offset + Int64(part.data.count)
    upload = (begun, end, id)
    guard end == begun.size else { return }
    upload = nil
    files[id] = try await store.finish(begun).id
  }

  // MARK: Batches

  /// Writes what is left and what waited; to be called once, at the end.
  mutating func finish() async throws -> Outcome {
    if upload != nil {
      throw StoreError(
        .failedPrecondition, "UPLOAD_INCOMPLETE", "bytes of the last file are missing")
    }
    try await flush()
    // As long as some find their targets, others may find theirs.
    while !waiting.isEmpty {
      let before = (waiting.count, waiting)
      waiting = []
      for (item, _) in before.1 { try await add(item) }
      try await flush()
      guard waiting.count == before.0 else { continue }
      for (item, failure) in waiting {
        if validateOnly, let target = failure.error.metadata["target"],
          let id = try? RecordID(zone: item.record.id.zone, record: target), seen.contains(id)
        {
          outcome.imported += 1
        } else {
          fail(item.name, failure)
        }
      }
      waiting = []
    }
    return outcome
  }

  private mutating func add(_ item: Item) async throws {
    // The later one of two of a name counts.
    if batch[item.record.id] != nil || batch.count == RecordRules.maxOperations
      || batchSize + item.size > Self.batchBytes
    {
      try await flush()
    }
    if validateOnly { seen.insert(item.record.id) }
    batch[item.record.id] = item
    batchSize += item.size
  }

  private mutating func flush() async throws {
    var items = batch
    batch = [:]
    batchSize = 0
    for zone in Set(items.keys.map(\.zone)) where try await !isThere(zone) {
      // Of a mere look: all would be new.
      let new = items.filter { $0.key.zone == zone }
      outcome.imported += Int64(new.count)
      for id in new.keys { items[id] = nil }
    }
    guard !items.isEmpty else { return }
    let operations = items.values.sorted { $0.record.id.record < $1.record.id.record }.map {
      RecordOperation.save($0.record, changedKeys: [], policy)
    }
    var modify = ModifyBatch(
      operations: operations, atomic: false, validateOnly: validateOnly, answerKeys: [])
    modify.keepsSystemFields = keepsSystemFields
    let results = try await store.writeRecords(database, caller: caller) {
      [modify, caller] in
      try $0.importBatch(modify, in: $1, caller: caller)
    }
    for (id, result) in results {
      switch result {
      case nil: outcome.unchanged += 1
      case .saved?, .deleted?: outcome.imported += 1
      case .failed(let failure)?:
        guard let item = items[id] else { continue }
        if failure.error.reason == "REFERENCE_VIOLATION", waiting.count < Self.maxWaiting {
          waiting.append((item, failure))
        } else {
          fail(item.name, failure)
        }
      }
    }
  }

  /// Makes the zone when it is missing; false of one that only a mere look is for.
  private mutating func isThere(_ id: ZoneID) async throws -> Bool {
    if id.isDefault || zones.contains(id) { return true }
    do throws(StoreError) {
      if validateOnly {
        _ = try await store.readRecords(database, caller: caller) {
          try $0.recordZone(id, in: $1)
        }
      } else {
        _ = try await store.writeRecords(database, caller: caller) { [caller] in
          try $0.createZone(id, in: $1, caller: caller)
        }
      }
    } catch {
      if validateOnly, error.code == .notFound { return false }
      guard error.code == .alreadyExists else { throw error }
    }
    zones.insert(id)
    return true
  }
}

extension Record.Value {
  /// Whether it is, or lists, one of the files.
  fileprivate func holds(anyOf files: [String: UUID]) -> Bool {
    switch kind {
    case .assetValue(let asset)?: files[asset.assetId] != nil
    case .listValue(let list)?: list.values.contains { $0.holds(anyOf: files) }
    default: false
    }
  }
}
