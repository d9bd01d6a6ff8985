// google.protobuf.Value, Struct and ListValue as Swift's literals, and wrappers as what they wrap:
//
//     let settings: Google.Struct = ["theme": "dark", "sizes": [1, 2.5], "beta": nil]

extension Google.Value: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByStringLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  public init(nilLiteral: ()) { self.init(kind: .nullValue(.nullValue)) }
  public init(booleanLiteral value: Bool) { self.init(kind: .boolValue(value)) }
  public init(integerLiteral value: Int64) { self.init(kind: .numberValue(Double(value))) }
  public init(floatLiteral value: Double) { self.init(kind: .numberValue(value)) }
  public init(stringLiteral value: String) { self.init(kind: .stringValue(value)) }
  public init(arrayLiteral elements: Self...) {
    self.init(kind: .listValue(.init(values: elements)))
  }
  /// Of equal keys the last one counts.
  public init(dictionaryLiteral elements: (String, Self)...) {
    self.init(kind: .structValue(.init(fields: .init(elements) { $1 })))
  }

  /// Whether it is null.
  public var isNull: Bool { if case .nullValue? = kind { true } else { false } }
  /// The truth value, nil when it is something else.
  public var bool: Bool? { if case .boolValue(let value)? = kind { value } else { nil } }
  /// The number, nil when it is something else.
  public var number: Double? { if case .numberValue(let value)? = kind { value } else { nil } }
  /// The text, nil when it is something else.
  public var string: String? { if case .stringValue(let value)? = kind { value } else { nil } }
  /// The elements of a list, nil when it is something else.
  public var list: [Self]? { if case .listValue(let value)? = kind { value.values } else { nil } }
  /// The members of an object, nil when it is something else.
  public var object: [String: Self]? {
    if case .structValue(let value)? = kind { value.fields } else { nil }
  }

  /// The member of an object; nil when it is none or has no such member.
  public subscript(name: String) -> Self? { object?[name] }
  /// The element of a list; nil when it is none or shorter.
  public subscript(index: Int) -> Self? {
    guard let list, list.indices.contains(index) else { return nil }
    return list[index]
  }
}

extension Google.Struct: ExpressibleByDictionaryLiteral {
  /// Of equal keys the last one counts.
  public init(dictionaryLiteral elements: (String, Google.Value)...) {
    self.init(fields: .init(elements) { $1 })
  }

  /// A member; setting nil removes it.
  public subscript(name: String) -> Google.Value? {
    get { fields[name] }
    set { fields[name] = newValue }
  }
}

extension Google.ListValue: ExpressibleByArrayLiteral {
  public init(arrayLiteral elements: Google.Value...) { self.init(values: elements) }
}

extension Google.BoolValue: ExpressibleByBooleanLiteral {
  public init(booleanLiteral value: Bool) { self.init(value: value) }
}
extension Google.Int32Value: ExpressibleByIntegerLiteral {
  public init(integerLiteral value: Int32) { self.init(value: value) }
}
extension Google.Int64Value: ExpressibleByIntegerLiteral {
  public init(integerLiteral value: Int64) { self.init(value: value) }
}
extension Google.UInt32Value: ExpressibleByIntegerLiteral {
  public init(integerLiteral value: UInt32) { self.init(value: value) }
}
extension Google.UInt64Value: ExpressibleByIntegerLiteral {
  public init(integerLiteral value: UInt64) { self.init(value: value) }
}
extension Google.FloatValue: ExpressibleByFloatLiteral {
  public init(floatLiteral value: Float) { self.init(value: value) }
}
extension Google.DoubleValue: ExpressibleByFloatLiteral {
  public init(floatLiteral value: Double) { self.init(value: value) }
}
extension Google.StringValue: ExpressibleByStringLiteral {
  public init(stringLiteral value: String) { self.init(value: value) }
}
