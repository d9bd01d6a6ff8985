import VencejoDescriptors
import VencejoProtobuf

// The types with a form of their own, by the tags of their definition.
extension JSONPrinter {
  mutating func message(
    _ type: MessageTable, _ wellKnown: WellKnown, _ pool: DescriptorPool,
    _ reader: inout WireReader
  ) throws(JSONFault) {
    switch wellKnown {
    case .timestamp:
      let (seconds, nanos) = Self.time(&reader)
      guard TimestampText.encode(seconds, nanos, to: &out) else {
        throw unsayable("a timestamp outside of the years 1 to 9999")
      }
    case .duration:
      let (seconds, nanos) = Self.time(&reader)
      guard DurationText.encode(seconds, nanos, to: &out) else {
        throw unsayable("a duration that JSON cannot express")
      }
    case .fieldMask: try mask(&reader)
    case .wrapper: try wrapper(type, pool, &reader)
    case .structure: try structure(type, pool, &reader)
    case .listValue: try listValue(type, pool, &reader)
    case .value: try value(type, pool, &reader)
    case .any: try any(pool, &reader)
    }
  }

  private static func time(_ reader: inout WireReader) -> (Int64, Int32) {
    var seconds: Int64 = 0
    var nanos: Int32 = 0
    while true {
      switch reader.nextTag() {
      case 0: return (seconds, nanos)
      case 8: seconds = reader.int64()
      case 16: nanos = reader.int32()
      case let tag: reader.skip(tag)
      }
    }
  }

  private mutating func mask(_ reader: inout WireReader) throws(JSONFault) {
    out.append(UInt8(ascii: "\""))
    var isFirst = true
    while true {
      let tag = reader.nextTag()
      if tag == 0 { break }
      if tag != 10 {
        reader.skip(tag)
        continue
      }
      let path = String(decoding: reader.span(), as: UTF8.self)
      guard let text = MaskText.encode(path) else {
        throw unsayable("the path \"\(path)\" has no JSON form")
      }
      if !isFirst { out.append(UInt8(ascii: ",")) }
      isFirst = false
      text.utf8Span.span.bytes.withUnsafeBytes { letters($0) }
    }
    out.append(UInt8(ascii: "\""))
  }

  private mutating func wrapper(
    _ type: MessageTable, _ pool: DescriptorPool, _ reader: inout WireReader
  ) throws(JSONFault) {
    guard let field = type.ordered.first, !field.isRepeated, field.kind != .message else {
      return out.append(literal: "null")
    }
    let mark = out.count
    defaultValue(field, pool)
    while true {
      let tag = reader.nextTag()
      if tag == 0 { return }
      if tag == field.tag {
        out.truncate(to: mark)
        _ = try value(field, tag, pool, &reader)
      } else {
        reader.skip(tag)
      }
    }
  }

  private mutating func structure(
    _ type: MessageTable, _ pool: DescriptorPool, _ reader: inout WireReader
  ) throws(JSONFault) {
    guard let field = type.ordered.first, field.isMap else { return out.append(literal: "{}") }
    var isWritten = false
    var tag = reader.nextTag()
    while tag != 0 {
      if tag != field.tag {
        reader.skip(tag)
        tag = reader.nextTag()
        continue
      }
      if isWritten { throw .disorder }
      isWritten = true
      try map(try mapEntries(field, pool, &tag, &reader), field, pool, &reader)
    }
    if !isWritten { out.append(literal: "{}") }
  }

  private mutating func listValue(
    _ type: MessageTable, _ pool: DescriptorPool, _ reader: inout WireReader
  ) throws(JSONFault) {
    guard let field = type.ordered.first, field.isRepeated, field.kind == .message else {
      return out.append(literal: "[]")
    }
    var list = open("[")
    while true {
      let tag = reader.nextTag()
      if tag == 0 { break }
      if tag != field.tag {
        reader.skip(tag)
        continue
      }
      next(&list)
      do throws(JSONFault) {
        _ = try value(field, tag, pool, &reader)
      } catch {
        throw error.at("[\(list.count - 1)]")
      }
    }
    close("]", list)
  }

  private mutating func value(
    _ type: MessageTable, _ pool: DescriptorPool, _ reader: inout WireReader
  ) throws(JSONFault) {
    var isWritten = false
    while true {
      let tag = reader.nextTag()
      if tag == 0 { break }
      let index = Int(tag >> 3) - 1
      guard index < type.ordered.count, type.ordered[index].tag == tag else {
        reader.skip(tag)
        continue
      }
      let field = type.ordered[index]
      if isWritten { throw .disorder }
      isWritten = true
      if tag == 17 {
        let number = reader.double()
        guard number.isFinite else {
          throw unsayable("a google.protobuf.Value that is not finite")
        }
        out.append(number.description)
      } else {
        _ = try value(field, tag, pool, &reader)
      }
    }
    if !isWritten { throw unsayable("a google.protobuf.Value without a value") }
  }

  // MARK: Any

  private mutating func any(
    _ pool: DescriptorPool, _ reader: inout WireReader
  ) throws(JSONFault) {
    var url: String?
    var bytes: UnsafeRawBufferPointer?
    while true {
      let tag = reader.nextTag()
      if tag == 0 { break }
      switch tag {
      case 10: url = String(decoding: reader.span(), as: UTF8.self)
      case 18: bytes = reader.span()
      default: reader.skip(tag)
      }
    }
    var list = open("{")
    if url == nil && bytes == nil { return close("}", list) }
    let name = url ?? ""
    guard let type = DescriptorPool.packedType(name, near: pool, types: options.types) else {
      guard let unknown = options.unknownTypes else {
        throw unsayable("an Any of unknown type \"\(name)\"")
      }
      unknown.note(name)
      next("@type", &list)
      quote(name)
      next("@value", &list)
      out.append(UInt8(ascii: "\""))
      if let bytes { Base64.encode(bytes, to: &out) }
      out.append(UInt8(ascii: "\""))
      return close("}", list)
    }
    next("@type", &list)
    quote(name)
    let mark = out.count
    let before = (list, depth, nesting)
    let outer = isInOrder
    defer { isInOrder = outer }
    isInOrder = false
    let isFirst = !isDisorderly
    let packed = bytes ?? UnsafeRawBufferPointer(start: nil, count: 0)
    do throws(JSONFault) {
      if !isFirst { throw .disorder }
      try content(packed, type, &list)
    } catch {
      guard error.isDisorder else { throw error }
      isDisorderly = true
      out.truncate(to: mark)
      (list, depth, nesting) = before
      isInOrder = true
      let inOrder = try Self.inOrder(Array(packed), type)
      let fault = inOrder.withUnsafeBytes { bytes -> JSONFault? in
        do throws(JSONFault) {
          try content(bytes, type, &list)
          return nil
        } catch {
          return error
        }
      }
      if let fault { throw fault }
    }
    close("}", list)
  }

  /// Writes the members of a packed message.
  private mutating func content(
    _ bytes: UnsafeRawBufferPointer, _ type: MessageDescriptor, _ list: inout List
  ) throws(JSONFault) {
    var reader = WireReader(bytes)
    if type.table.wellKnown != nil {
      next("value", &list)
      do throws(JSONFault) {
        try message(type.table, type.pool, &reader)
      } catch {
        throw error.at(".value")
      }
    } else {
      try fields(type.table, type.pool, &reader, &list)
    }
    if let error = reader.error { throw JSONFault(message: "in the Any: \(error)") }
  }
}
