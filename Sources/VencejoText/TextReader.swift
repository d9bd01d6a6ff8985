import VencejoDescriptors
import VencejoProtobuf

/// What reading throws inside: turned into a ``TextError`` by whoever knows the text.
struct TextFault: Error {
  let message: String
  /// In bytes.
  let offset: Int
}

/// Makes messages of text, in one pass.
struct TextReader {
  let options: TextOptions
  let bytes: [UInt8]
  var position = 0
  private var depth = 0

  init(_ text: String, options: TextOptions) {
    self.options = options
    bytes = Array(text.utf8)
  }

  mutating func readAll(into message: inout DynamicMessage) throws(TextFault) {
    skipBlanks()
    try readFields(into: &message, until: nil)
  }

  /// Reads fields up to a closing bracket, which is taken, or to the end of the text.
  private mutating func readFields(
    into message: inout DynamicMessage, until end: UInt8?
  ) throws(TextFault) {
    var seen: Set<Int32> = []
    var oneofs: Set<Int32> = []
    while true {
      guard let next else {
        if end == nil { return }
        throw fault("the text ends within a message")
      }
      if let end, next == end {
        take()
        return
      }
      try readField(into: &message, &seen, &oneofs)
      // One separator, if any.
      if self.next == UInt8(ascii: ",") || self.next == UInt8(ascii: ";") { take() }
    }
  }

  private mutating func readField(
    into message: inout DynamicMessage, _ seen: inout Set<Int32>, _ oneofs: inout Set<Int32>
  ) throws(TextFault) {
    let start = position
    let found: FieldDescriptor?
    if next == UInt8(ascii: "[") {
      let name = try bracketName()
      if name.contains("/") { return try readAny(name, start, into: &message, &seen) }
      found = message.descriptor.field(named: "[\(name)]")
      if found == nil && !options.ignoreUnknown {
        throw fault("\(message.descriptor.fullName) has no extension \(name)", start)
      }
    } else {
      let name = try identifier()
      found = Self.field(name, of: message.descriptor)
      if found == nil && !options.ignoreUnknown && !message.descriptor.reserves(name) {
        throw fault("\(message.descriptor.fullName) has no field \(name)", start)
      }
    }
    guard let field = found else { return try skipValue() }
    if !field.isRepeated {
      guard seen.insert(field.number).inserted else {
        throw fault("the field \(field.name) is there twice", start)
      }
      if let oneof = field.info.oneof, !oneofs.insert(oneof).inserted {
        throw fault("another field of the oneof of \(field.name) is there", start)
      }
    }
    let hasColon = next == UInt8(ascii: ":")
    if hasColon { take() }
    if field.kind != .message && !hasColon { throw fault("expected a colon") }
    if field.isRepeated && next == UInt8(ascii: "[") {
      take()
      if next == UInt8(ascii: "]") { return take() }
      while true {
        try add(try value(field), to: field, of: &message)
        if next == UInt8(ascii: ",") {
          take()
        } else if next == UInt8(ascii: "]") {
          return take()
        } else {
          throw fault("expected a comma or ]")
        }
      }
    }
    try add(try value(field), to: field, of: &message)
  }

  /// A field by its name; a group-like one also by its type's.
  private static func field(_ name: String, of type: MessageDescriptor) -> FieldDescriptor? {
    if let field = type.field(named: name), field.name == name { return field }
    guard let field = type.field(named: name.lowercased()), field.info.textName == name else {
      return nil
    }
    return field
  }

  private func add(
    _ value: DynamicValue, to field: FieldDescriptor, of message: inout DynamicMessage
  ) throws(TextFault) {
    if let (keyField, valueField) = field.entryFields {
      guard case .message(let entry) = value, let key = entry.fields[1] ?? keyField.defaultValue,
        let value = entry.fields[2] ?? valueField.emptyValue
      else { return }
      var map: [DynamicValue: DynamicValue] = [:]
      if case .map(let old)? = message.fields.removeValue(forKey: field.number) { map = old }
      map[key] = value
      message.fields[field.number] = .map(map)
    } else if field.isRepeated {
      var list: [DynamicValue] = []
      if case .list(let old)? = message.fields.removeValue(forKey: field.number) { list = old }
      list.append(value)
      message.fields[field.number] = .list(list)
    } else {
      message.fields[field.number] = value
    }
  }

  // MARK: Messages

  /// The message between brackets.
  private mutating func readMessage(_ type: MessageDescriptor) throws(TextFault) -> DynamicMessage {
    let end: UInt8
    switch next {
    case UInt8(ascii: "{"): end = UInt8(ascii: "}")
    case UInt8(ascii: "<"): end = UInt8(ascii: ">")
    default: throw fault("expected { or <")
    }
    guard depth < WireReader.maximumDepth else { throw fault("nested too deeply") }
    take()
    depth += 1
    var message = DynamicMessage(type)
    try readFields(into: &message, until: end)
    depth -= 1
    return message
  }

  /// The message packed in an `Any`, behind its URL.
  private mutating func readAny(
    _ url: String, _ start: Int, into message: inout DynamicMessage, _ seen: inout Set<Int32>
  ) throws(TextFault) {
    guard message.descriptor.fullName == "google.protobuf.Any" else {
      throw fault("only an Any holds a type's URL", start)
    }
    guard seen.isEmpty else { throw fault("the Any holds more than a message", start) }
    seen = [1, 2]
    guard
      let type = DescriptorPool.packedType(url, near: message.descriptor.pool, types: options.types)
    else { throw fault("unknown type \(url)", start) }
    if next == UInt8(ascii: ":") { take() }
    let packed = try readMessage(type)
    message.fields[1] = .string(url)
    message.fields[2] = .bytes(packed.serializedBytes(deterministic: true))
  }

  // MARK: Values

  private mutating func value(_ field: FieldDescriptor) throws(TextFault) -> DynamicValue {
    switch field.kind {
    case .message:
      guard let type = field.messageType else { throw fault("unknown type") }
      return .message(try readMessage(type))
    case .string:
      let start = position
      let bytes = try strings()
      if let text = String(validating: bytes, as: UTF8.self) { return .string(text) }
      if field.info.checksUTF8 { throw fault("not UTF-8", start) }
      return .bytes(bytes)
    case .bytes: return .bytes(try strings())
    case .double: return .double(try floating())
    case .float: return .float(try floating())
    case .bool: return .bool(try boolean())
    case .enum: return .enumeration(try enumeration(field))
    case .int32, .sint32, .sfixed32: return .int32(try integer())
    case .int64, .sint64, .sfixed64: return .int64(try integer())
    case .uint32, .fixed32: return .uint32(try integer())
    default: return .uint64(try integer())
    }
  }

  private mutating func boolean() throws(TextFault) -> Bool {
    if let next, next >= 0x30 && next <= 0x39 {
      let start = position
      let number: UInt64 = try integer()
      guard number < 2 else { throw fault("expected 0 or 1", start) }
      return number == 1
    }
    let start = position
    switch try identifier() {
    case "true", "True", "t": return true
    case "false", "False", "f": return false
    default: throw fault("expected true or false", start)
    }
  }

  private mutating func enumeration(_ field: FieldDescriptor) throws(TextFault) -> Int32 {
    let start = position
    if let next, next == UInt8(ascii: "-") || next >= 0x30 && next <= 0x39 {
      let number: Int32 = try integer()
      if field.refuses(number) {
        throw fault("\(field.enumType?.fullName ?? "the enum") has no \(number)", start)
      }
      return number
    }
    let name = try identifier()
    guard let number = field.enumType?.number(of: name) else {
      throw fault("\(field.enumType?.fullName ?? "the enum") has no \(name)", start)
    }
    return number
  }

  // MARK: What nobody knows

  /// Skips a field's value, whatever it is.
  private mutating func skipValue() throws(TextFault) {
    if next == UInt8(ascii: ":") { take() }
    if next != UInt8(ascii: "[") { return try skipOne() }
    take()
    if next == UInt8(ascii: "]") { return take() }
    while true {
      try skipOne()
      if next == UInt8(ascii: ",") {
        take()
      } else if next == UInt8(ascii: "]") {
        return take()
      } else {
        throw fault("expected a comma or ]")
      }
    }
  }

  private mutating func skipOne() throws(TextFault) {
    switch next {
    case UInt8(ascii: "{"), UInt8(ascii: "<"):
      guard depth < WireReader.maximumDepth else { throw fault("nested too deeply") }
      let end = next == UInt8(ascii: "{") ? UInt8(ascii: "}") : UInt8(ascii: ">")
      depth += 1
      take()
      while next != end {
        if next == UInt8(ascii: "[") { _ = try bracketName() } else { _ = try identifier() }
        try skipValue()
        if next == UInt8(ascii: ",") || next == UInt8(ascii: ";") { take() }
      }
      take()
      depth -= 1
    case UInt8(ascii: "\""), UInt8(ascii: "'"): _ = try strings()
    default:
      if next == UInt8(ascii: "-") { take() }
      if let next, next >= 0x30 && next <= 0x39 || next == UInt8(ascii: ".") {
        _ = try number()
      } else {
        _ = try identifier()
      }
    }
  }
}

extension MessageDescriptor {
  /// Whether the name once was a field's: what old texts say of it is skipped.
  func reserves(_ name: String) -> Bool { proto.reservedName.contains(name) }
}
