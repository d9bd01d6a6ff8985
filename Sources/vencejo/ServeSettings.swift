import Glibc
import VencejoHTTPClient
import VencejoServer
import VencejoTools

/// Where the settings of `vencejo serve` come from, and what they mean.
enum ServeSettings {
  /// What SIGHUP takes over; the rest waits for a restart.
  static let live: Set<String> = [
    "log-level", "quiet", "open-sign-up", "hook-network", "call-limit", "change-limit",
    "device-limit", "attempt-limit", "tls-cert", "tls-key", "tls-client-ca",
  ]

  private static let repeatable: Set<String> = [
    "listen", "hook-network", "redact", "otlp-header",
  ]

  /// The options of the command line, filled up from the environment and the file.
  static func read(
    _ flags: ArgumentList, _ options: [ArgumentList.Option]
  ) throws(ArgumentList.Fault) -> ArgumentList {
    let environment = environment()
    let path = flags["config"] ?? environment["VENCEJO_CONFIG"]
    var file: (path: String, text: String)?
    if let path { file = (path, try text(of: path)) }
    return try Settings(prefix: "VENCEJO", environment: environment).filled(
      flags, options: options.filter { $0.long != "help" }, repeatable: repeatable, file: file)
  }

  static func backend(
    _ arguments: ArgumentList
  ) throws(ArgumentList.Fault) -> Backend.Configuration {
    var settings = Backend.Configuration(directory: arguments["data"] ?? "data")
    settings.isSignUpOpen = arguments.has("open-sign-up")
    settings.trustsLoopback = !arguments.has("behind-proxy")
    for text in arguments.all("hook-network") {
      guard let range = NetworkRange(text) else {
        throw ArgumentList.Fault("'\(text)' is no network: write as 10.0.0.0/8")
      }
      settings.hookPolicy.allowed.append(range)
    }
    settings.callLimit = try limit("call-limit", arguments) ?? settings.callLimit
    settings.changeLimit = try limit("change-limit", arguments) ?? settings.changeLimit
    settings.deviceChangeLimit = try limit("device-limit", arguments) ?? settings.deviceChangeLimit
    settings.attemptLimit = try limit("attempt-limit", arguments) ?? settings.attemptLimit
    return settings
  }

  /// `BURST:PER_SECOND`.
  private static func limit(
    _ name: String, _ arguments: ArgumentList
  ) throws(ArgumentList.Fault) -> RateLimit? {
    guard let text = arguments[name] else { return nil }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false).map { Double($0) }
    guard parts.count == 2, let burst = parts[0], let rate = parts[1], burst >= 1, burst <= 1e9,
      rate > 0, rate <= 1e9
    else {
      throw ArgumentList.Fault("--\(name) is a number at once and one a second, as 100:10")
    }
    return RateLimit(burst: burst, perSecond: rate)
  }

  private static func text(of path: String) throws(ArgumentList.Fault) -> String {
    guard let file = fopen(path, "r") else {
      throw ArgumentList.Fault("cannot read \(path): \(String(cString: strerror(errno)))")
    }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while bytes.count < 1 << 20 {
      let count = fread(&chunk, 1, chunk.count, file)
      guard count > 0 else { break }
      bytes += chunk[..<count]
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func environment() -> [String: String] {
    var result: [String: String] = [:]
    var at = environ
    while let entry = at.pointee {
      let text = String(cString: entry)
      if let mark = text.firstIndex(of: "=") {
        result[String(text[..<mark])] = String(text[text.index(after: mark)...])
      }
      at += 1
    }
    return result
  }
}
