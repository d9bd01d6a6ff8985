import VencejoDescriptors
import VencejoProtobuf

/// Every message and enum of a request, by its full protobuf name.
final class TypeIndex {
  struct Entry {
    /// How Swift code refers to the type.
    var reference: String
    /// The last part of that: its name where it is declared.
    var name: String
    /// Set for messages.
    var message: Google.DescriptorProto?
    var features: Features
    /// Of an enum: the number of each name.
    var numbers: [String: Int32] = [:]
    /// Of a message: the types of the extensions its own file declares.
    var extensionTypes: [String] = []
    /// The message, when it is what a map's field repeats.
    var mapEntry: Google.DescriptorProto? {
      guard let message, message.options?.mapEntry == true, message.field.count == 2 else {
        return nil
      }
      return message
    }
  }

  private var entries: [String: Entry] = [:]
  private var layouts: [String: Layout] = [:]
  private var checks: [String: Bool] = [:]
  private var inProgress: Set<String> = []

  struct Layout {
    /// Bytes of the struct, about.
    var size: Int
    /// Whether its fields are kept in a `Boxed`.
    var isBoxed: Bool
  }

  /// Messages larger than this keep their fields on the heap: copying one is then a retain
  /// instead of a retain per field, and it nests without making its parents large.
  static let largestInline = 96

  init(_ request: Google.CodeGeneratorRequest, options: GeneratorOptions) {
    let generated = Set(request.fileToGenerate)
    for file in request.protoFile {
      let path = file.name ?? ""
      let place = Place(file, isGenerated: generated.contains(path), options: options)
      let topLevel = Set(
        file.messageType.map { Names.message($0.name ?? "") }
          + file.enumType.map { Names.enumeration($0.name ?? "") })
      let root = place.root(hiddenBy: topLevel)
      let scope = file.package.map { ".\($0)" } ?? ""
      let features = Features(file)
      let known = Set(entries.keys)
      add(file.messageType, file.enumType, scope, root, features)
      let own = Set(entries.keys).subtracting(known)
      addExtensions(file.extension, of: own)
      for message in file.messageType { addExtensions(of: message, of: own) }
    }
  }

  private func addExtensions(of message: Google.DescriptorProto, of own: Set<String>) {
    addExtensions(message.extension, of: own)
    for nested in message.nestedType { addExtensions(of: nested, of: own) }
  }

  private func addExtensions(_ fields: [Google.FieldDescriptorProto], of own: Set<String>) {
    for field in fields where field.type == .message || field.type == .group {
      guard let extendee = field.extendee, let type = field.typeName, own.contains(extendee) else {
        continue
      }
      entries[extendee]?.extensionTypes.append(type)
    }
  }

  /// The types of one scope: the first of two whose Swift names are the same has it.
  private func add(
    _ messages: [Google.DescriptorProto], _ enums: [Google.EnumDescriptorProto], _ scope: String,
    _ root: String, _ outer: Features
  ) {
    var names = UniqueNames()
    for message in messages {
      let fullName = "\(scope).\(message.name ?? "")"
      let isEntry = message.options?.mapEntry == true
      let own = Names.message(message.name ?? "")
      let name = isEntry ? own : names.unique(own, 0, "Message")
      let features = outer.with(message.options?.features)
      entries[fullName] = Entry(
        reference: root + name, name: name, message: message, features: features)
      add(message.nestedType, message.enumType, fullName, "\(root)\(name).", features)
    }
    for enumeration in enums {
      let name = names.unique(Names.enumeration(enumeration.name ?? ""), 0, "Enum")
      var numbers: [String: Int32] = [:]
      for value in enumeration.value { numbers[value.name ?? ""] = value.number ?? 0 }
      entries["\(scope).\(enumeration.name ?? "")"] = Entry(
        reference: root + name, name: name, message: nil,
        features: outer.with(enumeration.options?.features), numbers: numbers)
    }
  }

  /// The Swift name of a type where it is declared.
  func name(_ fullName: String) -> String { entries[".\(fullName)"]?.name ?? "" }

  /// Whether the message or one it leads to has required fields.
  func needsCheck(_ name: String) throws(GeneratorError) -> Bool {
    if let known = checks[name] { return known }
    var seen: Set<String> = [name]
    var queue = [name]
    while let next = queue.popLast() {
      if let known = checks[next] {
        if !known { continue }
        checks[name] = true
        return true
      }
      let entry = try type(next)
      for field in entry.message?.field ?? [] {
        if entry.features.field(field).presence == .required {
          checks[name] = true
          return true
        }
        let isMessage = field.type == .message || field.type == .group
        if isMessage, let type = field.typeName, seen.insert(type).inserted { queue.append(type) }
      }
      for type in entry.extensionTypes where seen.insert(type).inserted { queue.append(type) }
    }
    for name in seen { checks[name] = false }
    return false
  }

  /// The type with a full name, which begins with a dot.
  func type(_ name: String?) throws(GeneratorError) -> Entry {
    guard let name, let entry = entries[name] else {
      throw GeneratorError("unknown type \(name ?? "without a name")")
    }
    return entry
  }

  /// How large a message is and whether it is boxed. Large ones are, and of each cycle of
  /// singular fields the message that comes first in its file.
  func layout(_ name: String, _ message: Google.DescriptorProto) throws(GeneratorError) -> Layout {
    if let layout = layouts[name] { return layout }
    if inProgress.contains(name) {
      layouts[name] = Layout(size: 8, isBoxed: true)
      return Layout(size: 8, isBoxed: true)
    }
    inProgress.insert(name)
    defer { inProgress.remove(name) }
    var size = 8  // unknown fields
    var oneofs: [Int32: Int] = [:]
    for field in message.field {
      let fieldSize = try self.size(of: field)
      if let oneof = field.oneofIndex, field.proto3Optional != true {
        oneofs[oneof] = max(oneofs[oneof] ?? 0, fieldSize + 8)
      } else {
        size += fieldSize
      }
    }
    size += oneofs.values.reduce(0, +)
    // Set when a field led back here. What is deprecated is an accessor, which code of our own
    // must not use: it goes to the storage behind it.
    let isDeprecated = message.field.contains {
      $0.options?.deprecated == true && ($0.oneofIndex == nil || $0.proto3Optional == true)
    }
    let isBoxed = layouts[name] != nil || size > Self.largestInline || isDeprecated
    let layout = Layout(size: isBoxed ? 8 : size, isBoxed: isBoxed)
    layouts[name] = layout
    return layout
  }

  private func size(of field: Google.FieldDescriptorProto) throws(GeneratorError) -> Int {
    if field.label == .repeated { return 8 }
    switch field.type {
    case .string?: return 16
    case .bool?, .int32?, .uint32?, .sint32?, .fixed32?, .sfixed32?, .float?, .enum?: return 4
    case .message?, .group?:
      guard let name = field.typeName, let message = try type(name).message else { return 8 }
      let layout = try self.layout(name, message)
      return layout.isBoxed ? 8 : layout.size + 8
    default: return 8
    }
  }
}

/// Where the types of a file are in Swift.
struct Place {
  let module: String
  let namespace: String

  init(_ file: Google.FileDescriptorProto, isGenerated: Bool, options: GeneratorOptions) {
    let package = file.package ?? ""
    if isGenerated && (options.messages || options.imports[package] == nil) {
      module = options.module
      namespace = options.namespace ?? Self.defaultNamespace(package, path: file.name ?? "")
    } else if let place = options.imports[package] {
      module = place.module
      namespace = place.namespace
    } else {
      module = options.module
      namespace = Self.defaultNamespace(package, path: file.name ?? "")
    }
  }

  /// `a.b.v1` gives `ABV1`; a file without a package lends its name.
  private static func defaultNamespace(_ package: String, path: String) -> String {
    if package.isEmpty { return Names.upperCamel(Place.stem(path)) }
    return package.split(separator: ".").map { Names.upperCamel(String($0)) }.joined()
  }

  /// The name of a file without folders and suffix.
  static func stem(_ path: String) -> String {
    let name = path.split(separator: "/").last ?? ""
    return String(name.hasSuffix(".proto") ? name.dropLast(6) : name)
      .split { !$0.isLetter && !$0.isNumber }.joined(separator: "_")
  }

  /// What stands before a type's name. Without a module to qualify the namespace with, a type
  /// of the same name within it would hide it: then the bare name is all that works.
  func root(hiddenBy types: Set<String>) -> String {
    if !module.isEmpty { return "\(module)::\(namespace)." }
    return types.contains(namespace) ? "" : "\(namespace)."
  }

  /// The static property of the namespace that is the file's descriptor.
  static func descriptor(_ path: String) -> String { Names.lowerCamel(stem(path)) + "Proto" }
}
