/// What a user may say behind `--vencejo_opt=`, comma-separated `key=value` pairs.
///
/// | key | value | default |
/// |---|---|---|
/// | `namespace` | the caseless enum all generated types nest in | from the package: `a.b.v1` gives `ABV1` |
/// | `module` | the Swift module the code is compiled in, to qualify names with | none |
/// | `visibility` | `public` or `internal` | `public` |
/// | `services` | `none`, `client`, `server` or `both` (also `false` and `true`): which stubs | `both` |
/// | `messages` | `true`, or `false` for the stubs of services only, in `.grpc.swift` files: the messages are in the same module, or where `import` says | `true` |
/// | `formats` | `all` or `binary`: without the descriptor, which JSON, text format and reflection take their knowledge from; messages carry no other code for them | `all` |
/// | `names` | how files are named: `dots` (`a.b.pb.swift` for `a/b.proto`, as SwiftPM wants each name of a module to be different), `path` (`a/b.pb.swift`) or `base` (`b.pb.swift`) | `dots` |
/// | `import` | `package:Module::Namespace`: where another package's types are; may be repeated | `google.protobuf:VencejoProtobuf::Google` |
public struct GeneratorOptions: Equatable, Sendable {
  /// Where the types of a protobuf package are found in Swift.
  public struct Import: Equatable, Sendable {
    /// The module, or empty for the one being compiled.
    public var module: String
    /// The enum the package's types nest in.
    public var namespace: String
  }

  /// The caseless enum all types nest in; nil to derive it from the package.
  public var namespace: String?
  /// The module the code is compiled in; empty when unknown.
  public var module = ""
  /// Whether declarations are public.
  public var isPublic = true
  /// Which stubs of services are generated.
  public struct Services: OptionSet, Sendable {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }
    /// A struct with a method per rpc.
    public static let client = Services(rawValue: 1)
    /// A protocol to conform to.
    public static let server = Services(rawValue: 2)
    /// Both.
    public static let both: Services = [.client, .server]
  }

  /// How the files are named.
  public enum FileNames: String, Sendable {
    /// `a.b.pb.swift` for `a/b.proto`.
    case dots
    /// `a/b.pb.swift`.
    case path
    /// `b.pb.swift`.
    case base
  }

  /// The formats messages can be written in.
  public enum Formats: String, Sendable {
    /// Binary, JSON and text.
    case all
    /// No JSON and text, nor reflection: files embed no descriptor.
    case binary
  }

  /// Which stubs of services are generated.
  public var services = Services.both
  /// Whether messages are generated; else they are there already, by `imports` in another module.
  public var messages = true
  /// The formats messages can be written in.
  public var formats = Formats.all
  /// How the files are named.
  public var fileNames = FileNames.dots
  /// Other packages.
  public var imports = [
    "google.protobuf": Import(module: "VencejoProtobuf", namespace: "Google"),
    "google.protobuf.compiler": Import(module: "VencejoProtobuf", namespace: "Google"),
  ]

  /// The defaults.
  public init() {}

  /// Parses protoc's parameter; throws for keys and values that do not exist.
  public init(parameter: String) throws(GeneratorError) {
    for pair in parameter.split(separator: ",") {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let value = parts.count > 1 ? String(parts[1]) : ""
      switch (parts[0], value) {
      case ("namespace", let name) where !name.isEmpty: namespace = name
      case ("module", let name): module = name
      case ("visibility", "public"): isPublic = true
      case ("visibility", "internal"): isPublic = false
      case ("services", "true"), ("services", "both"): services = .both
      case ("services", "false"), ("services", "none"): services = []
      case ("services", "client"): services = .client
      case ("services", "server"): services = .server
      case ("messages", "true"): messages = true
      case ("messages", "false"): messages = false
      case ("formats", _):
        guard let formats = Formats(rawValue: value) else {
          throw GeneratorError("formats=\(value): expected all or binary")
        }
        self.formats = formats
      case ("names", _):
        guard let names = FileNames(rawValue: value) else {
          throw GeneratorError("names=\(value): expected dots, path or base")
        }
        fileNames = names
      case ("import", _):
        guard let (package, target) = Self.parseImport(value) else {
          throw GeneratorError("import=\(value): expected package:Module::Namespace")
        }
        imports[package] = target
      default: throw GeneratorError("unknown option \"\(pair)\"")
      }
    }
  }

  private static func parseImport(_ text: String) -> (String, Import)? {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 4, parts[2].isEmpty, !parts[0].isEmpty, !parts[3].isEmpty else {
      return nil
    }
    return (parts[0], Import(module: parts[1], namespace: parts[3]))
  }
}

/// A mistake in the options or the descriptors, to be shown by protoc.
public struct GeneratorError: Error, Sendable, CustomStringConvertible {
  /// What is wrong.
  public let description: String
  init(_ description: String) { self.description = description }
}
