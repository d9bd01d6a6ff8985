import VencejoProtobuf

// The two hooks of `Message`: a switch over tags, and the fields in reverse order.
extension MessageEmitter {
  /// Whether the fields in a box are encoded where they are, not copied with a retain each. What
  /// that takes to compile grows with the square of their number: nothing for twenty, but ten
  /// seconds for a hundred.
  var lendsFields: Bool { isBoxed && fields.count <= 24 }

  /// Prints the two; encoding as a method, or as a static one of fields that are lent.
  func emitCodec(_ access: String, to printer: inout Printer) {
    // Once per message: inlined into the reader's and writer's generic methods they would be
    // there twice.
    printer.line("@inline(never)")
    let reader = "from reader: inout VencejoProtobuf::WireReader"
    printer.block("\(access)mutating func decode(\(reader)) {") { printer in
      printer.block("while true {") { printer in
        printer.line("let tag = reader.nextTag()")
        printer.line("switch tag {")
        printer.line("case 0: return")
        for field in fields { emitDecode(field, to: &printer) }
        emitExtensions(to: &printer)
        printer.line("default: reader.unknown(tag, into: &self.unknownFields)")
        printer.line("}")
      }
    }
    printer.line("@inline(never)")
    let writer = "to writer: inout VencejoProtobuf::WireWriter"
    let method =
      lendsFields
      ? "static func encode(_ fields: borrowing VencejoProtobuf::Lent<Self>, \(writer)) {"
      : "\(access)func encode(\(writer)) {"
    printer.block(method) { printer in
      let own = lendsFields ? "fields.value" : "self"
      printer.line("writer.unknown(\(own).unknownFields)")
      emitEncode(own, to: &printer)
    }
  }

  /// Extensions stay among the unknown fields, but those of the same file are checked: text that
  /// is not UTF-8, messages that are malformed or nest too deeply are errors in them too.
  private func emitExtensions(to printer: inout Printer) {
    guard let known = context.extensions[".\(fullName)"] else { return }
    if descriptor.options?.messageSetWireFormat == true {
      printer.block(
        "case 11: reader.messageSetItem(into: &self.unknownFields) { reader, number in", end: "}"
      ) { printer in
        printer.line("switch number {")
        for field in known {
          printer.line("case \(field.number): reader.check(\(field.reference), 26)")
        }
        printer.line("default: reader.skip(26)")
        printer.line("}")
      }
    }
    for field in known {
      let tags = field.tags.map { "\($0)" }.joined(separator: ", ")
      printer.line(
        "case \(tags): reader.known(\(field.reference), tag, into: &self.unknownFields)")
    }
  }

  private func emitDecode(_ field: Field, to printer: inout Printer) {
    let property = "self.\(field.name)"
    // Groups are read with their tag, to know where they end.
    let tag = field.method == "group" ? "tag, " : ""
    // Readers accept both forms, whatever the file says about packing.
    let tags = field.wireType == 2 ? "\(field.tag)" : "\(field.tag), \(field.packedTag)"
    switch field.presence {
    case .repeated where field.isMessage:
      printer.line("case \(field.tag): reader.\(field.method)(\(tag)into: &\(property))")
    case .repeated where field.mayRefuse:
      printer.line(
        "case \(tags): reader."
          + (field.kind == .enum ? "closed(tag, " : "looseStrings(")
          + "into: &\(property), &self.unknownFields)")
    case .repeated:
      printer.line("case \(tags): reader.list(\(field.coding).self, tag, into: &\(property))")
    case .map(let key, let value):
      printer.line(
        "case \(field.tag): reader.map(\(key).self, \(value).self, into: &\(property), "
          + "&self.unknownFields)")
    case .explicit where field.isMessage:
      printer.line("case \(field.tag): reader.\(field.method)(\(tag)into: &\(property))")
    case .explicit where field.mayRefuse, .implicit where field.mayRefuse:
      printer.line(
        "case \(field.tag): if let value = \(refusing(field)) { \(property) = value }")
    case .explicit, .implicit:
      printer.line("case \(field.tag): \(property) = reader.\(field.method)()")
    case .oneof(let index):
      guard let oneof = oneofs.first(where: { $0.index == index }) else { return }
      if field.mayRefuse {
        printer.line(
          "case \(field.tag): if let value = \(refusing(field)) "
            + "{ self.\(oneof.property) = .\(field.caseName)(value) }")
        return
      }
      if !field.isMessage {
        printer.line(
          "case \(field.tag): self.\(oneof.property) = .\(field.caseName)(reader.\(field.method)())"
        )
        return
      }
      printer.block(
        "case \(field.tag):", end: "  self.\(oneof.property) = .\(field.caseName)(value)"
      ) { printer in
        printer.line("var value = \(field.element)()")
        printer.line(
          "if case .\(field.caseName)(let old)? = self.\(oneof.property) { value = old }")
        // Lets go of the second reference, so that the value changes in place.
        printer.line("self.\(oneof.property) = nil")
        printer.line("reader.\(field.method)(\(tag)into: &value)")
      }
    }
  }

  /// Reads a value that may not fit, and then stays an unknown field.
  private func refusing(_ field: Field) -> String {
    field.kind == .enum
      ? "reader.closed(\(field.element).self, &self.unknownFields)"
      : "reader.looseString(&self.unknownFields)"
  }

  private func emitEncode(_ own: String, to printer: inout Printer) {
    // A oneof is written where the first of its members would be.
    var firsts: [Int: Int32] = [:]
    for oneof in oneofs { firsts[oneof.index] = oneof.fields.map { $0.number }.min() }
    for field in fields.sorted(by: { $0.number > $1.number }) {
      let property = "\(own).\(field.name)"
      switch field.presence {
      case .repeated where field.isMessage:
        printer.line("writer.\(field.method)(\(field.tag), \(property))")
      case .repeated(packed: true):
        printer.line("writer.packed(\(field.coding).self, \(field.packedTag), \(property))")
      case .repeated:
        printer.line("writer.list(\(field.coding).self, \(field.tag), \(property))")
      case .map(let key, let value):
        printer.line("writer.map(\(key).self, \(value).self, \(field.tag), \(property))")
      case .explicit:
        printer.line(
          "if let value = \(property) { writer.\(field.method)(\(field.tag), value) }")
      case .implicit where field.kind == .string:
        printer.line("writer.implicitString(\(field.tag), \(property))")
      case .implicit:
        let test =
          switch field.kind {
          case .bytes: "!\(property).isEmpty"
          case .bool: property
          case .float, .double: "\(property).bitPattern != 0"
          case .enum: "\(property).rawValue != 0"
          default: "\(property) != 0"
          }
        printer.line("if \(test) { writer.\(field.method)(\(field.tag), \(property)) }")
      case .oneof(let index):
        guard firsts[index] == field.number,
          let oneof = oneofs.first(where: { $0.index == index })
        else { continue }
        printer.line("switch \(own).\(oneof.property) {")
        printer.line("case nil: break")
        for member in oneof.fields {
          printer.line(
            "case .\(member.caseName)(let value)?: writer.\(member.method)(\(member.tag), value)")
        }
        printer.line("}")
      }
    }
  }
}
