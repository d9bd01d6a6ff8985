import VencejoDescriptors
import VencejoProtobuf

/// Swift literals for the defaults of proto2 and editions.
enum Literals {
  /// The expression of `[default = x]`; nil without it.
  static func value(
    of field: Google.FieldDescriptorProto, _ types: TypeIndex
  ) throws(GeneratorError) -> String? {
    guard let text = field.defaultValue else { return nil }
    switch field.type {
    case .string?: return string(text)
    case .bytes?: return "[\(Escapes.decode(text).map { "\($0)" }.joined(separator: ", "))]"
    case .double?:
      return number(text) ?? ".init(bitPattern: \((Double(text) ?? 0).bitPattern))"
    case .float?:
      return number(text) ?? ".init(bitPattern: \((Float(text) ?? 0).bitPattern))"
    case .enum?:
      let numbers = try types.type(field.typeName).numbers
      return ".init(rawValue: \(numbers[text] ?? 0))"
    default: return text
    }
  }

  /// A plain decimal number as it is; nil for others, which Swift may not read.
  private static func number(_ text: String) -> String? {
    let digits = text.drop { $0 == "-" }
    let isPlain =
      digits.count < 17 && digits.first?.isNumber == true && digits.last?.isNumber == true
      && digits.allSatisfy { $0.isASCII && $0.isNumber || $0 == "." }
    return isPlain ? text : nil
  }

  private static func string(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case " "..."~": result.unicodeScalars.append(scalar)
      default: result += "\\u{\(String(scalar.value, radix: 16))}"
      }
    }
    return result + "\""
  }
}
