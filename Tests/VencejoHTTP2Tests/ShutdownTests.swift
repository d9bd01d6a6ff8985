import Testing

@testable import VencejoHTTP2

@Suite struct ShutdownTests {
  /// RFC 9113, section 6.8: notice, round trip, last id, drain, close.
  @Test func aServerDrains() throws {
    let h = try Harness()
    h.peer.preface()
    h.peer.frame(Frame.settings, 1)
    h.peer.open(1, "/echo")
    _ = h.log.wait { if case .headers(1, _, _) = $0 { true } else { nil } }
    let connection = h.connection!
    try h.onLoop { connection.shutdownGracefully() }
    let notice = try #require(h.peer.next(Frame.goAway))
    #expect(notice.word(0) == 0x7fff_ffff && notice.word(4) == 0)
    let ping = try #require(h.peer.next(Frame.ping))
    // On its way when the notice came: it is still taken.
    h.peer.open(3, "/echo")
    h.peer.frame(Frame.ping, 1, 0, ping.payload)
    let last = try #require(h.peer.next(Frame.goAway))
    #expect(last.word(0) == 3 && last.word(4) == 0)
    h.peer.open(5, "/echo", endStream: true)  // too late: ignored
    for id in [1, 3] as [Int32] {
      h.peer.data(id, [5], endStream: true)
      #expect(h.peer.next(Frame.data, stream: id)?.payload == [5])
    }
    #expect(h.peer.readToEnd())
    #expect(h.closedKind() == .some(nil))
    #expect(h.log.all.allSatisfy { if case .headers(5, _, _) = $0 { false } else { true } })
  }

  @Test func aServerWithNothingToDrainCloses() throws {
    let h = try Harness()
    h.peer.preface()
    h.peer.frame(Frame.settings, 1)
    _ = h.log.wait { if case .open = $0 { true } else { nil } }
    let connection = h.connection!
    try h.onLoop { connection.shutdownGracefully() }
    let ping = try #require(h.peer.next(Frame.ping))
    h.peer.frame(Frame.ping, 1, 0, ping.payload)
    #expect(h.peer.goAwayAtEnd() == 0)
    #expect(h.closedKind() == .some(nil))
  }

  @Test func aDrainHasItsLimit() throws {
    let h = try Harness { $0.drainTimeout = .milliseconds(20) }
    h.peer.preface()
    h.peer.frame(Frame.settings, 1)
    h.peer.open(1, "/hold")
    _ = h.log.wait { if case .headers = $0 { true } else { nil } }
    let connection = h.connection!
    try h.onLoop { connection.shutdownGracefully() }
    let ping = try #require(h.peer.next(Frame.ping))
    h.peer.frame(Frame.ping, 1, 0, ping.payload)
    #expect(h.peer.readToEnd())
    #expect(h.closedCode(1) == HTTP2Code.connectionLost)
  }

  @Test func anIdleConnectionLeaves() throws {
    let h = try Harness { $0.idleTimeout = .milliseconds(20) }
    h.peer.preface()
    h.peer.frame(Frame.settings, 1)
    let ping = try #require(h.peer.next(Frame.ping))
    h.peer.frame(Frame.ping, 1, 0, ping.payload)
    #expect(h.peer.goAwayAtEnd() == 0)
    #expect(h.closedKind() == .some(nil))
  }

  @Test func closeSaysItsCode() throws {
    let h = try Harness()
    h.peer.preface()
    h.peer.open(1, "/hold")
    _ = h.log.wait { if case .headers = $0 { true } else { nil } }
    let connection = h.connection!
    try h.onLoop { connection.close(HTTP2Code.enhanceYourCalm) }
    #expect(h.peer.goAwayAtEnd() == HTTP2Code.enhanceYourCalm)
    #expect(h.closedCode(1) == HTTP2Code.connectionLost)
  }

  @Test func aLoopsEndClosesItsConnections() throws {
    let h = try Harness()
    h.peer.preface()
    h.peer.open(1, "/hold")
    _ = h.log.wait { if case .headers = $0 { true } else { nil } }
    h.loop.shutdown()
    #expect(h.closedCode(1) == HTTP2Code.connectionLost)
    #expect(h.closedKind() == .loopUnavailable)
    #expect(h.peer.readToEnd())
  }

  @Test func aRoundTripIsMeasured() throws {
    let h = try Harness()
    h.peer.preface()
    let connection = h.connection!
    let log = EventLog<Bool>()
    try h.onLoop {
      connection.ping { result in
        if case .success(let time) = result { log.push(time > .zero) } else { log.push(false) }
      }
    }
    let ping = try #require(h.peer.next(Frame.ping))
    h.peer.frame(Frame.ping, 1, 0, [9, 9, 9, 9, 9, 9, 9, 9])  // nobody's
    h.peer.frame(Frame.ping, 1, 0, ping.payload)
    #expect(log.wait { $0 } == true)
  }
}
