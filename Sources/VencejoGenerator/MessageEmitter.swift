import VencejoDescriptors
import VencejoProtobuf

/// Prints one message, with its oneofs and enums, and the messages nested in it.
struct MessageEmitter {
  /// What the messages of a file share.
  struct Context {
    let types: TypeIndex
    let comments: Comments
    /// `public ` or nothing.
    let access: String
    /// The expression for the file's descriptor.
    let fileDescriptor: String
    /// The extensions the file declares, by the full name of what they extend.
    let extensions: [String: [KnownExtension]]
  }

  struct Oneof {
    let property: String
    let type: String
    let fields: [Field]
    let index: Int
  }

  let context: Context
  let descriptor: Google.DescriptorProto
  let fullName: String
  let path: [Int32]
  let swiftName: String
  let features: Features
  let fields: [Field]
  let oneofs: [Oneof]
  let isBoxed: Bool
  /// Whether it has required fields, or leads to messages that have.
  let needsCheck: Bool
  /// The numbers of the message fields to look into for missing required fields.
  let checkedFields: Set<Int32>
  /// The extensions to look into for them, those of the same file.
  let checkedExtensions: [KnownExtension]

  var access: String { context.access }

  init(
    _ descriptor: Google.DescriptorProto, fullName: String, path: [Int32], features: Features,
    context: Context
  ) throws(GeneratorError) {
    self.context = context
    self.descriptor = descriptor
    self.fullName = fullName
    self.path = path
    swiftName = context.types.name(fullName)
    self.features = features.with(descriptor.options?.features)
    var fields: [Field] = []
    for (index, field) in descriptor.field.enumerated() {
      if let field = try Field(
        field, index: index, features: self.features, oneofs: descriptor.oneofDecl,
        types: context.types)
      {
        fields.append(field)
      }
    }
    var names = UniqueNames()
    // Fields come first: a oneof is rarer, and its name is not on the wire.
    for index in fields.indices {
      let number = fields[index].number
      if case .oneof = fields[index].presence {
        fields[index].caseName = names.unique(
          fields[index].caseName, number,
          scope: descriptor.field[Int(fields[index].index)].oneofIndex)
      } else {
        fields[index].name = names.unique(fields[index].name, number)
      }
    }
    self.fields = fields
    let taken = Set(
      (descriptor.nestedType.map(\.name) + descriptor.enumType.map(\.name)).map {
        context.types.name("\(fullName).\($0 ?? "")")
      })
    var oneofs: [Oneof] = []
    for (index, oneof) in descriptor.oneofDecl.enumerated() {
      let members = fields.filter { if case .oneof(index) = $0.presence { true } else { false } }
      // An `optional` of proto3 is a oneof of its own on paper only.
      guard let first = members.first else { continue }
      var type = Names.oneof(oneof.name ?? "")
      while taken.contains(type) || oneofs.contains(where: { $0.type == type }) { type += "Oneof" }
      oneofs.append(
        Oneof(
          property: names.unique(Names.property(oneof.name ?? ""), first.number, "Oneof"),
          type: type, fields: members, index: index))
    }
    self.oneofs = oneofs
    needsCheck = try context.types.needsCheck(".\(fullName)")
    var checked: Set<Int32> = []
    for field in fields {
      if let type = field.messageType, try context.types.needsCheck(type) {
        checked.insert(field.number)
      }
    }
    checkedFields = checked
    var checkedExtensions: [KnownExtension] = []
    for known in context.extensions[".\(fullName)"] ?? [] {
      if let type = known.messageType, try context.types.needsCheck(type) {
        checkedExtensions.append(known)
      }
    }
    self.checkedExtensions = checkedExtensions
    isBoxed = try context.types.layout(".\(fullName)", descriptor).isBoxed
  }

  /// Prints the message.
  func emit(to printer: inout Printer) throws(GeneratorError) {
    var nested = Printer()
    try emitNested(to: &nested)
    printer.doc(documentation(path, deprecated: descriptor.options?.deprecated))
    printer.block("\(access)struct \(swiftName): VencejoProtobuf::Message {") { printer in
      isBoxed ? emitBoxed(to: &printer) : emitInline(to: &printer)
      printer.insert(nested)
    }
  }

  func documentation(_ path: [Int32], deprecated: Bool?) -> String? {
    let comment = context.comments[path]
    guard deprecated == true else { return comment }
    return (comment.map { $0 + "\n\n" } ?? "") + "Deprecated."
  }

  /// Every property but `unknownFields`: (declaration name, type, initial value, comment).
  typealias Property = (
    name: String, type: String, initial: String?, doc: String?, isDeprecated: Bool
  )

  var properties: [Property] {
    var result: [Property] = []
    var seen: Set<Int> = []
    for field in fields {
      if case .oneof(let index) = field.presence {
        guard seen.insert(index).inserted, let oneof = oneofs.first(where: { $0.index == index })
        else { continue }
        let doc = context.comments[path + [8, Int32(index)]]
        result.append((oneof.property, "\(oneof.type)?", nil, doc, false))
      } else {
        let options = descriptor.field[Int(field.index)].options
        let doc = context.comments[path + [2, field.index]]
        result.append(
          (field.name, field.type, field.initial, doc, options?.deprecated == true))
      }
    }
    return result
  }

  // MARK: Layouts

  private func emitInline(to printer: inout Printer) {
    for property in properties {
      printer.doc(property.doc)
      printer.line(access + stored(property))
    }
    printer.line("\(access)var unknownFields: VencejoProtobuf::UnknownFields")
    printer.line()
    emitStatics(to: &printer)
    printer.block("\(access)init() {") { printer in
      for property in properties {
        printer.line("self.\(property.name) = \(property.initial ?? "nil")")
      }
      printer.line("self.unknownFields = .init()")
    }
    emitInitializer(to: &printer) { printer in
      for property in properties { printer.line("self.\(property.name) = \(property.name)") }
      printer.line("self.unknownFields = .init()")
    }
    emitCodec(access, to: &printer)
    if fields.allSatisfy({ $0.isPlain }) { emitEquality(to: &printer) }
  }

  private func emitBoxed(to printer: inout Printer) {
    printer.block("struct Storage: Swift::Sendable {") { printer in
      for property in properties { printer.line(stored(property)) }
      printer.line("var unknownFields: VencejoProtobuf::UnknownFields")
      emitCodec("", to: &printer)
    }
    printer.line("var storage: VencejoProtobuf::Boxed<Storage>")
    printer.line()
    for property in properties {
      printer.doc(property.doc)
      if property.isDeprecated { printer.line(Names.deprecated) }
      emitAccessor(property.name, property.type, to: &printer)
    }
    emitAccessor("unknownFields", "VencejoProtobuf::UnknownFields", to: &printer)
    printer.line()
    emitStatics(to: &printer)
    printer.block("\(access)init() {") { $0.line(boxing { $0.initial ?? "nil" }) }
    emitInitializer(to: &printer) { $0.line(boxing { $0.name }) }
    let reader = "from reader: inout VencejoProtobuf::WireReader"
    printer.block("\(access)mutating func decode(\(reader)) {") {
      $0.line("self.storage.value.decode(from: &reader)")
    }
    printer.block("\(access)func encode(to writer: inout VencejoProtobuf::WireWriter) {") {
      $0.line(
        lendsFields
          ? "Storage.encode(self.storage.lent, to: &writer)"
          : "self.storage.value.encode(to: &writer)")
    }
    // Once: in line it would also be in what stands for it in the table of the protocol.
    printer.line("@inline(never)")
    printer.block("\(access)static func == (left: Self, right: Self) -> Swift::Bool {") {
      $0.line("left.storage === right.storage || left.isEncodedLike(right)")
    }
  }

  /// Without an initial value, which would be a function of its own: initializers give all.
  private func stored(_ property: Property) -> String {
    "var \(property.name): \(property.type)"
  }

  private func boxing(_ value: (Property) -> String) -> String {
    let arguments = properties.map { "\(Names.label($0.name, inCall: true)): \(value($0)), " }
    return "self.storage = VencejoProtobuf::Boxed("
      + "Storage(\(arguments.joined())unknownFields: .init()))"
  }

  private func emitAccessor(_ name: String, _ type: String, to printer: inout Printer) {
    printer.block("\(access)var \(name): \(type) {") { printer in
      printer.line("get { self.storage.value.\(name) }")
      printer.line("_modify { yield &self.storage.value.\(name) }")
    }
  }

  private func emitStatics(to printer: inout Printer) {
    printer.line("\(access)static var messageName: Swift::String { \"\(fullName)\" }")
    printer.line("@inline(never)")
    printer.line(
      "\(access)static var fileDescriptor: VencejoProtobuf::FileDescriptor "
        + "{ \(context.fileDescriptor) }")
  }

  private func emitInitializer(to printer: inout Printer, _ body: (inout Printer) -> Void) {
    if properties.isEmpty { return }
    printer.block("\(access)init(", end: ") {") { printer in
      for (index, property) in properties.enumerated() {
        let comma = index + 1 < properties.count ? "," : ""
        let label = Names.label(property.name, inCall: false)
        printer.line("\(label): \(property.type) = \(property.initial ?? "nil")\(comma)")
      }
    }
    printer.indented(body)
    printer.line("}")
  }

  private func emitEquality(to printer: inout Printer) {
    let names = properties.map { $0.name } + ["unknownFields"]
    printer.block("\(access)static func == (left: Self, right: Self) -> Swift::Bool {") { printer in
      for name in names.dropLast() {
        printer.line("if left.\(name) != right.\(name) { return false }")
      }
      printer.line("return left.unknownFields == right.unknownFields")
    }
    printer.block("\(access)func hash(into hasher: inout Swift::Hasher) {") { printer in
      for name in names { printer.line("hasher.combine(self.\(name))") }
    }
  }

  // MARK: Nested types

  private func emitNested(to printer: inout Printer) throws(GeneratorError) {
    emitDefaults(to: &printer)
    emitRequired(to: &printer)
    try ExtensionEmitter(
      descriptor.extension, scope: fullName, path: path + [6], features: features,
      context: context
    ).emit(to: &printer)
    for oneof in oneofs {
      printer.line()
      printer.doc(context.comments[path + [8, Int32(oneof.index)]])
      printer.block("\(access)enum \(oneof.type): VencejoProtobuf::OneofValue {") { printer in
        for field in oneof.fields {
          printer.doc(context.comments[path + [2, field.index]])
          printer.line("case \(field.caseName)(\(field.element))")
        }
      }
    }
    for (index, enumeration) in descriptor.enumType.enumerated() {
      printer.line()
      EnumEmitter(
        descriptor: enumeration, fullName: "\(fullName).\(enumeration.name ?? "")",
        path: path + [4, Int32(index)], features: features, context: context
      ).emit(to: &printer)
    }
  }

  /// Prints the messages within this one, in extensions of it: each level of declarations
  /// within each other nearly doubles the time they take to compile.
  func emitNestedMessages(to printer: inout Printer) throws(GeneratorError) {
    var nested: [MessageEmitter] = []
    for (index, message) in descriptor.nestedType.enumerated()
    where message.options?.mapEntry != true {
      nested.append(
        try MessageEmitter(
          message, fullName: "\(fullName).\(message.name ?? "")", path: path + [3, Int32(index)],
          features: features, context: context))
    }
    if nested.isEmpty { return }
    var body = Printer()
    for (index, message) in nested.enumerated() {
      if index > 0 { body.line() }
      try message.emit(to: &body)
    }
    printer.line()
    let reference = try context.types.type(".\(fullName)").reference
    printer.block("extension \(reference) {") { $0.insert(body) }
    for message in nested { try message.emitNestedMessages(to: &printer) }
  }
}
