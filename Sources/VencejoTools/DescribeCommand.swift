import VencejoDescriptors
import VencejoProtobuf
import VencejoRPC

/// `vencejo describe`: what the services, methods, messages and enums of a server are.
public enum DescribeCommand {
  static let help = """
    usage: vencejo describe [ADDRESS] [SYMBOL] [options]

    Writes what a symbol is as a .proto file does: a service, a method (package.Service/Method),
    a message, an enum, a field, oneof, extension or enum value, by its full name. Without one,
    all services. The types come from the server at ADDRESS by reflection (default: \(Connecting.defaultAddress)), or with --proto or
    --protoset from files, and ADDRESS is left out.

      --template           a message's template to fill in, in JSON: for a method that of its
                           request
    \(TypesOut.help)
    \(TypeSource.help)
    \(Connecting.help)

      vencejo describe 127.0.0.1:7447 vencejo.chat.v1.ChatService
      vencejo describe 127.0.0.1:7447 vencejo.chat.v1.SendMessageRequest --template
    """

  private static let options: [ArgumentList.Option] =
    [
      .init("help", short: "h"), .init("template", aliases: ["msg-template"]),
    ] + TypesOut.options + TypeSource.options + Connecting.options

  public static func run(_ arguments: some Sequence<String>, _ output: Output) async -> Int32 {
    await AboutTypes.run("describe", arguments, options, help, output) { arguments in
      let (words, address) = AboutTypes.split(arguments)
      guard words.count <= 1 else {
        throw ArgumentList.Fault("needs an address, as 127.0.0.1:7447, and at most a symbol")
      }
      let (source, channel) = try Connecting.types(address, arguments)
      defer { channel?.close() }
      let wantsTemplate = arguments.has("template")
      try await TypesOut.write(words, of: source, arguments)
      if let symbol = words.first {
        output.out(try await text(of: symbol, in: source, template: wantsTemplate))
        return
      }
      if wantsTemplate { throw ArgumentList.Fault("--template needs a message or a method") }
      for name in try await source.services() {
        output.out(ProtoPrinter.text(of: try await source.service(name).0))
      }
    }
  }

  private static func text(
    of symbol: String, in source: TypeSource, template: Bool
  ) async throws -> String {
    let symbol = String(symbol.drop { $0 == "." || $0 == "/" })
    if let found = try await find(symbol.split(separator: "/").joined(separator: "."), source) {
      switch found {
      case .message(let type):
        return template ? MessageTemplate.json(of: type) + "\n" : ProtoPrinter.text(of: type)
      case .enumeration(let type) where !template: return ProtoPrinter.text(of: type)
      case .service(let type) where !template: return ProtoPrinter.text(of: type)
      case .part(let text) where !template: return text
      case .method(let method):
        return template
          ? MessageTemplate.json(of: method.input) + "\n" : method.declaration + "\n"
      default: throw ArgumentList.Fault("--template needs a message or a method")
      }
    }
    throw RPCError(.notFound, "nothing declares \(symbol)", origin: .remote)
  }

  private enum Found {
    case message(MessageDescriptor)
    case enumeration(EnumDescriptor)
    case service(ServiceType)
    case method(DescribedMethod)
    /// Of a message or an enum, as it is declared there.
    case part(String)
  }

  private static func find(_ symbol: String, _ source: TypeSource) async throws -> Found? {
    let pool: DescriptorPool
    do {
      pool = try await source.pool(declaring: symbol)
    } catch let error as RPCError {
      guard error.code == .notFound else { throw error }
      // Some servers know services and messages, but nothing within them.
      guard let (outer, name) = DescribedMethod.split(symbol) else { return nil }
      guard let pool = try? await source.pool(declaring: outer) else { return nil }
      if let text = part(symbol, of: pool) { return .part(text) }
      guard pool.service(outer) != nil else { return nil }
      return .method(try await DescribedMethod.find(outer, name, in: source))
    }
    if let type = pool.message(symbol) { return .message(type) }
    if let type = pool.enumeration(symbol) { return .enumeration(type) }
    if let type = pool.service(symbol) { return .service(type) }
    if let (service, name) = DescribedMethod.split(symbol), pool.service(service) != nil {
      return .method(try await DescribedMethod.find(service, name, in: source))
    }
    return part(symbol, of: pool).map { .part($0) }
  }

  /// The declaration of a field, a oneof, an extension or an enum's value.
  private static func part(_ symbol: String, of pool: DescriptorPool) -> String? {
    let (scope, name) = DescribedMethod.split(symbol) ?? ("", symbol)
    if let message = pool.message(scope) {
      if let field = message.fields.first(where: { $0.proto.name == name }) {
        return ProtoPrinter.text(of: field)
      }
      if let index = message.proto.oneofDecl.firstIndex(where: { $0.name == name }) {
        return ProtoPrinter.text(of: message, oneof: Int32(index))
      }
    }
    for file in pool.files {
      let package = file.package ?? ""
      let enums = file.enumType.map { (package, $0) }
      let more = file.messageType.flatMap { inner(of: $0, package) }
      // Values are siblings of their enum; who writes them as its members is understood.
      for (outer, type) in enums + more where [outer, join(outer, type.name)].contains(scope) {
        if let value = type.value.first(where: { $0.name == name }) {
          return "\(name) = \(value.number ?? 0);\n"
        }
      }
    }
    for type in pool.messageNames.compactMap(pool.message) {
      guard let field = type.field(named: "[\(symbol)]") else { continue }
      return "extend \(type.fullName) {\n  \(ProtoPrinter.text(of: field, named: name))}\n"
    }
    return nil
  }

  /// The enums in a message, and in those within it, each with the name of what it lies in.
  private static func inner(
    of message: Google.DescriptorProto, _ scope: String
  ) -> [(String, Google.EnumDescriptorProto)] {
    let name = join(scope, message.name)
    return message.enumType.map { (name, $0) } + message.nestedType.flatMap { inner(of: $0, name) }
  }

  private static func join(_ scope: String, _ name: String?) -> String {
    scope.isEmpty ? name ?? "" : "\(scope).\(name ?? "")"
  }
}

/// What `list` and `describe` have in common.
enum AboutTypes {
  /// The words without the address, which there is none of with files.
  static func split(_ arguments: ArgumentList) -> (words: [String], address: String?) {
    TypeSource.hasFiles(arguments) && !arguments.has("use-reflection")
      ? (arguments.words, nil) : (Array(arguments.words.dropFirst()), arguments.words.first)
  }

  static func service(_ name: String, in source: TypeSource) async throws -> ServiceType {
    do {
      guard let service = try await source.pool(declaring: name).service(name) else {
        throw ArgumentList.Fault("\(name) is no service")
      }
      return service
    } catch let error as RPCError {
      guard error.code == .notFound else { throw error }
      throw RPCError(.notFound, "the server has no service \(name)", origin: .remote)
    }
  }

  static func run(
    _ command: String, _ words: some Sequence<String>, _ options: [ArgumentList.Option],
    _ help: String, _ output: Output, _ body: (ArgumentList) async throws -> Void
  ) async -> Int32 {
    do {
      let arguments = try ArgumentList(words, options: options)
      if arguments.has("help") {
        output.line(help)
      } else {
        try await body(arguments)
      }
      return ExitCode.ok
    } catch let fault as ArgumentList.Fault {
      output.complain(
        "vencejo \(command): \(VisibleText.clean("\(fault)"))\nTry 'vencejo \(command) --help'.")
      return ExitCode.usage
    } catch let error as RPCError {
      ErrorPrinter(output: output, types: nil).print(error)
      return ExitCode.status(error.code)
    } catch {
      output.complain("vencejo \(command): \(VisibleText.clean("\(error)"))")
      return ExitCode.failure
    }
  }
}
