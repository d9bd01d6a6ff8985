import VencejoDescriptors
import VencejoProtobuf

// Messages straight from wire format, by descriptor.
//
// Fields must stand as encoders write them (see `FieldCursor`). Where they do not, this gives up:
// then the message is decoded and written from its fields.
extension TextPrinter {
  /// Why a message cannot be written.
  enum Fault: Error {
    /// Fields do not stand as encoders write them.
    case disorder
    case malformed(String)
  }

  /// Fields that are written behind those with a name.
  enum Nameless {
    case field(UnsafeRawBufferPointer)
    /// An element of a packed list that its closed enum does not name.
    case number(UInt32, UInt64)
  }

  /// The text of an encoded message.
  static func print(
    _ bytes: [UInt8], as type: MessageDescriptor, _ options: TextOptions
  ) throws(TextError) -> String {
    var printer = TextPrinter(options, capacity: 2 * bytes.count + 256)
    let fault: Fault? = bytes.withUnsafeBytes { buffer in
      var reader = WireReader(buffer)
      do throws(Fault) {
        try printer.message(type.table, type.pool, &reader)
        try Self.check(reader)
      } catch {
        return error
      }
      return nil
    }
    switch fault {
    case nil: return printer.out.string()
    case .malformed(let message): throw TextError(message: message)
    case .disorder:
      do {
        return TextFormat.encode(
          try DynamicMessage(type, serializedBytes: bytes, partial: true), options)
      } catch {
        throw TextError(message: "\(error)")
      }
    }
  }

  static func check(_ reader: borrowing WireReader) throws(Fault) {
    if let error = reader.error { throw .malformed("\(error)") }
  }

  /// What was read since a place.
  static func span(
    from start: UnsafeRawPointer, _ reader: borrowing WireReader
  ) -> UnsafeRawBufferPointer {
    let end = reader.rest.baseAddress ?? start
    return UnsafeRawBufferPointer(start: start, count: max(end - start, 0))
  }

  // MARK: Messages

  /// Writes the reader's current message.
  mutating func message(
    _ type: MessageTable, _ pool: DescriptorPool, _ reader: inout WireReader
  ) throws(Fault) {
    if options.expandAny && type.wellKnown == .any && type.ordered.count == 2
      && type.ordered[0].tag == 10 && type.ordered[1].tag == 18
      && !type.ordered[0].isRepeated && !type.ordered[1].isRepeated
    {
      try any(type, pool, &reader)
    } else {
      try fields(type, pool, &reader)
    }
  }

  private mutating func fields(
    _ type: MessageTable, _ pool: DescriptorPool, _ reader: inout WireReader
  ) throws(Fault) {
    var cursor = FieldCursor(type)
    var nameless: [Nameless] = []
    var tag = reader.nextTag()
    while tag != 0 {
      if tag == 11 && type.isMessageSet {
        // An item has too many odd forms to be printed as it comes.
        throw .disorder
      } else if let index = cursor.index(of: tag) {
        let field = type.ordered[index]
        if field.isMap {
          tag = try map(field, index, tag, pool, &reader, &cursor)
        } else if field.isRepeated {
          tag = try list(field, index, tag, pool, &reader, &cursor, &nameless)
        } else {
          try singular(field, index, tag, pool, &reader, &cursor, &nameless)
          tag = reader.nextTag()
        }
      } else {
        skip(tag, &reader, &nameless)
        tag = reader.nextTag()
      }
    }
    write(nameless)
  }

  func skip(_ tag: UInt32, _ reader: inout WireReader, _ nameless: inout [Nameless]) {
    let start = reader.fieldStart
    reader.skip(tag)
    nameless.append(.field(Self.span(from: start, reader)))
  }

  mutating func write(_ nameless: [Nameless]) {
    guard options.unknownFields else { return }
    for field in nameless {
      switch field {
      case .field(let bytes): unknown(bytes)
      case .number(let tag, let value): number(tag, value)
      }
    }
  }

  func enter(_ index: Int, _ cursor: inout FieldCursor) throws(Fault) {
    guard cursor.enter(index) else { throw .disorder }
  }

  // MARK: Fields

  private mutating func singular(
    _ field: FieldPlan, _ index: Int, _ tag: UInt32, _ pool: DescriptorPool,
    _ reader: inout WireReader, _ cursor: inout FieldCursor, _ nameless: inout [Nameless]
  ) throws(Fault) {
    var number: Int32 = 0
    if field.kind == .enum {
      number = reader.int32()
      // What a closed enum does not name is an unknown field.
      if Self.refuses(field, number, pool) {
        return nameless.append(.field(Self.span(from: reader.fieldStart, reader)))
      }
    }
    try enter(index, &cursor)
    let before = mark
    if try value(field, tag, number, pool, &reader) && !field.hasPresence { goBack(to: before) }
  }

  private static func refuses(_ field: FieldPlan, _ number: Int32, _ pool: DescriptorPool) -> Bool {
    field.isClosed && pool.enumTables[field.type].name(of: number) == nil
  }

  /// Writes a list; returns the tag behind it.
  private mutating func list(
    _ field: FieldPlan, _ index: Int, _ first: UInt32, _ pool: DescriptorPool,
    _ reader: inout WireReader, _ cursor: inout FieldCursor, _ nameless: inout [Nameless]
  ) throws(Fault) -> UInt32 {
    var tag = first
    var isEntered = false
    while tag >> 3 == first >> 3 {
      guard tag == field.tag || tag & 7 == 2 && field.isPackable else {
        skip(tag, &reader, &nameless)
        tag = reader.nextTag()
        continue
      }
      let isRun = tag & 7 == 2 && field.isPackable
      let outer = isRun ? reader.enterRun() : nil
      repeat {
        if isRun && reader.isAtEnd { break }
        var number: Int32 = 0
        if field.kind == .enum {
          number = reader.int32()
          if Self.refuses(field, number, pool) {
            nameless.append(
              isRun
                ? .number(tag, UInt64(bitPattern: Int64(number)))
                : .field(Self.span(from: reader.fieldStart, reader)))
            continue
          }
        }
        if !isEntered { try enter(index, &cursor) }
        isEntered = true
        _ = try value(field, isRun ? field.tag : tag, number, pool, &reader)
      } while isRun
      if let outer { reader.leaveRun(outer) }
      tag = reader.nextTag()
    }
    return tag
  }

  /// Writes a map; returns the tag behind it.
  private mutating func map(
    _ field: FieldPlan, _ index: Int, _ first: UInt32, _ pool: DescriptorPool,
    _ reader: inout WireReader, _ cursor: inout FieldCursor
  ) throws(Fault) -> UInt32 {
    var tag = first
    guard let entries = MapEntry.read(field, pool, &tag, &reader, takesRefused: false),
      let key = pool.tables[field.type].key, let value = pool.tables[field.type].value
    else { throw .disorder }
    try Self.check(reader)
    if entries.isEmpty { return tag }
    try enter(index, &cursor)
    for entry in entries {
      open(field.textName)
      begin(key.textName)
      if let text = entry.string(key) { try string(text, key) } else { out.append(entry.name(key)) }
      end()
      try self.value(of: entry, value, pool, reader.depthLeft - 1)
      close()
    }
    return tag
  }

  private mutating func value(
    of entry: MapEntry, _ field: FieldPlan, _ pool: DescriptorPool, _ depthLeft: Int
  ) throws(Fault) {
    guard let bytes = entry.value else { return defaultValue(field, pool) }
    var inner = WireReader(bytes)
    inner.depthLeft = depthLeft
    let number = field.kind == .enum ? inner.int32() : 0
    _ = try value(field, entry.tag, number, pool, &inner)
    try Self.check(inner)
  }

  /// Writes what a map's entry without a value has.
  private mutating func defaultValue(_ field: FieldPlan, _ pool: DescriptorPool) {
    if field.kind == .message {
      open(field.textName)
      return close()
    }
    begin(field.textName)
    switch field.kind {
    case .string, .bytes: out.append(literal: "\"\"")
    case .bool: boolean(false)
    case .double, .float: out.append(literal: "0.0")
    case .enum: enumeration(pool.enumTables[field.type].first, field, pool)
    default: out.append(literal: "0")
    }
    end()
  }

  // MARK: Values

  /// Writes a field with a value, whose tag has been read, of an enum also the number; returns
  /// whether it is zero or empty.
  private mutating func value(
    _ field: FieldPlan, _ tag: UInt32, _ number: Int32, _ pool: DescriptorPool,
    _ reader: inout WireReader
  ) throws(Fault) -> Bool {
    if field.kind == .message {
      open(field.textName)
      let type = pool.tables[field.type]
      if tag & 7 == 3 {
        let outer = reader.enterGroup(tag)
        try message(type, pool, &reader)
        reader.leaveGroup(outer)
      } else {
        let outer = reader.enter()
        try message(type, pool, &reader)
        reader.leave(outer)
      }
      close()
      return false
    }
    begin(field.textName)
    defer { end() }
    switch field.kind {
    case .string:
      let bytes = reader.span()
      try string(bytes, field)
      return bytes.isEmpty
    case .bytes:
      let bytes = reader.span()
      quote(bytes, keepingUTF8: false)
      return bytes.isEmpty
    case .bool:
      let value = reader.bool()
      boolean(value)
      return !value
    case .enum:
      enumeration(number, field, pool)
      return number == 0
    case .double:
      let value = reader.double()
      floating(value, isNaN: value.isNaN)
      return value.bitPattern == 0
    case .float:
      let value = reader.float()
      floating(value, isNaN: value.isNaN)
      return value.bitPattern == 0
    case .int32: return integer(Int64(reader.int32()))
    case .sint32: return integer(Int64(reader.sint32()))
    case .sfixed32: return integer(Int64(reader.fixedInt32()))
    case .uint32: return integer(Int64(reader.uint32()))
    case .fixed32: return integer(Int64(reader.fixedUInt32()))
    case .int64: return integer(reader.int64())
    case .sint64: return integer(reader.sint64())
    case .sfixed64: return integer(reader.fixedInt64())
    case .uint64: return integer(reader.uint64())
    default: return integer(reader.fixedUInt64())
    }
  }

  private mutating func integer(_ value: Int64) -> Bool {
    out.append(decimal: value)
    return value == 0
  }

  private mutating func integer(_ value: UInt64) -> Bool {
    out.append(decimal: value)
    return value == 0
  }

  private mutating func string(
    _ bytes: UnsafeRawBufferPointer, _ field: FieldPlan
  ) throws(Fault) {
    let isUTF8 = bytes.isUTF8
    if !isUTF8 && field.checksUTF8 { throw .malformed("not UTF-8") }
    quote(bytes, keepingUTF8: isUTF8)
  }

  private mutating func enumeration(_ number: Int32, _ field: FieldPlan, _ pool: DescriptorPool) {
    if let name = pool.enumTables[field.type].name(of: number) {
      out.append(name)
    } else {
      out.append(decimal: Int64(number))
    }
  }
}
