import Glibc
import VencejoHTTP2

/// Where a channel connects to (gRPC "Name Resolution"): `host:port`, `dns:///host:port`,
/// `ipv4:1.2.3.4:80`, `ipv6:[::1]:80` and `unix:/path`.
struct Target: Sendable, CustomStringConvertible {
  enum Addresses: Sendable {
    case known([SocketAddress])
    case host(String, UInt16)
    /// Makes a connected socket and gives its descriptor away.
    case inProcess(@Sendable () -> Int32?)
  }

  let description: String
  let addresses: Addresses
  /// The `:authority` of requests.
  var authority: String

  /// Whom a certificate must be for: the authority without port, brackets and an address's zone.
  var host: String {
    let end = authority.lastIndex(of: ":") ?? authority.endIndex
    var host = authority[..<end]
    if host.hasPrefix("[") { host = host.dropFirst().prefix { $0 != "]" && $0 != "%" } }
    if host.hasSuffix(".") { host = host.dropLast() }
    return String(host)
  }

  /// For addresses that have no text.
  init(_ addresses: Addresses) {
    description = "in process"
    self.addresses = addresses
    authority = "localhost"
  }

  init(_ text: String) throws(RPCError) {
    description = text
    var rest = Substring(text)
    if rest.hasPrefix("unix:") {
      addresses = .known([try Self.address(text, of: text)])
      authority = "localhost"
      return
    }
    if rest.hasPrefix("dns:///") {
      rest = rest.dropFirst(7)
    } else if rest.hasPrefix("dns:") || rest.hasPrefix("ipv4:") || rest.hasPrefix("ipv6:") {
      rest = rest[rest.index(after: rest.firstIndex(of: ":") ?? rest.startIndex)...]
    }
    authority = String(rest)
    if let address = try? SocketAddress(parsing: String(rest)) {
      addresses = .known([address])
      return
    }
    guard let colon = rest.lastIndex(of: ":"), let port = UInt16(rest[rest.index(after: colon)...]),
      port > 0, colon > rest.startIndex, !rest[..<colon].contains(where: { "/:[]@ ".contains($0) })
    else {
      throw RPCError(.invalidArgument, "'\(text)' is no address: write HOST:PORT or unix:/PATH")
    }
    addresses = .host(String(rest[..<colon]), port)
  }

  private static func address(_ text: String, of whole: String) throws(RPCError) -> SocketAddress {
    do {
      return try SocketAddress(parsing: text)
    } catch {
      throw RPCError(.invalidArgument, "'\(whole)' is no address: \(error)")
    }
  }
}

/// The system's resolver. Blocks.
enum Resolver {
  static func resolve(host: String, port: UInt16) -> Result<[SocketAddress], RPCError> {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_ADDRCONFIG
    var list: UnsafeMutablePointer<addrinfo>?
    let result = getaddrinfo(host, "\(port)", &hints, &list)
    guard result == 0 else {
      let reason = String(cString: gai_strerror(result))
      return .failure(
        RPCError(.unavailable, "the name '\(host)' has no address: \(reason)", origin: .transport))
    }
    defer { freeaddrinfo(list) }
    var addresses: [SocketAddress] = []
    var entry = list
    while let info = entry?.pointee {
      var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
      if getnameinfo(
        info.ai_addr, info.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0
      {
        let numeric = String(
          decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        let written = info.ai_family == AF_INET6 ? "[\(numeric)]:\(port)" : "\(numeric):\(port)"
        if let address = try? SocketAddress(parsing: written), !addresses.contains(address) {
          addresses.append(address)
        }
      }
      entry = info.ai_next
    }
    return .success(addresses)
  }
}
