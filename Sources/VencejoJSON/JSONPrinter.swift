import VencejoDescriptors
import VencejoProtobuf

/// Writes messages as JSON.
struct JSONPrinter {
  let options: JSONOptions
  private(set) var text = ""
  /// Open brackets.
  private var depth = 0
  /// Messages within each other.
  private var nesting = 0

  init(options: JSONOptions) { self.options = options }

  mutating func print(_ message: DynamicMessage) throws(JSONFault) {
    try nest { (printer) throws(JSONFault) in
      if let wellKnown = message.descriptor.info.wellKnown {
        return try printer.print(message, wellKnown)
      }
      var list = printer.open("{")
      try printer.printFields(message, &list)
      printer.close("}", list)
    }
  }

  /// Prints a message within another. Messages packed in Any begin to count anew on the wire,
  /// not here.
  mutating func nest(_ body: (inout JSONPrinter) throws(JSONFault) -> Void) throws(JSONFault) {
    guard nesting < WireReader.maximumDepth else { throw JSONFault(message: "nested too deeply") }
    nesting += 1
    defer { nesting -= 1 }
    try body(&self)
  }

  // MARK: Layout

  /// What has been written of an object or array.
  struct List {
    var isEmpty = true
  }

  mutating func open(_ bracket: String) -> List {
    text += bracket
    depth += 1
    return List()
  }

  mutating func close(_ bracket: String, _ list: List) {
    depth -= 1
    if !list.isEmpty { newLine() }
    text += bracket
  }

  /// Begins an element.
  mutating func next(_ list: inout List) {
    if !list.isEmpty { text += "," }
    list.isEmpty = false
    newLine()
  }

  /// Begins a member.
  mutating func next(_ name: String, _ list: inout List) {
    next(&list)
    quote(name)
    text += options.pretty ? ": " : ":"
  }

  private mutating func newLine() {
    guard options.pretty else { return }
    text += "\n"
    for _ in 0..<depth { text += "  " }
  }

  mutating func write(_ text: String) { self.text += text }

  mutating func quote(_ string: String) {
    text += "\""
    for scalar in string.unicodeScalars {
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case "\n": text += "\\n"
      case "\r": text += "\\r"
      case "\t": text += "\\t"
      // What JSON asks for, and what a terminal would obey or a reader not see.
      case "\u{0}"..<"\u{20}", "\u{7F}"..."\u{9F}", "\u{200E}", "\u{200F}",
        "\u{2028}"..."\u{202E}", "\u{2066}"..."\u{2069}", "\u{FEFF}":
        let digits = String(scalar.value, radix: 16)
        text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: text.unicodeScalars.append(scalar)
      }
    }
    text += "\""
  }

  // MARK: Fields

  mutating func printFields(
    _ message: DynamicMessage, _ list: inout List
  ) throws(JSONFault) {
    for field in message.descriptor.fields + message.extensionFields {
      let name = options.originalNames ? field.name : field.jsonName
      guard let value = message.fields[field.number] ?? shownDefault(field) else { continue }
      if !field.hasPresence && value.isDefault && !options.defaults { continue }
      next(name, &list)
      try within(".\(name)") { () throws(JSONFault) in try print(value, field) }
    }
  }

  private func shownDefault(_ field: FieldDescriptor) -> DynamicValue? {
    guard options.defaults, !field.hasPresence else { return nil }
    if field.isMap { return .map([:]) }
    return field.isRepeated ? .list([]) : field.defaultValue
  }

  mutating func print(
    _ value: DynamicValue, _ field: FieldDescriptor
  ) throws(JSONFault) {
    switch value {
    case .bool(let value): write(value ? "true" : "false")
    case .int32(let value): write("\(value)")
    case .uint32(let value): write("\(value)")
    case .int64(let value): write("\"\(value)\"")
    case .uint64(let value): write("\"\(value)\"")
    case .float(let value):
      value.isFinite ? write("\(value)") : write(Self.special(Double(value)))
    case .double(let value): value.isFinite ? write("\(value)") : write(Self.special(value))
    case .string(let value): quote(value)
    case .bytes where field.kind == .string: throw JSONFault(message: "not UTF-8")
    case .bytes(let value): write("\"\(Base64.encode(value))\"")
    case .enumeration(let value):
      if field.enumType?.fullName == "google.protobuf.NullValue" {
        write("null")
      } else if !options.enumNumbers, let name = field.enumType?.name(of: value) {
        quote(name)
      } else {
        write("\(value)")
      }
    case .message(let message): try print(message)
    case .list(let values):
      var list = open("[")
      for (index, value) in values.enumerated() {
        next(&list)
        try within("[\(index)]") { () throws(JSONFault) in try print(value, field) }
      }
      close("]", list)
    case .map(let map):
      guard let (_, valueField) = field.entryFields else { return write("{}") }
      var list = open("{")
      for (key, value) in map.sorted(by: { DynamicValue.precedes($0.key, $1.key) }) {
        let name = key.keyText
        next(name, &list)
        try within(".\(name)") { () throws(JSONFault) in try print(value, valueField) }
      }
      close("}", list)
    }
  }

  private static func special(_ value: Double) -> String {
    value.isNaN ? "\"NaN\"" : value < 0 ? "\"-Infinity\"" : "\"Infinity\""
  }
}
