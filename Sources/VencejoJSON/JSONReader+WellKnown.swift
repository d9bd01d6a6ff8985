import VencejoDescriptors
import VencejoProtobuf

extension JSONReader {
  func message(
    _ node: JSONNode, _ type: MessageDescriptor, _ wellKnown: WellKnown
  ) throws(JSONFault) -> DynamicMessage {
    var message = DynamicMessage(type)
    switch wellKnown {
    case .timestamp:
      guard case .string(let text) = node.kind, let time = TimestampText.decode(text) else {
        throw fault("expected a time like \"2026-01-31T12:00:00Z\"", node)
      }
      message.fields = [1: .int64(time.seconds), 2: .int32(time.nanos)]
    case .duration:
      guard case .string(let text) = node.kind, let time = DurationText.decode(text) else {
        throw fault("expected a duration like \"1.5s\"", node)
      }
      message.fields = [1: .int64(time.seconds), 2: .int32(time.nanos)]
    case .fieldMask:
      guard case .string(let text) = node.kind else {
        throw fault("expected paths like \"title,policy.slowMode\"", node)
      }
      var paths: [DynamicValue] = []
      for part in text.split(separator: ",", omittingEmptySubsequences: !text.contains(",")) {
        guard let mask = MaskText.decode(part), !mask.isEmpty else {
          throw fault("\"\(part)\" is no path in lowerCamel", node)
        }
        paths.append(.string(mask))
      }
      if !paths.isEmpty { message.fields[1] = .list(paths) }
    case .wrapper:
      guard let field = type.field(number: 1) else { return message }
      message.fields[1] = try value(node, field)
    case .structure:
      guard case .object(let members) = node.kind,
        let value = type.field(number: 1)?.entryFields?.1.messageType
      else { throw fault("expected an object, found \(node.description)", node) }
      var map: [DynamicValue: DynamicValue] = [:]
      for member in members {
        let key = DynamicValue.string(member.name)
        try within(".\(member.name)") { () throws(JSONFault) in
          if map[key] != nil {
            throw JSONFault(message: "the key is there twice", offset: member.offset)
          }
          map[key] = .message(try self.message(member.value, value))
        }
      }
      if !map.isEmpty { message.fields[1] = .map(map) }
    case .listValue:
      guard case .array(let elements) = node.kind, let value = type.field(number: 1)?.messageType
      else { throw fault("expected an array, found \(node.description)", node) }
      var list: [DynamicValue] = []
      for (index, element) in elements.enumerated() {
        try within("[\(index)]") { () throws(JSONFault) in
          list.append(.message(try self.message(element, value)))
        }
      }
      if !list.isEmpty { message.fields[1] = .list(list) }
    case .value: try readValue(node, into: &message)
    case .any: try readAny(node, into: &message)
    }
    return message
  }

  private func readValue(
    _ node: JSONNode, into message: inout DynamicMessage
  ) throws(JSONFault) {
    switch node.kind {
    case .null: message.fields = [1: .enumeration(0)]
    case .number: message.fields = [2: .double(try floating(node))]
    case .string(let text): message.fields = [3: .string(text)]
    case .bool(let value): message.fields = [4: .bool(value)]
    case .object:
      guard let type = message.descriptor.field(number: 5)?.messageType else { return }
      message.fields = [5: .message(try self.message(node, type))]
    case .array:
      guard let type = message.descriptor.field(number: 6)?.messageType else { return }
      message.fields = [6: .message(try self.message(node, type))]
    }
  }

  private func readAny(
    _ node: JSONNode, into message: inout DynamicMessage
  ) throws(JSONFault) {
    guard case .object(let members) = node.kind else {
      throw fault("expected an object with an @type, found \(node.description)", node)
    }
    if members.isEmpty { return }
    let types = members.filter { $0.name == "@type" }
    guard types.count == 1, case .string(let url) = types[0].value.kind else {
      throw fault("expected one @type", node)
    }
    guard let type = options.packedType(url, near: message.descriptor.pool) else {
      throw fault("unknown type \"\(url)\"", types[0].value)
    }
    var packed = DynamicMessage(type)
    if let wellKnown = type.info.wellKnown {
      guard members.count == 2, let value = members.first(where: { $0.name == "value" }) else {
        throw fault("expected an @type and a value", node)
      }
      packed = try within(".value") { () throws(JSONFault) in
        try self.message(value.value, type, wellKnown)
      }
    } else {
      try read(members, into: &packed, except: "@type")
    }
    message.fields = [1: .string(url), 2: .bytes(packed.serializedBytes())]
  }
}
