import Glibc
import Testing

@testable import VencejoHTTP2

/// What comes to a plain port and is no HTTP/2.
@Suite struct StrangerTests {
  private func answer(_ bytes: [UInt8]) throws -> (text: String, ended: Bool) {
    let h = try Harness()
    h.peer.send(bytes)
    var got: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4_096)
    var count = 0
    repeat {
      count = recv(h.peer.fd, &chunk, chunk.count, 0)
      if count > 0 { got += chunk[..<count] }
    } while count > 0
    #expect(h.closedKind() == .some(.protocolViolation))
    return (String(decoding: got, as: UTF8.self), count == 0)
  }

  // RFC 9110, section 15.5.1; a length that holds, so that a client shows the words.
  @Test(arguments: [
    "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST /a HTTP/1.0\r\n\r\n", "PUT / HTTP/1.1\r\n\r\n", "\n",
  ])
  func anHTTP1ClientIsToldWhy(_ request: String) throws {
    let (text, ended) = try answer(Array(request.utf8))
    #expect(ended)
    #expect(text.hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
    let parts = text.split(separator: "\r\n\r\n", maxSplits: 1)
    let body = try #require(parts.last)
    #expect(text.contains("content-length: \(body.utf8.count)\r\n"))
    #expect(body.contains("HTTP/2"))
  }

  /// A ClientHello's first bytes (RFC 8446, section 5.1). Clients such as Go's know a plain
  /// server by an answer that begins with "HTTP/".
  @Test func soIsATLSClient() throws {
    let (text, _) = try answer([0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3])
    #expect(text.hasPrefix("HTTP/1.1 400"))
  }

  /// Nothing is said before the client speaks, or the answer above would come too late.
  @Test func theServerWaitsForTheClientsFirstByte() throws {
    let h = try Harness()
    try h.onLoop {}
    try h.onLoop {}
    var byte: UInt8 = 0
    #expect(recv(h.peer.fd, &byte, 1, Int32(MSG_DONTWAIT)) == -1 && errno == EAGAIN)
    h.peer.preface()
    #expect(h.peer.next(Frame.settings) != nil)
    #expect(Harness.answers(h.peer, 1))
  }

  @Test func aPrefaceInPiecesIsOne() throws {
    let h = try Harness()
    for byte in RawPeer.magic { h.peer.send([byte]) }
    h.peer.settings()
    #expect(Harness.answers(h.peer, 1))
  }
}
