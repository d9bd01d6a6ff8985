import Glibc
import Testing

@testable import VencejoHTTP2

/// What a server must survive. After each, the connection is gone cleanly, or lives on
/// and answers.
@Suite struct AbuseTests {
  @Test(arguments: [
    "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}\u{fc}\u{3}\u{3}",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\rx", "\0", "PRI * HTTP/1.1\r\n\r\n",
  ])
  func notHTTP2IsClosed(bytes: String) throws {
    let h = try Harness { $0.handshakeTimeout = .milliseconds(50) }
    h.peer.send(bytes.unicodeScalars.map { UInt8($0.value) })
    #expect(h.peer.readToEnd())
    #expect(h.closedKind() == .protocolViolation)
  }

  @Test func randomFramesNeverTrap() throws {
    var seed: UInt64 = 7
    func random(_ bound: Int) -> Int {
      seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(seed >> 33) % bound
    }
    for _ in 0..<150 {
      let h = try Harness()
      h.peer.preface()
      h.peer.open(1, "/echo")
      for _ in 0..<20 {
        let payload = (0..<random(60)).map { _ in UInt8(random(256)) }
        let stream = Int32(random(4) == 0 ? random(1 << 30) : random(6))
        guard h.peer.frame(UInt8(random(12)), UInt8(random(256)), stream, payload) else { break }
      }
      shutdownWrite(h.peer)
      #expect(h.peer.readToEnd())
      #expect(h.closedKind() != nil)
    }
  }

  @Test func aSilentPeerIsClosed() throws {
    let h = try Harness { $0.handshakeTimeout = .milliseconds(20) }
    #expect(h.peer.goAwayAtEnd() == HTTP2Code.settingsTimeout)
    #expect(h.closedKind() == .handshakeTimedOut)
  }

  @Test func settingsNeverAcknowledged() throws {
    let h = try Harness { $0.settingsTimeout = .milliseconds(20) }
    h.peer.preface()
    #expect(h.peer.goAwayAtEnd() == HTTP2Code.settingsTimeout)
    #expect(h.closedKind() == .settingsTimedOut)
  }

  @Test func headersThatNeverEnd() throws {
    let h = try Harness { $0.headersTimeout = .milliseconds(20) }
    h.peer.preface()
    h.peer.frame(Frame.headers, 0, 1, RawPeer.request("/echo"))
    #expect(h.peer.goAwayAtEnd() == HTTP2Code.enhanceYourCalm)
    #expect(h.closedKind() == .headersTimedOut)
  }

  /// CVE-2023-44487.
  @Test func rapidReset() throws {
    let h = try Harness {
      $0.receivedResetBurst = 50
      $0.receivedResetRate = 1
    }
    h.peer.preface()
    h.peer.frame(Frame.settings, 1)
    for i in 0..<200 {
      let id = Int32(2 * i + 1)
      h.peer.open(id, "/hold")
      guard h.peer.frame(Frame.reset, 0, id, bigEndian(8)) else { break }
    }
    #expect(h.peer.goAwayAtEnd() == HTTP2Code.enhanceYourCalm)
    #expect(h.closedKind() == .excessiveLoad)
  }

  /// Resets are set against what was answered: most calls of a hedging client are cancelled.
  @Test func honestCancellation() throws {
    let h = try Harness {
      $0.receivedResetBurst = 12
      $0.receivedResetRate = 0
      $0.receivedResetsPerStream = 4
    }
    h.peer.preface()
    h.peer.frame(Frame.settings, 1)
    for i in 0..<200 {
      let id = Int32(10 * i + 1)
      for cancelled in stride(from: id, to: id + 8, by: 2) {
        h.peer.open(cancelled, "/hold")
        h.peer.frame(Frame.reset, 0, cancelled, bigEndian(8))
      }
      #expect(Harness.answers(h.peer, id + 8))
    }
  }

  /// NO_ERROR is no better a reason: such a stream was not answered either.
  @Test func resetsWithoutAnError() throws {
    let h = try Harness {
      $0.receivedResetBurst = 50
      $0.receivedResetRate = 0
    }
    h.peer.preface()
    h.peer.frame(Frame.settings, 1)
    for i in 0..<200 {
      h.peer.open(Int32(2 * i + 1), "/hold")
      guard h.peer.frame(Frame.reset, 0, Int32(2 * i + 1), bigEndian(0)) else { break }
    }
    #expect(h.peer.goAwayAtEnd() == HTTP2Code.enhanceYourCalm)
    #expect(h.closedKind() == .excessiveLoad)
  }

  /// CVE-2025-8671: a malformed request is an error of the stream, and we must reset it.
  @Test func provokedResets() throws {
    let h = try Harness { $0.sentResetBurst = 20 }
    h.peer.preface()
    h.peer.frame(Frame.settings, 1)
    for i in 0..<100 {
      let id = Int32(2 * i + 1)
      h.peer.open(id, "/hold", more: [("connection", "close")])
    }
    #expect(h.peer.goAwayAtEnd() == HTTP2Code.enhanceYourCalm)
    #expect(h.closedKind() == .excessiveLoad)
  }

  @Test func continuationFlood() throws {
    let h = try Harness()
    h.peer.preface()
    h.peer.frame(Frame.headers, 0, 1, RawPeer.request("/echo"))
    for _ in 0..<100 where !h.peer.frame(Frame.continuation, 0, 1) { break }
    #expect(h.peer.goAwayAtEnd() != nil)
    #expect(h.closedKind() != nil)
  }

  @Test(arguments: ["ping", "settings", "empty data"])
  func idleFrameFloods(kind: String) throws {
    let h = try Harness { $0.idleFrameBurst = 50 }
    h.peer.preface()
    h.peer.frame(Frame.settings, 1)
    h.peer.open(1, "/hold")
    for _ in 0..<200 {
      let sent =
        switch kind {
        case "ping": h.peer.frame(Frame.ping, 0, 0, [0, 0, 0, 0, 0, 0, 0, 9])
        case "settings": h.peer.frame(Frame.settings, 0, 0)
        default: h.peer.frame(Frame.data, 0, 1)
        }
      if !sent { break }
    }
    #expect(h.peer.goAwayAtEnd() == HTTP2Code.enhanceYourCalm)
    #expect(h.closedKind() == .excessiveLoad)
    // gRFC A8: clients that hear these words send PINGs half as often.
    let words = h.peer.seen.filter { $0.type == Frame.goAway }.map {
      String(decoding: $0.payload.dropFirst(8), as: UTF8.self)
    }
    #expect(words.contains("too_many_pings") == (kind == "ping"))
  }

  /// grpc-go measures bandwidth with a PING for each burst of data.
  @Test func pingsWithDataAreWelcome() throws {
    let h = try Harness { $0.idleFrameBurst = 5 }
    h.peer.preface()
    h.peer.frame(Frame.settings, 1)
    for i in 0..<300 {
      let id = Int32(2 * i + 1)
      h.peer.frame(Frame.ping, 0, 0, [0, 0, 0, 0, 0, 0, 0, 9])
      #expect(Harness.answers(h.peer, id))
    }
  }

  @Test func floodsOfAPeerThatDoesNotRead() throws {
    let h = try Harness {
      $0.maxQueuedFrames = 16
      $0.maxConcurrentStreams = 10
      $0.sentResetBurst = 1_000_000
      $0.receivedResetBurst = 1_000_000
    }
    h.peer.preface()
    h.peer.frame(Frame.settings, 1)
    var burst: [UInt8] = []
    for i in 0..<500 {
      let id = Int32(2 * i + 1)
      burst += RawPeer.encode(Frame.headers, 4, id, RawPeer.request("/reset"))
    }
    h.peer.send(burst)
    #expect(h.peer.readToEnd())
    #expect(h.closedKind() != nil)
  }

  @Test func aLongHeaderListIsMarkedThenResetThenFatal() throws {
    let h = try Harness { $0.maxHeaderListSize = 1_000 }
    h.peer.preface()
    h.peer.frame(Frame.settings, 1)
    let field = ("x", String(repeating: "a", count: 467))  // 500 with its overhead
    h.peer.open(1, "/echo", endStream: true, more: [field, field])
    let head = try #require(h.peer.next(Frame.headers, stream: 1))
    #expect(h.peer.fields(head)["grpc-status"] == "8")
    h.peer.open(3, "/echo", endStream: true, more: Array(repeating: field, count: 8))
    #expect(h.peer.next(Frame.reset, stream: 3)?.word(0) == HTTP2Code.enhanceYourCalm)
    #expect(Harness.answers(h.peer, 5))
    h.peer.open(7, "/echo", endStream: true, more: Array(repeating: field, count: 32))
    #expect(h.peer.goAwayAtEnd() == HTTP2Code.enhanceYourCalm)
    #expect(h.closedKind() == .excessiveLoad)
  }

  /// One byte of HPACK for a field of 4,000: the sum counts, not the bytes.
  @Test func anHPACKBomb() throws {
    let h = try Harness()
    h.peer.preface()
    h.peer.frame(Frame.settings, 1)
    // With incremental indexing (RFC 7541, section 6.2.1), then index 62 again and again.
    var stored = RawPeer.block([("x", String(repeating: "b", count: 3_900))])
    stored[0] = 0x40
    h.peer.frame(Frame.headers, 5, 1, RawPeer.request("/echo") + stored)
    #expect(h.peer.next(Frame.headers, stream: 1) != nil)
    h.peer.frame(
      Frame.headers, 5, 3, RawPeer.request("/echo") + [UInt8](repeating: 0xbe, count: 10_000))
    #expect(h.peer.goAwayAtEnd() == HTTP2Code.enhanceYourCalm)
    #expect(h.closedKind() == .excessiveLoad)
  }

  @Test func aStalledSocketIsClosed() throws {
    let h = try Harness { $0.stalledSendTimeout = .milliseconds(40) }
    h.peer.preface([(4, 0x7fff_ffff)])
    h.peer.frame(Frame.settings, 1)
    h.peer.frame(Frame.windowUpdate, 0, 0, bigEndian(0x7fff_0000))
    h.peer.open(1, "/flood", endStream: true)
    #expect(h.closedKind() == .sendStalled)
    #expect(h.closedCode(1) == HTTP2Code.connectionLost)
  }

  /// A finished response for a peer that grants no window holds memory for ever.
  @Test func aStalledResponseIsReset() throws {
    let h = try Harness { $0.stalledSendTimeout = .milliseconds(40) }
    h.peer.preface([(4, 10)])
    h.peer.frame(Frame.settings, 1)
    h.peer.open(1, "/large", endStream: true)
    #expect(h.closedCode(1) == HTTP2Code.cancel)
    #expect(h.peer.next(Frame.reset, stream: 1)?.word(0) == HTTP2Code.cancel)
    h.peer.frame(Frame.ping, 0, 0, [0, 0, 0, 0, 0, 0, 0, 9])
    #expect(h.peer.next(Frame.ping, ack: true) != nil)
  }

  @Test func tooManyStreamsCloseTheConnection() throws {
    let h = try Harness { $0.maxConcurrentStreams = 5 }
    h.peer.preface()
    _ = h.peer.next(Frame.settings)
    h.peer.frame(Frame.settings, 1)
    for i in 0..<6 { h.peer.open(Int32(2 * i + 1), "/hold") }
    #expect(h.peer.goAwayAtEnd() == HTTP2Code.protocolError)
  }

  @Test func streamsBeforeTheLimitIsKnownAreRefused() throws {
    let h = try Harness { $0.maxConcurrentStreams = 1 }
    h.peer.preface()
    h.peer.open(1, "/hold")
    h.peer.open(3, "/hold")
    #expect(h.peer.next(Frame.reset, stream: 3)?.word(0) == HTTP2Code.refusedStream)
  }

  @Test func malformedRequestsAreResetAlone() throws {
    let h = try Harness()
    h.peer.preface()
    h.peer.frame(Frame.settings, 1)
    h.peer.frame(Frame.headers, 5, 1, RawPeer.block([(":method", "POST"), (":path", "/echo")]))
    #expect(h.peer.next(Frame.reset, stream: 1)?.word(0) == HTTP2Code.protocolError)
    h.peer.open(3, "/echo", more: [("connection", "close")])
    #expect(h.peer.next(Frame.reset, stream: 3)?.word(0) == HTTP2Code.protocolError)
    h.peer.frame(
      Frame.headers, 4, 5, RawPeer.request("/echo", [("content-length", "5")]))
    h.peer.data(5, [1], endStream: true)
    #expect(h.peer.next(Frame.reset, stream: 5)?.word(0) == HTTP2Code.protocolError)
    #expect(Harness.answers(h.peer, 7))
  }
}
