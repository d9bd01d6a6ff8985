import VencejoDescriptors
import VencejoProtobuf

/// Prints one enum: a struct around a number with a static property per value. They are
/// computed: stored ones compile three times as slowly.
struct EnumEmitter {
  let descriptor: Google.EnumDescriptorProto
  let fullName: String
  let path: [Int32]
  let features: Features
  let context: MessageEmitter.Context

  init(
    descriptor: Google.EnumDescriptorProto, fullName: String, path: [Int32], features: Features,
    context: MessageEmitter.Context
  ) {
    self.descriptor = descriptor
    self.fullName = fullName
    self.path = path
    self.features = features.with(descriptor.options?.features)
    self.context = context
  }

  func emit(to printer: inout Printer) {
    let access = context.access
    let names = Names.values(of: descriptor)
    printer.doc(context.comments[path])
    printer.block(
      "\(access)struct \(context.types.name(fullName)): "
        + "VencejoProtobuf::\(features.closedEnums ? "Closed" : "")Enumeration, "
        + "Swift::CaseIterable {"
    ) { printer in
      printer.line("\(access)var rawValue: Swift::Int32")
      printer.line("\(access)init(rawValue: Swift::Int32) { self.rawValue = rawValue }")
      printer.line("\(access)static var enumName: Swift::String { \"\(fullName)\" }")
      var seen: Set<Int32> = []
      var distinct: [String] = []
      for (index, (value, name)) in zip(descriptor.value, names).enumerated() {
        let number = value.number ?? 0
        let isDeprecated = value.options?.deprecated == true
        // Its own code must not use what is deprecated.
        if seen.insert(number).inserted {
          distinct.append(isDeprecated ? ".init(rawValue: \(number))" : ".\(name)")
        }
        printer.doc(context.comments[path + [2, Int32(index)]])
        if isDeprecated { printer.line(Names.deprecated) }
        printer.line("\(access)static var \(name): Self { .init(rawValue: \(number)) }")
      }
      if features.closedEnums {
        let first = descriptor.value.first?.number ?? 0
        printer.line("\(access)static var defaultValue: Self { .init(rawValue: \(first)) }")
        printer.block("\(access)static func isKnown(_ number: Swift::Int32) -> Swift::Bool {") {
          printer in
          printer.line("switch number {")
          printer.line("case \(Self.ranges(seen)): true")
          printer.line("default: false")
          printer.line("}")
        }
      }
      // A literal of thousands of values takes the compiler a gigabyte of memory.
      let all =
        distinct.count > 200
        ? "([\(Self.ranges(seen, asRanges: true))] "
          + "as [Swift::ClosedRange<Swift::Int32>]).flatMap { $0.map { Self(rawValue: $0) } }"
        : "[\(distinct.joined(separator: ", "))]"
      printer.line("\(access)static var allCases: [Self] { \(all) }")
    }
  }

  /// Patterns for the numbers, each run of them one pattern.
  private static func ranges(
    _ numbers: Set<Int32>, asRanges: Bool = false
  ) -> String {
    var runs: [ClosedRange<Int32>] = []
    for number in numbers.sorted() {
      if let last = runs.last, last.upperBound == number - 1 {
        runs[runs.count - 1] = last.lowerBound...number
      } else {
        runs.append(number...number)
      }
    }
    // `-7...-5` would not parse.
    func bound(_ number: Int32) -> String { number < 0 ? "(\(number))" : "\(number)" }
    return runs.map {
      $0.count == 1 && !asRanges
        ? "\($0.lowerBound)" : "\(bound($0.lowerBound))...\(bound($0.upperBound))"
    }.joined(separator: ", ")
  }
}
