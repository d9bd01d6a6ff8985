public import VencejoProtobuf

/// A value of a field whose type is known at run time only.
public indirect enum DynamicValue: Hashable, Sendable {
  case bool(Bool)
  case int32(Int32)
  case int64(Int64)
  case uint32(UInt32)
  case uint64(UInt64)
  case float(Float)
  case double(Double)
  case string(String)
  case bytes([UInt8])
  case enumeration(Int32)
  case message(DynamicMessage)
  case list([DynamicValue])
  case map([DynamicValue: DynamicValue])
}

/// A message whose type is known at run time only.
public struct DynamicMessage: Hashable, Sendable {
  /// The type.
  public let descriptor: MessageDescriptor
  /// The fields that are set, by number. A value of another type than its field's is not
  /// encoded.
  public var fields: [Int32: DynamicValue] = [:]
  /// Fields the type does not know.
  public var unknownFields = UnknownFields()

  /// A message with every field at its default.
  public init(_ descriptor: MessageDescriptor) { self.descriptor = descriptor }

  /// The value of the field with a name, nil when it is not set or there is no such field.
  public subscript(name: String) -> DynamicValue? {
    get { descriptor.field(named: name).flatMap { fields[$0.number] } }
    set {
      if let field = descriptor.field(named: name) { fields[field.number] = newValue }
    }
  }

  public static func == (left: Self, right: Self) -> Bool {
    left.descriptor.fullName == right.descriptor.fullName && left.fields == right.fields
      && left.unknownFields == right.unknownFields
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(descriptor.fullName)
    hasher.combine(fields)
    hasher.combine(unknownFields)
  }
}
