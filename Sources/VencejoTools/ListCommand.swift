import VencejoDescriptors
import VencejoJSON
import VencejoProtobuf
import VencejoRPC

/// `vencejo list`: the services of any gRPC server, or the methods of one.
public enum ListCommand {
  static let help = """
    usage: vencejo list ADDRESS [SERVICE] [options]

    Lists the services of a gRPC server that offers reflection, or the methods of one.

      --timeout SECONDS    give up after so long (default: 20)
    \(TLSOptions.help)

      vencejo list 127.0.0.1:7447
      vencejo list 127.0.0.1:7447 vencejo.chat.v1.ChatService
    """

  public static func run(_ arguments: some Sequence<String>, _ output: Output) async -> Int32 {
    do {
      let arguments = try ArgumentList(
        arguments,
        options: [.init("timeout", value: true), .init("help", short: "h")] + TLSOptions.client)
      if arguments.has("help") {
        output.line(help)
        return ExitCode.ok
      }
      guard (1...2).contains(arguments.words.count) else {
        throw ArgumentList.Fault("needs an address, as 127.0.0.1:7447")
      }
      var options = CallOptions(timeout: .seconds(20))
      if let text = arguments["timeout"] {
        guard let seconds = Double(text), seconds > 0, seconds < 1e9 else {
          throw ArgumentList.Fault("'\(text)' is no number of seconds")
        }
        options.timeout = .milliseconds(max(1, Int64(seconds * 1_000)))
      }
      let channel = try Channel(arguments.words[0], tls: TLSOptions.client(arguments))
      defer { channel.close() }
      let reflection = ReflectionClient(channel: channel, options: options)
      if arguments.words.count == 1 {
        for service in try await reflection.services() { output.line(VisibleText.clean(service)) }
      } else {
        try await list(arguments.words[1], reflection, output)
      }
      return ExitCode.ok
    } catch let fault as ArgumentList.Fault {
      output.complain("vencejo list: \(VisibleText.clean("\(fault)"))\nTry 'vencejo list --help'.")
      return ExitCode.usage
    } catch let error as RPCError {
      ErrorPrinter(output: output, types: nil).print(error)
      return ExitCode.status(error.code)
    } catch {
      output.complain("vencejo list: \(VisibleText.clean("\(error)"))")
      return ExitCode.failure
    }
  }

  private static func list(
    _ service: String, _ reflection: ReflectionClient, _ output: Output
  ) async throws {
    let files = try await files(declaring: service, reflection)
    guard let type = try DescriptorPool(files: files).service(service) else {
      throw ArgumentList.Fault("\(service) is no service")
    }
    for method in type.methods {
      let input = (method.clientStreaming ? "stream " : "") + method.input
      let result = (method.serverStreaming ? "stream " : "") + method.output
      output.line(VisibleText.clean("\(method.name)(\(input)) returns (\(result))"))
    }
  }

  private static func files(
    declaring service: String, _ reflection: ReflectionClient
  ) async throws -> [Google.FileDescriptorProto] {
    do {
      return try await reflection.files(declaring: service)
    } catch {
      guard error.code == .notFound else { throw error }
      throw RPCError(.notFound, "the server has no service \(service)", origin: .remote)
    }
  }
}
