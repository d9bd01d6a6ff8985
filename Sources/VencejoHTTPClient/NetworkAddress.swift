/// An address of the Internet Protocol, as bytes in network order.
public struct NetworkAddress: Sendable, Hashable, CustomStringConvertible {
  /// Four of IPv4, sixteen of IPv6.
  public let bytes: [UInt8]

  /// Nil unless there are four or sixteen bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == 4 || bytes.count == 16 else { return nil }
    self.bytes = bytes
  }

  public var description: String {
    guard bytes.count == 16 else { return bytes.map(String.init).joined(separator: ".") }
    return stride(from: 0, to: 16, by: 2).map {
      String(UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]), radix: 16)
    }.joined(separator: ":")
  }

  /// The IPv4 address that this one stands for: mapped and compatible ones (RFC 4291, section
  /// 2.5.5), those of 6to4 (RFC 3056) and of translators (RFC 6052). What reaches a machine by
  /// another spelling is judged as the machine.
  var embedded: NetworkAddress? {
    guard bytes.count == 16 else { return nil }
    let head = bytes.prefix(12)
    let zeros = head.prefix(10).allSatisfy { $0 == 0 }
    if zeros, bytes[10] == 0xff, bytes[11] == 0xff { return NetworkAddress(Array(bytes[12...])) }
    if zeros, bytes[10] == 0, bytes[11] == 0 { return NetworkAddress(Array(bytes[12...])) }
    if head.elementsEqual([0x00, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0]) {
      return NetworkAddress(Array(bytes[12...]))
    }
    if bytes[0] == 0x20, bytes[1] == 0x02 { return NetworkAddress(Array(bytes[2..<6])) }
    return nil
  }

  private init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Whether the address belongs to the public Internet: none of the special ones in IANA's
  /// registries (RFC 6890), no group's, and nothing but 2000::/3 of IPv6.
  public var isPublic: Bool {
    if let embedded { return embedded.isPublic }
    if bytes.count == 4 { return !Self.special4.contains { $0.contains(self) } }
    return bytes[0] & 0xe0 == 0x20 && !Self.special6.contains { $0.contains(self) }
  }

  private static let special4: [NetworkRange] = [
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
    "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
  ].compactMap(NetworkRange.init)

  /// Of 2000::/3: what is no machine's, and tunnels whose ends the address does not tell.
  private static let special6: [NetworkRange] = [
    "2001::/23", "2001:db8::/32", "3fff::/20",
  ].compactMap(NetworkRange.init)
}

/// Addresses that begin alike, as `10.0.0.0/8`.
public struct NetworkRange: Sendable, Hashable {
  private let start: [UInt8]
  private let length: Int

  /// From `address/length` or an address alone; nil where it is neither.
  public init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count <= 2, let first = parts.first, let address = NetworkAddress(String(first))
    else { return nil }
    let bits = address.bytes.count * 8
    guard parts.count == 2 else {
      self.start = address.bytes
      self.length = bits
      return
    }
    guard parts[1].allSatisfy(\.isASCII), let length = Int(parts[1]), (0...bits).contains(length)
    else { return nil }
    self.start = address.bytes
    self.length = length
  }

  public func contains(_ address: NetworkAddress) -> Bool {
    guard address.bytes.count == start.count else { return false }
    for index in 0..<start.count {
      let bits = min(8, max(0, length - index * 8))
      let mask = UInt8(truncatingIfNeeded: 0xff00 >> bits)
      guard start[index] & mask == address.bytes[index] & mask else { return false }
    }
    return true
  }
}

/// To which machines a client may connect.
public struct NetworkPolicy: Sendable, Hashable {
  /// Beside the public Internet.
  public var allowed: [NetworkRange]

  public init(allowed: [NetworkRange] = []) { self.allowed = allowed }

  public func permits(_ address: NetworkAddress) -> Bool {
    let plain = address.embedded ?? address
    return address.isPublic || allowed.contains { $0.contains(address) || $0.contains(plain) }
  }
}
