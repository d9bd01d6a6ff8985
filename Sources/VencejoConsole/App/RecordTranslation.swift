import VencejoAPI
import VencejoProtobuf

/// Between what is typed and the messages of the record service.
struct RecordTranslation: Sendable {
  /// The zone that names of records are relative to: `…/zones/{zone}`.
  var zone: String
  /// Seconds since 1970 and nanoseconds, for `@now`.
  var now: (Int64, Int32)

  func value(_ value: RecordValue) -> Record.Value {
    let kind: Record.Value.Kind =
      switch value {
      case .string(let text): .stringValue(text)
      case .integer(let number): .int64Value(number)
      case .double(let number): .doubleValue(number)
      case .now: .timestampValue(.init(seconds: now.0, nanos: now.1 / 1000 * 1000))
      case .timestamp(let seconds, let nanos):
        .timestampValue(.init(seconds: seconds, nanos: nanos))
      case .location(let latitude, let longitude):
        .locationValue(.init(latitudeDegrees: latitude, longitudeDegrees: longitude))
      case .reference(let name): .referenceValue(.init(record: recordName(name)))
      case .list(let values): .listValue(.init(values: values.map(self.value)))
      }
    return Record.Value(kind: kind)
  }

  /// The full name of a record: a short one is in the zone in use.
  func recordName(_ name: String) -> String {
    name.hasPrefix("containers/") ? name : "\(zone)/records/\(name)"
  }

  func query(_ query: RecordQuery) -> Record.Query {
    Record.Query(
      recordType: query.type, criteria: query.filter.map { .predicate(predicate($0)) },
      sort: query.order.map { .init(field: $0.field, descending: $0.descending) })
  }

  private func predicate(_ filter: RecordQuery.Filter) -> Record.Predicate {
    let kind: Record.Predicate.Kind =
      switch filter {
      case .all(let parts): .allOf(.init(predicates: parts.map(predicate)))
      case .any(let parts): .anyOf(.init(predicates: parts.map(predicate)))
      case .not(let inner): .not(predicate(inner))
      case .compare(let field, let comparison, let value):
        .comparison(
          .init(field: field, comparator: comparator(comparison), value: self.value(value)))
      case .isIn(let field, let values):
        .in(.init(field: field, values: values.map(self.value)))
      case .beginsWith(let field, let prefix): .beginsWith(.init(field: field, prefix: prefix))
      case .contains(let field, let values, let all):
        .listContains(.init(field: field, values: values.map(self.value), all: all))
      case .within(let field, let latitude, let longitude, let metres):
        .distance(
          .init(
            field: field,
            center: .init(latitudeDegrees: latitude, longitudeDegrees: longitude),
            radiusMeters: metres))
      case .exists(let field): .presence(.init(field: field))
      }
    return Record.Predicate(kind: kind)
  }

  private func comparator(_ comparison: RecordQuery.Comparison) -> Record.Comparator {
    switch comparison {
    case .equal: .equal
    case .notEqual: .notEqual
    case .less: .lessThan
    case .lessOrEqual: .lessThanOrEqual
    case .greater: .greaterThan
    case .greaterOrEqual: .greaterThanOrEqual
    }
  }

  // MARK: Out

  /// A value as it could be typed again.
  func text(_ value: Record.Value) -> String {
    switch value.kind {
    case .stringValue(let text)?: "\"\(text)\""
    case .int64Value(let number)?: String(number)
    case .doubleValue(let number)?: String(number)
    case .bytesValue(let bytes)?: "\(bytes.count) bytes"
    case .timestampValue(let time)?: "@" + TimeText.rfc3339(time.seconds, time.nanos)
    case .locationValue(let place)?: "\(place.latitudeDegrees),\(place.longitudeDegrees)"
    case .referenceValue(let reference)?: ">" + shortName(reference.record)
    case .assetValue(let asset)?: "(file \(asset.fileName), \(asset.sizeBytes) bytes)"
    case .listValue(let list)?: "[" + list.values.map(text).joined(separator: ",") + "]"
    case nil: ""
    }
  }

  /// The last segment for records of the zone in use, else the full name.
  func shortName(_ name: String) -> String {
    let prefix = zone + "/records/"
    // Answers carry the canonical name of a database that was asked for as `private`: the zone's
    // segment is what tells.
    if name.hasPrefix(prefix) { return String(name.dropFirst(prefix.count)) }
    let (parts, own) = (name.split(separator: "/"), zone.split(separator: "/"))
    let isSameZone = parts.count == 8 && own.count == 6 && parts[1] == own[1] && parts[5] == own[5]
    return isSameZone ? String(parts[7]) : name
  }

  func row(_ record: Record.Record) -> RecordView.Row {
    RecordView.Row(
      name: shortName(record.name), type: record.recordType,
      fields: record.fields.mapValues(text), changeTag: record.changeTag,
      updated: record.updateTime?.seconds)
  }
}
