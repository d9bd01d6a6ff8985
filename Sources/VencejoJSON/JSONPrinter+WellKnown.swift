import VencejoDescriptors
import VencejoProtobuf

extension JSONPrinter {
  mutating func print(
    _ message: DynamicMessage, _ type: WellKnown
  ) throws(JSONFault) {
    switch type {
    case .timestamp:
      guard let text = TimestampText.encode(message.int64(1), message.int32(2)) else {
        throw JSONFault(message: "a timestamp outside of the years 1 to 9999")
      }
      quote(text)
    case .duration:
      guard let text = DurationText.encode(message.int64(1), message.int32(2)) else {
        throw JSONFault(message: "a duration that JSON cannot express")
      }
      quote(text)
    case .fieldMask:
      var paths: [String] = []
      for case .string(let mask) in message.list(1) {
        guard let text = MaskText.encode(mask) else {
          throw JSONFault(message: "the path \"\(mask)\" has no JSON form")
        }
        paths.append(text)
      }
      quote(paths.joined(separator: ","))
    case .wrapper:
      guard let field = message.descriptor.field(number: 1),
        let value = message.fields[1] ?? field.defaultValue
      else { return write("null") }
      try print(value, field)
    case .structure:
      guard let field = message.descriptor.field(number: 1) else { return write("{}") }
      try print(message.fields[1] ?? .map([:]), field)
    case .listValue:
      guard let field = message.descriptor.field(number: 1) else { return write("[]") }
      try print(message.fields[1] ?? .list([]), field)
    case .value: try printValue(message)
    case .any: try printAny(message)
    }
  }

  private mutating func printValue(_ message: DynamicMessage) throws(JSONFault) {
    // One oneof: at most one is set.
    guard let (number, value) = message.fields.first,
      let field = message.descriptor.field(number: number)
    else { throw JSONFault(message: "a google.protobuf.Value without a value") }
    if case .double(let number) = value, !number.isFinite {
      throw JSONFault(message: "a google.protobuf.Value that is not finite")
    }
    try print(value, field)
  }

  private mutating func printAny(_ message: DynamicMessage) throws(JSONFault) {
    var list = open("{")
    if message.fields.isEmpty { return close("}", list) }
    var url = ""
    if case .string(let text)? = message.fields[1] { url = text }
    var bytes: [UInt8] = []
    if case .bytes(let value)? = message.fields[2] { bytes = value }
    guard let type = options.packedType(url, near: message.descriptor.pool) else {
      throw JSONFault(message: "an Any of unknown type \"\(url)\"")
    }
    let packed: DynamicMessage
    do {
      packed = try DynamicMessage(type, serializedBytes: bytes, partial: true)
    } catch {
      throw JSONFault(message: "in the Any: \(error)")
    }
    next("@type", &list)
    quote(url)
    if type.info.wellKnown != nil {
      next("value", &list)
      try within(".value") { () throws(JSONFault) in try print(packed) }
    } else {
      try printFields(packed, &list)
    }
    close("}", list)
  }
}

extension DynamicMessage {
  func int64(_ number: Int32) -> Int64 {
    if case .int64(let value)? = fields[number] { value } else { 0 }
  }

  func int32(_ number: Int32) -> Int32 {
    if case .int32(let value)? = fields[number] { value } else { 0 }
  }

  func list(_ number: Int32) -> [DynamicValue] {
    if case .list(let values)? = fields[number] { values } else { [] }
  }
}
