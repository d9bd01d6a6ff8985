import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoStore

// Between the messages of vencejo.record.v1 and the store's own words: here and nowhere else.

/// Runs `body` and says in which field of the request its violation lies.
func checking<R>(
  _ field: String, _ body: () throws(RecordViolation) -> R
) throws(StoreError) -> R {
  do throws(RecordViolation) {
    return try body()
  } catch {
    var violation = error
    violation.field =
      error.field.isEmpty || error.field == field ? field : "\(field).\(error.field)"
    throw StoreError(violation)
  }
}

extension RecordCaller {
  init(_ principal: Principal) {
    self.init(
      key: principal.user, user: "\(principal.userID)",
      isAdministrator: principal.role == .administrator)
  }
}

extension Record.Zone {
  init(_ zone: StoredZone, _ tokens: TokenAuthority, now: Int64) {
    self.init()
    name = zone.id.name
    if let owner = zone.id.database.owner { self.owner = "users/\(owner)" }
    capabilities = .init(
      atomic: zone.isAtomic, fetchChanges: zone.fetchesChanges, sharing: zone.isAtomic)
    createTime = Google.Timestamp(microseconds: zone.createTime)
    updateTime = Google.Timestamp(microseconds: zone.updateTime)
    changeToken = tokens.changeToken(zone.id, position: zone.change, now: now)
    etag = zone.etag
  }
}

extension Record.Record {
  init(_ record: StoredRecord, keeping keys: Set<String>?) {
    self.init()
    name = record.id.name
    recordType = record.type
    let database = record.id.zone.database
    fields = record.keeping(keys).fields.mapValues { Record.Value($0, in: database) }
    changeTag = record.changeTag
    createTime = Google.Timestamp(microseconds: record.createTime)
    updateTime = Google.Timestamp(microseconds: record.updateTime)
    creator = "users/\(record.creator)"
    lastModifier = "users/\(record.lastModifier)"
    if !record.parent.isEmpty {
      parent = .init(record: "\(record.id.zone.name)/records/\(record.parent)")
    }
    if !record.share.isEmpty { share = "\(database.name)/shares/\(record.share)" }
  }
}

extension Record.DeletedRecord {
  init(_ record: DeletedRecord) {
    self.init()
    name = record.id.name
    recordType = record.type
    deleteTime = Google.Timestamp(microseconds: record.deleteTime)
    cascaded = record.cascaded
  }
}

extension Record.FieldSelection {
  /// As a set, for `desired_keys`.
  var keys: Set<String> { Set(fields) }
}

// MARK: Values

extension Record.Value {
  init(_ value: RecordValue, in database: DatabaseID) {
    self.init()
    kind =
      switch value {
      case .string(let text): .stringValue(text)
      case .int64(let number): .int64Value(number)
      case .double(let number): .doubleValue(number)
      case .bytes(let bytes): .bytesValue(bytes)
      case .timestamp(let time): .timestampValue(Google.Timestamp(microseconds: time))
      case .location(let place): .locationValue(Record.Location(place))
      case .reference(let target):
        .referenceValue(
          .init(
            record: "\(database.name)/zones/\(target.zone)/records/\(target.record)",
            action: target.action == .deleteSelf ? .deleteSelf : .unspecified))
      case .asset(let asset): .assetValue(.init(asset))
      case .list(let elements):
        .listValue(.init(values: elements.map { Record.Value($0, in: database) }))
      }
  }

  /// - Throws: `RecordViolation` naming `field` for a value without a kind or a bad reference.
  func stored(
    _ field: String, in database: DatabaseID, caller: RecordCaller
  ) throws(RecordViolation) -> RecordValue {
    switch kind {
    case .stringValue(let text)?: return .string(text)
    case .int64Value(let number)?: return .int64(number)
    case .doubleValue(let number)?: return .double(number)
    case .bytesValue(let bytes)?: return .bytes(bytes)
    case .timestampValue(let time)?: return .timestamp(try time.storedMicroseconds(field))
    case .locationValue(let place)?: return .location(try place.stored(field))
    case .referenceValue(let reference)?:
      let target = try RecordID(parsing: reference.record, caller: caller.user)
      guard target.zone.database == database else {
        throw RecordViolation(field, "\(target) is in another database")
      }
      switch reference.action {
      case .unspecified, .noneValue:
        return .reference(RecordReference(zone: target.zone.zone, record: target.record))
      case .deleteSelf:
        return .reference(
          RecordReference(zone: target.zone.zone, record: target.record, action: .deleteSelf))
      default: throw RecordViolation(field, "not a known reference action")
      }
    case .assetValue(let asset)?:
      guard let id = UUID(parsing: asset.assetId) else {
        throw RecordViolation(field, "an asset is named by the asset_id of its upload")
      }
      return .asset(RecordAsset(id: id))
    case .listValue(let list)?:
      var elements: [RecordValue] = []
      for element in list.values {
        // One level is enough to know that it is wrong: the store refuses lists in lists.
        if case .listValue? = element.kind {
          throw RecordViolation(field, "a list holds no lists")
        }
        elements.append(try element.stored(field, in: database, caller: caller))
      }
      return .list(elements)
    case nil: throw RecordViolation(field, "a value has no kind; leave the field out instead")
    }
  }
}

extension Record.Location {
  init(_ place: RecordLocation) {
    self.init()
    latitudeDegrees = place.latitude
    longitudeDegrees = place.longitude
    altitudeMeters = place.altitude
    horizontalAccuracyMeters = place.horizontalAccuracy
    courseDegrees = place.course
    speedMetersPerSecond = place.speed
    sampleTime = place.sampleTime.map { Google.Timestamp(microseconds: $0) }
  }

  /// - Throws: `RecordViolation` naming `field` for a time that is none.
  func stored(_ field: String) throws(RecordViolation) -> RecordLocation {
    RecordLocation(
      latitude: latitudeDegrees, longitude: longitudeDegrees, altitude: altitudeMeters,
      horizontalAccuracy: horizontalAccuracyMeters, course: courseDegrees,
      speed: speedMetersPerSecond, sampleTime: try sampleTime?.storedMicroseconds(field))
  }
}

extension Google.Timestamp {
  /// What timestamp.proto allows: the years 1 to 9999, and a second's nanoseconds. Another time
  /// has no JSON form, and would come back as another one than was sent.
  fileprivate func storedMicroseconds(_ field: String) throws(RecordViolation) -> Int64 {
    guard (-62_135_596_800...253_402_300_799).contains(seconds), (0...999_999_999).contains(nanos)
    else {
      throw RecordViolation(field, "a time lies in the years 1 to 9999, its nanos below a second")
    }
    return microseconds
  }
}

// MARK: Errors of items

extension Record.ItemStatus {
  /// With an ErrorInfo always, and a RecordConflict where there is one.
  init(_ failure: RecordFailure, keeping keys: Set<String>?) {
    var error = RPCError(failure.error, .record)
    if let conflict = failure.conflict {
      error.add(
        detail: Record.RecordConflict(
          serverRecord: conflict.server.map { Record.Record($0, keeping: keys) },
          clientRecord: conflict.client.map { Record.Record($0, keeping: keys) }))
    }
    self.init(error)
  }

  init(_ error: RPCError) {
    self.init(code: Int32(error.code.rawValue), message: error.message, details: error.details)
  }
}
