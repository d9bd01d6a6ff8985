import CNGHTTP2
import Testing

@testable import VencejoHTTP2

/// Our client against a server written by hand.
@Suite struct ClientTests {
  /// The server's SETTINGS, and the client's preface read.
  private func ready(
    _ settings: [(UInt16, UInt32)] = [],
    _ change: (inout ConnectionConfiguration) -> Void = { _ in }
  ) throws -> Harness {
    let h = try Harness(isServer: false, change)
    #expect(h.peer.skipMagic())
    h.peer.settings(settings)
    h.peer.frame(Frame.settings, 1)
    _ = h.log.wait { if case .open = $0 { true } else { nil } }
    return h
  }

  @Test func sendsItsPrefaceAndForbidsPush() throws {
    let h = try ready()
    let settings = try #require(h.peer.next(Frame.settings))
    let pairs = stride(from: 0, to: settings.payload.count, by: 6).map {
      (Int(settings.payload[$0]) << 8 | Int(settings.payload[$0 + 1]), settings.word($0 + 2))
    }
    #expect(pairs.contains { $0 == (2, 0) })  // ENABLE_PUSH
    #expect(pairs.contains { $0 == (9, 1) })  // NO_RFC7540_PRIORITIES
  }

  @Test func aCall() throws {
    let h = try ready()
    let stream = try h.open("/echo", endStream: false)
    try h.onLoop {
      stream.send(data: [1, 2])
      stream.send(data: [3])
      stream.finish()
    }
    let head = try #require(h.peer.next(Frame.headers, stream: 1))
    #expect(!head.endsStream && h.peer.fields(head)[":path"] == "/echo")
    let data = try #require(h.peer.next(Frame.data, stream: 1))
    #expect(data.payload == [1, 2, 3] && data.endsStream)
    h.peer.frame(Frame.headers, 4, 1, RawPeer.block([(":status", "103")]))
    h.peer.frame(Frame.headers, 4, 1, RawPeer.block([(":status", "200")]))
    h.peer.data(1, [4])
    h.peer.frame(Frame.headers, 5, 1, RawPeer.block([("grpc-status", "0")]))
    #expect(h.closedCode(1) == 0)
    let events = h.log.all.compactMap { event -> String? in
      switch event {
      case .headers(_, let f, let end):
        return "\(f[":status"] ?? "-")/\(f["grpc-status"] ?? "-")/\(end)"
      case .data(_, let n): return "data \(n)"
      case .ended: return "ended"
      default: return nil
      }
    }
    #expect(events == ["103/-/false", "200/-/false", "data 1", "200/0/true", "ended"])
  }

  @Test func anEmptyFinishIsAnEmptyFrame() throws {
    let h = try ready()
    let stream = try h.open("/x", endStream: false)
    _ = h.peer.next(Frame.headers, stream: 1)
    try h.onLoop { stream.finish() }
    #expect(h.peer.next(Frame.data, stream: 1) == Frame(type: 0, flags: 1, stream: 1, payload: []))
    _ = try h.open("/y")
    #expect(h.peer.next(Frame.headers, stream: 3)?.endsStream == true)
  }

  @Test func thePeersLimitHolds() throws {
    let h = try ready([(3, 2)])
    _ = try h.open("/a")
    _ = try h.open("/b")
    #expect(throws: HTTP2Error.self) { try h.open("/c") }
    let connection = h.connection!
    #expect(try h.onLoop { connection.canOpenStream } == false)
    #expect(try h.onLoop { connection.peerMaxConcurrentStreams } == 2)
    h.peer.frame(Frame.headers, 5, 1, RawPeer.block([(":status", "200")]))
    #expect(h.log.wait { if case .canOpen = $0 { true } else { nil } } == true)
    _ = try h.open("/c")
    #expect(h.peer.next(Frame.headers, stream: 5) != nil)
  }

  @Test func streamsAboveAGoAwayAreRefused() throws {
    let h = try ready()
    _ = try h.open("/a")
    _ = try h.open("/b")
    _ = h.peer.next(Frame.headers, stream: 3)
    h.peer.frame(Frame.goAway, 0, 0, bigEndian(1) + bigEndian(0))
    #expect(h.closedCode(3) == HTTP2Code.refusedStream)
    #expect(throws: HTTP2Error.self) { try h.open("/c") }
    h.peer.frame(Frame.headers, 5, 1, RawPeer.block([(":status", "200")]))
    #expect(h.closedCode(1) == 0)
    #expect(h.closedKind() == .some(nil))
    #expect(h.peer.readToEnd())
  }

  /// What was never sent is refused when the connection goes, what was sent is lost.
  @Test func unsentStreamsAreRefused() throws {
    let h = try ready()
    _ = try h.open("/a")
    _ = h.peer.next(Frame.headers, stream: 1)
    let (connection, log) = (h.connection!, h.log)
    try h.onLoop {
      _ = try connection.open(
        handler: Recorder(log), headers: HeaderList([(":method", "GET"), (":path", "/")]),
        endStream: true)
      connection.tearDown(HTTP2Error(.connectionClosed, "gone"))
    }
    #expect(h.closedCode(1) == HTTP2Code.connectionLost)
    #expect(h.closedCode(3) == HTTP2Code.refusedStream)
  }

  @Test func aGracefulClientWaitsForItsStreams() throws {
    let h = try ready()
    _ = try h.open("/a")
    let connection = h.connection!
    try h.onLoop { connection.shutdownGracefully() }
    #expect(throws: HTTP2Error.self) { try h.open("/b") }
    h.peer.frame(Frame.headers, 5, 1, RawPeer.block([(":status", "200")]))
    #expect(h.closedCode(1) == 0)
    #expect(h.peer.goAwayAtEnd() == 0)
    #expect(h.closedKind() == .some(nil))
  }

  @Test func streamIDsRunOut() throws {
    let h = try ready()
    let connection = h.connection!
    try h.onLoop { _ = nghttp2_session_set_next_stream_id(connection.session, 0x7fff_ffff) }
    let last = try h.open("/last")
    #expect(last.id == 0x7fff_ffff)
    #expect(try h.onLoop { connection.canOpenStream } == false)
    #expect(throws: HTTP2Error.self) { try h.open("/more") }
    try h.onLoop { last.reset(HTTP2Code.cancel) }
    #expect(h.closedCode(0x7fff_ffff) == HTTP2Code.cancel)
  }

  @Test func aDeadPeerIsNoticed() throws {
    let h = try ready {
      $0.keepaliveInterval = .milliseconds(10)
      $0.keepaliveTimeout = .milliseconds(30)
      $0.keepaliveWithoutStreams = true
    }
    #expect(h.peer.next(Frame.ping) != nil)
    #expect(h.closedKind() == .keepaliveTimedOut)
  }

  @Test func aLivingPeerIsKept() throws {
    let h = try ready {
      $0.keepaliveInterval = .milliseconds(5)
      $0.keepaliveTimeout = .milliseconds(2_000)
      $0.keepaliveWithoutStreams = true
    }
    for _ in 0..<5 {
      let ping = try #require(h.peer.next(Frame.ping))
      h.peer.frame(Frame.ping, 1, 0, ping.payload)
    }
  }

  @Test func aServerThatSpeaksHTTP1() throws {
    let h = try Harness(isServer: false)
    h.peer.send(Array("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".utf8))
    #expect(h.peer.readToEnd())
    #expect(h.closedKind() != .some(nil))
  }

  @Test func resetDropsWhatIsQueued() throws {
    let h = try ready()
    let stream = try h.open("/a", endStream: false)
    try h.onLoop {
      stream.send(data: [UInt8](repeating: 0, count: 1 << 20))
      #expect(stream.queuedBytes == 1 << 20)
      stream.reset(HTTP2Code.cancel)
      #expect(stream.queuedBytes == 0)
    }
    #expect(h.closedCode(1) == HTTP2Code.cancel)
    // All calls on what is closed are harmless.
    try h.onLoop {
      stream.send(data: [1])
      stream.finish()
      stream.consume(100)
      stream.reset(1)
      stream.send(headers: okHead)
      stream.send(trailers: okTail)
    }
    let connection = h.connection!
    #expect(try h.onLoop { connection.queuedTotal } == 0)
  }
}
