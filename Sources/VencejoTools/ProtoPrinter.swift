import VencejoDescriptors
import VencejoProtobuf

/// Writes types as .proto files do, with full names.
enum ProtoPrinter {
  static func text(of type: MessageDescriptor) -> String {
    var text = "message \(type.fullName) {\n"
    text += reserved(
      type.proto.reservedRange.map { ($0.start ?? 0, ($0.end ?? 1) - 1) }, type.proto.reservedName,
      most: lastField)
    for range in type.proto.extensionRange {
      let last = (range.end ?? 1) - 1
      text += "  extensions \(Self.range(range.start ?? 0, last, most: lastField));\n"
    }
    var oneof: Int32?
    for field in type.fields where !field.isExtension {
      let proto = field.proto
      let own = proto.proto3Optional == true ? nil : proto.oneofIndex
      if own != oneof {
        if oneof != nil { text += "  }\n" }
        if let own, type.proto.oneofDecl.indices.contains(Int(own)) {
          text += "  oneof \(type.proto.oneofDecl[Int(own)].name ?? "") {\n"
        }
        oneof = own
      }
      text += "\(oneof == nil ? "  " : "    ")\(declaration(field))\n"
    }
    if oneof != nil { text += "  }\n" }
    return text + "}\n"
  }

  /// One field, as its message declares it.
  static func text(of field: FieldDescriptor, named name: String? = nil) -> String {
    declaration(field, name) + "\n"
  }

  /// One oneof, as its message declares it.
  static func text(of type: MessageDescriptor, oneof index: Int32) -> String {
    let members = type.fields.filter { $0.proto.oneofIndex == index }
    let name = type.proto.oneofDecl[Int(index)].name ?? ""
    return "oneof \(name) {\n" + members.map { "  \(declaration($0))\n" }.joined() + "}\n"
  }

  private static let lastField: Int32 = 536_870_911

  private static func reserved(
    _ ranges: [(Int32, Int32)], _ names: [String], most: Int32
  ) -> String {
    var text = ""
    if !ranges.isEmpty {
      let list = ranges.map { range($0.0, $0.1, most: most) }
      text += "  reserved \(list.joined(separator: ", "));\n"
    }
    if !names.isEmpty {
      text += "  reserved \(names.map { "\"\($0)\"" }.joined(separator: ", "));\n"
    }
    return text
  }

  private static func range(_ first: Int32, _ last: Int32, most: Int32) -> String {
    first == last ? "\(first)" : "\(first) to \(last >= most ? "max" : "\(last)")"
  }

  private static func declaration(_ field: FieldDescriptor, _ name: String? = nil) -> String {
    let label: String
    if field.isMap {
      label = ""
    } else if field.isRepeated {
      label = "repeated "
    } else if field.isRequired {
      label = "required "
    } else {
      let isPlain = field.proto.oneofIndex != nil && field.proto.proto3Optional != true
      label = field.hasPresence && field.kind != .message && !isPlain ? "optional " : ""
    }
    var notes: [String] = []
    if let value = field.proto.defaultValue { notes.append("default = \(value)") }
    if !field.isExtension, field.jsonName != ProtoFilePrinter.camelCase(field.name) {
      notes.append("json_name = \"\(field.jsonName)\"")
    }
    if field.isGroup { notes.append("delimited") }
    if field.proto.options?.deprecated == true { notes.append("deprecated = true") }
    let note = notes.isEmpty ? "" : " [\(notes.joined(separator: ", "))]"
    return "\(label)\(type(field)) \(name ?? field.name) = \(field.number)\(note);"
  }

  private static func type(_ field: FieldDescriptor) -> String {
    if field.isMap, let entry = field.messageType, let key = entry.field(number: 1),
      let value = entry.field(number: 2)
    {
      return "map<\(type(key)), \(type(value))>"
    }
    if let name = field.messageType?.fullName ?? field.enumType?.fullName { return name }
    switch field.kind {
    case .double: return "double"
    case .float: return "float"
    case .int64: return "int64"
    case .uint64: return "uint64"
    case .int32: return "int32"
    case .fixed64: return "fixed64"
    case .fixed32: return "fixed32"
    case .bool: return "bool"
    case .string: return "string"
    case .bytes: return "bytes"
    case .uint32: return "uint32"
    case .sfixed32: return "sfixed32"
    case .sfixed64: return "sfixed64"
    case .sint32: return "sint32"
    default: return "sint64"
    }
  }

  static func text(of type: EnumDescriptor) -> String {
    var text = "enum \(type.fullName) {\n"
    text += reserved(
      type.proto.reservedRange.map { ($0.start ?? 0, $0.end ?? 0) }, type.proto.reservedName,
      most: .max)
    for value in type.proto.value { text += "  \(value.name ?? "") = \(value.number ?? 0);\n" }
    return text + "}\n"
  }

  static func text(of service: ServiceType) -> String {
    var text = "service \(service.fullName) {\n"
    for method in service.methods {
      let input = (method.clientStreaming ? "stream " : "") + method.input
      let result = (method.serverStreaming ? "stream " : "") + method.output
      text += "  rpc \(method.name)(\(input)) returns (\(result));\n"
    }
    return text + "}\n"
  }
}
