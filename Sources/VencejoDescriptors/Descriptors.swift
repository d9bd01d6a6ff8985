public import VencejoProtobuf

/// A message type of a ``DescriptorPool``.
public struct MessageDescriptor: Sendable {
  /// The pool it belongs to.
  public let pool: DescriptorPool
  let index: Int

  package var info: DescriptorPool.MessageInfo { pool.messages[index] }
  package var table: MessageTable { pool.tables[index] }

  /// For example `vencejo.chat.v1.Chat`.
  public var fullName: String { info.fullName }
  /// The descriptor it was made from.
  public var proto: Google.DescriptorProto { info.proto }
  /// The fields in the file's order.
  public var fields: [FieldDescriptor] {
    info.fields.map { FieldDescriptor(pool: pool, info: $0) }
  }

  /// The field with a number, or the extension the pool knows.
  public func field(number: Int32) -> FieldDescriptor? {
    pool.messages[index].byNumber[number].map { FieldDescriptor(pool: pool, info: $0) }
  }

  /// The field with a name, in its original or its JSON spelling; an extension by its full
  /// name in brackets.
  public func field(named name: String) -> FieldDescriptor? {
    pool.messages[index].byName[name].map { FieldDescriptor(pool: pool, info: $0) }
  }

  /// Whether it is a `MessageSet` of proto1's, whose extensions stand in groups.
  var isMessageSet: Bool { pool.messages[index].isMessageSet }
}

/// A field of a ``MessageDescriptor``.
public struct FieldDescriptor: Sendable {
  let pool: DescriptorPool
  package let info: DescriptorPool.FieldInfo

  /// The descriptor it was made from.
  public var proto: Google.FieldDescriptorProto { info.proto }
  /// The name in the file; of an extension its full name in brackets.
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

  /// Whether it is an extension.
  public var isExtension: Bool { info.isExtension }
  /// Whether a message without it is incomplete.
  public var isRequired: Bool { info.isRequired }
  /// Whether its messages stand between group tags, not behind their length.
  public var isGroup: Bool { info.isGroup }

  /// The type of message values: of a map, its entry.
  public var messageType: MessageDescriptor? {
    kind == .message ? MessageDescriptor(pool: pool, index: info.type) : nil
  }

  /// The type of enum values.
  public var enumType: EnumDescriptor? {
    kind == .enum ? EnumDescriptor(pool: pool, index: info.type) : nil
  }

  package var tag: UInt32 { info.tag }
  var wireType: UInt32 { info.tag & 7 }

  /// What an absent value reads as; nil for messages.
  public var defaultValue: DynamicValue? {
    if let value = info.explicitDefault { return value }
    switch kind {
    case .double: return .double(0)
    case .float: return .float(0)
    case .int64, .sfixed64, .sint64: return .int64(0)
    case .uint64, .fixed64: return .uint64(0)
    case .int32, .sfixed32, .sint32: return .int32(0)
    case .uint32, .fixed32: return .uint32(0)
    case .bool: return .bool(false)
    case .string: return .string("")
    case .bytes: return .bytes([])
    case .enum: return .enumeration(enumType?.proto.value.first?.number ?? 0)
    default: return nil
    }
  }
}

/// An enum type of a ``DescriptorPool``.
public struct EnumDescriptor: Sendable {
  let pool: DescriptorPool
  let index: Int

  package var info: DescriptorPool.EnumInfo { pool.enums[index] }

  /// For example `vencejo.chat.v1.MemberRole`.
  public var fullName: String { info.fullName }
  /// The descriptor it was made from.
  public var proto: Google.EnumDescriptorProto { info.proto }

  /// The number of a name in the file.
  public func number(of name: String) -> Int32? { pool.enums[index].byName[name] }
  /// The first name of a number.
  public func name(of number: Int32) -> String? { pool.enums[index].byNumber[number] }
  /// Whether fields take no number the enum does not name.
  public var isClosed: Bool { pool.enums[index].isClosed }
}
