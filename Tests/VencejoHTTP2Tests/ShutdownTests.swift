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

  /// What a socket has not read when it is closed makes the kernel take back what was sent last.
  @Test(arguments: [true, false])
  func whoClosesHearsTheOtherOut(isServer: Bool) throws {
    let h = try Harness(isServer: isServer)
    if isServer { h.peer.preface() } else { h.peer.settings() }
    if !isServer { h.peer.skipMagic() }
    let id: Int32 = 1
    if isServer { h.peer.open(id, "/hold") } else { _ = try h.open("/x", endStream: false) }
    _ = h.log.wait { if case .open = $0 { true } else { nil } }
    let connection = h.connection!
    nonisolated(unsafe) let peer = h.peer  // nobody else has it meanwhile
    let flood = RawPeer.encode(Frame.data, 0, id, [UInt8](repeating: 1, count: 10_000))
    // Unread when it closes, as the loop is here.
    try h.onLoop {
      peer.send(flood)
      connection.close()
      peer.send(flood)
    }
    _ = h.closedKind()
    // And what is on its way then.
    #expect(h.peer.send(flood))
    #expect(h.peer.goAwayAtEnd() == HTTP2Code.noError)
    #expect(!h.peer.wasReset)
  }

  /// The end of a loop, as of a channel that is given up.
  @Test func aLoopThatEndsHearsTheOthersOut() throws {
    let h = try Harness(isServer: false)
    h.peer.settings()
    h.peer.skipMagic()
    _ = try h.open("/x", endStream: false)
    let (connection, loop) = (h.connection!, h.loop)
    nonisolated(unsafe) let peer = h.peer  // nobody else has it meanwhile
    let flood = RawPeer.encode(Frame.data, 0, 1, [UInt8](repeating: 1, count: 10_000))
    h.peer.frame(Frame.headers, 4, 1, RawPeer.block([(":status", "200")]))
    _ = h.log.wait { if case .headers = $0 { true } else { nil } }
    try h.onLoop {
      peer.send(flood)
      loop.execute { connection.close() }
      loop.shutdown()
    }
    #expect(h.peer.goAwayAtEnd() == HTTP2Code.noError)
    #expect(!h.peer.wasReset)
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
