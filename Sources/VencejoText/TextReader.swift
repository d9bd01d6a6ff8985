import VencejoDescriptors
import VencejoProtobuf

/// What reading throws inside: turned into a ``TextError`` by whoever knows the text.
struct TextFault: Error {
  let message: String
  /// In bytes.
  let offset: Int
}

/// Makes wire format of text in one pass, by descriptor.
struct TextReader: ~Copyable {
  typealias Field = FieldPlan

  let options: TextOptions
  let bytes: [UInt8]
  var position = 0
  var out: ByteBuffer
  private var depth = 0

  init(_ text: String, options: TextOptions) {
    self.options = options
    bytes = Array(text.utf8)
    out = ByteBuffer(capacity: bytes.count)
  }

  /// Reads all of the text as the fields of a message.
  mutating func readAll(_ type: MessageDescriptor) throws(TextFault) {
    skipBlanks()
    try readFields(type, until: nil)
  }

  /// Which fields of a message have been read.
  private struct Seen {
    var fields = SmallSet()
    var oneofs = SmallSet()
    var isEmpty = true
    var hasPacked = false
  }

  /// Reads fields up to a closing bracket, which is taken, or to the end of the text.
  private mutating func readFields(
    _ type: MessageDescriptor, until end: UInt8?
  ) throws(TextFault) {
    var seen = Seen()
    while true {
      guard let next else {
        if end == nil { return }
        throw fault("the text ends within a message")
      }
      if let end, next == end {
        take()
        return
      }
      try readField(type, &seen)
      // One separator, if any.
      if self.next == UInt8(ascii: ",") || self.next == UInt8(ascii: ";") { take() }
    }
  }

  private mutating func readField(
    _ type: MessageDescriptor, _ seen: inout Seen
  ) throws(TextFault) {
    let start = position
    let table = type.table
    let found: Int?
    if next == UInt8(ascii: "[") {
      let name = try bracketName()
      if name.contains("/") { return try readAny(name, start, type, &seen) }
      found = Self.index(of: "[\(name)]", table)
      if found == nil && !options.ignoreUnknown {
        throw fault("\(table.fullName) has no extension \(name)", start)
      }
    } else {
      let name = try identifier()
      found = Self.index(of: name, table)
      if found == nil && !options.ignoreUnknown && !type.reserves(name) {
        throw fault("\(table.fullName) has no field \(name)", start)
      }
    }
    guard let found else { return try skipValue() }
    let field = table.ordered[found]
    if !field.isRepeated {
      guard seen.fields.insert(found), !seen.hasPacked else {
        throw fault("the field \(Self.name(field)) is there twice", start)
      }
      if field.oneof >= 0, !seen.oneofs.insert(field.oneof) {
        throw fault("another field of the oneof of \(Self.name(field)) is there", start)
      }
    }
    seen.isEmpty = false
    let hasColon = next == UInt8(ascii: ":")
    if hasColon { take() }
    if field.kind != .message && !hasColon { throw fault("expected a colon") }
    if table.isMessageSet && field.isExtension && field.kind == .message && !field.isRepeated {
      return try item(field, type.pool)
    }
    guard field.isRepeated && next == UInt8(ascii: "[") else {
      return try value(field, type.pool)
    }
    take()
    if next == UInt8(ascii: "]") { return take() }
    while true {
      try value(field, type.pool)
      if next == UInt8(ascii: ",") {
        take()
      } else if next == UInt8(ascii: "]") {
        return take()
      } else {
        throw fault("expected a comma or ]")
      }
    }
  }

  /// A field by its name; a group-like one also by its type's.
  private static func index(of name: String, _ type: MessageTable) -> Int? {
    name.utf8Span.span.bytes.withUnsafeBytes { type.index(ofTextName: $0) }
  }

  private static func name(_ field: Field) -> String { String(decoding: field.name, as: UTF8.self) }

  // MARK: Messages

  /// Reads the message between brackets.
  private mutating func readMessage(_ type: MessageDescriptor) throws(TextFault) {
    let end: UInt8
    switch next {
    case UInt8(ascii: "{"): end = UInt8(ascii: "}")
    case UInt8(ascii: "<"): end = UInt8(ascii: ">")
    default: throw fault("expected { or <")
    }
    guard depth < WireReader.maximumDepth else { throw fault("nested too deeply") }
    take()
    depth += 1
    try readFields(type, until: end)
    depth -= 1
  }

  /// Reads a message as an item of a `MessageSet`: a group with the extension's number and the
  /// message.
  private mutating func item(_ field: Field, _ pool: DescriptorPool) throws(TextFault) {
    out.append(0x0B)
    out.append(0x10)
    out.varint(UInt64(UInt32(bitPattern: field.number)))
    out.append(0x1A)
    let mark = out.open()
    try readMessage(pool.messageType(field))
    out.close(mark)
    out.append(0x0C)
  }

  /// Reads the message packed in an `Any`, behind its URL.
  private mutating func readAny(
    _ url: String, _ start: Int, _ type: MessageDescriptor, _ seen: inout Seen
  ) throws(TextFault) {
    guard type.table.wellKnown == .any else {
      throw fault("only an Any holds a type's URL", start)
    }
    guard seen.isEmpty, !seen.hasPacked else {
      throw fault("the Any holds more than a message", start)
    }
    seen.hasPacked = true
    guard let packed = DescriptorPool.packedType(url, near: type.pool, types: options.types) else {
      throw fault("unknown type \(url)", start)
    }
    if next == UInt8(ascii: ":") { take() }
    out.append(0x0A)
    out.varint(UInt64(url.utf8.count))
    out.append(url)
    let begin = out.count
    try readMessage(packed)
    // In the order an encoder writes it: packed messages are compared byte for byte.
    let content: [UInt8]
    do throws(DecodingError) {
      content = try DynamicMessage(packed, transcoded: Array(out[begin..<out.count]))
        .serializedBytes(deterministic: true)
    } catch {
      throw fault("\(error)", start)
    }
    out.truncate(to: begin)
    if content.isEmpty { return }
    out.append(0x12)
    content.withUnsafeBytes { out.delimited($0) }
  }

  // MARK: Values

  /// Reads a value and writes it with its tag, unless it is the same as none.
  private mutating func value(_ field: Field, _ pool: DescriptorPool) throws(TextFault) {
    let keepsDefault = field.hasPresence || field.isRepeated
    // A run's elements one by one: readers take both forms.
    let tag = UInt64(field.tag)
    switch field.kind {
    case .message:
      out.varint(tag)
      if field.isGroup {
        try readMessage(pool.messageType(field))
        out.varint(tag + 1)
      } else {
        let mark = out.open()
        try readMessage(pool.messageType(field))
        out.close(mark)
      }
    case .string, .bytes:
      let start = position
      let value = try strings()
      if field.kind == .string && field.checksUTF8,
        String(validating: value, as: UTF8.self) == nil
      {
        throw fault("not UTF-8", start)
      }
      if value.isEmpty && !keepsDefault { return }
      out.varint(tag)
      value.withUnsafeBytes { out.delimited($0) }
    case .double:
      let value: Double = try floating()
      if value.bitPattern == 0 && !keepsDefault { return }
      out.varint(tag)
      out.fixed64(value.bitPattern)
    case .float:
      let value: Float = try floating()
      if value.bitPattern == 0 && !keepsDefault { return }
      out.varint(tag)
      out.fixed32(value.bitPattern)
    case .bool: put(try boolean() ? 1 : 0, field)
    case .enum: put(UInt64(bitPattern: Int64(try enumeration(field, pool))), field)
    case .int32: put(UInt64(bitPattern: Int64(try integer() as Int32)), field)
    case .int64: put(UInt64(bitPattern: try integer() as Int64), field)
    case .sint32:
      let value: Int32 = try integer()
      put(UInt64(UInt32(bitPattern: (value << 1) ^ (value >> 31))), field)
    case .sint64:
      let value: Int64 = try integer()
      put(UInt64(bitPattern: (value << 1) ^ (value >> 63)), field)
    case .uint32: put(UInt64(try integer() as UInt32), field)
    case .uint64: put(try integer() as UInt64, field)
    case .sfixed32: put(fixed: UInt64(UInt32(bitPattern: try integer() as Int32)), field)
    case .fixed32: put(fixed: UInt64(try integer() as UInt32), field)
    case .sfixed64: put(fixed: UInt64(bitPattern: try integer() as Int64), field)
    default: put(fixed: try integer() as UInt64, field)
    }
  }

  private mutating func put(_ value: UInt64, _ field: Field) {
    if value == 0 && !field.hasPresence && !field.isRepeated { return }
    out.varint(UInt64(field.tag))
    out.varint(value)
  }

  private mutating func put(fixed value: UInt64, _ field: Field) {
    if value == 0 && !field.hasPresence && !field.isRepeated { return }
    out.varint(UInt64(field.tag))
    if field.tag & 7 == 5 {
      out.fixed32(UInt32(truncatingIfNeeded: value))
    } else {
      out.fixed64(value)
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

  private mutating func enumeration(
    _ field: Field, _ pool: DescriptorPool
  ) throws(TextFault) -> Int32 {
    let start = position
    let type = pool.enumTables[field.type]
    if let next, next == UInt8(ascii: "-") || next >= 0x30 && next <= 0x39 {
      let number: Int32 = try integer()
      if field.isClosed && type.name(of: number) == nil {
        throw fault("\(type.fullName) has no \(number)", start)
      }
      return number
    }
    let name = try identifier()
    let number = name.utf8Span.span.bytes.withUnsafeBytes { type.number(of: $0) }
    guard let number else { throw fault("\(type.fullName) has no \(name)", start) }
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
