import VencejoDescriptors
import VencejoProtobuf

/// A field as the emitters see it.
struct Field {
  enum Presence {
    /// proto3 scalars: the default value is absence.
    case implicit
    case explicit
    case repeated(packed: Bool)
    case map(key: String, value: String)
    case oneof(Int)
  }

  let number: Int32
  /// The index within the message, for comments.
  let index: Int32
  var name: String
  var caseName: String
  let presence: Presence
  let kind: Google.FieldDescriptorProto.TypeEnum
  /// The type of one value.
  let element: String
  /// The type of the property.
  let type: String
  let wireType: UInt32
  /// The name of reader's and writer's methods for a scalar.
  let method: String
  /// The `WireCoding`.
  let coding: String

  var tag: UInt32 { UInt32(number) << 3 | wireType }
  var packedTag: UInt32 { UInt32(number) << 3 | 2 }
  /// Whether only some values of the wire fit: the others stay unknown fields.
  let mayRefuse: Bool
  let isRequired: Bool
  /// The message's type, by its full name.
  let messageType: String?
  /// The expression of `[default = x]`.
  let defaultValue: String?
  var isMessage: Bool { kind == .message || kind == .group }
  /// Whether members are compared and hashed one by one. Not floating-point numbers, whose `==`
  /// is not equality; nor lists and messages, for which the compiler would make copies of
  /// `Array`'s methods of two kilobytes each: a message with such is compared by its encoding.
  var isPlain: Bool {
    switch presence {
    case .implicit, .explicit: ![.message, .group, .float, .double].contains(kind)
    default: false
    }
  }

  var initial: String? {
    switch presence {
    case .explicit, .oneof: return nil
    case .repeated: return "[]"
    case .map: return "[:]"
    case .implicit:
      switch kind {
      case .string: return "\"\""
      case .bytes: return "[]"
      case .bool: return "false"
      case .enum: return ".init(rawValue: 0)"
      default: return "0"
      }
    }
  }

  /// Nil for what is no field. `features` are those of the scope around.
  init?(
    _ field: Google.FieldDescriptorProto, index: Int, features: Features,
    oneofs: [Google.OneofDescriptorProto] = [], types: TypeIndex
  ) throws(GeneratorError) {
    guard let kind = field.type, let number = field.number, number > 0 else { return nil }
    let features = features.field(field, oneofs: oneofs)
    self.kind = kind
    self.number = number
    self.index = Int32(index)
    name = Names.property(field.name ?? "")
    caseName = Names.oneofCase(field.name ?? "")
    let entry =
      try field.label == .repeated && kind == .message
      ? types.type(field.typeName).mapEntry : nil
    let coding = try Coding(field, kind, features, isMap: entry != nil, types)
    method = coding.method
    wireType = coding.wireType
    element = coding.swift
    self.coding = coding.wire
    mayRefuse = coding.mayRefuse
    isRequired = features.presence == .required
    defaultValue = try Literals.value(of: field, types)
    if let entry, let keyKind = entry.field[0].type, let valueKind = entry.field[1].type {
      // Entries of maps and what is in them stand behind their lengths.
      var inside = try types.type(field.typeName).features
      inside.delimited = false
      let key = try Coding(
        entry.field[0], keyKind, inside.field(entry.field[0]), isMap: true, types)
      let value = try Coding(
        entry.field[1], valueKind, inside.field(entry.field[1]), isMap: true, types)
      presence = .map(key: key.wire, value: value.wire)
      type = "[\(key.swift): \(value.swift)]"
      messageType = valueKind == .message ? entry.field[1].typeName : nil
      return
    }
    messageType = kind == .message || kind == .group ? field.typeName : nil
    if field.label == .repeated {
      presence = .repeated(packed: features.packed && coding.isPackable)
      type = "[\(element)]"
    } else if let oneof = field.oneofIndex, field.proto3Optional != true {
      presence = .oneof(Int(oneof))
      type = element
    } else if features.presence == .implicit {
      presence = .implicit
      type = element
    } else {
      presence = .explicit
      type = element + "?"
    }
  }
}

/// How one value of a type is written in Swift and on the wire.
private struct Coding {
  var swift: String
  var method: String
  var wire: String
  var wireType: UInt32
  var mayRefuse = false

  var isPackable: Bool { [0, 1, 5].contains(wireType) }

  init(
    _ field: Google.FieldDescriptorProto, _ kind: Google.FieldDescriptorProto.TypeEnum,
    _ features: Features, isMap: Bool, _ types: TypeIndex
  ) throws(GeneratorError) {
    func scalar(_ swift: String, _ method: String, _ wire: String, _ wireType: UInt32) -> Coding {
      Coding(
        swift: swift, method: method, wire: "VencejoProtobuf::Wire.\(wire)", wireType: wireType)
    }
    switch kind {
    case .double: self = scalar("Swift::Double", "double", "Double", 1)
    case .float: self = scalar("Swift::Float", "float", "Float", 5)
    case .int64: self = scalar("Swift::Int64", "int64", "Int64", 0)
    case .uint64: self = scalar("Swift::UInt64", "uint64", "UInt64", 0)
    case .int32: self = scalar("Swift::Int32", "int32", "Int32", 0)
    case .fixed64: self = scalar("Swift::UInt64", "fixedUInt64", "FixedUInt64", 1)
    case .fixed32: self = scalar("Swift::UInt32", "fixedUInt32", "FixedUInt32", 5)
    case .bool: self = scalar("Swift::Bool", "bool", "Bool", 0)
    case .string:
      self = scalar("Swift::String", "string", features.checksUTF8 ? "String" : "LooseString", 2)
      mayRefuse = !features.checksUTF8
    case .bytes: self = scalar("[Swift::UInt8]", "bytes", "Bytes", 2)
    case .uint32: self = scalar("Swift::UInt32", "uint32", "UInt32", 0)
    case .sfixed32: self = scalar("Swift::Int32", "fixedInt32", "FixedInt32", 5)
    case .sfixed64: self = scalar("Swift::Int64", "fixedInt64", "FixedInt64", 1)
    case .sint32: self = scalar("Swift::Int32", "sint32", "SInt32", 0)
    case .sint64: self = scalar("Swift::Int64", "sint64", "SInt64", 0)
    case .enum:
      let type = try types.type(field.typeName)
      let coding = type.features.closedEnums ? "ClosedEnum" : "Enum"
      self = scalar(type.reference, "enumeration", "\(coding)<\(type.reference)>", 0)
      mayRefuse = type.features.closedEnums
    default:
      let type = try types.type(field.typeName).reference
      let isGroup = features.delimited && !isMap
      self = scalar(
        type, isGroup ? "group" : "message", "Submessage<\(type)>", isGroup ? 3 : 2)
    }
  }

  private init(swift: String, method: String, wire: String, wireType: UInt32) {
    self.swift = swift
    self.method = method
    self.wire = wire
    self.wireType = wireType
  }
}
