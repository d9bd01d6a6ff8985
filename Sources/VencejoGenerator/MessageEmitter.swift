import VencejoProtobuf

/// Prints one message and the types nested in it.
struct MessageEmitter {
  /// What the messages of a file share.
  struct Context {
    let types: TypeIndex
    let comments: Comments
    let proto3: Bool
    /// `public ` or nothing.
    let access: String
    /// The expression for the file's descriptor.
    let fileDescriptor: String
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
  let fields: [Field]
  let oneofs: [Oneof]
  let isBoxed: Bool

  var access: String { context.access }

  init(
    _ descriptor: Google.DescriptorProto, fullName: String, path: [Int32], context: Context
  ) throws(GeneratorError) {
    self.context = context
    self.descriptor = descriptor
    self.fullName = fullName
    self.path = path
    swiftName = Names.message(descriptor.name ?? "")
    var fields: [Field] = []
    for (index, field) in descriptor.field.enumerated() {
      if let field = try Field(field, index: index, proto3: context.proto3, types: context.types) {
        fields.append(field)
      }
    }
    self.fields = fields
    let taken = Set(
      descriptor.nestedType.map { Names.message($0.name ?? "") }
        + descriptor.enumType.map { Names.enumeration($0.name ?? "") })
    oneofs = descriptor.oneofDecl.enumerated().compactMap { index, oneof in
      let members = fields.filter { if case .oneof(index) = $0.presence { true } else { false } }
      // An `optional` of proto3 is a oneof of its own on paper only.
      if members.isEmpty { return nil }
      var type = Names.oneof(oneof.name ?? "")
      if taken.contains(type) { type += "Oneof" }
      return Oneof(
        property: Names.property(oneof.name ?? ""), type: type, fields: members, index: index)
    }
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
  typealias Property = (name: String, type: String, initial: String?, doc: String?)

  var properties: [Property] {
    var result: [Property] = []
    var seen: Set<Int> = []
    for field in fields {
      if case .oneof(let index) = field.presence {
        guard seen.insert(index).inserted, let oneof = oneofs.first(where: { $0.index == index })
        else { continue }
        let doc = context.comments[path + [8, Int32(index)]]
        result.append((oneof.property, "\(oneof.type)?", nil, doc))
      } else {
        let options = descriptor.field[Int(field.index)].options
        let doc = documentation(path + [2, field.index], deprecated: options?.deprecated)
        result.append((field.name, field.type, field.initial, doc))
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
    printer.line("\(access)var unknownFields = VencejoProtobuf::UnknownFields()")
    printer.line()
    emitStatics(to: &printer)
    printer.line("\(access)init() {}")
    emitInitializer(to: &printer) { printer in
      for property in properties { printer.line("self.\(property.name) = \(property.name)") }
    }
    emitCodec(access, to: &printer)
    if fields.allSatisfy({ $0.isPlain }) { emitEquality(to: &printer) }
  }

  private func emitBoxed(to printer: inout Printer) {
    printer.block("struct Storage: Swift::Sendable {") { printer in
      for property in properties { printer.line(stored(property)) }
      printer.line("var unknownFields = VencejoProtobuf::UnknownFields()")
      emitCodec("", to: &printer)
    }
    printer.line("var storage = VencejoProtobuf::Boxed(Storage())")
    printer.line()
    for property in properties {
      printer.doc(property.doc)
      emitAccessor(property.name, property.type, to: &printer)
    }
    emitAccessor("unknownFields", "VencejoProtobuf::UnknownFields", to: &printer)
    printer.line()
    emitStatics(to: &printer)
    printer.line("\(access)init() {}")
    emitInitializer(to: &printer) { printer in
      let arguments = properties.map { "\(Names.label($0.name, inCall: true)): \($0.name)" }
        .joined(separator: ", ")
      printer.line("self.storage = VencejoProtobuf::Boxed(Storage(\(arguments)))")
    }
    let reader = "from reader: inout VencejoProtobuf::WireReader"
    printer.block("\(access)mutating func decode(\(reader)) {") {
      $0.line("self.storage.value.decode(from: &reader)")
    }
    printer.block("\(access)func encode(to writer: inout VencejoProtobuf::WireWriter) {") {
      $0.line("self.storage.value.encode(to: &writer)")
    }
    printer.block("\(access)static func == (left: Self, right: Self) -> Swift::Bool {") {
      $0.line("left.storage === right.storage || left.isEncodedLike(right)")
    }
  }

  private func stored(_ property: Property) -> String {
    "var \(property.name): \(property.type)" + (property.initial.map { " = \($0)" } ?? "")
  }

  private func emitAccessor(_ name: String, _ type: String, to printer: inout Printer) {
    printer.block("\(access)var \(name): \(type) {") { printer in
      printer.line("get { self.storage.value.\(name) }")
      printer.line("_modify { yield &self.storage.value.\(name) }")
    }
  }

  private func emitStatics(to printer: inout Printer) {
    printer.line("\(access)static var messageName: Swift::String { \"\(fullName)\" }")
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
    for oneof in oneofs {
      printer.line()
      printer.doc(context.comments[path + [8, Int32(oneof.index)]])
      printer.block("\(access)enum \(oneof.type): Swift::Hashable, Swift::Sendable {") { printer in
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
        path: path + [4, Int32(index)], context: context
      ).emit(to: &printer)
    }
    for (index, message) in descriptor.nestedType.enumerated() {
      if message.options?.mapEntry == true { continue }
      printer.line()
      try MessageEmitter(
        message, fullName: "\(fullName).\(message.name ?? "")", path: path + [3, Int32(index)],
        context: context
      ).emit(to: &printer)
    }
  }
}
