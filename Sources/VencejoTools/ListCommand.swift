import VencejoDescriptors
import VencejoRPC

/// `vencejo list`: the services of any gRPC server, or the methods of one.
public enum ListCommand {
  static let help = """
    usage: vencejo list [ADDRESS] [SERVICE] [options]

    Lists the services of a gRPC server that offers reflection, or the methods of one. With
    --proto or --protoset the files' are listed, and no server is asked; ADDRESS is left out
    then. Without any, the server at \(Connecting.defaultAddress) is asked.

      --methods, --list-methods
                           the methods of all services, as package.Service/Method
    \(TypesOut.help)
    \(TypeSource.help)
    \(Connecting.help)

      vencejo list 127.0.0.1:7447
      vencejo list 127.0.0.1:7447 vencejo.chat.v1.ChatService
      vencejo list --proto shop.proto
    """

  private static let options: [ArgumentList.Option] =
    [
      .init("help", short: "h"), .init("methods", aliases: ["list-methods"]),
      .init("list-services"),
    ] + TypesOut.options + TypeSource.options + Connecting.options

  public static func run(_ arguments: some Sequence<String>, _ output: Output) async -> Int32 {
    await AboutTypes.run("list", arguments, options, help, output) { arguments in
      let (words, address) = AboutTypes.split(arguments)
      guard words.count <= 1 else {
        throw ArgumentList.Fault("needs an address, as 127.0.0.1:7447, and at most a service")
      }
      let (source, channel) = try Connecting.types(address, arguments)
      defer { channel?.close() }
      try await TypesOut.write(words, of: source, arguments)
      if arguments.has("methods"), words.isEmpty {
        for name in try await source.services() {
          let service = try await AboutTypes.service(name, in: source)
          for method in service.methods { output.line(VisibleText.clean("\(name)/\(method.name)")) }
        }
        return
      }
      guard let name = words.first else {
        for service in try await source.services() { output.line(VisibleText.clean(service)) }
        return
      }
      let service = try await AboutTypes.service(name, in: source)
      for method in service.methods {
        let input = (method.clientStreaming ? "stream " : "") + method.input
        let result = (method.serverStreaming ? "stream " : "") + method.output
        output.line(VisibleText.clean("\(method.name)(\(input)) returns (\(result))"))
      }
    }
  }
}
