import VencejoDescriptors
import VencejoProtobuf

// Values, defaults and maps.
extension JSONPrinter {
  /// Writes a value, whose tag has been read; returns whether it is zero or empty.
  mutating func value(
    _ field: Field, _ tag: UInt32, _ pool: DescriptorPool, _ reader: inout WireReader
  ) throws(JSONFault) -> Bool {
    switch field.kind {
    case .message:
      let type = pool.tables[field.type]
      if tag & 7 == 3 {
        let outer = reader.enterGroup(tag)
        try message(type, pool, &reader)
        reader.leaveGroup(outer)
      } else {
        try delimited(type, pool, &reader)
      }
      return false
    case .string:
      let bytes = reader.span()
      guard Self.isUTF8(bytes) else { throw JSONFault(message: "not UTF-8") }
      quote(bytes)
      return bytes.isEmpty
    case .bytes:
      let bytes = reader.span()
      out.append(UInt8(ascii: "\""))
      Base64.encode(bytes, to: &out)
      out.append(UInt8(ascii: "\""))
      return bytes.isEmpty
    case .bool:
      let value = reader.bool()
      out.append(literal: value ? "true" : "false")
      return !value
    case .enum:
      let number = reader.int32()
      enumeration(number, field, pool)
      return number == 0
    case .double:
      let value = reader.double()
      floating(value, value.isFinite, value.isNaN, value < 0)
      return value.bitPattern == 0
    case .float:
      let value = reader.float()
      floating(value, value.isFinite, value.isNaN, value < 0)
      return value.bitPattern == 0
    case .int32: return integer(Int64(reader.int32()))
    case .sint32: return integer(Int64(reader.sint32()))
    case .sfixed32: return integer(Int64(reader.fixedInt32()))
    case .uint32: return integer(Int64(reader.uint32()))
    case .fixed32: return integer(Int64(reader.fixedUInt32()))
    case .int64: return quoted(reader.int64())
    case .sint64: return quoted(reader.sint64())
    case .sfixed64: return quoted(reader.fixedInt64())
    case .uint64: return quoted(reader.uint64())
    default: return quoted(reader.fixedUInt64())
    }
  }

  static func isUTF8(_ bytes: UnsafeRawBufferPointer) -> Bool {
    (try? UTF8Span(validating: bytes.bindMemory(to: UInt8.self).span)) != nil
  }

  private mutating func integer(_ value: Int64) -> Bool {
    out.append(decimal: value)
    return value == 0
  }

  private mutating func quoted(_ value: Int64) -> Bool {
    out.append(UInt8(ascii: "\""))
    out.append(decimal: value)
    out.append(UInt8(ascii: "\""))
    return value == 0
  }

  private mutating func quoted(_ value: UInt64) -> Bool {
    out.append(UInt8(ascii: "\""))
    out.append(decimal: value)
    out.append(UInt8(ascii: "\""))
    return value == 0
  }

  private mutating func floating(
    _ value: some CustomStringConvertible, _ isFinite: Bool, _ isNaN: Bool, _ isNegative: Bool
  ) {
    if isFinite { return out.append(value.description) }
    out.append(literal: isNaN ? "\"NaN\"" : isNegative ? "\"-Infinity\"" : "\"Infinity\"")
  }

  mutating func enumeration(_ number: Int32, _ field: Field, _ pool: DescriptorPool) {
    if field.takesNull {
      out.append(literal: "null")
    } else if !options.enumNumbers, let name = pool.enumTables[field.type].name(of: number) {
      quote(name)
    } else {
      out.append(decimal: Int64(number))
    }
  }

  // MARK: Defaults

  /// Writes those of the fields that have no presence, with their defaults.
  mutating func defaults(
    _ type: MessageTable, _ pool: DescriptorPool, _ range: Range<Int>, _ list: inout List
  ) {
    for field in type.ordered[range] where !field.hasPresence && !field.isExtension {
      next(name(field), &list)
      if field.isMap {
        out.append(literal: "{}")
      } else if field.isRepeated {
        out.append(literal: "[]")
      } else {
        defaultValue(field, pool)
      }
    }
  }

  /// Writes the default of a field that is no message.
  mutating func defaultValue(_ field: Field, _ pool: DescriptorPool) {
    switch field.kind {
    case .string, .bytes: out.append(literal: "\"\"")
    case .bool: out.append(literal: "false")
    case .double, .float: out.append(literal: "0.0")
    case .int64, .sint64, .sfixed64, .uint64, .fixed64: out.append(literal: "\"0\"")
    case .enum:
      enumeration(pool.enumTables[field.type].first, field, pool)
    default: out.append(literal: "0")
    }
  }

  // MARK: Maps

  struct Entry {
    /// Of a string.
    var text = UnsafeRawBufferPointer(start: nil, count: 0)
    /// Of other keys: in an order that is the keys'.
    var bits: UInt64 = 0
    var tag: UInt32 = 0
    /// The value behind its tag; nil when it is not there.
    var value: UnsafeRawBufferPointer?

    func precedes(_ other: Entry) -> Bool {
      if bits != other.bits { return bits < other.bits }
      return text.lexicographicallyPrecedes(other.text)
    }
  }

  /// Reads the entries of a map up to a tag of another field, which is left in `tag`: sorted by
  /// their keys, of each key the last one.
  func mapEntries(
    _ field: Field, _ pool: DescriptorPool, _ tag: inout UInt32, _ reader: inout WireReader
  ) throws(JSONFault) -> [Entry] {
    guard let key = pool.tables[field.type].key, let value = pool.tables[field.type].value else {
      return []
    }
    var entries: [Entry] = []
    var isSorted = true
    if tag == field.tag { entries.reserveCapacity(reader.repetitions()) }
    while tag == field.tag {
      if let entry = try entry(key, value, pool, &reader) {
        if let last = entries.last, !last.precedes(entry) { isSorted = false }
        entries.append(entry)
      }
      tag = reader.nextTag()
    }
    if isSorted { return entries }
    // The sort is stable: of equal keys the last one stays last.
    entries.sort { $0.precedes($1) }
    var distinct: [Entry] = []
    for entry in entries {
      if let last = distinct.last, !last.precedes(entry) { distinct.removeLast() }
      distinct.append(entry)
    }
    return distinct
  }

  /// Reads an entry; nil when its value is of a closed enum that does not name it.
  private func entry(
    _ key: Field, _ value: Field, _ pool: DescriptorPool, _ reader: inout WireReader
  ) throws(JSONFault) -> Entry? {
    // What is missing is its default, also the key.
    var entry = Entry(bits: Self.isSigned(key) ? Self.order(0) : 0)
    var isRefused = false
    let outer = reader.enter()
    while true {
      let tag = reader.nextTag()
      if tag == 0 { break }
      if tag == key.tag {
        switch key.kind {
        case .string: entry.text = reader.span()
        case .bool: entry.bits = reader.bool() ? 1 : 0
        // Signed numbers from the lowest on.
        case .int32: entry.bits = Self.order(Int64(reader.int32()))
        case .sint32: entry.bits = Self.order(Int64(reader.sint32()))
        case .sfixed32: entry.bits = Self.order(Int64(reader.fixedInt32()))
        case .int64: entry.bits = Self.order(reader.int64())
        case .sint64: entry.bits = Self.order(reader.sint64())
        case .sfixed64: entry.bits = Self.order(reader.fixedInt64())
        case .uint32: entry.bits = UInt64(reader.uint32())
        case .fixed32: entry.bits = UInt64(reader.fixedUInt32())
        case .uint64: entry.bits = reader.uint64()
        default: entry.bits = reader.fixedUInt64()
        }
      } else if tag == value.tag {
        // A message that is there twice is both, merged.
        if entry.value != nil && value.kind == .message { throw .disorder }
        entry.value = reader.value(tag)
        entry.tag = tag
        if value.isClosed, let bytes = entry.value {
          var inner = WireReader(bytes)
          isRefused = pool.enumTables[value.type].name(of: inner.int32()) == nil
        }
      } else {
        reader.skip(tag)
      }
    }
    reader.leave(outer)
    return isRefused ? nil : entry
  }

  private static func order(_ value: Int64) -> UInt64 { UInt64(bitPattern: value) ^ 1 << 63 }

  private static func isSigned(_ key: Field) -> Bool {
    switch key.kind {
    case .int32, .sint32, .sfixed32, .int64, .sint64, .sfixed64: true
    default: false
    }
  }

  /// Writes entries as an object.
  mutating func map(
    _ entries: [Entry], _ field: Field, _ pool: DescriptorPool, _ reader: inout WireReader
  ) throws(JSONFault) {
    guard let key = pool.tables[field.type].key, let value = pool.tables[field.type].value else {
      return
    }
    var list = open("{")
    for entry in entries {
      next(&list)
      self.key(entry, key)
      colon()
      do throws(JSONFault) {
        try self.value(of: entry, value, pool, reader.depthLeft - 1)
      } catch {
        throw error.at(".\(Self.name(entry, key))")
      }
    }
    close("}", list)
  }

  private mutating func value(
    of entry: Entry, _ field: Field, _ pool: DescriptorPool, _ depthLeft: Int
  ) throws(JSONFault) {
    guard let bytes = entry.value else {
      guard field.kind == .message else { return defaultValue(field, pool) }
      var nothing = WireReader(UnsafeRawBufferPointer(start: nil, count: 0))
      return try message(pool.tables[field.type], pool, &nothing)
    }
    var inner = WireReader(bytes)
    inner.depthLeft = depthLeft
    _ = try value(field, entry.tag, pool, &inner)
    try Self.check(inner)
  }

  private mutating func key(_ entry: Entry, _ field: Field) {
    if field.kind == .string, Self.isUTF8(entry.text) { return quote(entry.text) }
    quote(Self.name(entry, field))
  }

  private static func name(_ entry: Entry, _ field: Field) -> String {
    switch field.kind {
    case .string: String(decoding: entry.text, as: UTF8.self)
    case .bool: entry.bits == 0 ? "false" : "true"
    default:
      isSigned(field)
        ? "\(Int64(bitPattern: entry.bits ^ 1 << 63))" : "\(entry.bits)"
    }
  }
}
