import VencejoProtobuf

// Defaults and required fields, of proto2 and editions.
extension MessageEmitter {
  /// How code of our own reaches a property: past what may be deprecated.
  private var own: String { isBoxed ? "self.storage.value" : "self" }

  /// For each field with a default of its own, what it reads as.
  func emitDefaults(to printer: inout Printer) {
    for field in fields {
      guard let value = field.defaultValue else { continue }
      let bare = field.name.first == "`" ? String(field.name.dropFirst().dropLast()) : field.name
      let name = Names.lowerCamel(descriptor.field[Int(field.index)].name ?? "")
      printer.line()
      printer.doc("The value of `\(name)`, or its default.")
      switch field.presence {
      case .explicit:
        printer.line(
          "\(access)var \(bare)OrDefault: \(field.element) { \(own).\(field.name) ?? \(value) }")
      case .oneof(let index):
        guard let oneof = oneofs.first(where: { $0.index == index }) else { continue }
        printer.block("\(access)var \(name)OrDefault: \(field.element) {") { printer in
          printer.line(
            "if case .\(field.caseName)(let value)? = \(own).\(oneof.property) { value } "
              + "else { \(value) }")
        }
      default: break
      }
    }
  }

  func emitRequired(to printer: inout Printer) {
    if !needsCheck { return }
    printer.line()
    printer.block("\(access)var missingRequiredField: Swift::String? {") { printer in
      for field in fields {
        let name = descriptor.field[Int(field.index)].name ?? ""
        if field.isRequired {
          printer.line("if \(own).\(field.name) == nil { return \"\(name)\" }")
        }
        guard checkedFields.contains(field.number) else { continue }
        let missing = "path = VencejoProtobuf::Required.missing"
        if case .oneof(let index) = field.presence {
          guard let oneof = oneofs.first(where: { $0.index == index }) else { continue }
          printer.line(
            "if case .\(field.caseName)(let value)? = \(own).\(oneof.property), "
              + "let \(missing)(in: value, \"\(name)\") { return path }")
        } else {
          printer.line(
            "if let \(missing)(in: \(own).\(field.name), \"\(name)\") { return path }")
        }
      }
      for known in checkedExtensions {
        printer.line(
          "if let path = VencejoProtobuf::Required.missing(in: self, \(known.reference)) "
            + "{ return path }")
      }
      printer.line("return nil")
    }
  }
}
