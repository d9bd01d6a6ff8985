import Glibc
import InteropEcho
import Synchronization
import Testing
import VencejoHTTP2

@testable import VencejoRPC

extension Channel.Configuration {
  /// Delays of milliseconds where users have seconds.
  static var quick: Channel.Configuration {
    var configuration = Channel.Configuration()
    configuration.backoff = Backoff(initial: .milliseconds(5), maximum: .milliseconds(20))
    configuration.attemptDelay = .milliseconds(20)
    configuration.resolutionInterval = .milliseconds(1)
    return configuration
  }

  init(_ serviceConfig: String) {
    self = .quick
    self.serviceConfig = serviceConfig
  }
}

/// A listening socket whose queue is full: connecting to it takes for ever.
final class DeafListener {
  private let descriptors: [Int32]
  let address: SocketAddress

  init() {
    let kind = Int32(SOCK_STREAM.rawValue)
    let fd = socket(AF_INET, kind, 0)
    var opened = [fd]
    var bound = sockaddr_in()
    bound.sin_family = sa_family_t(AF_INET)
    bound.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let port = withUnsafeMutablePointer(to: &bound) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> UInt16 in
        bind(fd, address, length)
        listen(fd, 0)
        getsockname(fd, address, &length)
        for _ in 0..<4 {
          let filler = socket(AF_INET, kind | Int32(SOCK_NONBLOCK.rawValue), 0)
          connect(filler, address, length)
          opened.append(filler)
        }
        return pointer.pointee.sin_port.bigEndian
      }
    }
    descriptors = opened
    address = .ipv4(0x7f00_0001, port: port)
  }

  deinit { for fd in descriptors { close(fd) } }
}

@Suite("Connections of a channel")
struct ChannelConnectionTests {
  private func echo(
    _ target: String, _ configuration: Channel.Configuration = .quick
  ) throws -> Interop.EchoClient {
    Interop.EchoClient(try Channel(target, configuration: configuration))
  }

  @Test func nothingIsConnectedBeforeACall() async throws {
    let server = try ScriptedServer(onEnd: { stream, _ in ScriptedServer.answer(stream) })
    let client = try echo(server.address)
    #expect(server.log.withLock { $0.connections } == 0)
    _ = try await client.unary(.init())
    _ = try await client.unary(.init())
    #expect(server.log.withLock { $0.connections } == 1)
    server.stop()
  }

  // MARK: Addresses

  /// RFC 8305: an address that does not answer holds up the next one for a moment only, one
  /// that refuses not at all.
  @Test func anAddressThatHangsIsNotWaitedFor() async throws {
    let deaf = DeafListener()
    try await withHarness { harness in
      let client = try echo("ipv4:\(deaf.address),127.0.0.1:1,\(harness.address)")
      let answer = try await client.unary(.init(payload: [4]), .init(timeout: .seconds(10)))
      #expect(answer.payload == [4])
    }
  }

  @Test func aServerOfBothFamilies() async throws {
    let server = try Server(
      listening: [SocketAddress(parsing: "[::1]:0")], configuration: Harness.quick,
      services: [Echo()])
    let port = try #require(server.addresses[0].port)
    // Nobody listens on IPv4's loopback at that port, or another server does: only ::1 is ours.
    let channel = try Channel(
      addresses: [.ipv6(high: 0, low: 1, port: port, scope: 0), .ipv4(0x7f00_0001, port: 1)],
      configuration: .quick)
    #expect(try await Interop.EchoClient(channel).unary(.init(payload: [6])).payload == [6])
    let name = try echo("dns:///ip6-localhost:\(port)")
    // The name is Debian's; where it is missing the error says so.
    if let error = try await failure(of: { _ = try await name.unary(.init()) }) {
      #expect(error.message.contains("ip6-localhost"))
    }
    await server.shutdown(grace: .zero)
  }

  // MARK: Losing connections

  /// Connections that end after milliseconds: not a call fails.
  @Test(arguments: [false, true])
  func drainingLosesNoCall(_ streams: Bool) async throws {
    var configuration = Harness.quick
    configuration.connection.maxAge = .milliseconds(10)
    try await withHarness(configuration: configuration) { harness in
      let client = try echo(harness.address)
      try await withThrowingTaskGroup { group in
        for _ in 0..<8 {
          group.addTask {
            for index in 0..<150 {
              if streams {
                let call = client.clientStream()
                try await call.send(.init(payload: [UInt8(index)]))
                try await call.send(.init(payload: [UInt8(index), 2]))
                call.finish()
                #expect(try await call.response.requestCount == 2)
              } else {
                let answer = try await client.unary(.init(payload: [UInt8(index)]))
                #expect(answer.payload == [UInt8(index)])
              }
            }
          }
        }
        try await group.waitForAll()
      }
    }
  }

  /// Streams above a GOAWAY's last are made again elsewhere, with what they have sent.
  @Test func refusedStreamsAreMadeAgain() async throws {
    let server = try ScriptedServer(
      onEnd: { stream, request in
        if request.connection == 0 {
          stream.reset(HTTP2Code.refusedStream)
        } else {
          ScriptedServer.answer(stream)
        }
      })
    let client = try echo(server.address)
    // The only connection refuses twice: once is made up for.
    #expect(try await failure { _ = try await client.unary(.init()) }?.code == .unavailable)
    #expect(server.log.withLock { $0.requests.count } == 2)
    let call = client.clientStream()
    try await call.send(.init(payload: [1, 2, 3]))
    call.finish()
    #expect(try await failure { _ = try await call.response }?.code == .unavailable)
    let bodies = server.log.withLock { $0.bodies }
    #expect(bodies.count == 4 && bodies[2] == bodies[3] && bodies[3].count == 10)
    server.stop()
  }

  /// RFC 9113, section 5.1.1: another connection takes over when the numbers run out.
  @Test func usedUpStreamNumbersAreNoEnd() async throws {
    let server = try ScriptedServer(onEnd: { stream, _ in ScriptedServer.answer(stream) })
    var configuration = Channel.Configuration.quick
    configuration.connection.firstStreamID = Int32.max - 4
    let client = try echo(server.address, configuration)
    for _ in 0..<10 { _ = try await client.unary(.init()) }
    // Three numbers a connection.
    #expect(server.log.withLock { $0.connections } == 4)
    server.stop()
  }

  @Test func anIdleChannelLetsGo() async throws {
    var configuration = Channel.Configuration.quick
    configuration.idleTimeout = .milliseconds(20)
    let server = try Counting()
    let client = try echo(server.address, configuration)
    _ = try await client.unary(.init())
    #expect(try await eventually { server.closed == 1 })
    _ = try await client.unary(.init())
    #expect(server.opened == 2)
    server.stop()
  }

  /// Counts connections that came and went.
  private final class Counting: Sendable {
    private let counts = Mutex((opened: 0, closed: 0))
    private let server = Mutex<Server?>(nil)

    private struct Observer: RPCObserver {
      let parent: Counting
      func connectionBegan(_ peer: SocketAddress) { parent.counts.withLock { $0.opened += 1 } }
      func connectionEnded(_ peer: SocketAddress, _ error: HTTP2Error?) {
        parent.counts.withLock { $0.closed += 1 }
      }
    }

    init() throws {
      var configuration = Harness.quick
      configuration.observers = [Observer(parent: self)]
      let made = try Server(
        listening: [SocketAddress(parsing: "127.0.0.1:0")], configuration: configuration,
        services: [Echo()])
      server.withLock { $0 = made }
    }

    var address: String { server.withLock { $0.map { "\($0.addresses[0])" } ?? "" } }
    var opened: Int { counts.withLock { $0.opened } }
    var closed: Int { counts.withLock { $0.closed } }
    func stop() {
      let made = server.withLock { $0 }
      Task { await made?.shutdown(grace: .zero) }
    }
  }

  // MARK: Several connections

  @Test(arguments: [1, 3])
  func moreConnectionsWhereTheServerTakesNoMoreStreams(_ limit: Int) async throws {
    var configuration = Harness.quick
    configuration.connection.maxConcurrentStreams = 2
    try await withHarness(configuration: configuration) { harness in
      var options = Channel.Configuration.quick
      options.maxConnectionsPerAddress = limit
      let client = try echo(harness.address, options)
      var held: [ServerStreamingCall<Interop.HoldResponse>] = []
      for index in 0..<limit * 2 {
        let call = client.hold(.init(key: "\(limit)-\(index)"))
        var answers = call.makeAsyncIterator()
        _ = try await answers.next()
        held.append(call)
      }
      // One more waits for a place, and gets the first that is free.
      let late = try await failure {
        _ = try await client.unary(.init(), .init(timeout: .milliseconds(50)))
      }
      #expect(late?.code == .deadlineExceeded)
      async let waiting = client.unary(.init(payload: [9]))
      held.removeFirst().cancel()
      #expect(try await waiting.payload == [9])
    }
  }

  // MARK: Failing

  @Test func waitForReadyMayBeConfigured() async throws {
    let address = "unix-abstract:vencejo-ready-\(getpid())"
    let client = try echo(
      address,
      .init(
        """
        { "methodConfig": [{ "name": [{ "service": "vencejo.interop.v1.Echo", "method": "Unary" }],
          "waitForReady": true }] }
        """))
    async let patient = client.unary(.init(payload: [3]), .init(timeout: .seconds(20)))
    let hasty = try await failure { _ = try await client.getHold(.init()) }
    #expect(hasty?.code == .unavailable)
    let said = try await failure {
      _ = try await client.unary(.init(), .init(waitForReady: false))
    }
    #expect(said?.code == .unavailable)
    let server = try Server(
      listening: [SocketAddress(parsing: address)], configuration: Harness.quick,
      services: [Echo()])
    #expect(try await patient.payload == [3])
    await server.shutdown(grace: .zero)
  }

  /// A server that hangs up behind its SETTINGS: a call that could never leave does not try for
  /// ever.
  @Test func aServerThatHangsUpOnEverybodyIsNotCalledForEver() async throws {
    let server = try ScriptedServer(onHeaders: { stream, _ in stream.connection.close() })
    let client = try echo(server.address)
    for _ in 0..<3 {
      let error = try await failure {
        _ = try await client.unary(.init(), .init(timeout: .seconds(20)))
      }
      #expect(error?.code == .unavailable)
    }
    #expect(server.log.withLock { $0.connections } <= 27)
    server.stop()
  }

  /// A port that accepts and hangs up is no server: calls fail, and do not turn round for ever.
  @Test func aPortThatHangsUpIsNoServer() async throws {
    let server = try ScriptedServer(onConnection: { connection, _ in connection.close() })
    let client = try echo(server.address)
    let error = try await failure {
      _ = try await client.unary(.init(), .init(timeout: .seconds(10)))
    }
    #expect(error?.code == .unavailable)
    server.stop()
  }
}
