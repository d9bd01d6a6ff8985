import VencejoDescriptors
import VencejoProtobuf

/// Makes messages of JSON.
struct JSONReader {
  let options: JSONOptions

  func message(
    _ node: JSONNode, _ type: MessageDescriptor
  ) throws(JSONFault) -> DynamicMessage {
    if let wellKnown = type.info.wellKnown { return try message(node, type, wellKnown) }
    guard case .object(let members) = node.kind else {
      throw fault("expected an object for \(type.fullName), found \(node.description)", node)
    }
    var message = DynamicMessage(type)
    try read(members, into: &message)
    return message
  }

  /// Reads members into a message's fields, but for those named in `except`.
  func read(
    _ members: [JSONNode.Member], into message: inout DynamicMessage,
    except: String? = nil
  ) throws(JSONFault) {
    var seen: Set<Int32> = []
    var oneofs: Set<Int32> = []
    for member in members where member.name != except {
      try within(".\(member.name)") { () throws(JSONFault) in
        try read(member, into: &message, &seen, &oneofs)
      }
    }
  }

  private func read(
    _ member: JSONNode.Member, into message: inout DynamicMessage, _ seen: inout Set<Int32>,
    _ oneofs: inout Set<Int32>
  ) throws(JSONFault) {
    guard let field = message.descriptor.field(named: member.name) else {
      if options.ignoreUnknown { return }
      throw JSONFault(
        message: "\(message.descriptor.fullName) has no such field", offset: member.offset)
    }
    guard seen.insert(field.number).inserted else {
      throw JSONFault(message: "the field is there twice", offset: member.offset)
    }
    // null means absence, but for the types to which it is a value.
    if member.value.isNull && !field.takesNull { return }
    if let oneof = field.info.oneof, !oneofs.insert(oneof).inserted {
      throw JSONFault(
        message: "another field of the same oneof is there", offset: member.offset)
    }
    if let value = try fieldValue(member.value, field) { message.fields[field.number] = value }
  }

  private func fieldValue(
    _ node: JSONNode, _ field: FieldDescriptor
  ) throws(JSONFault) -> DynamicValue? {
    if field.isMap { return try map(node, field) }
    guard field.isRepeated else { return try value(node, field) }
    guard case .array(let elements) = node.kind else {
      throw fault("expected an array, found \(node.description)", node)
    }
    var list: [DynamicValue] = []
    for (index, element) in elements.enumerated() {
      try within("[\(index)]") { () throws(JSONFault) in
        if element.isNull && !field.takesNull { throw fault("null in an array", element) }
        if let value = try value(element, field) { list.append(value) }
      }
    }
    return list.isEmpty ? nil : .list(list)
  }

  private func map(
    _ node: JSONNode, _ field: FieldDescriptor
  ) throws(JSONFault) -> DynamicValue? {
    guard case .object(let members) = node.kind, let (keyField, valueField) = field.entryFields
    else { throw fault("expected an object, found \(node.description)", node) }
    var map: [DynamicValue: DynamicValue] = [:]
    for member in members {
      try within(".\(member.name)") { () throws(JSONFault) in
        if member.value.isNull && !valueField.takesNull {
          throw fault("null in a map", member.value)
        }
        let name = JSONNode(kind: .string(member.name), offset: member.offset)
        let key = try key(name, member.name, keyField)
        if map[key] != nil { throw fault("the key is there twice", name) }
        if let value = try value(member.value, valueField) { map[key] = value }
      }
    }
    return map.isEmpty ? nil : .map(map)
  }

  private func key(
    _ node: JSONNode, _ name: String, _ field: FieldDescriptor
  ) throws(JSONFault) -> DynamicValue {
    if field.kind == .bool {
      switch name {
      case "true": return .bool(true)
      case "false": return .bool(false)
      default: throw fault("expected true or false as a key", node)
      }
    }
    guard let value = try value(node, field) else {
      throw fault("not a key", node)
    }
    return value
  }

  /// One value; nil for the name of an enum's value that is to be ignored.
  func value(
    _ node: JSONNode, _ field: FieldDescriptor
  ) throws(JSONFault) -> DynamicValue? {
    switch field.kind {
    case .message:
      guard let type = field.messageType else { return nil }
      return .message(try message(node, type))
    case .enum: return try enumeration(node, field)
    case .bool:
      guard case .bool(let value) = node.kind else {
        throw fault("expected true or false, found \(node.description)", node)
      }
      return .bool(value)
    case .string:
      guard case .string(let text) = node.kind else {
        throw fault("expected a string, found \(node.description)", node)
      }
      return .string(text)
    case .bytes:
      guard case .string(let text) = node.kind, let bytes = Base64.decode(text) else {
        throw fault("expected base64 in a string", node)
      }
      return .bytes(bytes)
    case .double:
      return .double(try floating(node))
    case .float:
      // Rounded once, from the text: a Double between would round twice.
      return .float(try floating(node))
    case .int32, .sint32, .sfixed32: return .int32(try integer(node))
    case .int64, .sint64, .sfixed64: return .int64(try integer(node))
    case .uint32, .fixed32: return .uint32(try integer(node))
    case .uint64, .fixed64: return .uint64(try integer(node))
    default: return nil
    }
  }

  private func enumeration(
    _ node: JSONNode, _ field: FieldDescriptor
  ) throws(JSONFault) -> DynamicValue? {
    switch node.kind {
    case .string(let name):
      if let number = field.enumType?.number(of: name) { return .enumeration(number) }
      if options.ignoreUnknown { return nil }
      throw fault("\(field.enumType?.fullName ?? "the enum") has no \"\(name)\"", node)
    case .number:
      let number: Int32 = try integer(node)
      if !field.refuses(number) { return .enumeration(number) }
      if options.ignoreUnknown { return nil }
      throw fault("\(field.enumType?.fullName ?? "the enum") has no \(number)", node)
    case .null where field.takesNull: return .enumeration(0)
    default: throw fault("expected the name of an enum's value", node)
    }
  }

  func fault(_ message: String, _ node: JSONNode) -> JSONFault {
    JSONFault(message: message, offset: node.offset)
  }
}

extension FieldDescriptor {
  /// Whether null is a value of the type: of `Value` and `NullValue`.
  var takesNull: Bool {
    messageType?.info.wellKnown == .value
      || enumType?.fullName == "google.protobuf.NullValue"
  }
}
