import VencejoCompression
import VencejoJSON
import VencejoRPC

/// `vencejo call`: any method of any gRPC server, by reflection or by files.
public enum CallCommand {
  static let help = """
    usage: vencejo call ADDRESS SERVICE/METHOD [options]

    Calls a method of any gRPC server and prints each answer as one line of JSON. What the
    messages are it asks the server by reflection (v1 or v1alpha), or reads from files.

      -d, --data MESSAGE   the request; several, one after the other, for a client stream; '@'
                           reads them from standard input and sends each when it is whole,
                           '@FILE' from a file
                           (default: one empty message, for client streams none)
      --format FORM        of requests and answers: json, or text, whose messages are kept
                           apart by U+001E (default: json)
      --allow-unknown-fields
                           skip names in requests that their type does not have
      --defaults, --emit-defaults
                           also print fields that hold their default value
      --original-names     names as in the .proto file
      --pretty             one field a line
      --rpc-header K:V     metadata of the call, not of reflection; may be repeated
      --compression NAME   compress requests: gzip or deflate
      --max-msg-sz BYTES   the largest answer to take (default: 268435456)
      --format-error       print a status that is not OK as a google.rpc.Status in the format
      -v, --verbose        also print the method, metadata, trailers, sizes and times, on
                           standard error
      -o, --output FILE    write the answers to a file
      -q, --quiet          print no answers, and no errors: the exit code tells
    \(TypesOut.help)
    \(TypeSource.help)
    \(Connecting.help)

    ADDRESS is HOST:PORT or unix:/PATH; one word, http://HOST:PORT/SERVICE/METHOD (with https:
    and TLS), does for both. Exit codes: 0, 1 for wrong usage, 64 + the status
    code when the call fails.

      vencejo call 127.0.0.1:7447 grpc.health.v1.Health/Check
      vencejo call 127.0.0.1:7447 vencejo.auth.v1.AuthService/GetServerInfo
      vencejo call api.example:443 shop.v1.Shop/Watch --tls --protoset shop.pb -d @ <requests
    """

  private static let options: [ArgumentList.Option] =
    [
      .init("data", short: "d", value: true), .init("format", value: true),
      .init("allow-unknown-fields"), .init("defaults", aliases: ["emit-defaults"]),
      .init("original-names"), .init("pretty"), .init("rpc-header", value: true),
      .init("compression", value: true), .init("max-msg-sz", value: true),
      .init("format-error"), .init("verbose", short: "v", aliases: ["vv"]),
      .init("quiet", short: "q"), .init("output", short: "o", value: true),
      .init("help", short: "h"),
    ] + TypesOut.options + TypeSource.options + Connecting.options

  public static func run(_ arguments: some Sequence<String>, _ output: Output) async -> Int32 {
    var isQuiet = false
    do {
      let arguments = try ArgumentList(arguments, options: options)
      if arguments.has("help") {
        output.line(help)
        return ExitCode.ok
      }
      let words = try target(arguments)
      isQuiet = arguments.has("quiet")
      return try await CallRun(words, arguments, output).run()
    } catch let fault as ArgumentList.Fault {
      output.complain("vencejo call: \(VisibleText.clean("\(fault)"))\nTry 'vencejo call --help'.")
      return ExitCode.usage
    } catch let error as RPCError {
      if !isQuiet { ErrorPrinter(output: output, types: nil).print(error) }
      return ExitCode.status(error.code)
    } catch {
      output.complain("vencejo call: \(VisibleText.clean("\(error)"))")
      return ExitCode.usage
    }
  }

  /// Address and method, in two words or as a URL.
  private static func target(
    _ arguments: ArgumentList
  ) throws(ArgumentList.Fault) -> (address: String, method: String) {
    let words = arguments.words
    if words.count == 2 { return (words[0], words[1]) }
    if words.count == 1, let scheme = words[0].firstRange(of: "://"),
      let slash = words[0][scheme.upperBound...].firstIndex(of: "/")
    {
      return (String(words[0][..<slash]), String(words[0][words[0].index(after: slash)...]))
    }
    throw ArgumentList.Fault("needs an address and a method, as in 127.0.0.1:7447 p.S/M")
  }

  static func form(_ arguments: ArgumentList) throws(ArgumentList.Fault) -> MessageForm {
    guard let name = arguments["format"] else { return .json }
    guard let form = MessageForm(rawValue: name) else {
      throw ArgumentList.Fault("--format is json or text, not '\(name)'")
    }
    return form
  }

  static func callOptions(
    _ arguments: ArgumentList
  ) throws(ArgumentList.Fault) -> CallOptions {
    var options = try Connecting.callOptions(arguments, also: "rpc-header")
    if let name = arguments["compression"] {
      guard let compression = Compression(rawValue: name) else {
        throw ArgumentList.Fault("--compression is gzip or deflate, not '\(name)'")
      }
      options.compression = compression
    }
    if let text = arguments["max-msg-sz"] {
      guard let size = Int(text), size > 0 else {
        throw ArgumentList.Fault("'\(text)' is no number of bytes")
      }
      options.maxReceiveMessageBytes = size
    }
    return options
  }
}
