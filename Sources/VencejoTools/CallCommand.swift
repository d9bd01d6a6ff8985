import Glibc
import VencejoDescriptors
import VencejoHTTP2
import VencejoJSON
import VencejoProtobuf
import VencejoRPC

/// `vencejo call`: any method of any gRPC server, by reflection.
public enum CallCommand {
  static let help = """
    usage: vencejo call ADDRESS SERVICE/METHOD [options]

    Calls a method of any gRPC server that offers reflection (v1 or v1alpha) and prints
    each answer as one line of JSON.

      -d, --data JSON      the request; several objects for a client stream; '@' reads
                           them from standard input (default: one empty message,
                           for client streams none)
      -H, --header K:V     metadata; the value of a '-bin' key is base64; may be repeated
      --timeout SECONDS    give up after so long
      --defaults           also print fields that hold their default value
      --original-names     names as in the .proto file
      --pretty             one field a line
      -v, --verbose        also print metadata and trailers, on standard error
    \(TLSOptions.help)

    ADDRESS is HOST:PORT or unix:/PATH. Exit codes: 0, 1 for wrong usage, 64 + the status
    code when the call fails.

      vencejo call 127.0.0.1:7447 grpc.health.v1.Health/Check
      vencejo call 127.0.0.1:7447 vencejo.auth.v1.AuthService/GetServerInfo
    """

  private static let options: [ArgumentList.Option] =
    [
      .init("data", short: "d", value: true), .init("header", short: "H", value: true),
      .init("timeout", value: true), .init("defaults"), .init("original-names"), .init("pretty"),
      .init("verbose", short: "v"), .init("help", short: "h"),
    ] + TLSOptions.client

  public static func run(_ arguments: some Sequence<String>, _ output: Output) async -> Int32 {
    do {
      let arguments = try ArgumentList(arguments, options: options)
      if arguments.has("help") {
        output.line(help)
        return ExitCode.ok
      }
      guard arguments.words.count == 2 else {
        throw ArgumentList.Fault("needs an address and a method, as in 127.0.0.1:7447 p.S/M")
      }
      var json = JSONOptions()
      json.defaults = arguments.has("defaults")
      json.originalNames = arguments.has("original-names")
      json.pretty = arguments.has("pretty")
      let call = try Call(
        address: arguments.words[0], tls: TLSOptions.client(arguments), method: arguments.words[1],
        data: arguments["data"], options: callOptions(arguments), json: json,
        verbose: arguments.has("verbose"), output: output)
      return try await call.run()
    } catch let fault as ArgumentList.Fault {
      output.complain("vencejo call: \(VisibleText.clean("\(fault)"))\nTry 'vencejo call --help'.")
      return ExitCode.usage
    } catch let error as RPCError {
      ErrorPrinter(output: output, types: nil).print(error)
      return ExitCode.status(error.code)
    } catch {
      output.complain("vencejo call: \(VisibleText.clean("\(error)"))")
      return ExitCode.usage
    }
  }

  private static func callOptions(
    _ arguments: ArgumentList
  ) throws(ArgumentList.Fault) -> CallOptions {
    var options = CallOptions()
    // An answer of any size that a person asked for is welcome.
    options.maxReceiveMessageBytes = 256 << 20
    if let text = arguments["timeout"] {
      guard let seconds = Double(text), seconds > 0, seconds < 1e9 else {
        throw ArgumentList.Fault("'\(text)' is no number of seconds")
      }
      options.timeout = .milliseconds(max(1, Int64(seconds * 1_000)))
    }
    for header in arguments.all("header") {
      guard let colon = header.firstIndex(of: ":"), colon > header.startIndex else {
        throw ArgumentList.Fault("'\(header)' is no header: write key:value")
      }
      let key = header[..<colon].lowercased()
      let value = String(header[header.index(after: colon)...].drop { $0 == " " })
      guard key.hasSuffix("-bin") else {
        options.metadata.add(value, for: key)
        continue
      }
      guard let bytes = Metadata.bytes(fromBase64: value) else {
        throw ArgumentList.Fault("the value of '\(key)' is no base64")
      }
      options.metadata.add(bytes, for: key)
    }
    if let problem = options.metadata.problem { throw ArgumentList.Fault(problem) }
    return options
  }
}

/// One call with its answers on the way to standard output.
private struct Call {
  let address: String
  let tls: ClientTLS?
  let service: String
  let methodName: String
  let data: String?
  let options: CallOptions
  let json: JSONOptions
  let verbose: Bool
  let output: Output

  init(
    address: String, tls: ClientTLS?, method: String, data: String?, options: CallOptions,
    json: JSONOptions,
    verbose: Bool, output: Output
  ) throws(ArgumentList.Fault) {
    let path = method.drop { $0 == "/" }
    // grpcurl's users write package.Service.Method too.
    guard let slash = path.lastIndex(of: "/") ?? path.lastIndex(of: "."), slash > path.startIndex,
      path.index(after: slash) < path.endIndex
    else { throw ArgumentList.Fault("'\(method)' is no method: write package.Service/Method") }
    self.address = address
    self.tls = tls
    service = String(path[..<slash])
    methodName = String(path[path.index(after: slash)...])
    self.data = data
    self.options = options
    self.json = json
    self.verbose = verbose
    self.output = output
  }

  func run() async throws -> Int32 {
    let channel = try Channel(address, tls: tls)
    defer { channel.close() }
    let method = try await DescribedMethod.find(
      service, methodName, on: channel, timeout: options.timeout)
    let requests = try Requests.read(data, for: method)
    let call = channel.bytes(method.path, options)
    let sending = Task {
      for request in requests { try await call.send(EncodedMessage(serialized: request)) }
      call.finish()
    }
    defer { sending.cancel() }
    do {
      if verbose { show(try await call.initialMetadata, "initial metadata") }
      while let bytes = try await call.next() {
        output.line(try JSONFormat.encode(wire: bytes, as: method.output, json))
      }
      let trailers = try await call.trailers
      if verbose { show(trailers, "trailers") }
      return ExitCode.ok
    } catch let error as RPCError {
      if verbose { show(error.metadata, "trailers") }
      ErrorPrinter(output: output, types: method.output.pool).print(error)
      return ExitCode.status(error.code)
    }
  }

  private func show(_ metadata: Metadata, _ title: String) {
    output.complain("\(title):" + (metadata.isEmpty ? " none" : ""))
    for entry in metadata {
      switch entry.value {
      case .text(let text): output.complain(VisibleText.clean("  \(entry.key): \(text)"))
      case .bytes(let bytes): output.complain("  \(entry.key): \(bytes.count) bytes")
      }
    }
  }
}

/// A method as reflection describes it.
struct DescribedMethod {
  let path: String
  let input: MessageDescriptor
  let output: MessageDescriptor
  let takesStream: Bool

  static func find(
    _ service: String, _ name: String, on channel: Channel, timeout: Duration?
  ) async throws -> DescribedMethod {
    let reflection = ReflectionClient(channel: channel, options: .init(timeout: timeout))
    let pool = try DescriptorPool(files: try await describe(service, reflection))
    guard let type = pool.service(service) else {
      throw ArgumentList.Fault("\(service) is no service")
    }
    guard let method = type.method(name) else {
      let names = type.methods.map(\.name).joined(separator: ", ")
      throw ArgumentList.Fault("\(service) has no method \(name); it has \(names)")
    }
    guard let input = pool.message(method.input), let output = pool.message(method.output) else {
      throw RPCError(.internalError, "the server's reflection leaves out a message of \(name)")
    }
    return DescribedMethod(
      path: method.path, input: input, output: output, takesStream: method.clientStreaming)
  }

  private static func describe(
    _ service: String, _ reflection: ReflectionClient
  ) async throws -> [Google.FileDescriptorProto] {
    do {
      return try await reflection.files(declaring: service)
    } catch {
      switch error.code {
      case .notFound:
        let services = try await reflection.services()
        let close = services.min { editDistance(service, $0) < editDistance(service, $1) }
        throw ArgumentList.Fault(
          "the server has no service \(service)" + (close.map { " (did you mean \($0)?)" } ?? ""))
      case .unimplemented:
        throw RPCError(
          .unimplemented, "the server offers no reflection, so its messages are unknown",
          origin: .remote)
      default: throw error
      }
    }
  }
}

/// The request messages on the command line or standard input.
enum Requests {
  static func read(_ data: String?, for method: DescribedMethod) throws -> [[UInt8]] {
    let text = data == "@" || data == "-" ? standardInput() : data ?? ""
    let objects = try JSONSplitter.objects(in: text)
    if objects.isEmpty { return method.takesStream ? [] : [[]] }
    guard method.takesStream || objects.count == 1 else {
      throw ArgumentList.Fault("\(objects.count) requests for a method that takes one")
    }
    var options = JSONOptions()
    options.types = method.input.pool
    return try objects.map { object in
      do throws(JSONError) {
        return try JSONFormat.decode(object, as: method.input, options)
      } catch {
        throw ArgumentList.Fault("the request is no \(method.input.fullName): \(error)")
      }
    }
  }

  private static func standardInput() -> String {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = Glibc.read(0, &buffer, buffer.count)
      if count > 0 {
        bytes.append(contentsOf: buffer[..<count])
      } else if count == 0 || errno != EINTR {
        return String(decoding: bytes, as: UTF8.self)
      }
    }
  }
}

/// Cuts a text into its outermost JSON objects, which may follow one another with or
/// without white space.
enum JSONSplitter {
  static func objects(in text: String) throws(ArgumentList.Fault) -> [String] {
    var objects: [String] = []
    var start: String.UTF8View.Index?
    var depth = 0
    var inString = false
    var escaped = false
    let bytes = text.utf8
    for index in bytes.indices {
      let byte = bytes[index]
      if inString {
        if escaped {
          escaped = false
        } else if byte == UInt8(ascii: "\\") {
          escaped = true
        } else if byte == UInt8(ascii: "\"") {
          inString = false
        }
        continue
      }
      switch byte {
      case UInt8(ascii: "\"") where depth > 0: inString = true
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        if depth == 0 { start = index }
        depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        if depth == 0, let begin = start {
          objects.append(String(decoding: bytes[begin...index], as: UTF8.self))
          start = nil
        }
        if depth < 0 { throw ArgumentList.Fault("the request closes a bracket it never opened") }
      case 0x20, 0x09, 0x0A, 0x0D: break
      default:
        if depth == 0 {
          throw ArgumentList.Fault(
            "the request is no JSON object: it begins with "
              + "'\(String(decoding: bytes[index...].prefix(12), as: UTF8.self))'")
        }
      }
    }
    guard depth == 0 else {
      throw ArgumentList.Fault("the request is no whole JSON object: a bracket stays open")
    }
    return objects
  }
}
