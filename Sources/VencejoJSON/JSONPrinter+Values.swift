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

  /// Writes entries as an object.
  mutating func map(
    _ entries: [MapEntry], _ field: Field, _ pool: DescriptorPool, _ reader: inout WireReader
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
        throw error.at(".\(entry.name(key))")
      }
    }
    close("}", list)
  }

  private mutating func value(
    of entry: MapEntry, _ field: Field, _ pool: DescriptorPool, _ depthLeft: Int
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

  private mutating func key(_ entry: MapEntry, _ field: Field) {
    if let text = entry.string(field), Self.isUTF8(text) { return quote(text) }
    quote(entry.name(field))
  }

  /// The entries of a map; a fault when they are in disorder.
  func mapEntries(
    _ field: Field, _ pool: DescriptorPool, _ tag: inout UInt32, _ reader: inout WireReader
  ) throws(JSONFault) -> [MapEntry] {
    guard let entries = MapEntry.read(field, pool, &tag, &reader) else { throw .disorder }
    return entries
  }
}
