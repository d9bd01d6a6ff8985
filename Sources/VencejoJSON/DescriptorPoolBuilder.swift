import VencejoProtobuf

/// Collects the types of files, then resolves the names fields refer to them by.
struct DescriptorPoolBuilder {
  var files: [Google.FileDescriptorProto] = []
  var messages: [DescriptorPool.MessageInfo] = []
  var enums: [DescriptorPool.EnumInfo] = []
  var messageIndex: [String: Int] = [:]
  var enumIndex: [String: Int] = [:]
  var services: [String: ServiceType] = [:]
  var serviceNames: [String] = []
  private var paths: Set<String> = []

  mutating func add(_ file: Google.FileDescriptorProto) {
    guard paths.insert(file.name ?? "").inserted else { return }
    files.append(file)
    let scope = file.package.map { $0.isEmpty ? "" : $0 + "." } ?? ""
    // Files without a syntax are proto2; editions have presence everywhere by default.
    for message in file.messageType { add(message, scope, isProto3: file.syntax == "proto3") }
    for enumeration in file.enumType { add(enumeration, scope) }
    for service in file.service {
      let name = scope + (service.name ?? "")
      if services[name] == nil { serviceNames.append(name) }
      services[name] = ServiceType(
        fullName: name,
        methods: service.method.map { method in
          ServiceType.Method(
            name: method.name ?? "", path: "/\(name)/\(method.name ?? "")",
            input: Self.bare(method.inputType), output: Self.bare(method.outputType),
            clientStreaming: method.clientStreaming ?? false,
            serverStreaming: method.serverStreaming ?? false)
        })
    }
  }

  private static func bare(_ name: String?) -> String {
    let name = name ?? ""
    return name.first == "." ? String(name.dropFirst()) : name
  }

  private mutating func add(_ message: Google.DescriptorProto, _ scope: String, isProto3: Bool) {
    let name = scope + (message.name ?? "")
    messageIndex[name] = messages.count
    messages.append(
      DescriptorPool.MessageInfo(
        proto: message, fullName: name, isProto3: isProto3, wellKnown: WellKnown(name)))
    for nested in message.nestedType { add(nested, name + ".", isProto3: isProto3) }
    for nested in message.enumType { add(nested, name + ".") }
  }

  private mutating func add(_ enumeration: Google.EnumDescriptorProto, _ scope: String) {
    let name = scope + (enumeration.name ?? "")
    var info = DescriptorPool.EnumInfo(proto: enumeration, fullName: name)
    for value in enumeration.value {
      let number = value.number ?? 0
      info.byName[value.name ?? ""] = number
      // The first name of a number is the one to write.
      if info.byNumber[number] == nil { info.byNumber[number] = value.name ?? "" }
    }
    enumIndex[name] = enums.count
    enums.append(info)
  }

  mutating func link() throws(DescriptorError) {
    for index in messages.indices {
      let message = messages[index]
      for proto in message.proto.field {
        // Groups are left to the unknown fields.
        guard let kind = proto.type, let number = proto.number, kind != .group else { continue }
        var type = 0
        if kind == .message || kind == .enum {
          let name = Self.bare(proto.typeName)
          guard let found = kind == .message ? messageIndex[name] : enumIndex[name] else {
            throw .unknownType(name, usedBy: "\(message.fullName).\(proto.name ?? "")")
          }
          type = found
        }
        let field = DescriptorPool.FieldInfo(
          proto: proto, kind, number, type: type, isProto3: message.isProto3,
          isMap: proto.label == .repeated && kind == .message && isMapEntry(type))
        messages[index].byNumber[number] = messages[index].fields.count
        messages[index].byName[field.name] = messages[index].fields.count
        messages[index].byName[field.jsonName] = messages[index].fields.count
        messages[index].fields.append(field)
      }
    }
  }

  /// Whether a message is what a map's field repeats: two fields, the key numbered 1 and the
  /// value 2. A descriptor from the network may say so of anything.
  private func isMapEntry(_ index: Int) -> Bool {
    let proto = messages[index].proto
    return proto.options?.mapEntry == true && proto.field.count == 2
      && proto.field[0].number == 1 && proto.field[1].number == 2
      && proto.field.allSatisfy { $0.label != .repeated && $0.type != nil && $0.type != .group }
      && ![nil, .message, .bytes, .double, .float, .enum].contains(proto.field[0].type)
  }
}

extension DescriptorPool.FieldInfo {
  init(
    proto: Google.FieldDescriptorProto, _ kind: Google.FieldDescriptorProto.TypeEnum,
    _ number: Int32, type: Int, isProto3: Bool, isMap: Bool
  ) {
    let packable = ![.string, .bytes, .message].contains(kind)
    self.init(
      proto: proto, number: number, name: proto.name ?? "",
      jsonName: proto.jsonName ?? lowerCamel(proto.name ?? ""), kind: kind, type: type,
      isRepeated: proto.label == .repeated, isMap: isMap,
      isPacked: packable && (proto.options?.packed ?? isProto3),
      hasPresence: proto.label != .repeated
        && (!isProto3 || kind == .message || proto.oneofIndex != nil),
      oneof: proto.oneofIndex)
  }
}

/// protoc's rule: underscores go, and the letter behind one is upper-case.
func lowerCamel(_ name: String) -> String {
  var result = ""
  var raise = false
  for character in name {
    if character == "_" {
      raise = true
    } else {
      result += raise ? character.uppercased() : String(character)
      raise = false
    }
  }
  return result
}
