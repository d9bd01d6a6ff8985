public import VencejoProtobuf

extension DynamicMessage {
  /// Decodes a message of a type.
  public init(
    _ descriptor: MessageDescriptor, serializedBytes bytes: [UInt8]
  ) throws(DecodingError) {
    self.init(descriptor)
    let error = bytes.withUnsafeBytes { buffer in
      var reader = WireReader(buffer)
      decode(from: &reader)
      return reader.error
    }
    if let error { throw error }
  }

  /// The encoded message; map entries in no particular order unless `deterministic`.
  public func serializedBytes(deterministic: Bool = false) -> [UInt8] {
    var writer = WireWriter(deterministic: deterministic)
    encode(to: &writer)
    return writer.bytes()
  }

  // MARK: Decoding

  mutating func decode(from reader: inout WireReader) {
    while true {
      let tag = reader.nextTag()
      if tag == 0 { return }
      guard let field = descriptor.field(number: Int32(tag >> 3)),
        tag & 7 == field.wireType || tag & 7 == 2 && field.isRepeated
      else {
        reader.unknown(tag, into: &unknownFields)
        continue
      }
      if field.isMap {
        decodeEntry(field, from: &reader)
      } else if field.isRepeated {
        decodeList(field, tag, from: &reader)
      } else {
        if let oneof = field.info.oneof { clear(oneof: oneof, except: field.number) }
        fields[field.number] = Self.value(
          field, from: &reader, merging: fields.removeValue(forKey: field.number))
      }
    }
  }

  private mutating func clear(oneof: Int32, except number: Int32) {
    for other in descriptor.info.fields where other.oneof == oneof && other.number != number {
      fields[other.number] = nil
    }
  }

  private mutating func decodeList(
    _ field: FieldDescriptor, _ tag: UInt32, from reader: inout WireReader
  ) {
    // Taken out while it grows, so that it is not copied.
    var list: [DynamicValue] = []
    if case .list(let old)? = fields.removeValue(forKey: field.number) { list = old }
    if tag & 7 == 2 && field.wireType != 2 {
      let outer = reader.enterRun()
      while !reader.isAtEnd {
        if let value = Self.value(field, from: &reader) { list.append(value) }
      }
      reader.leaveRun(outer)
    } else if let value = Self.value(field, from: &reader) {
      list.append(value)
    }
    if !list.isEmpty { fields[field.number] = .list(list) }
  }

  private mutating func decodeEntry(_ field: FieldDescriptor, from reader: inout WireReader) {
    guard let (keyField, valueField) = field.entryFields else { return }
    var key = keyField.defaultValue
    var value = valueField.emptyValue
    let outer = reader.enter()
    while true {
      let tag = reader.nextTag()
      if tag == 0 { break }
      if tag == keyField.tag {
        key = Self.value(keyField, from: &reader)
      } else if tag == valueField.tag {
        value = Self.value(valueField, from: &reader, merging: value)
      } else {
        reader.skip(tag)
      }
    }
    reader.leave(outer)
    guard let key, let value else { return }
    var map: [DynamicValue: DynamicValue] = [:]
    if case .map(let old)? = fields.removeValue(forKey: field.number) { map = old }
    map[key] = value
    fields[field.number] = .map(map)
  }

  private static func value(
    _ field: FieldDescriptor, from reader: inout WireReader, merging old: DynamicValue? = nil
  ) -> DynamicValue? {
    switch field.kind {
    case .double: return .double(reader.double())
    case .float: return .float(reader.float())
    case .int64: return .int64(reader.int64())
    case .uint64: return .uint64(reader.uint64())
    case .int32: return .int32(reader.int32())
    case .fixed64: return .uint64(reader.fixedUInt64())
    case .fixed32: return .uint32(reader.fixedUInt32())
    case .bool: return .bool(reader.bool())
    case .string: return .string(reader.string())
    case .bytes: return .bytes(reader.bytes())
    case .uint32: return .uint32(reader.uint32())
    case .enum: return .enumeration(reader.int32())
    case .sfixed32: return .int32(reader.fixedInt32())
    case .sfixed64: return .int64(reader.fixedInt64())
    case .sint32: return .int32(reader.sint32())
    case .sint64: return .int64(reader.sint64())
    default:
      guard let type = field.messageType else { return nil }
      var message = DynamicMessage(type)
      if case .message(let old)? = old { message = old }
      let outer = reader.enter()
      message.decode(from: &reader)
      reader.leave(outer)
      return .message(message)
    }
  }

  // MARK: Encoding

  func encode(to writer: inout WireWriter) {
    writer.unknown(unknownFields)
    for (number, value) in fields.sorted(by: { $0.key > $1.key }) {
      guard let field = descriptor.field(number: number) else { continue }
      switch value {
      case .map(let map) where field.isMap:
        encode(map, field, to: &writer)
      case .list(let list) where field.isRepeated && !field.isMap:
        encode(list, field, to: &writer)
      case .list, .map: break
      default:
        if !field.isRepeated && (field.hasPresence || !value.isDefault)
          && Self.put(value, field, to: &writer)
        {
          writer.varint(UInt64(field.tag))
        }
      }
    }
  }

  private func encode(
    _ list: [DynamicValue], _ field: FieldDescriptor, to writer: inout WireWriter
  ) {
    let mark = writer.count
    for value in list.reversed() {
      if Self.put(value, field, to: &writer), !field.info.isPacked {
        writer.varint(UInt64(field.tag))
      }
    }
    if field.info.isPacked && !list.isEmpty { writer.delimit(field.tag & ~7 | 2, since: mark) }
  }

  private func encode(
    _ map: [DynamicValue: DynamicValue], _ field: FieldDescriptor, to writer: inout WireWriter
  ) {
    guard let (keyField, valueField) = field.entryFields else { return }
    var entries = map.map { ($0.key, $0.value) }
    if writer.deterministic { entries.sort { DynamicValue.precedes($1.0, $0.0) } }
    for (key, value) in entries {
      let mark = writer.count
      if Self.put(value, valueField, to: &writer) { writer.varint(UInt64(valueField.tag)) }
      if Self.put(key, keyField, to: &writer) { writer.varint(UInt64(keyField.tag)) }
      writer.delimit(field.tag, since: mark)
    }
  }

  /// Writes a value without its tag; false when it does not fit the field.
  private static func put(
    _ value: DynamicValue, _ field: FieldDescriptor, to writer: inout WireWriter
  ) -> Bool {
    switch (field.kind, value) {
    case (.double, .double(let value)): writer.fixed64(value.bitPattern)
    case (.float, .float(let value)): writer.fixed32(value.bitPattern)
    case (.int64, .int64(let value)): writer.varint(UInt64(bitPattern: value))
    case (.uint64, .uint64(let value)): writer.varint(value)
    case (.int32, .int32(let value)), (.enum, .enumeration(let value)):
      writer.varint(UInt64(bitPattern: Int64(value)))
    case (.fixed64, .uint64(let value)): writer.fixed64(value)
    case (.fixed32, .uint32(let value)): writer.fixed32(value)
    case (.bool, .bool(let value)): writer.varint(value ? 1 : 0)
    case (.string, .string(let value)): writer.string(value)
    case (.bytes, .bytes(let value)): writer.bytes(value)
    case (.uint32, .uint32(let value)): writer.varint(UInt64(value))
    case (.sfixed32, .int32(let value)): writer.fixed32(UInt32(bitPattern: value))
    case (.sfixed64, .int64(let value)): writer.fixed64(UInt64(bitPattern: value))
    case (.sint32, .int32(let value)):
      writer.varint(UInt64(UInt32(bitPattern: (value << 1) ^ (value >> 31))))
    case (.sint64, .int64(let value)):
      writer.varint(UInt64(bitPattern: (value << 1) ^ (value >> 63)))
    case (.message, .message(let message)):
      let mark = writer.count
      message.encode(to: &writer)
      writer.varint(UInt64(writer.count - mark))
    default: return false
    }
    return true
  }
}

extension FieldDescriptor {
  /// The key and the value of a map's entry.
  var entryFields: (FieldDescriptor, FieldDescriptor)? {
    guard isMap, let entry = messageType, let key = entry.field(number: 1),
      let value = entry.field(number: 2)
    else { return nil }
    return (key, value)
  }

  /// The default value; of a message, an empty one.
  var emptyValue: DynamicValue? {
    defaultValue ?? messageType.map { .message(DynamicMessage($0)) }
  }
}

extension DynamicValue {
  /// Whether a field without presence is absent with this value.
  var isDefault: Bool {
    switch self {
    case .bool(let value): !value
    case .int32(let value), .enumeration(let value): value == 0
    case .int64(let value): value == 0
    case .uint32(let value): value == 0
    case .uint64(let value): value == 0
    case .float(let value): value.bitPattern == 0
    case .double(let value): value.bitPattern == 0
    case .string(let value): value.isEmpty
    case .bytes(let value): value.isEmpty
    case .list(let list): list.isEmpty
    case .map(let map): map.isEmpty
    case .message: false
    }
  }

  /// The order of a map's keys.
  static func precedes(_ left: DynamicValue, _ right: DynamicValue) -> Bool {
    switch (left, right) {
    case (.bool(let left), .bool(let right)): !left && right
    case (.int32(let left), .int32(let right)): left < right
    case (.int64(let left), .int64(let right)): left < right
    case (.uint32(let left), .uint32(let right)): left < right
    case (.uint64(let left), .uint64(let right)): left < right
    case (.string(let left), .string(let right)): left.utf8.lexicographicallyPrecedes(right.utf8)
    default: false
    }
  }
}
