import VencejoDescriptors
import VencejoProtobuf

/// A message in JSON with a value for every field, to be filled in: of each oneof the first
/// member, one element of lists and maps. A type within itself is left empty.
enum MessageTemplate {
  static func json(of type: MessageDescriptor) -> String { message(type, [], "") }

  private static func message(
    _ type: MessageDescriptor, _ outer: [String], _ indent: String
  ) -> String {
    if let text = wellKnown(type.fullName) { return text }
    guard !outer.contains(type.fullName) else { return "{}" }
    let outer = outer + [type.fullName]
    let inner = indent + "  "
    var oneofs: Set<Int32> = []
    var members: [String] = []
    for field in type.fields where !field.isExtension {
      if let oneof = field.proto.oneofIndex, field.proto.proto3Optional != true,
        !oneofs.insert(oneof).inserted
      {
        continue
      }
      members.append("\(inner)\"\(field.jsonName)\": \(value(field, outer, inner))")
    }
    return members.isEmpty ? "{}" : "{\n\(members.joined(separator: ",\n"))\n\(indent)}"
  }

  private static func value(
    _ field: FieldDescriptor, _ outer: [String], _ indent: String
  ) -> String {
    if field.isMap, let entry = field.messageType, let key = entry.field(number: 1),
      let value = entry.field(number: 2)
    {
      let inner = indent + "  "
      return "{\n\(inner)\"\(self.key(key))\": \(single(value, outer, inner))\n\(indent)}"
    }
    guard field.isRepeated else { return single(field, outer, indent) }
    let inner = indent + "  "
    return "[\n\(inner)\(single(field, outer, inner))\n\(indent)]"
  }

  private static func key(_ field: FieldDescriptor) -> String {
    switch field.kind {
    case .string: ""
    case .bool: "false"
    default: "0"
    }
  }

  private static func single(
    _ field: FieldDescriptor, _ outer: [String], _ indent: String
  ) -> String {
    if let type = field.messageType { return message(type, outer, indent) }
    if let type = field.enumType { return "\"\(type.proto.value.first?.name ?? "")\"" }
    switch field.kind {
    case .bool: return "false"
    case .string, .bytes: return "\"\""
    case .int64, .uint64, .fixed64, .sfixed64, .sint64: return "\"0\""
    default: return "0"
    }
  }

  private static func wellKnown(_ name: String) -> String? {
    switch name {
    case "google.protobuf.Timestamp": "\"1970-01-01T00:00:00Z\""
    case "google.protobuf.Duration": "\"0s\""
    case "google.protobuf.FieldMask": "\"\""
    case "google.protobuf.Struct": "{}"
    case "google.protobuf.ListValue": "[]"
    case "google.protobuf.Value": "null"
    case "google.protobuf.Any":
      "{\"@type\": \"type.googleapis.com/google.protobuf.Duration\", \"value\": \"0s\"}"
    case "google.protobuf.DoubleValue", "google.protobuf.FloatValue",
      "google.protobuf.Int32Value", "google.protobuf.UInt32Value":
      "0"
    case "google.protobuf.Int64Value", "google.protobuf.UInt64Value": "\"0\""
    case "google.protobuf.BoolValue": "false"
    case "google.protobuf.StringValue", "google.protobuf.BytesValue": "\"\""
    default: nil
    }
  }
}
