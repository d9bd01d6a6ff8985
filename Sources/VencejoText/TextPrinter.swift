import VencejoDescriptors
import VencejoProtobuf

/// Writes messages as text.
struct TextPrinter {
  let options: TextOptions
  private(set) var text = ""
  private var depth = 0

  init(options: TextOptions) { self.options = options }

  mutating func print(_ message: DynamicMessage) {
    if options.expandAny && message.descriptor.fullName == "google.protobuf.Any",
      printExpanded(message)
    {
      return
    }
    let known = message.descriptor.fields.sorted { $0.number < $1.number }
    for field in known + message.extensionFields {
      guard let value = message.fields[field.number] else { continue }
      if !field.hasPresence && value.isDefault { continue }
      print(value, field)
    }
    if options.unknownFields {
      message.unknownFields.bytes.withUnsafeBytes { bytes in
        var reader = WireReader(bytes)
        _ = UnknownPrinter.print(&reader, 0, to: &self)
      }
    }
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
    default: line(field.info.textName, Self.scalar(value, field))
    }
  }

  private static func scalar(_ value: DynamicValue, _ field: FieldDescriptor) -> String {
    switch value {
    case .bool(let value): value ? "true" : "false"
    case .int32(let value): "\(value)"
    case .int64(let value): "\(value)"
    case .uint32(let value): "\(value)"
    case .uint64(let value): "\(value)"
    case .float(let value): value.isNaN ? "nan" : "\(value)"
    case .double(let value): value.isNaN ? "nan" : "\(value)"
    case .string(let value): quoted(Array(value.utf8), keepingUTF8: true)
    case .bytes(let value): quoted(value, keepingUTF8: false)
    case .enumeration(let value): field.enumType?.name(of: value) ?? "\(value)"
    case .message, .list, .map: ""
    }
  }

  /// In quotes, with C's escapes.
  static func quoted(_ bytes: [UInt8], keepingUTF8: Bool) -> String {
    var result: [UInt8] = [UInt8(ascii: "\"")]
    for byte in bytes {
      switch byte {
      case 0x0A: result += "\\n".utf8
      case 0x0D: result += "\\r".utf8
      case 0x09: result += "\\t".utf8
      case UInt8(ascii: "\""): result += "\\\"".utf8
      case UInt8(ascii: "'"): result += "\\'".utf8
      case UInt8(ascii: "\\"): result += "\\\\".utf8
      case 0x20..<0x7F: result.append(byte)
      case 0x80... where keepingUTF8: result.append(byte)
      default:
        result += [
          UInt8(ascii: "\\"), 0x30 + (byte >> 6), 0x30 + (byte >> 3 & 7), 0x30 + (byte & 7),
        ]
      }
    }
    result.append(UInt8(ascii: "\""))
    return String(decoding: result, as: UTF8.self)
  }

  // MARK: Layout

  private mutating func begin() {
    if options.singleLine {
      if !text.isEmpty { text += " " }
    } else {
      for _ in 0..<depth { text += "  " }
    }
  }

  /// A printer for what stands one level deeper; see ``insert(_:)``.
  func within() -> TextPrinter {
    var inner = TextPrinter(options: options)
    inner.depth = depth + 1
    return inner
  }

  mutating func insert(_ inner: TextPrinter) {
    if options.singleLine && !inner.text.isEmpty { text += " " }
    text += inner.text
  }

  mutating func line(_ name: String, _ value: String) {
    begin()
    text += "\(name): \(value)"
    if !options.singleLine { text += "\n" }
  }

  mutating func open(_ name: String) {
    begin()
    text += "\(name) {"
    if !options.singleLine { text += "\n" }
    depth += 1
  }

  mutating func close() {
    depth -= 1
    begin()
    text += "}"
    if !options.singleLine { text += "\n" }
  }
}

/// Writes fields nobody knows by their numbers. Also the decoding of a message without its type.
enum UnknownPrinter {
  /// Prints the fields of the reader's current message; false when they are malformed.
  static func print(_ reader: inout WireReader, _ depth: Int, to printer: inout TextPrinter) -> Bool
  {
    while true {
      let tag = reader.nextTag()
      if tag == 0 { return reader.error == nil }
      let name = "\(tag >> 3)"
      switch tag & 7 {
      case 0: printer.line(name, "\(reader.uint64())")
      case 1: printer.line(name, hex(reader.fixedUInt64(), 16))
      case 5: printer.line(name, hex(UInt64(reader.fixedUInt32()), 8))
      case 3:
        let outer = reader.enterGroup(tag)
        printer.open(name)
        _ = print(&reader, depth + 1, to: &printer)
        printer.close()
        reader.leaveGroup(outer)
      default:
        let bytes = reader.bytes()
        guard reader.error == nil else { return false }
        // Whatever reads as a message is shown as one: but ten deep, as each level is tried.
        var attempt = printer.within()
        let isMessage =
          !bytes.isEmpty && depth < 10
          && bytes.withUnsafeBytes { buffer in
            var inner = WireReader(buffer)
            return print(&inner, depth + 1, to: &attempt)
          }
        if isMessage {
          printer.open(name)
          printer.insert(attempt)
          printer.close()
        } else {
          printer.line(name, TextPrinter.quoted(bytes, keepingUTF8: false))
        }
      }
    }
  }

  private static func hex(_ value: UInt64, _ digits: Int) -> String {
    let text = String(value, radix: 16)
    return "0x" + String(repeating: "0", count: digits - text.count) + text
  }
}
