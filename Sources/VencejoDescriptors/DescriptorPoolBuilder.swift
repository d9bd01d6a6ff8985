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
  /// Extensions, the features and the name of the scope they are declared in.
  private var extensions: [(Google.FieldDescriptorProto, Features, String)] = []
  private var paths: Set<String> = []

  mutating func add(_ file: Google.FileDescriptorProto) {
    guard paths.insert(file.name ?? "").inserted else { return }
    files.append(file)
    let scope = file.package.map { $0.isEmpty ? "" : $0 + "." } ?? ""
    let features = Features(file)
    for message in file.messageType { add(message, scope, features) }
    for enumeration in file.enumType { add(enumeration, scope, features) }
    for field in file.extension { extensions.append((field, features, file.package ?? "")) }
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

  private mutating func add(
    _ message: Google.DescriptorProto, _ scope: String, _ outer: Features
  ) {
    let name = scope + (message.name ?? "")
    let features = outer.with(message.options?.features)
    messageIndex[name] = messages.count
    messages.append(
      DescriptorPool.MessageInfo(
        proto: message, fullName: name, features: features, wellKnown: WellKnown(name)))
    for nested in message.nestedType { add(nested, name + ".", features) }
    for nested in message.enumType { add(nested, name + ".", features) }
    for field in message.extension { extensions.append((field, features, name)) }
  }

  private mutating func add(
    _ enumeration: Google.EnumDescriptorProto, _ scope: String, _ outer: Features
  ) {
    let name = scope + (enumeration.name ?? "")
    let features = outer.with(enumeration.options?.features)
    var info = DescriptorPool.EnumInfo(
      proto: enumeration, fullName: name, isClosed: features.closedEnums)
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
        guard let field = try field(proto, message.features, in: message.fullName, of: message)
        else { continue }
        messages[index].byNumber[field.number] = field
        messages[index].byName[field.name] = field
        messages[index].byName[field.jsonName] = field
        messages[index].fields.append(field)
        if let oneof = field.oneof { messages[index].oneofs[oneof, default: []].append(field) }
        if field.isRequired { messages[index].required.append(field) }
      }
    }
    for (proto, features, scope) in extensions {
      // Of a message in a file we do not have: nobody can ask for it.
      guard let index = messageIndex[Self.bare(proto.extendee)],
        let field = try field(
          proto, features, in: scope, of: nil, inMessageSet: messages[index].isMessageSet)
      else { continue }
      if messages[index].byNumber[field.number] == nil {
        messages[index].byNumber[field.number] = field
      }
      messages[index].byName[field.name] = field
      if messages[index].byName[field.textName] == nil {
        messages[index].byName[field.textName] = field
      }
    }
  }

  /// Nil for what is no field at all.
  private func field(
    _ proto: Google.FieldDescriptorProto, _ features: Features, in scope: String,
    of message: DescriptorPool.MessageInfo?, inMessageSet: Bool = false
  ) throws(DescriptorError) -> DescriptorPool.FieldInfo? {
    let name = "\(scope).\(proto.name ?? "")"
    guard let number = proto.number, (1...536_870_911).contains(number) else {
      throw .invalid(field: name, "has no valid number")
    }
    var type = 0
    // Descriptors may leave the type to whoever knows the name.
    let typeName = Self.bare(proto.typeName)
    var kind = proto.type
    if kind == nil, messageIndex[typeName] != nil { kind = .message }
    if kind == nil, enumIndex[typeName] != nil { kind = .enum }
    guard let kind else { throw .invalid(field: name, "has no known type") }
    if kind == .message || kind == .group || kind == .enum {
      guard let found = kind == .enum ? enumIndex[typeName] : messageIndex[typeName] else {
        throw .unknownType(typeName, usedBy: name)
      }
      type = found
    }
    var resolved = features.field(proto, oneofs: message?.proto.oneofDecl ?? [])
    // The entries of maps are always behind their length, and so are their values.
    if message?.isMapEntry == true { resolved.delimited = false }
    return DescriptorPool.FieldInfo(
      proto, kind, number, type: type, features: resolved, scope: scope,
      isMap: proto.label == .repeated && kind == .message && isMapEntry(type),
      typeName: kind == .enum ? "" : typeName, enumeration: kind == .enum ? enums[type] : nil,
      inMessageSet: inMessageSet)
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

/// protoc's rule: underscores go, and the letter behind one is upper-case.
package func lowerCamel(_ name: String) -> String {
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
