public import VencejoProtobuf

/// A value of a field whose type is known at run time only.
///
/// Strings are equal when their bytes are. Of a field whose UTF-8 nobody checks, a string that
/// is not UTF-8 is `bytes`.
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

extension DynamicValue {
  public static func == (left: Self, right: Self) -> Bool {
    switch (left, right) {
    case (.bool(let left), .bool(let right)): left == right
    case (.int32(let left), .int32(let right)): left == right
    case (.int64(let left), .int64(let right)): left == right
    case (.uint32(let left), .uint32(let right)): left == right
    case (.uint64(let left), .uint64(let right)): left == right
    // Bits: a message equals itself, whatever it holds.
    case (.float(let left), .float(let right)): left.bitPattern == right.bitPattern
    case (.double(let left), .double(let right)): left.bitPattern == right.bitPattern
    case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
    case (.bytes(let left), .bytes(let right)): left == right
    case (.enumeration(let left), .enumeration(let right)): left == right
    case (.message(let left), .message(let right)): left == right
    case (.list(let left), .list(let right)): left == right
    case (.map(let left), .map(let right)): left == right
    default: false
    }
  }

  public func hash(into hasher: inout Hasher) {
    switch self {
    case .bool(let value): hasher.combine(value)
    case .int32(let value), .enumeration(let value): hasher.combine(value)
    case .int64(let value): hasher.combine(value)
    case .uint32(let value): hasher.combine(value)
    case .uint64(let value): hasher.combine(value)
    case .float(let value): hasher.combine(value.bitPattern)
    case .double(let value): hasher.combine(value.bitPattern)
    case .string(var value):
      value.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    case .bytes(let value): hasher.combine(value)
    case .message(let value): hasher.combine(value)
    case .list(let value): hasher.combine(value)
    case .map(let value): hasher.combine(value)
    }
  }
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
