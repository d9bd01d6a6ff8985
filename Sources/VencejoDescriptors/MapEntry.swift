package import VencejoProtobuf

/// An entry of an encoded map.
package struct MapEntry {
  /// The key, of a string.
  private var text = UnsafeRawBufferPointer(start: nil, count: 0)
  /// Other keys, in an order that is theirs.
  private var bits: UInt64
  /// The tag of the value.
  package private(set) var tag: UInt32 = 0
  /// The value behind its tag; nil when it is not there.
  package private(set) var value: UnsafeRawBufferPointer?

  private init(bits: UInt64) { self.bits = bits }

  private func precedes(_ other: MapEntry) -> Bool {
    if bits != other.bits { return bits < other.bits }
    return text.lexicographicallyPrecedes(other.text)
  }

  /// The key of a string, valid as long as the message; nil when it is of another type.
  package func string(_ key: FieldPlan) -> UnsafeRawBufferPointer? {
    key.kind == .string ? text : nil
  }

  /// The key as text.
  package func name(_ key: FieldPlan) -> String {
    switch key.kind {
    case .string: String(decoding: text, as: UTF8.self)
    case .bool: bits == 0 ? "false" : "true"
    default: Self.isSigned(key) ? "\(Int64(bitPattern: bits ^ 1 << 63))" : "\(bits)"
    }
  }

  /// Reads the entries of a map up to a tag of another field, which is left in `tag`: sorted by
  /// their keys, of each key the last one. nil when there is a message in two parts or, unless
  /// `takesRefused`, a value of a closed enum that does not name it; else such entries are left
  /// out.
  package static func read(
    _ field: FieldPlan, _ pool: DescriptorPool, _ tag: inout UInt32, _ reader: inout WireReader,
    takesRefused: Bool = true
  ) -> [MapEntry]? {
    guard let key = pool.tables[field.type].key, let value = pool.tables[field.type].value else {
      return []
    }
    var entries: [MapEntry] = []
    var isSorted = true
    if tag == field.tag { entries.reserveCapacity(reader.repetitions()) }
    while tag == field.tag {
      var entry = MapEntry(bits: isSigned(key) ? order(0) : 0)
      var isRefused = false
      guard entry.read(key, value, pool, &reader, &isRefused) else { return nil }
      if isRefused && !takesRefused { return nil }
      if !isRefused {
        if let last = entries.last, !last.precedes(entry) { isSorted = false }
        entries.append(entry)
      }
      tag = reader.nextTag()
    }
    if isSorted { return entries }
    // The sort is stable: of equal keys the last one stays last.
    entries.sort { $0.precedes($1) }
    if zip(entries, entries.dropFirst()).allSatisfy({ $0.precedes($1) }) { return entries }
    var distinct: [MapEntry] = []
    for entry in entries {
      if let last = distinct.last, !last.precedes(entry) { distinct.removeLast() }
      distinct.append(entry)
    }
    return distinct
  }

  /// Reads an entry, of which what is missing is its default; false when there is a message in
  /// two parts. `isRefused` tells of a value of a closed enum that does not name it.
  private mutating func read(
    _ key: FieldPlan, _ value: FieldPlan, _ pool: DescriptorPool, _ reader: inout WireReader,
    _ isRefused: inout Bool
  ) -> Bool {
    let outer = reader.enter()
    while true {
      let tag = reader.nextTag()
      if tag == 0 { break }
      if tag == key.tag {
        readKey(key, &reader)
      } else if tag == value.tag {
        if self.value != nil && value.kind == .message { return false }
        let bytes = reader.value(tag)
        self.value = bytes
        self.tag = tag
        if value.isClosed {
          var inner = WireReader(bytes)
          isRefused = pool.enumTables[value.type].name(of: inner.int32()) == nil
        }
      } else {
        reader.skip(tag)
      }
    }
    reader.leave(outer)
    return true
  }

  private mutating func readKey(_ key: FieldPlan, _ reader: inout WireReader) {
    switch key.kind {
    case .string: text = reader.span()
    case .bool: bits = reader.bool() ? 1 : 0
    case .int32: bits = Self.order(Int64(reader.int32()))
    case .sint32: bits = Self.order(Int64(reader.sint32()))
    case .sfixed32: bits = Self.order(Int64(reader.fixedInt32()))
    case .int64: bits = Self.order(reader.int64())
    case .sint64: bits = Self.order(reader.sint64())
    case .sfixed64: bits = Self.order(reader.fixedInt64())
    case .uint32: bits = UInt64(reader.uint32())
    case .fixed32: bits = UInt64(reader.fixedUInt32())
    case .uint64: bits = reader.uint64()
    default: bits = reader.fixedUInt64()
    }
  }

  /// Signed numbers from the lowest on.
  private static func order(_ value: Int64) -> UInt64 { UInt64(bitPattern: value) ^ 1 << 63 }

  private static func isSigned(_ key: FieldPlan) -> Bool {
    switch key.kind {
    case .int32, .sint32, .sfixed32, .int64, .sint64, .sfixed64: true
    default: false
    }
  }
}
