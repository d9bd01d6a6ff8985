import Glibc
import VencejoHTTP2
import VencejoRPC

/// How the commands that talk to a server reach it.
enum Connecting {
  static let defaultAddress = "127.0.0.1:7447"

  static let options: [ArgumentList.Option] =
    [
      .init("timeout", aliases: ["max-time"], value: true), .init("connect-timeout", value: true),
      .init("header", short: "H", value: true), .init("expand-headers"),
      .init("user-agent", short: "A", value: true), .init("keepalive-time", value: true),
      .init("unix"), .init("unix-socket", value: true), .init("authority", value: true),
      .init("user", short: "u", value: true), .init("netrc", short: "n"),
      .init("netrc-file", value: true),
      // What is always so, for those who are used to say it.
      .init("http2-prior-knowledge"), .init("no-keepalive"), .init("protocol", value: true),
    ] + TLSOptions.client

  static let help = """
      -H, --header K:V     metadata; the value of a '-bin' key is base64; may be repeated;
                           '@FILE' reads a file with one on each line, '@-' standard input
      -u, --user NAME:PASSWORD
                           send them as basic authorization
      -n, --netrc          the same from ~/.netrc, by the address' host
      --netrc-file FILE    or from another file of its kind
      --expand-headers     put the environment's variables in the place of ${NAME} in headers
      --timeout, --max-time SECONDS
                           give up after so long; also 500ms, 10s, 2m
      --connect-timeout SECONDS
                           give up when there is no connection after so long (default: 20)
      --authority NAME     the host that requests are for, where it is not the address'; with
                           TLS the certificate must be for it
      -A, --user-agent NAME
                           what the client calls itself before its own name
      --keepalive-time SECONDS
                           ask a silent server whether it is there after so long
      --unix               ADDRESS is the path of a Unix socket
      --unix-socket PATH   connect there, and ADDRESS is only whom requests are for
    \(TLSOptions.help)
    """

  /// A channel that learns of nothing but its address; `observers` are told of its calls.
  static func channel(
    _ address: String, _ arguments: ArgumentList, observers: [any RPCObserver] = []
  ) throws -> Channel {
    var configuration = Channel.Configuration()
    configuration.observers = observers
    if let limit = try seconds(arguments, "connect-timeout") {
      configuration.connection.connectTimeout = limit
      configuration.connection.handshakeTimeout = limit
    }
    configuration.connection.keepaliveInterval = try seconds(arguments, "keepalive-time")
    configuration.authority = arguments["authority"]
    if let name = arguments["user-agent"] {
      configuration.userAgent = "\(name) \(configuration.userAgent)"
    }
    if let name = arguments["protocol"], name != "grpc" {
      throw ArgumentList.Fault("--protocol is grpc: nothing else is spoken, not '\(name)'")
    }
    var (target, isEncrypted) = (address, false)
    for (scheme, encrypted) in [("http://", false), ("https://", true)]
    where address.hasPrefix(scheme) {
      target = String(address.dropFirst(scheme.count).prefix { $0 != "/" })
      if !target.contains(":") || target.hasSuffix("]") { target += encrypted ? ":443" : ":80" }
      isEncrypted = encrypted
    }
    if let path = arguments["unix-socket"] {
      configuration.authority = configuration.authority ?? target
      target = "unix:" + path
    } else if arguments.has("unix"), !address.hasPrefix("unix:") {
      target = "unix:" + address
    }
    var tls = try TLSOptions.client(arguments)
    if isEncrypted, tls == nil { tls = .systemRoots }
    return try Channel(target, tls: tls, configuration: configuration)
  }

  static func seconds(
    _ arguments: ArgumentList, _ name: String
  ) throws(ArgumentList.Fault) -> Duration? {
    guard let text = arguments[name] else { return nil }
    let units: [(String, Double)] = [("ms", 0.001), ("s", 1), ("m", 60), ("h", 3_600)]
    let unit = units.first { text.hasSuffix($0.0) }
    guard let number = Double(text.dropLast(unit?.0.count ?? 0)), number > 0, number < 1e9 else {
      throw ArgumentList.Fault("'\(text)' is no number of seconds")
    }
    return .milliseconds(max(1, Int64(number * (unit?.1 ?? 1) * 1_000)))
  }

  /// Timeout and metadata of a call; `also` names the option that brings more headers.
  static func callOptions(
    _ arguments: ArgumentList, also: String
  ) throws(ArgumentList.Fault) -> CallOptions {
    var options = CallOptions()
    // An answer of any size that a person asked for is welcome.
    options.maxReceiveMessageBytes = 256 << 20
    options.timeout = try seconds(arguments, "timeout")
    for header in try headers(arguments.all("header") + arguments.all(also)) {
      let header = arguments.has("expand-headers") ? try expanded(header) : header
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
    var user = arguments["user"]
    if user == nil { user = try Netrc.user(for: arguments.words.first ?? "", arguments) }
    if let user, options.metadata["authorization"] == nil {
      guard user.contains(":") else { throw ArgumentList.Fault("--user is NAME:PASSWORD") }
      options.metadata["authorization"] = "Basic \(base64(Array(user.utf8)))"
    }
    if let problem = options.metadata.problem { throw ArgumentList.Fault(problem) }
    return options
  }

  /// Those in files in the place of the files' names. `*`, buf's word for all of `--header` in
  /// `--reflect-header`, is what happens anyway.
  private static func headers(
    _ words: [String]
  ) throws(ArgumentList.Fault) -> [String] {
    var headers: [String] = []
    for word in words where word != "*" {
      guard word.hasPrefix("@") else {
        headers.append(word)
        continue
      }
      let bytes = try ProtoFiles.read(String(word.dropFirst()))
      for line in String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline) {
        if line.contains(where: { $0 != " " && $0 != "\t" }) { headers.append(String(line)) }
      }
    }
    return headers
  }

  static func base64(_ bytes: [UInt8]) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    var text = ""
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      let number = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
      for position in 0...group.count { text.append(alphabet[number >> (18 - 6 * position) & 63]) }
      text += String(repeating: "=", count: 3 - group.count)
    }
    return text
  }

  private static func expanded(_ text: String) throws(ArgumentList.Fault) -> String {
    var result = ""
    var rest = Substring(text)
    while let open = rest.firstRange(of: "${") {
      guard let close = rest[open.upperBound...].firstIndex(of: "}") else { break }
      let name = String(rest[open.upperBound..<close])
      guard let value = getenv(name) else {
        throw ArgumentList.Fault("the environment has no variable \(name)")
      }
      result += rest[..<open.lowerBound] + String(cString: value)
      rest = rest[rest.index(after: close)...]
    }
    return result + rest
  }

  /// Where a command that asks of types gets them.
  static func types(
    _ address: String?, _ arguments: ArgumentList
  ) throws -> (source: TypeSource, channel: Channel?) {
    let files = try TypeSource.files(arguments)
    if let files, !arguments.has("use-reflection") { return (files, nil) }
    let channel = try channel(address ?? defaultAddress, arguments)
    var options = try callOptions(arguments, also: "reflect-header")
    options.timeout = options.timeout ?? .seconds(20)
    var client = ReflectionClient(channel: channel, options: options)
    if let name = arguments["reflect-protocol"] {
      guard name == "grpc-v1" || name == "grpc-v1alpha" else {
        throw ArgumentList.Fault("--reflect-protocol is grpc-v1 or grpc-v1alpha, not '\(name)'")
      }
      client.versions = [String(name.dropFirst(5))]
    }
    if case .files(let pool)? = files { return (.both(pool, client), channel) }
    return (.reflection(client), channel)
  }
}
