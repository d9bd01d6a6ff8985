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

  func emit(to printer: inout Printer) throws(GeneratorError) {
    var names = UniqueNames()
    for (index, descriptor) in descriptors.enumerated() {
      guard
        let field = try Field(descriptor, index: index, features: features, types: context.types)
      else { continue }
      let extended = try context.types.type(descriptor.extendee)
      let own = descriptor.name ?? ""
      let fullName = scope.isEmpty ? own : "\(scope).\(own)"
      let name = names.unique(Names.extensionProperty(own), field.number)
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
