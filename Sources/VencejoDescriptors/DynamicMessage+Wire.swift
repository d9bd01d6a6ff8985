public import VencejoProtobuf

extension DynamicMessage {
  /// Decodes a message of a type. Throws when the input is malformed or, unless `partial`, a
  /// required field missing.
  public init(
    _ descriptor: MessageDescriptor, serializedBytes bytes: [UInt8], partial: Bool = false
  ) throws(DecodingError) {
    self.init(descriptor)
    let error = bytes.withUnsafeBytes { buffer in
      var reader = WireReader(buffer)
      decode(from: &reader)
      return reader.error
    }
    if let error { throw error }
    if !partial, let path = missingRequiredField {
      throw DecodingError(kind: .missingRequired, offset: bytes.count, path: path)
    }
  }

  /// Merges an encoded message into this one: singular fields are replaced, sub-messages merged,
  /// lists and maps extended. After an error the message holds what came before it. Required
  /// fields may be missing.
  public mutating func merge(serializedBytes bytes: [UInt8]) throws(DecodingError) {
    try merge(bytes, depth: WireReader.maximumDepth)
  }

  /// Decodes what was made from a text, which bounds how deeply it nests: a `Struct` takes three
  /// messages for each pair of brackets.
  package init(
    _ descriptor: MessageDescriptor, transcoded bytes: [UInt8]
  ) throws(DecodingError) {
    self.init(descriptor)
    try merge(bytes, depth: 4 * WireReader.maximumDepth)
  }

  private mutating func merge(_ bytes: [UInt8], depth: Int) throws(DecodingError) {
    let error = bytes.withUnsafeBytes { buffer in
      var reader = WireReader(buffer)
      reader.depthLeft = depth
      decode(from: &reader)
      return reader.error
    }
    if let error { throw error }
  }

  /// Removes the fields its type does not know, here and in all sub-messages.
  public mutating func discardUnknownFields() {
    unknownFields.removeAll()
    for (number, value) in fields {
      switch value {
      case .message(var message):
        fields[number] = nil
        message.discardUnknownFields()
        fields[number] = .message(message)
      case .list(let list):
        fields[number] = .list(list.map(\.withoutUnknownFields))
      case .map(let map):
        fields[number] = .map(map.mapValues(\.withoutUnknownFields))
      default: break
      }
    }
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
      if tag == 11 && descriptor.isMessageSet {
        decodeItem(from: &reader)
        continue
      }
      guard let field = descriptor.field(number: Int32(bitPattern: tag >> 3)),
        tag & 7 == field.wireType || tag & 7 == 2 && field.isPackable
      else {
        reader.unknown(tag, into: &unknownFields)
        continue
      }
      if field.isMap {
        decodeEntry(field, from: &reader)
      } else if field.isRepeated {
        decodeList(field, tag, from: &reader)
      } else {
        // Taken out while it grows, so that it is not copied.
        let old = field.kind == .message ? fields.removeValue(forKey: field.number) : nil
        guard let value = Self.value(field, tag, from: &reader, merging: old) else {
          reader.keep(in: &unknownFields)
          continue
        }
        if let oneof = field.info.oneof { clear(oneof: oneof, except: field.number) }
        fields[field.number] = value
      }
    }
  }

  /// An item of a `MessageSet`; one that nobody knows is kept.
  private mutating func decodeItem(from reader: inout WireReader) {
    let start = reader.fieldStart
    var found = false
    reader.item { reader, number in
      guard let field = descriptor.field(number: number), field.kind == .message else {
        return reader.skip(26)
      }
      found = true
      let old = fields.removeValue(forKey: number)
      fields[number] = Self.value(field, 26, from: &reader, merging: old)
    }
    if !found { reader.keep(from: start, in: &unknownFields) }
  }

  private mutating func clear(oneof: Int32, except number: Int32) {
    for other in descriptor.info.oneofs[oneof] ?? [] where other.number != number {
      fields[other.number] = nil
    }
  }

  private mutating func decodeList(
    _ field: FieldDescriptor, _ tag: UInt32, from reader: inout WireReader
  ) {
    // Taken out while it grows, so that it is not copied.
    var list: [DynamicValue] = []
    if case .list(let old)? = fields.removeValue(forKey: field.number) { list = old }
    if tag & 7 == 2 && field.isPackable {
      let outer = reader.enterRun()
      while !reader.isAtEnd {
        if field.kind == .enum {
          let number = reader.int32()
          if reader.error != nil { break }
          if field.refuses(number) {
            unknownFields.append(
              number: tag >> 3, varint: UInt64(bitPattern: Int64(number)))
          } else {
            list.append(.enumeration(number))
          }
        } else if let value = Self.value(field, tag, from: &reader) {
          list.append(value)
        }
      }
      reader.leaveRun(outer)
    } else if let value = Self.value(field, tag, from: &reader) {
      list.append(value)
    } else {
      reader.keep(in: &unknownFields)
    }
    if !list.isEmpty { fields[field.number] = .list(list) }
  }

  private mutating func decodeEntry(_ field: FieldDescriptor, from reader: inout WireReader) {
    guard let (keyField, valueField) = field.entryFields else { return }
    let start = reader.fieldStart
    var key = keyField.defaultValue
    var value = valueField.emptyValue
    let outer = reader.enter()
    while true {
      let tag = reader.nextTag()
      if tag == 0 { break }
      if tag == keyField.tag {
        key = Self.value(keyField, tag, from: &reader)
      } else if tag == valueField.tag {
        value = Self.value(valueField, tag, from: &reader, merging: value)
      } else {
        reader.skip(tag)
      }
    }
    reader.leave(outer)
    // A value its type refuses: of a closed enum.
    guard let key, let value else { return reader.keep(from: start, in: &unknownFields) }
    var map: [DynamicValue: DynamicValue] = [:]
    if case .map(let old)? = fields.removeValue(forKey: field.number) { map = old }
    map[key] = value
    fields[field.number] = .map(map)
  }

  /// Reads a value; nil when the type refuses it.
  private static func value(
    _ field: FieldDescriptor, _ tag: UInt32, from reader: inout WireReader,
    merging old: DynamicValue? = nil
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
    case .string:
      if field.info.checksUTF8 { return .string(reader.string()) }
      let bytes = reader.bytes()
      return String(validating: bytes, as: UTF8.self).map { .string($0) } ?? .bytes(bytes)
    case .bytes: return .bytes(reader.bytes())
    case .uint32: return .uint32(reader.uint32())
    case .enum:
      let number = reader.int32()
      return field.refuses(number) ? nil : .enumeration(number)
    case .sfixed32: return .int32(reader.fixedInt32())
    case .sfixed64: return .int64(reader.fixedInt64())
    case .sint32: return .int32(reader.sint32())
    case .sint64: return .int64(reader.sint64())
    default:
      guard let type = field.messageType else { return nil }
      var message = DynamicMessage(type)
      if case .message(let old)? = old { message = old }
      if tag & 7 == 3 {
        let outer = reader.enterGroup(tag)
        message.decode(from: &reader)
        reader.leaveGroup(outer)
      } else {
        let outer = reader.enter()
        message.decode(from: &reader)
        reader.leave(outer)
      }
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
        if field.isRepeated { break }
        if descriptor.isMessageSet && field.isExtension {
          encodeItem(value, field, to: &writer)
        } else if field.hasPresence || !value.isDefault {
          Self.putField(value, field, to: &writer)
        }
      }
    }
  }

  private func encode(
    _ list: [DynamicValue], _ field: FieldDescriptor, to writer: inout WireWriter
  ) {
    let mark = writer.count
    for value in list.reversed() {
      if field.info.isPacked {
        _ = Self.put(value, field, to: &writer)
      } else {
        Self.putField(value, field, to: &writer)
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

  private func encodeItem(
    _ value: DynamicValue, _ field: FieldDescriptor, to writer: inout WireWriter
  ) {
    writer.varint(12)
    if Self.put(value, field, to: &writer) { writer.varint(26) }
    writer.int32(16, field.number)
    writer.varint(11)
  }

  /// Writes a value and its tag, unless it does not fit the field.
  private static func putField(
    _ value: DynamicValue, _ field: FieldDescriptor, to writer: inout WireWriter
  ) {
    if field.isGroup {
      guard case .message(let message) = value else { return }
      writer.varint(UInt64(field.tag) + 1)
      message.encode(to: &writer)
      writer.varint(UInt64(field.tag))
    } else if put(value, field, to: &writer) {
      writer.varint(UInt64(field.tag))
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
    case (.string, .bytes(let value)):
      if field.info.checksUTF8 { return false }
      writer.bytes(value)
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

extension DynamicValue {
  fileprivate var withoutUnknownFields: DynamicValue {
    guard case .message(var message) = self else { return self }
    message.discardUnknownFields()
    return .message(message)
  }
}

extension FieldDescriptor {
  /// The key and the value of a map's entry.
  package var entryFields: (FieldDescriptor, FieldDescriptor)? {
    guard isMap, let entry = messageType, let key = entry.field(number: 1),
      let value = entry.field(number: 2)
    else { return nil }
    return (key, value)
  }

  /// The default value; of a message, an empty one.
  package var emptyValue: DynamicValue? {
    defaultValue ?? messageType.map { .message(DynamicMessage($0)) }
  }
}

extension FieldDescriptor {
  /// Whether a list may stand in one run.
  var isPackable: Bool { info.isPackable }

  /// Whether the field is of a closed enum that does not name the number.
  package func refuses(_ number: Int32) -> Bool {
    guard let type = enumType else { return false }
    return type.isClosed && type.name(of: number) == nil
  }
}

extension DynamicValue {
  /// Whether a field without presence is absent with this value.
  package var isDefault: Bool {
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
  package static func precedes(_ left: DynamicValue, _ right: DynamicValue) -> Bool {
    switch (left, right) {
    case (.bool(let left), .bool(let right)): !left && right
    case (.int32(let left), .int32(let right)): left < right
    case (.int64(let left), .int64(let right)): left < right
    case (.uint32(let left), .uint32(let right)): left < right
    case (.uint64(let left), .uint64(let right)): left < right
    case (.string(let left), .string(let right)): left.utf8.lexicographicallyPrecedes(right.utf8)
    // Strings that are not UTF-8, among those that are.
    case (.string(let left), .bytes(let right)): left.utf8.lexicographicallyPrecedes(right)
    case (.bytes(let left), .string(let right)): left.lexicographicallyPrecedes(right.utf8)
    case (.bytes(let left), .bytes(let right)): left.lexicographicallyPrecedes(right)
    default: false
    }
  }
}
