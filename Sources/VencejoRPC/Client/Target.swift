import VencejoHTTP2

/// Where a channel connects to (gRPC "Name Resolution"): `host:port`, `dns:///host:port`,
/// `ipv4:1.2.3.4:80,1.2.3.5:80`, `ipv6:[::1]:80`, `unix:/path` and `unix-abstract:name`.
struct Target: Sendable, CustomStringConvertible {
  enum Addresses: Sendable {
    case known([SocketAddress])
    case resolved(any Channel.Resolver)
    /// Makes a connected socket and gives its descriptor away.
    case inProcess(@Sendable () -> Int32?)
  }

  let description: String
  let addresses: Addresses
  /// The `:authority` of requests.
  var authority: String

  /// Whom a certificate must be for: the authority without port, brackets and an address's zone.
  var host: String {
    var host = authority[...]
    if host.hasPrefix("[") {
      host = host.dropFirst().prefix { $0 != "]" && $0 != "%" }
    } else if let colon = host.lastIndex(of: ":") {
      host = host[..<colon]
    }
    if host.hasSuffix(".") { host = host.dropLast() }
    return String(host)
  }

  /// For addresses that have no text.
  init(_ addresses: Addresses, authority: String = "localhost", description: String = "in process")
  {
    self.description = description
    self.addresses = addresses
    self.authority = authority
  }

  init(_ text: String) throws(RPCError) {
    description = text
    if text.hasPrefix("unix:") || text.hasPrefix("unix-abstract:") {
      addresses = .known([try Self.address(text, of: text)])
      authority = "localhost"
      return
    }
    for scheme in ["ipv4:", "ipv6:"] where text.hasPrefix(scheme) {
      let parts = text.dropFirst(5).split(separator: ",", omittingEmptySubsequences: false)
      addresses = .known(try Self.list(parts, isSix: scheme == "ipv6:", of: text))
      authority = String(parts[0])
      return
    }
    var rest = Substring(text)
    if rest.hasPrefix("dns:") {
      rest = rest.dropFirst(4)
      if rest.hasPrefix("//") {
        rest = rest.dropFirst(2)
        guard rest.hasPrefix("/") else {
          throw RPCError(
            .invalidArgument,
            "'\(text)' names a name server: write dns:///HOST:PORT, for the system's")
        }
        rest = rest.dropFirst()
      }
      // The default of gRPC's DNS names.
      if !rest.isEmpty, !rest.contains(":") || rest.hasSuffix("]") { rest += ":443" }
    }
    authority = String(rest)
    // Names are the resolver's business, `localhost` too: it may be IPv6's.
    if !rest.hasPrefix("localhost:"), let address = try? SocketAddress(parsing: String(rest)) {
      addresses = .known([address])
      return
    }
    guard let colon = rest.lastIndex(of: ":"), let port = UInt16(rest[rest.index(after: colon)...]),
      port > 0, colon > rest.startIndex, !rest[..<colon].contains(where: { "/:[]@ ,".contains($0) })
    else {
      throw RPCError(.invalidArgument, "'\(text)' is no address: write HOST:PORT or unix:/PATH")
    }
    addresses = .resolved(DNSResolver(host: String(rest[..<colon]), port: port))
  }

  private static func list(
    _ parts: [Substring], isSix: Bool, of whole: String
  ) throws(RPCError) -> [SocketAddress] {
    var addresses: [SocketAddress] = []
    for part in parts {
      let address = try Self.address(Self.withPort(part, isSix: isSix), of: whole)
      let fits = if case .ipv6 = address { isSix } else { !isSix }
      guard fits, part != "localhost" else {
        throw RPCError(
          .invalidArgument, "'\(part)' in '\(whole)' is of the other kind of address")
      }
      addresses.append(address)
    }
    return addresses
  }

  /// Port 443 is the default; without one an IPv6 address may go without brackets.
  private static func withPort(_ part: Substring, isSix: Bool) -> String {
    if isSix, !part.hasPrefix("["), part.count(where: { $0 == ":" }) > 1 { return "[\(part)]:443" }
    let hasPort = isSix ? !part.hasSuffix("]") : part.contains(":")
    return hasPort ? String(part) : "\(part):443"
  }

  private static func address(_ text: String, of whole: String) throws(RPCError) -> SocketAddress {
    do {
      return try SocketAddress(parsing: text)
    } catch {
      throw RPCError(.invalidArgument, "'\(whole)' is no address: \(error)")
    }
  }
}
