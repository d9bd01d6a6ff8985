import VencejoDescriptors
import VencejoProtobuf

// The types with a form of their own. Their tags are written here: they are part of the
// mapping, which knows these types by name.
extension JSONTranscoder {
  mutating func message(
    _ type: MessageTable, _ wellKnown: WellKnown, _ pool: DescriptorPool
  ) throws(JSONFault) {
    let start = text.position
    switch wellKnown {
    case .timestamp:
      guard let string = try stringIfNext(), let time = TimestampText.decode(string) else {
        throw text.fault("expected a time like \"2026-01-31T12:00:00Z\"", at: start)
      }
      write(time.seconds, time.nanos)
    case .duration:
      guard let string = try stringIfNext(), let time = DurationText.decode(string) else {
        throw text.fault("expected a duration like \"1.5s\"", at: start)
      }
      write(time.seconds, time.nanos)
    case .fieldMask:
      guard let string = try stringIfNext() else {
        throw text.fault("expected paths like \"title,policy.slowMode\"", at: start)
      }
      let paths = String(decoding: string, as: UTF8.self)
      for part in paths.split(separator: ",", omittingEmptySubsequences: !paths.contains(",")) {
        guard let mask = MaskText.decode(part), !mask.isEmpty else {
          throw text.fault("\"\(part)\" is no path in lowerCamel", at: start)
        }
        out.append(0x0A)
        out.varint(UInt64(mask.utf8.count))
        out.append(mask)
      }
    case .wrapper:
      guard let field = type.ordered.first, !field.isRepeated, field.kind != .message else {
        throw text.fault("\(type.fullName) is no wrapper", at: start)
      }
      _ = try value(field, pool, skipsDefault: !field.hasPresence)
    case .structure: try structure(type, pool)
    case .listValue: try listValue(type, pool)
    case .value: try readValue(type, pool)
    case .any: try any(pool)
    }
  }

  private mutating func stringIfNext() throws(JSONFault) -> UnsafeRawBufferPointer? {
    text.next == UInt8(ascii: "\"") ? try text.string() : nil
  }

  private mutating func write(_ seconds: Int64, _ nanos: Int32) {
    if seconds != 0 {
      out.append(0x08)
      out.varint(UInt64(bitPattern: seconds))
    }
    if nanos != 0 {
      out.append(0x10)
      out.varint(UInt64(bitPattern: Int64(nanos)))
    }
  }

  private mutating func structure(
    _ type: MessageTable, _ pool: DescriptorPool
  ) throws(JSONFault) {
    guard text.next == UInt8(ascii: "{"), let field = type.ordered.first, field.isMap,
      let key = pool.tables[field.type].key, let value = pool.tables[field.type].value
    else { throw text.unexpected("an object") }
    try map(field.tag, key, value, pool)
  }

  private mutating func listValue(
    _ type: MessageTable, _ pool: DescriptorPool
  ) throws(JSONFault) {
    guard text.next == UInt8(ascii: "["), let field = type.ordered.first, field.isRepeated,
      field.kind == .message
    else { throw text.unexpected("an array") }
    var index = 0
    var isFirst = true
    try text.open()
    while try text.next(&isFirst, until: UInt8(ascii: "]")) {
      do throws(JSONFault) {
        _ = try value(field, pool)
      } catch {
        throw error.at("[\(index)]")
      }
      index += 1
    }
  }

  private mutating func readValue(
    _ type: MessageTable, _ pool: DescriptorPool
  ) throws(JSONFault) {
    let kind: UInt32
    switch text.next {
    case UInt8(ascii: "n"):
      try text.word("null")
      out.append(0x08)
      return out.append(0)
    case UInt8(ascii: "-"), 0x30...0x39:
      let number = try double()
      out.append(0x11)
      return out.fixed64(number.bitPattern)
    case UInt8(ascii: "\""):
      out.append(0x1A)
      return out.delimited(try text.string())
    case UInt8(ascii: "t"):
      try text.word("true")
      out.append(0x20)
      return out.append(1)
    case UInt8(ascii: "f"):
      try text.word("false")
      out.append(0x20)
      return out.append(0)
    case UInt8(ascii: "{"): kind = 42
    case UInt8(ascii: "["): kind = 50
    default: throw text.unexpected("a value")
    }
    guard let field = type.ordered.first(where: { $0.tag == kind }), field.kind == .message else {
      throw text.fault("\(type.fullName) is not as it should be")
    }
    _ = try value(field, pool)
  }

  // MARK: Any

  private mutating func any(_ pool: DescriptorPool) throws(JSONFault) {
    guard text.next == UInt8(ascii: "{") else {
      throw text.unexpected("an object with an @type")
    }
    let place = text.place
    guard let (url, offset) = try typeURL() else { return }
    text.goBack(to: place)
    guard
      let type = DescriptorPool.packedType(url, near: pool, types: options.types)
    else { throw text.fault("unknown type \"\(url)\"", at: offset) }
    out.append(0x0A)
    out.varint(UInt64(url.utf8.count))
    out.append(url)
    let begin = out.count
    out.append(0x12)
    let mark = out.open()
    if let wellKnown = type.table.wellKnown {
      try packed(type, wellKnown)
    } else {
      try members(type.table, type.pool, isPacked: true)
    }
    if out.count == mark { out.truncate(to: begin) } else { out.close(mark) }
  }

  /// The `@type` of the object that is next, and where its value stands; nil when the object is
  /// empty. Goes as far as it must.
  private mutating func typeURL() throws(JSONFault) -> (String, Int)? {
    let start = text.position
    var isEmpty = true
    var isFirst = true
    try text.open()
    while try text.next(&isFirst, until: UInt8(ascii: "}")) {
      isEmpty = false
      let isType = try text.name().elementsEqual("@type".utf8)
      try text.colon()
      if isType {
        let offset = text.position
        guard let url = try stringIfNext() else { throw text.unexpected("a type's URL") }
        return (String(decoding: url, as: UTF8.self), offset)
      }
      try text.skip()
    }
    if isEmpty { return nil }
    throw text.fault("expected one @type", at: start)
  }

  /// Reads an object with the `@type` and a `value` in the type's own form.
  private mutating func packed(
    _ type: MessageDescriptor, _ wellKnown: WellKnown
  ) throws(JSONFault) {
    let start = text.position
    var types = 0
    var values = 0
    var isFirst = true
    try text.open()
    while try text.next(&isFirst, until: UInt8(ascii: "}")) {
      let offset = text.position
      let name = try text.name()
      let isType = name.elementsEqual("@type".utf8)
      let isValue = name.elementsEqual("value".utf8)
      try text.colon()
      if isType {
        types += 1
        try text.skip()
      } else if isValue && values == 0 {
        values += 1
        do throws(JSONFault) {
          try message(type.table, wellKnown, type.pool)
        } catch {
          throw error.at(".value")
        }
      } else {
        throw text.fault("expected an @type and a value", at: offset)
      }
    }
    guard types == 1, values == 1 else {
      throw text.fault("expected an @type and a value", at: start)
    }
  }
}
