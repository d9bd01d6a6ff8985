import Glibc
import Synchronization
import Testing

@testable import VencejoHTTP2

private final class Counts: Sendable {
  let state = Mutex((running: 0, most: 0, done: 0))
}

/// How old connections, used-up numbers and ended loops are dealt with.
@Suite struct LifetimeTests {
  @Test func anOldConnectionDrains() throws {
    let h = try Harness {
      $0.maxAge = .milliseconds(30)
    }
    h.peer.preface()
    h.peer.open(1, "/hold")
    // The notice of RFC 9113, section 6.8, then a PING, then the last stream's number.
    let notice = try #require(h.peer.next(Frame.goAway))
    #expect(notice.word(0) == 0x7fff_ffff && notice.word(4) == HTTP2Code.noError)
    let ping = try #require(h.peer.next(Frame.ping))
    h.peer.frame(Frame.ping, 1, 0, ping.payload)
    let last = try #require(h.peer.next(Frame.goAway))
    #expect(last.word(0) == 1 && last.word(4) == HTTP2Code.noError)
    h.peer.data(1, [], endStream: true)
    h.peer.frame(Frame.reset, 0, 1, bigEndian(HTTP2Code.cancel))
    #expect(h.peer.readToEnd())
    #expect(h.closedKind() == .some(nil))
  }

  @Test func afterTheGraceItIsCutOff() throws {
    let h = try Harness {
      $0.maxAge = .milliseconds(10)
      $0.maxAgeGrace = .milliseconds(20)
    }
    h.peer.preface()
    h.peer.open(1, "/hold")
    #expect(h.peer.readToEnd())
    #expect(h.closedCode(1) == HTTP2Code.connectionLost)
  }

  /// RFC 9113, section 5.1.1: numbers are used once; 2^31-1 is the last.
  @Test func numbersOfStreamsRunOut() throws {
    let h = try Harness(isServer: false) { $0.firstStreamID = Int32.max - 2 }
    h.peer.skipMagic()
    h.peer.settings()
    #expect(try h.open("/a").id == Int32.max - 2)
    let connection = h.connection!
    #expect(try !h.onLoop { connection.hasUsedUpStreamIDs })
    #expect(try h.open("/b").id == Int32.max)
    #expect(try h.onLoop { connection.hasUsedUpStreamIDs && !connection.canOpenStream })
    #expect(throws: HTTP2Error.self) { try h.open("/c") }
  }

  /// What a server says of its going is in the error (gRFC A8's "too_many_pings", for one).
  @Test(arguments: [("too_many_pings", ": too_many_pings"), ("\u{1}\n", ""), ("", "")])
  func theWordsOfAGoAwayAreKept(_ data: String, _ words: String) throws {
    let h = try Harness(isServer: false)
    h.peer.skipMagic()
    h.peer.settings()
    h.peer.frame(Frame.goAway, 0, 0, [0, 0, 0, 0, 0, 0, 0, 11] + Array(data.utf8))
    shutdownWrite(h.peer)
    #expect(h.closedKind() == .some(.goAway))
    let connection = h.connection!
    let reason = try h.onLoop { connection.closeReason }
    #expect(reason?.code == HTTP2Code.enhanceYourCalm)
    #expect(reason?.message == "the peer went away with code 11" + words)
  }

  @Test func anEndedLoopStillRunsWork() throws {
    let loop = try EventLoop(name: "late")
    loop.shutdown()
    let log = EventLog<Int>()
    loop.execute {
      // Work that brings work, as on a living loop: in order, and as if on it.
      loop.execute { log.push(2) }
      log.push(loop.isCurrent ? 1 : -1)
    }
    #expect(log.all == [1, 2])
    #expect(!loop.tryExecute { log.push(3) })
    #expect(!loop.isCurrent)
  }

  @Test func whatAnEndedLoopIsGivenRunsOneAtATime() async throws {
    let loop = try EventLoop(name: "late")
    loop.shutdown()
    let counts = Counts()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<200 {
            loop.execute {
              counts.state.withLock {
                $0.running += 1
                $0.most = max($0.most, $0.running)
              }
              counts.state.withLock {
                $0.running -= 1
                $0.done += 1
              }
            }
          }
        }
      }
    }
    #expect(counts.state.withLock { $0.most == 1 && $0.running == 0 })
    #expect(counts.state.withLock { $0.done } == 1_600)
  }

  /// unix(7): an abstract name needs no file.
  @Test func abstractUnixSockets() throws {
    let name = "vencejo-test-\(getpid())"
    let address = try SocketAddress(parsing: "unix-abstract:\(name)")
    #expect("\(address)" == "unix-abstract:\(name)" && address.isUnix && address.isLoopback)
    let loop = try EventLoop(name: "abstract")
    defer { loop.shutdown() }
    let seen = EventLog<PeerCredentials>()
    let listener = try Listener(
      address: address, loops: [loop], configuration: ConnectionConfiguration()
    ) { $0.peerCredentials.map(seen.push) }
    defer { listener.close() }
    #expect(throws: HTTP2Error.self) {
      _ = try Listener(
        address: address, loops: [loop], configuration: ConnectionConfiguration()
      ) { _ in }
    }
    HTTP2Connection.connect(
      to: address, on: loop, configuration: ConnectionConfiguration()
    ) { _ in }
    let credentials = try #require(seen.wait { $0 })
    #expect(credentials.processID == getpid())
    #expect(credentials.userID == geteuid() && credentials.groupID == getegid())
  }

  @Test(arguments: ["unix-abstract:", "unix-abstract:" + String(repeating: "x", count: 108)])
  func badAbstractNames(_ text: String) {
    #expect(throws: HTTP2Error.self) { try SocketAddress(parsing: text) }
  }

  /// Producers of many streams wait while a connection holds too much, and all get through.
  @Test func aCongestedConnectionLetsWaitersInOneAfterTheOther() throws {
    let h = try Harness(isServer: false) { $0.maxQueuedBytes = 200_000 }
    h.peer.skipMagic()
    h.peer.settings([(3, 100), (4, 0x7fff_ffff)])
    let connection = h.connection!
    let streams = try (0..<20).map { try h.open("/\($0)", endStream: false) }
    let log = EventLog<Int>()
    try h.onLoop {
      for stream in streams.prefix(3) { stream.send(data: [UInt8](repeating: 1, count: 100_000)) }
      #expect(connection.isCongested)
      for (index, stream) in streams.enumerated().dropFirst(3) {
        connection.whenUncongested {
          stream.send(data: [UInt8](repeating: 1, count: 100_000))
          log.push(connection.queuedTotal)
          if index == 19 { log.push(-1) }
        }
      }
    }
    #expect(log.all.isEmpty)
    h.peer.frame(Frame.windowUpdate, 0, 0, bigEndian(0x7fff_ffff - 65_535))
    while !log.all.contains(-1), h.peer.next(Frame.data) != nil {}
    #expect(log.all.count == 18)
    // Half of the limit and what four more add.
    #expect(log.all.allSatisfy { $0 <= 500_000 })
    #expect(try h.onLoop { !connection.isCongested || connection.queuedTotal > 100_000 })
  }
}
