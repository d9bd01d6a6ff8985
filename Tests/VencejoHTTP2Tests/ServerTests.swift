import Testing

@testable import VencejoHTTP2

@Suite struct ServerTests {
  @Test func answersInOneGo() throws {
    let h = try Harness()
    h.peer.preface()
    h.peer.open(1, "/echo")
    h.peer.data(1, [1, 2, 3], endStream: true)
    let settings = try #require(h.peer.next(Frame.settings))
    #expect(settings.payload.count % 6 == 0)
    let head = try #require(h.peer.next(Frame.headers, stream: 1))
    #expect(h.peer.fields(head) == [":status": "200", "content-type": "application/grpc"])
    let body = try #require(h.peer.next())
    #expect(body == Frame(type: Frame.data, flags: 0, stream: 1, payload: [1, 2, 3]))
    let tail = try #require(h.peer.next())
    #expect(tail.type == Frame.headers && tail.endsStream)
    #expect(h.peer.fields(tail) == ["grpc-status": "0"])
    #expect(h.closedCode(1) == 0)
  }

  @Test func trailersOnlyIsOneBlock() throws {
    let h = try Harness()
    h.peer.preface()
    h.peer.open(1, "/trailers-only", endStream: true)
    let head = try #require(h.peer.next(Frame.headers, stream: 1))
    #expect(head.endsStream)
    #expect(h.peer.fields(head) == [":status": "200", "grpc-status": "12"])
    #expect(h.closedCode(1) == 0)
  }

  /// RFC 9113, section 8.1: the response first, then NO_ERROR.
  @Test func finishingEarlyResetsWithNoError() throws {
    let h = try Harness()
    h.peer.preface()
    h.peer.open(1, "/early")
    let head = try #require(h.peer.next(Frame.headers, stream: 1))
    #expect(!head.endsStream)
    #expect(h.peer.next(Frame.data, stream: 1)?.payload == [1, 2, 3])
    let tail = try #require(h.peer.next(Frame.headers, stream: 1))
    #expect(tail.endsStream)
    let reset = try #require(h.peer.next(Frame.reset, stream: 1))
    #expect(reset.word(0) == HTTP2Code.noError)
    #expect(h.closedCode(1) == 0)
    #expect(Harness.answers(h.peer, 3))
  }

  @Test func resetsReachTheHandlerAndThePeer() throws {
    let h = try Harness()
    h.peer.preface()
    h.peer.open(1, "/reset")
    #expect(h.peer.next(Frame.reset, stream: 1)?.word(0) == HTTP2Code.cancel)
    #expect(h.closedCode(1) == HTTP2Code.cancel)
    h.peer.open(3, "/hold")
    h.peer.frame(Frame.reset, 0, 3, bigEndian(HTTP2Code.cancel))
    #expect(h.closedCode(3) == HTTP2Code.cancel)
    #expect(Harness.answers(h.peer, 5))
  }

  @Test func manyStreamsInterleave() throws {
    let h = try Harness()
    h.peer.preface()
    let ids = (0..<500).map { Int32(2 * $0 + 1) }
    for id in ids { h.peer.open(id, "/echo") }
    for id in ids { h.peer.data(id, [UInt8(id & 127)]) }
    for id in ids { h.peer.data(id, [UInt8(id & 127)], endStream: true) }
    var answered: Set<Int32> = []
    while answered.count < ids.count, let data = h.peer.next(Frame.data) {
      #expect(data.payload == [UInt8(data.stream & 127), UInt8(data.stream & 127)])
      answered.insert(data.stream)
    }
    #expect(answered.count == 500)
    for id in ids { #expect(h.closedCode(id) == 0) }
  }

  @Test func aPeersEndClosesItsStreamsAndFreesThem() throws {
    let h = try Harness()
    h.peer.preface()
    h.peer.open(1, "/hold")
    _ = h.log.wait { if case .headers = $0 { true } else { nil } }
    shutdownWrite(h.peer)
    #expect(h.closedCode(1) == HTTP2Code.connectionLost)
    #expect(h.closedKind() == .connectionClosed)
    #expect(h.log.wait { if case .note("freed", _) = $0 { true } else { nil } } == true)
    weak let connection = h.connection
    try h.onLoop {}
    h.connection = nil
    #expect(connection == nil)
  }

  /// More than a frame holds, and more than nghttp2 sends.
  @Test func largeHeaderLists() throws {
    let h = try Harness()
    h.peer.preface()
    h.peer.open(1, "/large-headers/200000", endStream: true)
    let head = try #require(h.peer.next(Frame.headers, stream: 1))
    #expect(head.flags & 4 == 0 && head.payload.count == 16_384)
    #expect(h.peer.next(Frame.continuation, stream: 1) != nil)
    h.peer.open(3, "/large-headers/2000000", endStream: true)
    #expect(h.peer.next(Frame.reset, stream: 3)?.word(0) == HTTP2Code.internalError)
    #expect(h.closedCode(3) == HTTP2Code.internalError)
    #expect(h.closedCode(1) == 0)
  }

  @Test func aSharedListIsReadInPlace() {
    let base = HeaderList([(":status", "200"), ("Content-Type", "application/grpc")])
    let list = HeaderList(base: base, adding: [("Grpc-Status", "5"), ("grpc-message", "né")])
    #expect(list.count == 4)
    #expect(list.fields.map(\.name) == [":status", "content-type", "grpc-status", "grpc-message"])
    #expect(list.fields.map(\.value) == ["200", "application/grpc", "5", "né"])
    let bytes = HeaderList(base: nil, adding: [(name: [97], value: [0xff])])
    #expect(bytes.count == 1)
    #expect(!base.storage.isInformational)
    #expect(HeaderList([(":status", "103")]).storage.isInformational)
    #expect(!HeaderList([(":scheme", "1")]).storage.isInformational)
  }
}
