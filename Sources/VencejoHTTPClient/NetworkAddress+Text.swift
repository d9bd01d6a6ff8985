import Glibc

extension NetworkAddress {
  /// From text, as inet_pton(3) reads it: no other spelling of an address is taken.
  public init?(_ text: String) {
    var four = in_addr()
    if inet_pton(AF_INET, text, &four) == 1 {
      self.init(bytes: withUnsafeBytes(of: four) { Array($0) })
      return
    }
    var six = in6_addr()
    guard inet_pton(AF_INET6, text, &six) == 1 else { return nil }
    self.init(bytes: withUnsafeBytes(of: six) { Array($0) })
  }

  /// From a socket's address; nil for one that is not of the Internet Protocol.
  init?(family: CInt, _ address: UnsafeRawBufferPointer) {
    let (offset, count) =
      family == AF_INET
      ? (MemoryLayout<sockaddr_in>.offset(of: \.sin_addr) ?? 4, 4)
      : (MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr) ?? 8, 16)
    guard family == AF_INET || family == AF_INET6, address.count >= offset + count else {
      return nil
    }
    self.init(bytes: Array(address[offset..<offset + count]))
  }
}
