import VencejoProtobuf

/// Prints one enum: a struct around a number with a static property per value. They are
/// computed: stored ones compile three times as slowly.
struct EnumEmitter {
  let descriptor: Google.EnumDescriptorProto
  let fullName: String
  let path: [Int32]
  let context: MessageEmitter.Context

  func emit(to printer: inout Printer) {
    let access = context.access
    let names = Names.values(of: descriptor)
    printer.doc(context.comments[path])
    printer.block(
      "\(access)struct \(Names.enumeration(descriptor.name ?? "")): "
        + "VencejoProtobuf::Enumeration, Swift::CaseIterable {"
    ) { printer in
      printer.line("\(access)var rawValue: Swift::Int32")
      printer.line("\(access)init(rawValue: Swift::Int32) { self.rawValue = rawValue }")
      printer.line("\(access)static var enumName: Swift::String { \"\(fullName)\" }")
      var seen: Set<Int32> = []
      var distinct: [String] = []
      for (index, (value, name)) in zip(descriptor.value, names).enumerated() {
        let number = value.number ?? 0
        if seen.insert(number).inserted { distinct.append(".\(name)") }
        printer.doc(context.comments[path + [2, Int32(index)]])
        printer.line("\(access)static var \(name): Self { .init(rawValue: \(number)) }")
      }
      printer.line(
        "\(access)static var allCases: [Self] { [\(distinct.joined(separator: ", "))] }")
    }
  }
}
