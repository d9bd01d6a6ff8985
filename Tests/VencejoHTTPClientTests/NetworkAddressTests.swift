import Testing

@testable import VencejoHTTPClient

/// Addresses of IANA's special-purpose registries (RFC 6890 and what came after it), and their
/// other spellings.
@Suite struct NetworkAddressTests {
  @Test(arguments: [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1",
    "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "240.0.0.1",
    "255.255.255.255", "::", "::1", "::ffff:127.0.0.1", "::ffff:10.1.2.3", "::127.0.0.1",
    "64:ff9b::10.0.0.1", "64:ff9b:1::1", "2002:7f00:0001::1", "2002:a00:1::", "2001::1",
    "2001:db8::1", "fe80::1", "febf::1", "fc00::1", "fd12:3456::1", "ff02::1", "fec0::1", "100::1",
    "3fff::1", "4000::1",
  ])
  func isKeptOut(_ text: String) throws {
    let address = try #require(NetworkAddress(text))
    #expect(!address.isPublic)
    #expect(!NetworkPolicy().permits(address))
  }

  @Test(arguments: [
    "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.0.0.1",
    "128.0.0.1",
    "172.15.255.255", "172.32.0.0", "192.167.1.1", "223.255.255.255", "2606:4700::1111",
    "2a00:1450::1", "64:ff9b::1.1.1.1", "2002:101:101::1", "::ffff:8.8.8.8",
  ])
  func isOfTheInternet(_ text: String) throws {
    #expect(try #require(NetworkAddress(text)).isPublic)
  }

  @Test(arguments: ["", "127.1", "0x7f.0.0.1", "2130706433", "localhost", "::1%lo", "1.2.3.4 "])
  func isNoAddress(_ text: String) { #expect(NetworkAddress(text) == nil) }

  @Test func aRangeIsLetIn() throws {
    let policy = NetworkPolicy(
      allowed: try ["10.1.0.0/16", "::1", "172.16.0.0/12"].map { try #require(NetworkRange($0)) })
    for text in ["10.1.2.3", "::ffff:10.1.2.3", "::1", "172.31.0.1"] {
      #expect(policy.permits(try #require(NetworkAddress(text))), "\(text)")
    }
    for text in ["10.2.0.0", "127.0.0.1", "::2", "172.32.0.1", "192.168.0.1"] {
      #expect(
        policy.permits(try #require(NetworkAddress(text))) == (text == "172.32.0.1"), "\(text)")
    }
  }

  @Test(arguments: ["10.0.0.0/33", "::/129", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/8/8", "x/8"])
  func isNoRange(_ text: String) { #expect(NetworkRange(text) == nil) }
}

@Suite struct HTTPAddressTests {
  @Test(arguments: [
    "https://example.org/hook", "http://127.0.0.1:8080/a?b=c", "https://[::1]:9000/x",
  ])
  func isTaken(_ text: String) { #expect(HTTPAddress(text)?.url == text) }

  @Test(arguments: [
    "", "example.org", "ftp://example.org/", "file:///etc/passwd", "gopher://x/", "https://",
    "https://user@example.org/", "https://user:pw@example.org/", "https://example.org/#x",
    "https://exa mple.org/", "https://example.org/\r\nx: y", "javascript:alert(1)",
    "https://" + String(repeating: "a", count: 2048),
  ])
  func isRefused(_ text: String) { #expect(HTTPAddress(text) == nil) }
}
