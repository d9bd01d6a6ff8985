import CLinux
import Glibc

/// Where a server listens or a client connects: numbers or a path, never a name
/// (names are resolved above, off the loops).
public enum SocketAddress: Sendable, Hashable, CustomStringConvertible {
  /// Four bytes in network order and a port.
  case ipv4(UInt32, port: UInt16)
  /// Sixteen bytes in network order as two words, a port and the scope (0 but for
  /// link-local addresses).
  case ipv6(high: UInt64, low: UInt64, port: UInt16, scope: UInt32)
  /// A Unix domain socket's path; empty for an unnamed peer. One that begins with a zero
  /// byte is a name in Linux's abstract namespace, without a file (unix(7)).
  case unix(String)

  /// Reads `127.0.0.1:7447`, `[::1]:7447`, `localhost:7447` (IPv4's loopback),
  /// `unix:/path` or `unix-abstract:name`; throws `.invalidAddress` otherwise.
  public init(parsing text: String) throws(HTTP2Error) {
    if text.hasPrefix("unix-abstract:") {
      let name = text.dropFirst(14)
      let size = MemoryLayout.size(ofValue: sockaddr_un().sun_path)
      guard !name.isEmpty, name.utf8.count < size, !name.utf8.contains(0) else {
        throw HTTP2Error(
          .invalidAddress, "an abstract Unix socket's name has 1 to \(size - 1) bytes: \(text)")
      }
      self = .unix("\0\(name)")
      return
    }
    if text.hasPrefix("unix:") {
      var path = Substring(text.dropFirst(5))
      if path.hasPrefix("///") { path = path.dropFirst(2) }
      let size = MemoryLayout.size(ofValue: sockaddr_un().sun_path)
      guard !path.isEmpty, path.utf8.count < size, !path.utf8.contains(0) else {
        throw HTTP2Error(
          .invalidAddress, "a Unix socket's path has 1 to \(size - 1) bytes: \(text)")
      }
      self = .unix(String(path))
      return
    }
    guard let colon = text.utf8.lastIndex(of: UInt8(ascii: ":")),
      let port = Self.port(text[text.index(after: colon)...])
    else { throw HTTP2Error(.invalidAddress, "not an address with a port: \(text)") }
    var host = text[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") {
      host = host.dropFirst().dropLast()
      guard let address = Self.ipv6(String(host), port: port) else {
        throw HTTP2Error(.invalidAddress, "not an IPv6 address: \(text)")
      }
      self = address
    } else if host == "localhost" {
      self = .ipv4(0x7f00_0001, port: port)
    } else {
      var v4 = in_addr()
      guard inet_pton(AF_INET, String(host), &v4) == 1 else {
        throw HTTP2Error(.invalidAddress, "not a numeric address: \(text)")
      }
      self = .ipv4(UInt32(bigEndian: v4.s_addr), port: port)
    }
  }

  private static func port(_ digits: Substring) -> UInt16? {
    guard !digits.isEmpty, digits.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }) else { return nil }
    return UInt16(digits)
  }

  private static func ipv6(_ host: String, port: UInt16) -> SocketAddress? {
    var scope: UInt32 = 0
    var numeric = host
    if let percent = host.firstIndex(of: "%") {
      let zone = String(host[host.index(after: percent)...])
      numeric = String(host[..<percent])
      scope = UInt32(zone) ?? UInt32(if_nametoindex(zone))
    }
    var v6 = in6_addr()
    guard inet_pton(AF_INET6, numeric, &v6) == 1 else { return nil }
    return withUnsafeBytes(of: &v6) { raw in
      .ipv6(
        high: UInt64(bigEndian: raw.loadUnaligned(as: UInt64.self)),
        low: UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
        port: port, scope: scope)
    }
  }

  /// Whether only this machine can reach it: 127/8, ::1 or a Unix socket.
  public var isLoopback: Bool {
    switch self {
    case .ipv4(let address, _): return address >> 24 == 127
    case .ipv6(let high, let low, _, _):
      return high == 0 && (low == 1 || low >> 24 == 0xffff7f)
    case .unix: return true
    }
  }

  /// Whether this is a Unix domain socket.
  public var isUnix: Bool {
    if case .unix = self { return true }
    return false
  }

  /// The port; nil for a Unix socket.
  public var port: UInt16? {
    switch self {
    case .ipv4(_, let port), .ipv6(_, _, let port, _): return port
    case .unix: return nil
    }
  }

  /// The form `init(parsing:)` reads.
  public var description: String {
    switch self {
    case .ipv4(let a, let port):
      return "\(a >> 24).\(a >> 16 & 255).\(a >> 8 & 255).\(a & 255):\(port)"
    case .ipv6(let high, let low, let port, let scope):
      var words = (high.bigEndian, low.bigEndian)
      let text = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { out in
        guard let base = out.baseAddress,
          inet_ntop(AF_INET6, &words, base, socklen_t(out.count)) != nil
        else { return "?" }
        return String(cString: base)
      }
      return scope == 0 ? "[\(text)]:\(port)" : "[\(text)%\(scope)]:\(port)"
    case .unix(let path):
      return path.hasPrefix("\0") ? "unix-abstract:\(path.dropFirst())" : "unix:\(path)"
    }
  }

  var family: Int32 {
    switch self {
    case .ipv4: return AF_INET
    case .ipv6: return AF_INET6
    case .unix: return AF_UNIX
    }
  }

  /// Calls `body` with the address in the kernel's form.
  func withSockAddr<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
    var storage = sockaddr_storage()
    let length = withUnsafeMutableBytes(of: &storage) { raw -> Int in
      switch self {
      case .ipv4(let address, let port):
        var a = sockaddr_in()
        a.sin_family = sa_family_t(AF_INET)
        a.sin_port = port.bigEndian
        a.sin_addr.s_addr = address.bigEndian
        raw.storeBytes(of: a, as: sockaddr_in.self)
        return MemoryLayout<sockaddr_in>.size
      case .ipv6(let high, let low, let port, let scope):
        var a = sockaddr_in6()
        a.sin6_family = sa_family_t(AF_INET6)
        a.sin6_port = port.bigEndian
        a.sin6_scope_id = scope
        withUnsafeMutableBytes(of: &a.sin6_addr) { bytes in
          bytes.storeBytes(of: high.bigEndian, as: UInt64.self)
          bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
        }
        raw.storeBytes(of: a, as: sockaddr_in6.self)
        return MemoryLayout<sockaddr_in6>.size
      case .unix(let path):
        var a = sockaddr_un()
        a.sun_family = sa_family_t(AF_UNIX)
        var count = 0
        withUnsafeMutableBytes(of: &a.sun_path) { bytes in
          for byte in path.utf8.prefix(path.hasPrefix("\0") ? bytes.count : bytes.count - 1) {
            bytes[count] = byte
            count += 1
          }
        }
        raw.storeBytes(of: a, as: sockaddr_un.self)
        // An abstract name ends with its length, a path with a zero byte.
        return MemoryLayout<sa_family_t>.size + count + (path.hasPrefix("\0") ? 0 : 1)
      }
    }
    return withUnsafePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(length)) }
    }
  }

  /// Asks `getsockname` or `getpeername` and reads the answer.
  static func read(
    _ call: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
  ) -> SocketAddress? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let ok = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { call($0, &length) == 0 }
    }
    guard ok else { return nil }
    let family = Int32(storage.ss_family)
    return withUnsafeBytes(of: &storage) { raw in
      switch family {
      case AF_INET:
        let a = raw.load(as: sockaddr_in.self)
        return .ipv4(UInt32(bigEndian: a.sin_addr.s_addr), port: UInt16(bigEndian: a.sin_port))
      case AF_INET6:
        let a = raw.load(as: sockaddr_in6.self)
        return withUnsafeBytes(of: a.sin6_addr) { bytes in
          .ipv6(
            high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
            low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
            port: UInt16(bigEndian: a.sin6_port), scope: a.sin6_scope_id)
        }
      case AF_UNIX:
        let start = MemoryLayout<sa_family_t>.size
        let end = min(Int(length), raw.count)
        guard end > start else { return .unix("") }
        if raw[start] == 0 {
          return .unix(end - start > 1 ? String(decoding: raw[start..<end], as: UTF8.self) : "")
        }
        return .unix(String(decoding: raw[start..<end].prefix { $0 != 0 }, as: UTF8.self))
      default: return nil
      }
    }
  }

  static func local(of fd: Int32) -> SocketAddress? { read { getsockname(fd, $0, $1) } }
  static func peer(of fd: Int32) -> SocketAddress? { read { getpeername(fd, $0, $1) } }
}
