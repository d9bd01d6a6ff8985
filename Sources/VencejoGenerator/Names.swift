import VencejoProtobuf

/// Swift names for protobuf names: lowerCamel and UpperCamel, never an underscore.
enum Names {
  /// Swift's reserved words; they stand in backticks.
  private static let keywords: Set<String> = [
    "Any", "as", "associatedtype", "await", "break", "case", "catch", "class", "continue",
    "default", "defer", "deinit", "do", "else", "enum", "extension", "fallthrough", "false",
    "fileprivate", "for", "func", "guard", "if", "import", "in", "inout", "internal", "is", "let",
    "nil", "operator", "precedencegroup", "private", "protocol", "public", "repeat", "rethrows",
    "return", "static", "struct", "subscript", "super", "switch", "throw", "throws", "true", "try",
    "typealias", "var", "where", "while",
  ]

  /// Names properties cannot have, or that `Message` needs.
  private static let members: Set<String> = [
    "self", "init", "unknownFields", "hashValue", "storage", "decode", "encode", "hash", "merge",
    "serializedBytes", "missingRequiredField",
  ]
  /// Names static members of enums cannot have, or that mean something else for an optional.
  private static let values: Set<String> = [
    "self", "init", "rawValue", "allCases", "enumName", "hashValue", "none", "some",
  ]
  private static let cases: Set<String> = ["self", "init", "none", "some", "hashValue", "hash"]
  /// Names types cannot have, even in backticks or at a price.
  private static let types: Set<String> = ["Type", "Protocol", "Self", "Any", "Storage"]
  private static let methods: Set<String> = ["self", "init", "channel", "methods", "descriptor"]

  /// The attribute of what a file calls deprecated.
  static let deprecated = "@available(*, deprecated, message: \"deprecated by its .proto file\")"

  static func escaped(_ name: String) -> String { keywords.contains(name) ? "`\(name)`" : name }

  /// The name as an argument's label. Backticks are a warning there, where they are not
  /// needed: calls need them for `inout` alone, declarations for `let` and `var` too.
  static func label(_ name: String, inCall: Bool) -> String {
    guard name.first == "`" else { return name }
    let bare = String(name.dropFirst().dropLast())
    return (inCall ? ["inout"] : ["inout", "let", "var"]).contains(bare) ? name : bare
  }

  /// A property for a field.
  static func property(_ field: String) -> String {
    let name = lowerCamel(field)
    return members.contains(name) ? name + "Field" : escaped(name)
  }

  /// A static property for an extension.
  static func extensionProperty(_ field: String) -> String {
    let name = lowerCamel(field)
    return ["self", "init", "messageName", "fileDescriptor"].contains(name)
      ? name + "Extension" : escaped(name)
  }

  /// A case for a member of a oneof.
  static func oneofCase(_ field: String) -> String {
    let name = lowerCamel(field)
    return cases.contains(name) ? name + "Case" : escaped(name)
  }

  /// A method for an rpc.
  static func method(_ rpc: String) -> String {
    let name = lowerCamel(rpc)
    return methods.contains(name) ? name + "Method" : escaped(name)
  }

  static func message(_ name: String) -> String { type(name, "Message") }
  static func enumeration(_ name: String) -> String { type(name, "Enum") }
  static func oneof(_ name: String) -> String { type(name, "Oneof") }

  private static func type(_ name: String, _ suffix: String) -> String {
    let name = upperCamel(name)
    return types.contains(name) ? name + suffix : name
  }

  /// `SERVER_ROLE_MEMBER` of `ServerRole` becomes `member`. Without its prefix unless every
  /// value has it, what is left begins with a letter and they stay different.
  static func values(of descriptor: Google.EnumDescriptorProto) -> [String] {
    let names = descriptor.value.map { $0.name ?? "" }
    let prefix = upperSnake(descriptor.name ?? "") + "_"
    let stripped = names.map { name in
      name.uppercased().hasPrefix(prefix) ? String(name.dropFirst(prefix.count)) : name
    }
    func camel(_ name: String) -> String {
      lowerCamel(name.contains { $0.isLowercase } ? name : name.lowercased())
    }
    var result = stripped.map(camel)
    let usable =
      stripped.allSatisfy { $0.first?.isLetter == true } && Set(result).count == result.count
    if !usable { result = names.map(camel) }
    // `MOO` and `moo`: the first one has the name.
    var unique = UniqueNames()
    return zip(result, descriptor.value).map { name, value in
      let number = value.number ?? 0
      let suffix = number < 0 ? "Minus\(number.magnitude)" : "\(number)"
      return unique.unique(
        values.contains(name) ? name + "Value" : escaped(name), number, suffix)
    }
  }

  static func lowerCamel(_ name: String) -> String {
    let parts = name.split(separator: "_", maxSplits: 1)
    guard let first = parts.first.map({ upperCamel(String($0)) }) else { return "" }
    // A leading acronym goes down as a whole: HTTPRule, httpRule; ID, id.
    let capitals = first.prefix { $0.isUppercase }.count
    let down = capitals <= 1 || capitals == first.count ? capitals : capitals - 1
    let rest = parts.count > 1 ? upperCamel(String(parts[1]), isStart: false) : ""
    return first.prefix(down).lowercased() + first.dropFirst(down) + rest
  }

  static func upperCamel(_ name: String, isStart: Bool = true) -> String {
    var result = ""
    for part in name.split(separator: "_") {
      result += part.prefix(1).uppercased() + part.dropFirst()
    }
    if isStart, let first = result.first, first.isNumber { result = "N" + result }
    return result
  }

  private static func upperSnake(_ name: String) -> String {
    var result = ""
    let letters = Array(name)
    for (index, letter) in letters.enumerated() {
      if letter.isUppercase && index > 0 {
        let next = index + 1 < letters.count ? letters[index + 1] : letter
        let previous = letters[index - 1]
        // A new word begins after a lower-case letter, and where an acronym ends.
        if !previous.isUppercase && previous != "_" || previous.isUppercase && next.isLowercase {
          result += "_"
        }
      }
      result += letter.uppercased()
    }
    return result
  }
}

/// Keeps names of one scope apart: `foo_bar` and `fooBar` would both be `fooBar`. The first one
/// has it, others get their field's number or another suffix behind it.
struct UniqueNames {
  private var taken: Set<String> = []

  mutating func unique(
    _ name: String, _ number: Int32, _ suffix: String = "", scope: Int32? = nil
  ) -> String {
    let prefix = scope.map { "\($0)." } ?? ""
    if taken.insert(prefix + name).inserted { return name }
    let bare = name.first == "`" ? String(name.dropFirst().dropLast()) : name
    var result = bare + (suffix.isEmpty ? "\(number)" : suffix)
    while !taken.insert(prefix + result).inserted { result += "_" }
    return result
  }
}
