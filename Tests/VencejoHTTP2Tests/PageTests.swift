import Glibc
import Testing

@testable import VencejoHTTP2

@Suite("Pages over HTTP/1.1")
struct PageTests {
  @Test(arguments: [
    ("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "get", "/metrics"),
    ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", "get", "/metrics"),
    ("GET / HTTP/1.1\n\n", "get", "/"),
    ("HEAD /a/b HTTP/1.1\r\n\r\n", "head", "/a/b"),
    ("POST / HTTP/1.1\r\n\r\n", "other", "/"),
    ("GET / HTTP/2.0\r\n\r\n", "malformed", ""),
    ("GET http://a/ HTTP/1.1\r\n\r\n", "malformed", ""),
    ("PRI * HTTP/2.0\r\n\r\n", "malformed", ""),
    ("\r\n\r\n", "malformed", ""),
    ("GET  / HTTP/1.1\r\n\r\n", "malformed", ""),
  ])
  func heads(_ text: String, _ kind: String, _ path: String) {
    let head = PageRequest(Array(text.utf8))
    #expect(head.map { "\($0.kind)" } == kind)
    #expect(head?.path == path)
  }

  @Test func aHeadThatHasNotEndedIsNone() {
    for text in ["", "GET", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\n"] {
      #expect(PageRequest(Array(text.utf8)) == nil)
    }
  }

  @Test func anyBytesAsAHead() {
    let pieces = [
      "GET", "HEAD", " ", "/", "\r", "\n", "\r\n\r\n", "HTTP/1.", "1", "?", "\u{0}", "é",
    ]
    for _ in 0..<20_000 {
      let text = (0..<Int.random(in: 0...9)).map { _ in pieces.randomElement() ?? "" }.joined()
      guard let head = PageRequest(Array(text.utf8)) else { continue }
      #expect("\(head.kind)" == "malformed" || head.path.hasPrefix("/"))
    }
  }

  /// Sends and reads until the server closes.
  private func exchange(_ address: SocketAddress, _ pieces: [String]) -> String {
    let fd = socket(address.family, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(fd) }
    guard address.withSockAddr({ connect(fd, $0, $1) }) == 0 else { return "no connection" }
    for piece in pieces { _ = send(fd, piece, piece.utf8.count, Int32(MSG_NOSIGNAL)) }
    var answer: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(fd, &buffer, buffer.count, 0)
      guard count > 0 else { return String(decoding: answer, as: UTF8.self) }
      answer += buffer[..<count]
    }
  }

  @Test func answersAndCloses() throws {
    let loop = try EventLoop(name: "pages")
    defer { loop.shutdown() }
    let long = String(repeating: "x", count: 3_000_000)
    let server = try PageServer(address: SocketAddress(parsing: "127.0.0.1:0"), loop: loop) {
      path in
      switch path {
      case "/metrics": .init(contentType: "text/plain; version=0.0.4", body: "up 1\n")
      case "/long": .init(body: long)
      default: nil
      }
    }
    defer { server.close() }
    let address = server.localAddress
    let page = exchange(address, ["GET /metr", "ics HTTP/1.1\r\nHost", ": a\r\n\r\n"])
    #expect(page.hasPrefix("HTTP/1.1 200 OK\r\n"))
    #expect(page.contains("Content-Type: text/plain; version=0.0.4\r\n"))
    #expect(page.contains("Content-Length: 5\r\n"))
    #expect(page.hasSuffix("\r\n\r\nup 1\n"))
    #expect(exchange(address, ["HEAD /metrics HTTP/1.1\r\n\r\n"]).hasSuffix("\r\n\r\n"))
    #expect(exchange(address, ["GET /none HTTP/1.1\r\n\r\n"]).hasPrefix("HTTP/1.1 404 "))
    #expect(exchange(address, ["DELETE / HTTP/1.1\r\n\r\n"]).hasPrefix("HTTP/1.1 405 "))
    #expect(exchange(address, ["nonsense\r\n\r\n"]).hasPrefix("HTTP/1.1 400 "))
    #expect(exchange(address, ["GET /long HTTP/1.1\r\n\r\n"]).hasSuffix(long))
    let endless = String(repeating: "a: b\r\n", count: 2_000)
    #expect(
      exchange(address, ["GET / HTTP/1.1\r\n" + endless]).hasPrefix("HTTP/1.1 431 ")
        || exchange(address, ["GET / HTTP/1.1\r\n" + endless]).isEmpty)
  }

  @Test func manyConnectionsThatSayNothingDoNotShutOthersOut() throws {
    let loop = try EventLoop(name: "pages")
    defer { loop.shutdown() }
    let server = try PageServer(address: SocketAddress(parsing: "127.0.0.1:0"), loop: loop) { _ in
      .init(body: "here")
    }
    defer { server.close() }
    var silent: [Int32] = []
    defer { for fd in silent { close(fd) } }
    for _ in 0..<100 {
      let fd = socket(server.localAddress.family, Int32(SOCK_STREAM.rawValue), 0)
      _ = server.localAddress.withSockAddr { connect(fd, $0, $1) }
      silent.append(fd)
    }
    #expect(exchange(server.localAddress, ["GET / HTTP/1.1\r\n\r\n"]).hasSuffix("here"))
  }
}
