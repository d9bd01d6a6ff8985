// The store's own encoding of a record's fields: small, deterministic, and
// free of generated messages, so that the protocol may change without a
// migration of the data.
//
//   fields  = version(1) count (name value)*
//   value   = tag payload

import VencejoCrypto

extension KeysetWriter {
  mutating func double(_ value: Double) { int(Int64(bitPattern: value.bitPattern)) }

  /// A value that may be missing, with a mark before it.
  mutating func optional(_ value: Int64?) {
    int(value == nil ? 0 : 1)
    if let value { int(value) }
  }

  mutating func optional(_ value: Double?) {
    optional(value.map { Int64(bitPattern: $0.bitPattern) })
  }
}

extension KeysetWriter {
  /// A string value, of its UTF-8.
  mutating func string(_ bytes: UnsafeBufferPointer<UInt8>) {
    int(1)
    text(bytes)
  }
}

extension KeysetReader {
  mutating func double() -> Double? { int().map { Double(bitPattern: UInt64(bitPattern: $0)) } }

  /// Nil when the bytes are damaged, .some(nil) when the value is missing.
  mutating func optional() -> Int64?? {
    switch int() {
    case 0: .some(nil)
    case 1: int().map { .some($0) }
    default: nil
    }
  }

  mutating func optionalDouble() -> Double?? {
    optional().map { $0.map { Double(bitPattern: UInt64(bitPattern: $0)) } }
  }
}

/// Encodes and decodes the fields of a record.
enum RecordCoding {
  private static let version: Int64 = 1

  static func encode(_ fields: [String: RecordValue]) -> [UInt8] {
    var writer = begin(fields.count)
    // Sorted, so that equal records have equal blobs.
    for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
      writer.text(name)
      write(value, to: &writer)
    }
    return writer.bytes
  }

  /// For fields that follow, sorted by name: each its name and its value.
  static func begin(_ count: Int) -> KeysetWriter {
    var writer = KeysetWriter()
    writer.int(version)
    writer.int(Int64(count))
    return writer
  }

  /// Nil when the bytes are not what `encode` writes: a damaged file.
  static func decode(_ bytes: [UInt8]) -> [String: RecordValue]? {
    var reader = KeysetReader(bytes)
    guard reader.int() == version, let count = reader.int(), count >= 0 else { return nil }
    var fields: [String: RecordValue] = [:]
    for _ in 0..<count {
      guard let name = reader.text(), let value = value(from: &reader, nested: false) else {
        return nil
      }
      fields[name] = value
    }
    return reader.isAtEnd ? fields : nil
  }

  static func write(_ value: RecordValue, to writer: inout KeysetWriter) {
    switch value {
    case .string(let text):
      writer.int(1)
      writer.text(text)
    case .int64(let number):
      writer.int(2)
      writer.int(number)
    case .double(let number):
      writer.int(3)
      writer.double(number)
    case .bytes(let bytes):
      writer.int(4)
      writer.raw(bytes)
    case .timestamp(let time):
      writer.int(5)
      writer.int(time)
    case .location(let place):
      writer.int(6)
      writer.double(place.latitude)
      writer.double(place.longitude)
      writer.optional(place.altitude)
      writer.optional(place.horizontalAccuracy)
      writer.optional(place.course)
      writer.optional(place.speed)
      writer.optional(place.sampleTime)
    case .reference(let target):
      // 9 came later, for references that bind.
      writer.int(target.action == .none ? 7 : 9)
      writer.text(target.zone)
      writer.text(target.record)
    case .asset(let asset):
      writer.int(10)
      writer.raw(asset.id.bytes)
      writer.raw(asset.sha256)
      writer.int(asset.size)
      writer.text(asset.contentType)
      writer.text(asset.fileName)
    case .list(let elements):
      writer.int(8)
      writer.int(Int64(elements.count))
      for element in elements { write(element, to: &writer) }
    }
  }

  /// What ``write(_:to:)`` wrote; nil when it is damaged.
  static func read(_ reader: inout KeysetReader) -> RecordValue? {
    value(from: &reader, nested: false)
  }

  private static func value(from reader: inout KeysetReader, nested: Bool) -> RecordValue? {
    switch reader.int() {
    case 1: return reader.text().map { .string($0) }
    case 2: return reader.int().map { .int64($0) }
    case 3: return reader.double().map { .double($0) }
    case 4: return reader.raw().map { .bytes($0) }
    case 5: return reader.int().map { .timestamp($0) }
    case 6:
      guard let latitude = reader.double(), let longitude = reader.double(),
        let altitude = reader.optionalDouble(), let accuracy = reader.optionalDouble(),
        let course = reader.optionalDouble(), let speed = reader.optionalDouble(),
        let time = reader.optional()
      else { return nil }
      return .location(
        RecordLocation(
          latitude: latitude, longitude: longitude, altitude: altitude,
          horizontalAccuracy: accuracy, course: course, speed: speed, sampleTime: time))
    case 7:
      guard let zone = reader.text(), let record = reader.text() else { return nil }
      return .reference(RecordReference(zone: zone, record: record))
    case 9:
      guard let zone = reader.text(), let record = reader.text() else { return nil }
      return .reference(RecordReference(zone: zone, record: record, action: .deleteSelf))
    case 10:
      guard let id = reader.raw().flatMap({ UUID(bytes: $0) }), let sha256 = reader.raw(),
        let size = reader.int(), let type = reader.text(), let name = reader.text()
      else { return nil }
      return .asset(
        RecordAsset(id: id, sha256: sha256, size: size, contentType: type, fileName: name))
    case 8:
      guard !nested, let count = reader.int(), count >= 0 else { return nil }
      var elements: [RecordValue] = []
      for _ in 0..<count {
        guard let element = value(from: &reader, nested: true) else { return nil }
        elements.append(element)
      }
      return .list(elements)
    default: return nil
    }
  }
}
