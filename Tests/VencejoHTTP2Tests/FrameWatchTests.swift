import Testing

@testable import VencejoHTTP2

/// What nghttp2 lets pass, found whatever the pieces it comes in.
@Suite struct FrameWatchTests {
  private static func frame(_ type: UInt8, _ stream: Int32, _ payload: [UInt8] = []) -> [UInt8] {
    [0, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF), type, 0]
      + withUnsafeBytes(of: stream.bigEndian) { Array($0) } + payload
  }

  private static let ping = frame(6, 0, [UInt8](repeating: 0, count: 8))
  private static let preface = [UInt8]("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
  private static let ordinary =
    preface + frame(4, 0) + frame(1, 1, [UInt8](repeating: 2, count: 300)) + frame(0, 1, [1])
    + frame(2, 1, [0, 0, 0, 3, 1]) + frame(2, 5, [0x80, 0, 0, 3, 1]) + frame(0, 1) + ping
    // What only looks like one: inside a payload, or of a wrong length, which nghttp2 tells.
    + frame(0, 1, frame(2, 0, [0, 0, 0, 0, 0])) + frame(2, 0, [1, 2, 3])

  private static let violations: [(bytes: [UInt8], code: UInt32)] = [
    (frame(2, 0, [0, 0, 0, 3, 1]), HTTP2Code.protocolError),
    (frame(2, 7, [0, 0, 0, 7, 1]), HTTP2Code.protocolError),
    (frame(2, 7, [0x80, 0, 0, 7, 1]), HTTP2Code.protocolError),
    (frame(3, 1, [0, 0, 0, 8]) + frame(0, 1, [1]), HTTP2Code.streamClosed),
    (frame(3, 1, [0, 0, 0, 8]) + frame(1, 1), HTTP2Code.streamClosed),
  ]

  private static func look(_ bytes: [UInt8], inPiecesOf size: Int) -> (at: Int, code: UInt32)? {
    var watch = FrameWatch()
    var begin = 0
    while begin < bytes.count {
      let end = min(begin + size, bytes.count)
      let found = bytes[begin..<end].withUnsafeBytes { watch.look(at: $0) }
      if let found { return (begin + found.offset, found.code) }
      begin = end
    }
    return nil
  }

  @Test(arguments: [1, 2, 3, 5, 8, 9, 10, 13, 14, 15, 23, 64, 10_000])
  func whateverThePieces(size: Int) {
    #expect(Self.look(Self.ordinary, inPiecesOf: size) == nil)
    for violation in Self.violations {
      let bytes = Self.ordinary + violation.bytes + Self.ping
      let found = Self.look(bytes, inPiecesOf: size)
      #expect(found?.code == violation.code)
      // Nothing before it is withheld from nghttp2, unless the read began within it.
      #expect((found?.at ?? 0) >= Self.ordinary.count)
      #expect((found?.at ?? .max) < Self.ordinary.count + violation.bytes.count)
    }
  }

  @Test func remembersTheLastStreamsOnly() {
    var watch = FrameWatch()
    _ = Self.preface.withUnsafeBytes { watch.look(at: $0) }
    for id in stride(from: Int32(1), through: 201, by: 2) { watch.noteClosed(id) }
    let old = Self.frame(0, 1, [1, 2, 3, 4, 5])
    let new = Self.frame(0, 199, [1, 2, 3, 4, 5])
    #expect(old.withUnsafeBytes { watch.look(at: $0) } == nil)
    #expect(new.withUnsafeBytes { watch.look(at: $0) }?.code == HTTP2Code.streamClosed)
  }

  /// Frames that cross a reset of ours are no fault of the peer.
  @Test func framesThatCrossOurReset() throws {
    let h = try Harness()
    h.peer.preface()
    h.peer.open(1, "/reset")
    #expect(h.peer.next(Frame.reset) != nil)
    h.peer.data(1, [1, 2, 3])
    h.peer.frame(Frame.ping, 0, 0, [UInt8](repeating: 7, count: 8))
    #expect(h.peer.next(Frame.ping, ack: true) != nil)
  }
}
