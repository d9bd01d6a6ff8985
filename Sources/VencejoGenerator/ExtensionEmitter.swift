import VencejoDescriptors
import VencejoProtobuf

/// Prints the extensions a file or a message declares, as static properties.
struct ExtensionEmitter {
  let descriptors: [Google.FieldDescriptorProto]
  let scope: String
  let path: [Int32]
  let features: Features
  let context: MessageEmitter.Context

  init(
    _ descriptors: [Google.FieldDescriptorProto], scope: String, path: [Int32],
    features: Features, context: MessageEmitter.Context
  ) {
    self.descriptors = descriptors
    self.scope = scope
    self.path = path
    self.features = features
    self.context = context
  }

  /// The names of the static properties, in order; nil for what is no field.
  static func names(_ descriptors: [Google.FieldDescriptorProto]) -> [String?] {
    var names = UniqueNames()
    return descriptors.map { field in
      guard let number = field.number, number > 0, field.type != nil else { return nil }
      return names.unique(Names.extensionProperty(field.name ?? ""), number)
    }
  }

  func emit(to printer: inout Printer) throws(GeneratorError) {
    let names = Self.names(descriptors)
    for (index, descriptor) in descriptors.enumerated() {
      guard let name = names[index],
        let field = try Field(descriptor, index: index, features: features, types: context.types)
      else { continue }
      let extended = try context.types.type(descriptor.extendee)
      let own = descriptor.name ?? ""
      let fullName = scope.isEmpty ? own : "\(scope).\(own)"
      let arguments = "\(field.number), \"\(fullName)\""
      let value: String
      switch field.presence {
      case .repeated(let packed):
        value =
          field.isMessage
          ? ".\(field.method)s(\(field.element).self, \(arguments))"
          : ".repeated(\(field.coding).self, \(arguments), packed: \(packed))"
      default:
        if field.isMessage {
          let isSet = extended.message?.options?.messageSetWireFormat == true
          value =
            ".\(isSet ? "messageSet" : field.method)(\(field.element).self, \(arguments))"
        } else {
          let standard = field.defaultValue.map { ", default: \($0)" } ?? ""
          value = ".optional(\(field.coding).self, \(arguments)\(standard))"
        }
      }
      printer.line()
      printer.doc(
        context.comments[path + [Int32(index)]] ?? "The extension `\(fullName)`.")
      let type = "VencejoProtobuf::ExtensionField<\(extended.reference), \(field.type)>"
      printer.line("\(context.access)static var \(name): \(type) { \(value) }")
    }
  }
}

/// An extension that a message's own file declares: decoding the message looks into it.
struct KnownExtension {
  /// The expression for its `ExtensionField`.
  let reference: String
  let number: Int32
  /// The tags its values may have.
  let tags: [UInt32]
  /// Of a message: the full name of its type, after a dot.
  let messageType: String?

  /// All of a file, by the full name of what they extend.
  static func all(
    in file: Google.FileDescriptorProto, root: String, types: TypeIndex
  ) throws(GeneratorError) -> [String: [KnownExtension]] {
    var result: [String: [KnownExtension]] = [:]
    let features = Features(file)
    try collect(file.extension, root, features, types, into: &result)
    for message in file.messageType {
      try collect(message, file.package.map { ".\($0)" } ?? "", features, types, into: &result)
    }
    return result
  }

  private static func collect(
    _ message: Google.DescriptorProto, _ scope: String, _ outer: Features, _ types: TypeIndex,
    into result: inout [String: [KnownExtension]]
  ) throws(GeneratorError) {
    let name = "\(scope).\(message.name ?? "")"
    let features = outer.with(message.options?.features)
    if !message.extension.isEmpty {
      let root = try types.type(name).reference + "."
      try collect(message.extension, root, features, types, into: &result)
    }
    for nested in message.nestedType { try collect(nested, name, features, types, into: &result) }
  }

  private static func collect(
    _ descriptors: [Google.FieldDescriptorProto], _ root: String, _ features: Features,
    _ types: TypeIndex, into result: inout [String: [KnownExtension]]
  ) throws(GeneratorError) {
    for (descriptor, name) in zip(descriptors, ExtensionEmitter.names(descriptors)) {
      guard let name, let extendee = descriptor.extendee,
        let field = try Field(descriptor, index: 0, features: features, types: types)
      else { continue }
      var tags = [field.tag]
      if case .repeated = field.presence, field.wireType != 2, !field.isMessage {
        tags.append(field.packedTag)
      }
      result[extendee, default: []].append(
        KnownExtension(
          reference: root + name, number: field.number, tags: tags,
          messageType: field.messageType))
    }
  }
}
