import VencejoDescriptors
import VencejoProtobuf
import VencejoText

/// Writes a whole .proto file from its descriptor: what protoc makes of it is that descriptor
/// again, without the comments.
struct ProtoFilePrinter {
  private let syntax: Syntax
  private let text: TextOptions
  private var output = ""
  private var depth = 0

  private enum Syntax { case proto2, proto3, editions }

  static func text(of file: Google.FileDescriptorProto, _ types: DescriptorPool?) -> String {
    var printer = ProtoFilePrinter(file, types)
    printer.print(file)
    return printer.output
  }

  private init(_ file: Google.FileDescriptorProto, _ types: DescriptorPool?) {
    syntax =
      switch file.syntax {
      case "proto3": .proto3
      case "editions": .editions
      default: .proto2
      }
    var text = TextOptions()
    text.types = types
    text.unknownFields = false
    self.text = text
  }

  private mutating func line(_ text: String) {
    output += String(repeating: "  ", count: depth) + text + "\n"
  }

  private mutating func block(_ head: String, _ body: (inout Self) -> Void) {
    line(head + " {")
    depth += 1
    body(&self)
    depth -= 1
    line("}")
  }

  private mutating func print(_ file: Google.FileDescriptorProto) {
    switch syntax {
    case .editions:
      let years: [Int32: String] = [1000: "2023", 1001: "2024", 1002: "2026"]
      line("edition = \"\(years[file.edition?.rawValue ?? 0] ?? "2023")\";")
    case .proto2, .proto3: line("syntax = \"\(syntax)\";")
    }
    if let package = file.package, !package.isEmpty { line("package \(package);") }
    for (index, path) in file.dependency.enumerated() {
      let kind =
        file.publicDependency.contains(Int32(index))
        ? "public " : file.weakDependency.contains(Int32(index)) ? "weak " : ""
      line("import \(kind)\(Self.quoted(path));")
    }
    for path in file.optionDependency { line("import option \(Self.quoted(path));") }
    options(file.options)
    for type in file.enumType { print(type) }
    let groups = file.extension.filter { $0.type == .group }
    for type in file.messageType where !isGroup(type, of: groups) {
      print(type, head: "message \(type.name ?? "")")
    }
    extensions(file.extension, groups: file.messageType)
    for service in file.service {
      block("service \(service.name ?? "")") { printer in
        printer.options(service.options)
        for method in service.method { printer.print(method) }
      }
    }
  }

  private mutating func print(_ method: Google.MethodDescriptorProto) {
    let input = (method.clientStreaming == true ? "stream " : "") + (method.inputType ?? "")
    let result = (method.serverStreaming == true ? "stream " : "") + (method.outputType ?? "")
    let head = "rpc \(method.name ?? "")(\(input)) returns (\(result))"
    if entries(method.options).isEmpty { return line(head + ";") }
    block(head) { $0.options(method.options) }
  }

  private mutating func print(_ type: Google.EnumDescriptorProto) {
    block("enum \(type.name ?? "")") { printer in
      printer.options(type.options)
      printer.reserved(
        type.reservedRange.map { Self.range($0.start ?? 0, $0.end ?? 0, most: .max) },
        type.reservedName)
      for value in type.value {
        let notes = printer.entries(value.options).map { "\($0) = \($1)" }
        printer.line("\(value.name ?? "") = \(value.number ?? 0)\(Self.notes(notes));")
      }
    }
  }

  private mutating func print(_ type: Google.DescriptorProto, head: String) {
    block(head) { printer in
      printer.options(type.options)
      let last: Int32 = 536_870_911
      printer.reserved(
        type.reservedRange.map { Self.range($0.start ?? 0, ($0.end ?? 1) - 1, most: last) },
        type.reservedName)
      for range in type.extensionRange {
        let notes = printer.entries(range.options).map { "\($0) = \($1)" }
        let numbers = Self.range(range.start ?? 0, (range.end ?? 1) - 1, most: last)
        printer.line("extensions \(numbers)\(Self.notes(notes));")
      }
      let groups = (type.field + type.extension).filter { $0.type == .group }
      for inner in type.nestedType
      where inner.options?.mapEntry != true && !printer.isGroup(inner, of: groups) {
        printer.print(inner, head: "message \(inner.name ?? "")")
      }
      for inner in type.enumType { printer.print(inner) }
      printer.fields(of: type)
      printer.extensions(type.extension, groups: type.nestedType)
    }
  }

  /// The members of a oneof lie together.
  private mutating func fields(of type: Google.DescriptorProto) {
    var printed: Set<Int32> = []
    for field in type.field {
      guard let index = field.oneofIndex, field.proto3Optional != true,
        type.oneofDecl.indices.contains(Int(index))
      else {
        print(field, label: label(field), types: type.nestedType)
        continue
      }
      guard printed.insert(index).inserted else { continue }
      let oneof = type.oneofDecl[Int(index)]
      block("oneof \(oneof.name ?? "")") { printer in
        printer.options(oneof.options)
        for member in type.field where member.oneofIndex == index {
          printer.print(member, label: "", types: type.nestedType)
        }
      }
    }
  }

  private mutating func extensions(
    _ fields: [Google.FieldDescriptorProto], groups: [Google.DescriptorProto]
  ) {
    var extendees: [String] = []
    for field in fields {
      let extendee = field.extendee ?? ""
      if !extendees.contains(extendee) { extendees.append(extendee) }
    }
    for extendee in extendees {
      block("extend \(extendee)") { printer in
        for field in fields where field.extendee == extendee {
          printer.print(field, label: printer.label(field), types: groups)
        }
      }
    }
  }

  private func label(_ field: Google.FieldDescriptorProto) -> String {
    if field.label == .repeated { return "repeated " }
    switch syntax {
    case .editions: return ""
    case .proto3: return field.proto3Optional == true ? "optional " : ""
    case .proto2: return field.label == .required ? "required " : "optional "
    }
  }

  private mutating func print(
    _ field: Google.FieldDescriptorProto, label: String, types: [Google.DescriptorProto]
  ) {
    let (name, number) = (field.name ?? "", field.number ?? 0)
    var notes: [String] = []
    if let value = field.defaultValue { notes.append("default = \(Self.value(value, field))") }
    if let json = field.jsonName, json != Self.camelCase(name), field.extendee == nil {
      notes.append("json_name = \(Self.quoted(json))")
    }
    notes += entries(field.options).map { "\($0) = \($1)" }
    let inner = types.first { Self.names(field, $0) }
    if let inner, inner.options?.mapEntry == true, inner.field.count == 2 {
      let (key, value) = (Self.type(inner.field[0]), Self.type(inner.field[1]))
      return line("map<\(key), \(value)> \(name) = \(number)\(Self.notes(notes));")
    }
    if field.type == .group, syntax != .editions, let inner {
      return print(
        inner, head: "\(label)group \(inner.name ?? "") = \(number)\(Self.notes(notes))")
    }
    line("\(label)\(Self.type(field)) \(name) = \(number)\(Self.notes(notes));")
  }

  /// Declared where a field of it is.
  private func isGroup(
    _ type: Google.DescriptorProto, of fields: [Google.FieldDescriptorProto]
  ) -> Bool {
    syntax != .editions && fields.contains { Self.names($0, type) }
  }

  // MARK: Options

  private mutating func options(_ message: (some Message)?) {
    for (name, value) in entries(message) { line("option \(name) = \(value);") }
  }

  /// An options message has a text whose outermost fields are the options.
  private func entries(_ message: (some Message)?) -> [(String, String)] {
    guard let message, let text = try? message.textString(text) else { return [] }
    var found: [(String, String)] = []
    for line in text.split(separator: "\n") {
      if line.first == " " || line == "}" {
        guard let last = found.indices.last else { continue }
        found[last].1 += " " + line.drop { $0 == " " }
      } else if line.hasSuffix("{") {
        found.append((Self.option(line.dropLast(2)), "{"))
      } else if let colon = line.firstRange(of: ": ") {
        found.append((Self.option(line[..<colon.lowerBound]), String(line[colon.upperBound...])))
      }
    }
    return found.filter { $0.0 != "map_entry" }
  }

  /// Text format writes extensions in square brackets, .proto files in round ones.
  private static func option(_ name: Substring) -> String {
    guard name.hasPrefix("[") else { return String(name.last == ":" ? name.dropLast() : name) }
    return "(\(name.dropFirst().prefix { $0 != "]" }))"
  }

  private static func notes(_ notes: [String]) -> String {
    notes.isEmpty ? "" : " [\(notes.joined(separator: ", "))]"
  }

  // MARK: Words

  private mutating func reserved(_ ranges: [String], _ names: [String]) {
    if !ranges.isEmpty { line("reserved \(ranges.joined(separator: ", "));") }
    guard !names.isEmpty else { return }
    let words = syntax == .editions ? names : names.map(Self.quoted)
    line("reserved \(words.joined(separator: ", "));")
  }

  private static func range(_ first: Int32, _ last: Int32, most: Int32) -> String {
    first == last ? "\(first)" : "\(first) to \(last >= most ? "max" : "\(last)")"
  }

  private static func names(
    _ field: Google.FieldDescriptorProto, _ type: Google.DescriptorProto
  ) -> Bool {
    guard field.type == .message || field.type == .group, let name = type.name else { return false }
    return field.typeName?.hasSuffix(".\(name)") ?? false
  }

  private static func type(_ field: Google.FieldDescriptorProto) -> String {
    switch field.type {
    case .message, .group, .enum: field.typeName ?? ""
    default: scalars[field.type?.rawValue ?? 0] ?? ""
    }
  }

  /// By the numbers of descriptor.proto.
  private static let scalars: [Int32: String] = [
    1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "fixed64", 7: "fixed32",
    8: "bool", 9: "string", 12: "bytes", 13: "uint32", 15: "sfixed32", 16: "sfixed64",
    17: "sint32", 18: "sint64",
  ]

  private static func value(_ text: String, _ field: Google.FieldDescriptorProto) -> String {
    switch field.type {
    case .string: quoted(text)
    // Escaped already.
    case .bytes: "\"\(text)\""
    default: text
    }
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): result += "\\\(Character(UnicodeScalar(byte)))"
      case 0x20..<0x7F: result.unicodeScalars.append(UnicodeScalar(byte))
      default:
        let octal = String(byte, radix: 8)
        result += "\\" + String(repeating: "0", count: 3 - octal.count) + octal
      }
    }
    return result + "\""
  }

  /// As protoc makes JSON's names.
  static func camelCase(_ name: String) -> String {
    var result = ""
    var rises = false
    for character in name {
      if character == "_" {
        rises = true
      } else {
        result += rises ? character.uppercased() : String(character)
        rises = false
      }
    }
    return result
  }
}
