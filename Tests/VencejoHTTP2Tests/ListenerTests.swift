import Glibc
import Synchronization
import Testing

@testable import VencejoHTTP2

@Suite struct ListenerTests {
  private func listen(
    _ address: String, _ group: EventLoopGroup, _ log: EventLog<Event> = EventLog()
  ) throws -> Listener {
    try Listener(
      address: SocketAddress(parsing: address), loops: group.loops,
      configuration: ConnectionConfiguration()
    ) { connection in
      log.push(.note(connection.loop.name, connection.isUnixSocket ? 1 : 0))
      connection.handler = ConnectionRecorder(log)
      connection.acceptStream = { _ in
        let handler = Recorder(log)
        behave(handler, log)
        return handler
      }
    }
  }

  private func connect(
    _ address: SocketAddress, _ group: EventLoopGroup,
    _ change: (inout ConnectionConfiguration) -> Void = { _ in }
  ) throws -> HTTP2Connection {
    var configuration = ConnectionConfiguration()
    change(&configuration)
    let result = EventLog<Result<HTTP2Connection, HTTP2Error>>()
    HTTP2Connection.connect(to: address, on: group.next(), configuration: configuration) {
      result.push($0)
    }
    return try #require(result.wait { $0 }).get()
  }

  private func call(_ connection: HTTP2Connection, bytes: Int) throws -> Int {
    let log = EventLog<Event>()
    connection.loop.execute {
      let handler = Recorder(log)
      let list = HeaderList([
        (":method", "POST"), (":scheme", "http"), (":path", "/echo"), (":authority", "x"),
      ])
      if let stream = try? connection.open(handler: handler, headers: list, endStream: false) {
        stream.send(data: [UInt8](repeating: 3, count: bytes))
        stream.finish()
      }
      handler.onEnd = { _, handler in log.push(.note("body", handler.body.count)) }
    }
    return try #require(log.wait { if case .note("body", let n) = $0 { n } else { nil } })
  }

  private func path() -> String { "/tmp/vencejo-\(getpid())-\(UInt32.random(in: 0 ... .max)).sock" }

  @Test(arguments: ["127.0.0.1:0", "[::1]:0", "unix"])
  func callsOverEveryKindOfSocket(kind: String) throws {
    let group = try EventLoopGroup(count: 2)
    defer { group.shutdown() }
    let log = EventLog<Event>()
    let listener = try listen(kind == "unix" ? "unix:\(path())" : kind, group, log)
    defer { listener.close() }
    #expect(kind == "unix" || listener.localAddress.port != 0)
    let connection = try connect(listener.localAddress, group)
    #expect(try call(connection, bytes: 5) == 5)
    #expect(try call(connection, bytes: 3 << 20) == 3 << 20)
    #expect(connection.isUnixSocket == (kind == "unix"))
    #expect(connection.peerAddress.isLoopback)
    let other = try connect(listener.localAddress, group)
    #expect(try call(other, bytes: 5) == 5)
    let names = log.all.compactMap {
      if case .note(let name, _) = $0, name != "freed" { name } else { nil }
    }
    #expect(Set(names) == ["vencejo-0", "vencejo-1"])
  }

  @Test func aBusyPortIsAnError() throws {
    let group = try EventLoopGroup(count: 1)
    defer { group.shutdown() }
    let listener = try listen("127.0.0.1:0", group)
    let address = listener.localAddress
    let error = #expect(throws: HTTP2Error.self) { try listen(address.description, group) }
    #expect(error?.kind == .addressInUse && error?.systemError == EADDRINUSE)
    #expect(error?.message.contains(address.description) == true)
    listener.close()
    listener.close()
    let again = try listen(address.description, group)
    #expect(again.localAddress == address)
    again.close()
  }

  @Test func unixSocketsAreTheirOwnersAndStaleOnesReplaced() throws {
    let group = try EventLoopGroup(count: 1)
    defer { group.shutdown() }
    let path = path()
    let listener = try listen("unix:\(path)", group)
    var info = stat()
    #expect(lstat(path, &info) == 0 && info.st_mode & 0o777 == 0o600)
    let error = #expect(throws: HTTP2Error.self) { try listen("unix:\(path)", group) }
    #expect(error?.kind == .addressInUse)
    listener.close()
    #expect(lstat(path, &info) != 0)
    // Left behind by a server that died.
    let dead = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    _ = try SocketAddress(parsing: "unix:\(path)").withSockAddr { bind(dead, $0, $1) }
    close(dead)
    #expect(lstat(path, &info) == 0)
    let next = try listen("unix:\(path)", group)
    #expect(try call(connect(next.localAddress, group), bytes: 1) == 1)
    next.close()
    // What is no socket stays.
    let file = open(path, O_CREAT | O_WRONLY, 0o600)
    close(file)
    #expect(throws: HTTP2Error.self) { try listen("unix:\(path)", group) }
    #expect(unlink(path) == 0)
  }

  @Test func aClosedPortRefuses() throws {
    let group = try EventLoopGroup(count: 1)
    defer { group.shutdown() }
    let listener = try listen("127.0.0.1:0", group)
    listener.close()
    let error = #expect(throws: HTTP2Error.self) { try connect(listener.localAddress, group) }
    #expect(error?.kind == .connectFailed && error?.systemError == ECONNREFUSED)
    let unix = #expect(throws: HTTP2Error.self) {
      try connect(SocketAddress(parsing: "unix:\(path())"), group)
    }
    #expect(unix?.kind == .connectFailed)
  }

  /// A listener whose queue is full lets further connects hang.
  @Test func aConnectTimesOut() throws {
    let group = try EventLoopGroup(count: 1)
    defer { group.shutdown() }
    let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(fd) }
    _ = try SocketAddress(parsing: "127.0.0.1:0").withSockAddr { bind(fd, $0, $1) }
    _ = Glibc.listen(fd, 0)
    let address = try #require(SocketAddress.local(of: fd))
    var kept: [HTTP2Connection] = []
    var kind: HTTP2Error.Kind?
    for _ in 0..<4 where kind == nil {
      do {
        kept.append(try connect(address, group) { $0.connectTimeout = .milliseconds(50) })
      } catch let error as HTTP2Error {
        kind = error.kind
      }
    }
    #expect(kind == .connectTimedOut)
    _ = kept
  }

  @Test func addressesReadAndWrite() throws {
    for text in ["127.0.0.1:7447", "[::1]:0", "[fe80::1%7]:65535", "unix:/run/x.sock", "0.0.0.0:1"]
    {
      #expect(try SocketAddress(parsing: text).description == text)
    }
    #expect(try SocketAddress(parsing: "unix:///run/x").description == "unix:/run/x")
    #expect(try SocketAddress(parsing: "localhost:5").description == "127.0.0.1:5")
    for text in [
      "", "x", "1.2.3.4", "1.2.3.4:", "1.2.3.4:65536", "1.2.3:4", "[::1]", "[:::1]:5", "::1:x",
      "1.2.3.4:+5", "unix:", "unix:" + String(repeating: "a", count: 108), "example.com:80",
    ] {
      let error = #expect(throws: HTTP2Error.self) { try SocketAddress(parsing: text) }
      #expect(error?.kind == .invalidAddress)
    }
    let loopback = [
      "127.9.9.9:1": true, "128.0.0.1:1": false, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true,
      "[::2]:1": false, "unix:/x": true,
    ]
    for (text, expected) in loopback {
      #expect(try SocketAddress(parsing: text).isLoopback == expected)
    }
  }
}
