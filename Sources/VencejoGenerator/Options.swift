/// What a user may say behind `--vencejo_opt=`, comma-separated `key=value` pairs.
///
/// | key | value | default |
/// |---|---|---|
/// | `namespace` | the caseless enum all generated types nest in | from the package: `a.b.v1` gives `ABV1` |
/// | `module` | the Swift module the code is compiled in, to qualify names with | none |
/// | `visibility` | `public` or `internal` | `public` |
/// | `services` | `true` or `false`: generate stubs too | `true` |
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
  /// Whether stubs of services are generated.
  public var services = true
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
      case ("services", "true"): services = true
      case ("services", "false"): services = false
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
