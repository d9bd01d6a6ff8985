/// Those who speak something else on a port without TLS.
extension HTTP2Connection {
  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  private static let answer: [UInt8] = {
    let text = """
      This port speaks HTTP/2 without TLS (gRPC). Connect in plain text, with HTTP/2 from the \
      first byte.\n
      """
    let head = """
      HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n\
      content-length: \(text.utf8.count)\r\nconnection: close\r\n\r\n
      """
    return Array((head + text).utf8)
  }()

  /// Answers a client whose first bytes are no HTTP/2 in words that an HTTP/1 client shows,
  /// and that TLS clients recognise as a server without TLS. False for HTTP/2.
  func answerStranger(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let socket, !zip(bytes, Self.preface).allSatisfy({ $0 == $1 }) else { return false }
    let isTLS = bytes.first == 0x16
    var answer = Self.answer
    _ = answer.withUnsafeMutableBufferPointer { buffer in
      buffer.baseAddress.map { socket.write($0, buffer.count) }
    }
    tearDown(
      HTTP2Error(
        .protocolViolation, isTLS ? "TLS on a port without it" : "no HTTP/2 preface",
        code: HTTP2Code.protocolError))
    return true
  }
}
