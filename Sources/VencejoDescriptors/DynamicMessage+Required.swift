extension DynamicMessage {
  /// The path of the first required field that is not set, here or in sub-messages, for example
  /// `orders[2].id`; nil when there is none.
  public var missingRequiredField: String? {
    for field in descriptor.info.required where fields[field.number] == nil { return field.name }
    for (number, value) in fields {
      let missing: String?
      switch value {
      case .message(let message): missing = message.missingRequiredField.map { ".\($0)" }
      case .list(let list): missing = Self.missing(list.enumerated().map { ("\($0)", $1) })
      case .map(let map): missing = Self.missing(map.map { ($0.keyText, $1) })
      default: missing = nil
      }
      if let missing, let field = descriptor.field(number: number) { return field.name + missing }
    }
    return nil
  }

  private static func missing(_ elements: [(String, DynamicValue)]) -> String? {
    for case (let key, .message(let message)) in elements {
      if let path = message.missingRequiredField { return "[\(key)].\(path)" }
    }
    return nil
  }
}

extension DynamicValue {
  /// A map's key in JSON and in paths.
  package var keyText: String {
    switch self {
    case .bool(let value): value ? "true" : "false"
    case .int32(let value): "\(value)"
    case .uint32(let value): "\(value)"
    case .int64(let value): "\(value)"
    case .uint64(let value): "\(value)"
    case .string(let value): value
    case .bytes(let value): String(decoding: value, as: UTF8.self)
    default: ""
    }
  }
}
