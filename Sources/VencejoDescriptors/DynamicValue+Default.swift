import VencejoProtobuf

extension DynamicValue {
  /// What `[default = x]` says, as protoc writes it into descriptors; nil without it.
  init?(
    default field: Google.FieldDescriptorProto, _ kind: Google.FieldDescriptorProto.TypeEnum,
    enumeration: DescriptorPool.EnumInfo?
  ) {
    guard let text = field.defaultValue else { return nil }
    let value: DynamicValue?
    switch kind {
    case .double: value = Double(text).map { .double($0) }
    case .float: value = Float(text).map { .float($0) }
    case .int64, .sfixed64, .sint64: value = Int64(text).map { .int64($0) }
    case .uint64, .fixed64: value = UInt64(text).map { .uint64($0) }
    case .int32, .sfixed32, .sint32: value = Int32(text).map { .int32($0) }
    case .uint32, .fixed32: value = UInt32(text).map { .uint32($0) }
    case .bool: value = text == "true" ? .bool(true) : text == "false" ? .bool(false) : nil
    case .string: value = .string(text)
    case .bytes: value = .bytes(Escapes.decode(text))
    case .enum: value = enumeration?.byName[text].map { .enumeration($0) }
    default: value = nil
    }
    guard let value else { return nil }
    self = value
  }
}

/// C's escapes, in which descriptors give the defaults of `bytes`.
package enum Escapes {
  package static func decode(_ text: String) -> [UInt8] {
    var result: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\"), let escape = rest.popFirst() else {
        result.append(byte)
        continue
      }
      switch escape {
      case UInt8(ascii: "n"): result.append(0x0A)
      case UInt8(ascii: "r"): result.append(0x0D)
      case UInt8(ascii: "t"): result.append(0x09)
      case UInt8(ascii: "a"): result.append(0x07)
      case UInt8(ascii: "b"): result.append(0x08)
      case UInt8(ascii: "f"): result.append(0x0C)
      case UInt8(ascii: "v"): result.append(0x0B)
      case UInt8(ascii: "x"), UInt8(ascii: "X"):
        result.append(number(&rest, radix: 16, at: 2, from: 0))
      case UInt8(ascii: "0")...UInt8(ascii: "7"):
        result.append(number(&rest, radix: 8, at: 2, from: Int(escape & 7)))
      default: result.append(escape)
      }
    }
    return result
  }

  private static func number(
    _ rest: inout ArraySlice<UInt8>, radix: Int, at most: Int, from start: Int
  ) -> UInt8 {
    var value = start
    for _ in 0..<most {
      guard let byte = rest.first, let digit = Character(Unicode.Scalar(byte)).hexDigitValue,
        digit < radix
      else { break }
      value = value * radix + digit
      rest.removeFirst()
    }
    return UInt8(truncatingIfNeeded: value)
  }
}
