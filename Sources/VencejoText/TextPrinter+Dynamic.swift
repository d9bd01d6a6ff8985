import VencejoDescriptors
import VencejoProtobuf

// Messages whose fields are in hand.
extension TextPrinter {
  mutating func print(_ message: DynamicMessage) {
    if options.expandAny && message.descriptor.fullName == "google.protobuf.Any",
      printExpanded(message)
    {
      return
    }
    // Extensions among the other fields, as they stand on the wire.
    for (number, value) in message.fields.sorted(by: { $0.key < $1.key }) {
      guard let field = message.descriptor.field(number: number),
        field.hasPresence || !value.isDefault
      else { continue }
      print(value, field)
    }
    if options.unknownFields { message.unknownFields.bytes.withUnsafeBytes { unknown($0) } }
  }

  /// An `Any` as the message within; false when that cannot be had.
  private mutating func printExpanded(_ message: DynamicMessage) -> Bool {
    guard case .string(let url)? = message.fields[1], message.unknownFields.isEmpty,
      let type = DescriptorPool.packedType(
        url, near: message.descriptor.pool, types: options.types)
    else { return false }
    var bytes: [UInt8] = []
    if case .bytes(let value)? = message.fields[2] { bytes = value }
    // What nests deeper than the wire allows is left packed.
    guard depth < WireReader.maximumDepth,
      let packed = try? DynamicMessage(type, serializedBytes: bytes, partial: true)
    else { return false }
    open("[\(url)]")
    print(packed)
    close()
    return true
  }

  private mutating func print(_ value: DynamicValue, _ field: FieldDescriptor) {
    switch value {
    case .list(let list): for value in list { print(value, field) }
    case .map(let map):
      guard let (key, value) = field.entryFields else { return }
      for entry in map.sorted(by: { DynamicValue.precedes($0.key, $1.key) }) {
        open(field.info.textName)
        print(entry.key, key)
        print(entry.value, value)
        close()
      }
    case .message(let message):
      open(field.info.textName)
      print(message)
      close()
    default:
      begin(field.info.textName)
      scalar(value, field)
      end()
    }
  }

  private mutating func scalar(_ value: DynamicValue, _ field: FieldDescriptor) {
    switch value {
    case .bool(let value): boolean(value)
    case .int32(let value): out.append(decimal: Int64(value))
    case .int64(let value): out.append(decimal: value)
    case .uint32(let value): out.append(decimal: UInt64(value))
    case .uint64(let value): out.append(decimal: value)
    case .float(let value): floating(value, isNaN: value.isNaN)
    case .double(let value): floating(value, isNaN: value.isNaN)
    case .string(let value):
      value.utf8Span.span.bytes.withUnsafeBytes { quote($0, keepingUTF8: true) }
    case .bytes(let value): value.withUnsafeBytes { quote($0, keepingUTF8: false) }
    case .enumeration(let value):
      if let name = field.enumType?.name(of: value) {
        out.append(name)
      } else {
        out.append(decimal: Int64(value))
      }
    case .message, .list, .map: break
    }
  }
}
