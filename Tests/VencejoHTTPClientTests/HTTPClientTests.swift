import Glibc
import Testing

@testable import VencejoHTTPClient

/// A server of one answer for each connection, on a thread of its own.
private final class Peer: Sendable {
  let port: UInt16
  private let descriptor: CInt
  let requests = Box<[String]>([])

  final class Box<Value: Sendable>: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    // Touched under the mutex only: that is what makes it sendable.
    private var value: Value
    init(_ value: Value) {
      self.value = value
      pthread_mutex_init(mutex, nil)
    }
    func update<R>(_ body: (inout Value) -> R) -> R {
      pthread_mutex_lock(mutex)
      defer { pthread_mutex_unlock(mutex) }
      return body(&value)
    }
    deinit { mutex.deallocate() }
  }

  init(answer: String, repeating: String = "") throws {
    let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    try withUnsafeMutablePointer(to: &address) {
      try $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        try #require(bind(descriptor, $0, length) == 0 && listen(descriptor, 8) == 0)
        getsockname(descriptor, $0, &length)
      }
    }
    self.descriptor = descriptor
    port = UInt16(bigEndian: address.sin_port)
    let requests = requests
    Thread.start {
      while true {
        let client = accept(descriptor, nil, nil)
        guard client >= 0 else { return }
        var text = ""
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
          let count = recv(client, &buffer, buffer.count, 0)
          guard count > 0 else { break }
          text += String(decoding: buffer[..<count], as: UTF8.self)
          if let head = text.range(of: "\r\n\r\n") {
            let wanted =
              text.lowercased().split(separator: "\r\n").first { $0.hasPrefix("content-length:") }
              .flatMap { Int($0.dropFirst(15).drop { $0 == " " }) } ?? 0
            if text[head.upperBound...].utf8.count >= wanted { break }
          }
        }
        requests.update { $0.append(text) }
        var bytes = Array(answer.utf8)
        _ = send(client, &bytes, bytes.count, CInt(MSG_NOSIGNAL))
        var more = Array(repeating.utf8)
        while !more.isEmpty,
          send(client, &more, more.count, CInt(MSG_NOSIGNAL)) == more.count
        {}
        if !answer.isEmpty { Glibc.close(client) }
      }
    }
  }

  func close() {
    shutdown(descriptor, CInt(SHUT_RDWR))
    Glibc.close(descriptor)
  }
}

private enum Thread {
  static func start(_ body: @escaping @Sendable () -> Void) {
    final class Start {
      let body: @Sendable () -> Void
      init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body()
        return nil
      }, Unmanaged.passRetained(Start(body)).toOpaque())
    pthread_detach(thread)
  }
}

extension String {
  fileprivate func range(of needle: String) -> Range<Index>? {
    var at = startIndex
    while at < endIndex {
      if self[at...].hasPrefix(needle) {
        return at..<index(at, offsetBy: needle.count)
      }
      at = index(after: at)
    }
    return nil
  }
}

@Suite struct HTTPClientTests {
  private let here = NetworkPolicy(allowed: [NetworkRange("127.0.0.0/8")].compactMap(\.self))

  private func post(
    _ client: HTTPClient, _ url: String, _ policy: NetworkPolicy, timeout: Duration = .seconds(10)
  ) async throws -> HTTPOutcome {
    await client.post(
      HTTPPost(
        try #require(HTTPAddress(url)),
        headers: [("content-type", "application/json"), ("bad", "a\r\nevil: 1")],
        body: Array("{\"a\":\"ñ\"}".utf8), timeout: timeout, policy: policy))
  }

  @Test func itPosts() async throws {
    let peer = try Peer(answer: "HTTP/1.1 204 No Content\r\n\r\n")
    defer { peer.close() }
    let client = try #require(HTTPClient())
    defer { client.close() }
    #expect(try await post(client, "http://127.0.0.1:\(peer.port)/x?y", here) == .status(204))
    let request = peer.requests.update { $0.first ?? "" }
    #expect(request.hasPrefix("POST /x?y HTTP/1.1\r\n"))
    #expect(request.hasSuffix("\r\n\r\n{\"a\":\"ñ\"}"))
    #expect(!request.contains("evil"))
  }

  @Test func addressesThatAreKeptOutGetNoConnection() async throws {
    let peer = try Peer(answer: "HTTP/1.1 200 OK\r\n\r\n")
    defer { peer.close() }
    let client = try #require(HTTPClient())
    defer { client.close() }
    for host in [
      "127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]", "127.1", "2130706433",
      "0x7f000001",
    ] {
      #expect(
        try await post(client, "http://\(host):\(peer.port)/", NetworkPolicy()) == .forbidden,
        "\(host)")
    }
    #expect(peer.requests.update { $0.isEmpty })
  }

  @Test func redirectsAreNotFollowed() async throws {
    let peer = try Peer(
      answer: "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n"
    )
    defer { peer.close() }
    let client = try #require(HTTPClient())
    defer { client.close() }
    #expect(try await post(client, "http://127.0.0.1:\(peer.port)/", here) == .status(302))
    #expect(peer.requests.update { $0.count } == 1)
  }

  @Test func anAnswerWithoutEndIsCutOff() async throws {
    let peer = try Peer(
      answer: "HTTP/1.1 200 OK\r\n\r\n", repeating: String(repeating: "x", count: 4096))
    defer { peer.close() }
    let client = try #require(HTTPClient())
    defer { client.close() }
    #expect(try await post(client, "http://127.0.0.1:\(peer.port)/", here) == .status(200))
  }

  @Test func aServerThatIsSilentIsLeft() async throws {
    let peer = try Peer(answer: "")
    defer { peer.close() }
    let client = try #require(HTTPClient())
    defer { client.close() }
    let outcome = try await post(
      client, "http://127.0.0.1:\(peer.port)/", here, timeout: .milliseconds(200))
    guard case .failed = outcome else {
      Issue.record("\(outcome)")
      return
    }
  }

  @Test func closingEndsWhatRuns() async throws {
    let peer = try Peer(answer: "")
    defer { peer.close() }
    let client = try #require(HTTPClient())
    async let outcome = post(client, "http://127.0.0.1:\(peer.port)/", here)
    while peer.requests.update({ $0.isEmpty }) {
      // Between two looks.
      try? await Task.sleep(for: .milliseconds(1))
    }
    client.close()
    #expect(try await outcome == .failed("the client is closed"))
    #expect(try await post(client, "http://127.0.0.1:1/", here) == .failed("the client is closed"))
  }
}
