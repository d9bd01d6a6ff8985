public import VencejoProtobuf

/// A message type of a ``DescriptorPool``.
public struct MessageDescriptor: Sendable {
  /// The pool it belongs to.
  public let pool: DescriptorPool
  let index: Int

  var info: DescriptorPool.MessageInfo { pool.messages[index] }

  /// For example `vencejo.chat.v1.Chat`.
  public var fullName: String { info.fullName }
  /// The descriptor it was made from.
  public var proto: Google.DescriptorProto { info.proto }
  /// The fields in the file's order.
  public var fields: [FieldDescriptor] {
    info.fields.map { FieldDescriptor(pool: pool, info: $0) }
  }

  /// The field with a number.
  public func field(number: Int32) -> FieldDescriptor? {
    info.byNumber[number].map { FieldDescriptor(pool: pool, info: info.fields[$0]) }
  }

  /// The field with a name, in its original or its JSON spelling.
  public func field(named name: String) -> FieldDescriptor? {
    info.byName[name].map { FieldDescriptor(pool: pool, info: info.fields[$0]) }
  }
}

/// A field of a ``MessageDescriptor``.
public struct FieldDescriptor: Sendable {
  let pool: DescriptorPool
  let info: DescriptorPool.FieldInfo

  /// The descriptor it was made from.
  public var proto: Google.FieldDescriptorProto { info.proto }
  /// The name in the file.
  public var name: String { info.name }
  /// The name in JSON.
  public var jsonName: String { info.jsonName }
  /// The field's number.
  public var number: Int32 { info.number }
  /// The type of a value.
  public var kind: Google.FieldDescriptorProto.TypeEnum { info.kind }
  /// Whether there may be several values; also true for maps.
  public var isRepeated: Bool { info.isRepeated }
  /// Whether it is a map.
  public var isMap: Bool { info.isMap }
  /// Whether absence differs from the default value.
  public var hasPresence: Bool { info.hasPresence }

  /// The type of message values: of a map, its entry.
  public var messageType: MessageDescriptor? {
    kind == .message ? MessageDescriptor(pool: pool, index: info.type) : nil
  }

  /// The type of enum values.
  public var enumType: EnumDescriptor? {
    kind == .enum ? EnumDescriptor(pool: pool, index: info.type) : nil
  }

  var tag: UInt32 { UInt32(truncatingIfNeeded: number) << 3 | wireType }

  var wireType: UInt32 {
    switch kind {
    case .double, .fixed64, .sfixed64: 1
    case .string, .bytes, .message: 2
    case .float, .fixed32, .sfixed32: 5
    default: 0
    }
  }

  /// What an absent value reads as; nil for messages.
  var defaultValue: DynamicValue? {
    switch kind {
    case .double: .double(0)
    case .float: .float(0)
    case .int64, .sfixed64, .sint64: .int64(0)
    case .uint64, .fixed64: .uint64(0)
    case .int32, .sfixed32, .sint32: .int32(0)
    case .uint32, .fixed32: .uint32(0)
    case .bool: .bool(false)
    case .string: .string("")
    case .bytes: .bytes([])
    case .enum: .enumeration(0)
    default: nil
    }
  }
}

/// An enum type of a ``DescriptorPool``.
public struct EnumDescriptor: Sendable {
  let pool: DescriptorPool
  let index: Int

  var info: DescriptorPool.EnumInfo { pool.enums[index] }

  /// For example `vencejo.chat.v1.MemberRole`.
  public var fullName: String { info.fullName }
  /// The descriptor it was made from.
  public var proto: Google.EnumDescriptorProto { info.proto }

  /// The number of a name in the file.
  public func number(of name: String) -> Int32? { info.byName[name] }
  /// The first name of a number.
  public func name(of number: Int32) -> String? { info.byNumber[number] }
}
