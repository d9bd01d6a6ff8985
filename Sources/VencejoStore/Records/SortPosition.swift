/// The checked form of an order.
struct SortPlan: Sendable, Hashable {
  /// Most keys accepted.
  static let maxKeys = 8

  struct Key: Sendable, Hashable {
    var path: FieldPath
    var descending: Bool
    /// Sort by the squared chord from here.
    var center: SpherePoint?
  }

  var keys: [Key]

  /// Record names follow the direction of the last key.
  var namesDescend: Bool { keys.last?.descending ?? false }

  /// Without keys the order is that of the condition's own range in the index, ascending: a
  /// comparison's field, a distance; by record name when there is none or single values are asked
  /// for.
  init(_ sort: [SortKey], for test: IndexTest?) throws(RecordViolation) {
    try self.init(sort)
    guard keys.isEmpty, let test else { return }
    let conjuncts = test.conjuncts
    guard !conjuncts.contains(where: { $0.equalities != nil }) else { return }
    keys = conjuncts.lazy.compactMap(\.naturalKey).first.map { [$0] } ?? []
  }

  init(keys: [Key]) { self.keys = keys }

  init(_ sort: [SortKey]) throws(RecordViolation) {
    guard sort.count <= Self.maxKeys else {
      throw RecordViolation("sort", "at most \(Self.maxKeys) sort keys")
    }
    var keys: [Key] = []
    for key in sort {
      if let place = key.relativeTo { try RecordRules.check(place, field: key.field) }
      keys.append(
        Key(
          path: try FieldPath(key.field), descending: key.descending,
          center: key.relativeTo.map { SpherePoint($0) }))
    }
    self.keys = keys
  }
}

/// Where a record stands in an order. In an ascending key a record that has
/// nothing to sort by comes first, then kinds in the order of `IndexKind`,
/// then values; a descending key is the exact reverse. The record name, by
/// bytes, and last the zone make the order total; both follow the direction of
/// the last key.
struct SortPosition: Sendable, Hashable {
  /// One part for each key; nil: nothing to sort by.
  var parts: [Part?]
  var recordName: String
  var zone: String

  struct Part: Sendable, Hashable {
    var kind: IndexKind
    var value: IndexScalar
  }

  init(parts: [Part?], recordName: String, zone: String) {
    self.parts = parts
    self.recordName = recordName
    self.zone = zone
  }

  init(of record: StoredRecord, in plan: SortPlan) {
    parts = plan.keys.map { key in
      for entry in IndexEntry.entries(of: key.path, in: record) {
        if let center = key.center {
          if case (.location, .real(let z)) = (entry.kind, entry.value) {
            let point = SpherePoint(x: entry.x, y: entry.y, z: z)
            return Part(kind: .number, value: .real(point.squaredChord(to: center)))
          }
        } else if entry.kind.isSortable {
          return Part(kind: entry.kind, value: entry.value)
        }
      }
      return nil
    }
    recordName = record.id.record
    zone = record.id.zone.zone
  }

  /// -1, 0 or 1.
  static func order(_ a: SortPosition, _ b: SortPosition, in plan: SortPlan) -> Int {
    for ((x, y), key) in zip(zip(a.parts, b.parts), plan.keys) {
      let order =
        switch (x, y) {
        case (nil, nil): 0
        case (nil, _): -1
        case (_, nil): 1
        case (let x?, let y?):
          x.kind == y.kind
            ? IndexScalar.order(x.value, y.value) : x.kind.rawValue < y.kind.rawValue ? -1 : 1
        }
      if order != 0 { return key.descending ? -order : order }
    }
    let byName = IndexScalar.order(.text(a.recordName), .text(b.recordName))
    let last = byName != 0 ? byName : IndexScalar.order(.text(a.zone), .text(b.zone))
    return plan.namesDescend ? -last : last
  }

  /// Whether two parts are one value to the order.
  static func areEqual(_ a: Part?, _ b: Part?) -> Bool {
    switch (a, b) {
    case (nil, nil): true
    case (let a?, let b?): a.kind == b.kind && IndexScalar.order(a.value, b.value) == 0
    case (nil, _), (_, nil): false
    }
  }

  // MARK: In a page token

  /// The keyset of a page token.
  var keyset: KeysetWriter {
    var writer = KeysetWriter()
    writer.int(Int64(parts.count))
    for part in parts {
      guard let part else {
        writer.int(0)
        continue
      }
      writer.int(part.kind.rawValue)
      switch part.value {
      case .integer(let number):
        writer.int(1)
        writer.int(number)
      case .real(let number):
        writer.int(2)
        writer.double(number)
      case .text(let text):
        writer.int(3)
        writer.text(text)
      case .blob(let bytes):
        writer.int(4)
        writer.raw(bytes)
      }
    }
    writer.text(recordName)
    writer.text(zone)
    return writer
  }

  /// Nil when the keyset is not that of a position.
  init?(keyset: KeysetReader) {
    var reader = keyset
    guard let count = reader.int(), (0...Int64(SortPlan.maxKeys)).contains(count) else {
      return nil
    }
    var parts: [Part?] = []
    for _ in 0..<count {
      guard let raw = reader.int() else { return nil }
      if raw == 0 {
        parts.append(nil)
        continue
      }
      let value: IndexScalar?
      switch reader.int() {
      case 1: value = reader.int().map { .integer($0) }
      case 2: value = reader.double().map { .real($0) }
      case 3: value = reader.text().map { .text($0) }
      case 4: value = reader.raw().map { .blob($0) }
      default: value = nil
      }
      guard let kind = IndexKind(rawValue: raw), let value else { return nil }
      parts.append(Part(kind: kind, value: value))
    }
    guard let name = reader.text(), let zone = reader.text(), reader.isAtEnd else { return nil }
    self.init(parts: parts, recordName: name, zone: zone)
  }
}
