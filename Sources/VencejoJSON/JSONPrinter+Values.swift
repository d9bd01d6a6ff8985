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
      guard bytes.isUTF8 else { throw unsayable("not UTF-8") }
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

  static func isInteger(_ kind: Google.FieldDescriptorProto.TypeEnum) -> Bool {
    switch kind {
    case .int32, .int64, .uint32, .uint64, .sint32, .sint64: true
    default: false
    }
  }

  /// Writes a run's varints, on one line; returns how many.
  mutating func integers(_ kind: Google.FieldDescriptorProto.TypeEnum, _ reader: inout WireReader)
    -> Int
  {
    switch kind {
    case .int32: integers(&reader) { Self.signed(Int64(Int32(truncatingIfNeeded: $0))) }
    case .uint32: integers(&reader) { (UInt64(UInt32(truncatingIfNeeded: $0)), false) }
    case .sint32:
      integers(&reader) {
        let low = UInt32(truncatingIfNeeded: $0)
        return Self.signed(Int64(Int32(bitPattern: low >> 1) ^ -Int32(bitPattern: low & 1)))
      }
    case .int64: integers(&reader, quoted: true) { Self.signed(Int64(bitPattern: $0)) }
    case .sint64:
      integers(&reader, quoted: true) {
        Self.signed(Int64(bitPattern: $0 >> 1) ^ -Int64(bitPattern: $0 & 1))
      }
    default: integers(&reader, quoted: true) { ($0, false) }
    }
  }

  private static func signed(_ value: Int64) -> (UInt64, Bool) { (value.magnitude, value < 0) }

  @inline(__always)
  private mutating func integers(
    _ reader: inout WireReader, quoted: Bool = false, _ value: (UInt64) -> (UInt64, Bool)
  ) -> Int {
    var count = 0
    while !reader.isAtEnd {
      let (magnitude, isNegative) = value(reader.uint64())
      // A comma, two quotes, a sign and the digits.
      out.append(upTo: 28) { start in
        var place = start
        func put(_ byte: UInt8) {
          place.storeBytes(of: byte, as: UInt8.self)
          place += 1
        }
        if count > 0 { put(UInt8(ascii: ",")) }
        if quoted { put(UInt8(ascii: "\"")) }
        if isNegative { put(UInt8(ascii: "-")) }
        place += ByteBuffer.put(decimal: magnitude, at: place)
        if quoted { put(UInt8(ascii: "\"")) }
        return place - start
      }
      count += 1
    }
    return count
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
      if pool.enumTables[field.type].isPlain { quote(plain: name) } else { quote(name) }
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
      next(field, &list)
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
    if let text = entry.string(field), text.isUTF8 { return quote(text) }
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
