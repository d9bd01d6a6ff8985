import Glibc
public import VencejoHTTP2

extension Channel {
  /// Finds the addresses of a server, for a channel made with
  /// ``Channel/init(resolver:authority:tls:configuration:)``.
  public protocol Resolver: Sendable {
    /// Looks the addresses up and calls `found`. It may stay and call `found` again whenever
    /// they change, until its task is cancelled; or return, and is asked again when connections
    /// break, at most every 30 seconds. What it throws fails the calls that wait, and it is
    /// asked again after the channel's backoff.
    func resolve(_ found: @escaping @Sendable (Resolution) -> Void) async throws
  }

  /// Where a server is, and how it wants to be called.
  public struct Resolution: Sendable {
    public var addresses: [SocketAddress]
    /// In the JSON form; takes the place of the channel's own. One that is not valid is
    /// ignored when an earlier one was, and fails calls otherwise.
    public var serviceConfig: String?

    public init(addresses: [SocketAddress], serviceConfig: String? = nil) {
      self.addresses = addresses
      self.serviceConfig = serviceConfig
    }
  }
}

/// Names of the system's name service: DNS and what else it is set up for.
struct DNSResolver: Channel.Resolver {
  let host: String
  let port: UInt16

  func resolve(_ found: @escaping @Sendable (Channel.Resolution) -> Void) async throws {
    let result = await withUnsafeContinuation { continuation in
      // getaddrinfo blocks for seconds when a name server is away.
      detachThread { continuation.resume(returning: Self.lookUp(host: host, port: port)) }
    }
    found(Channel.Resolution(addresses: try result.get()))
  }

  /// Blocks.
  static func lookUp(host: String, port: UInt16) -> Result<[SocketAddress], RPCError> {
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
