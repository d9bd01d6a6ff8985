import Glibc
import TestCertificates
import Testing

@testable import VencejoHTTP2

/// A listener with TLS and what connects to it.
private final class Room {
  static let made = Result {
    let made = try Certificates()
    try made.issuer("root")
    try made.issuer("people")
    try made.issuer("stranger")
    try made.leaf("server", from: "root")
    try made.leaf("elsewhere", from: "root", alternatives: "DNS:*.example.org,DNS:10.0.0.9")
    try made.leaf("expired", from: "root", days: -1)
    try made.leaf(
      "ana", from: "people", subject: "/O=Vencejo/CN=añá",
      alternatives: "URI:spiffe://vencejo.example/ana,email:ana@vencejo.example,DNS:a.b,IP:::1")
    return made
  }

  let certificates: Certificates
  let group: EventLoopGroup
  let listener: Listener
  let tls: ServerTLS
  let log = EventLog<Event>()
  /// What the server knows of each client, when its first request comes.
  let identities = EventLog<PeerIdentity?>()

  init(
    _ certificate: String = "server",
    clients: (Certificates) -> ServerTLS.ClientCertificates = { _ in .none },
    change: (inout ConnectionConfiguration) -> Void = { _ in }
  ) throws {
    certificates = try Self.made.get()
    group = try EventLoopGroup(count: 1)
    tls = try ServerTLS(
      certificate: certificates.pem(certificate), key: certificates.key(certificate),
      clientCertificates: clients(certificates))
    var configuration = ConnectionConfiguration()
    change(&configuration)
    listener = try Listener(
      address: SocketAddress(parsing: "127.0.0.1:0"), loops: group.loops,
      configuration: configuration, tls: tls
    ) { [log, identities] connection in
      connection.handler = ConnectionRecorder(log)
      connection.acceptStream = { stream in
        identities.push(stream.connection.peerIdentity)
        let handler = Recorder(log)
        behave(handler, log)
        return handler
      }
    }
  }

  deinit {
    listener.close()
    group.shutdown()
  }

  func client(
    _ tls: ClientTLS, as name: String? = "localhost", to address: SocketAddress? = nil,
    _ change: (inout ConnectionConfiguration) -> Void = { _ in }
  ) throws -> HTTP2Connection {
    var tls = tls
    tls.serverName = name
    var configuration = ConnectionConfiguration()
    change(&configuration)
    let result = EventLog<Result<HTTP2Connection, HTTP2Error>>()
    HTTP2Connection.connect(
      to: address ?? listener.localAddress, on: group.next(), configuration: configuration,
      tls: tls
    ) { result.push($0) }
    return try #require(result.wait { $0 }).get()
  }

  var roots: ClientTLS { .roots(certificates.pem("root")) }

  func call(_ connection: HTTP2Connection, bytes: Int = 5) throws -> Int? {
    let log = EventLog<Event>()
    connection.loop.execute {
      let handler = Recorder(log)
      let list = HeaderList([
        (":method", "POST"), (":scheme", "https"), (":path", "/echo"), (":authority", "x"),
      ])
      if let stream = try? connection.open(handler: handler, headers: list, endStream: false) {
        stream.send(data: [UInt8](repeating: 3, count: bytes))
        stream.finish()
      }
      handler.onEnd = { _, handler in log.push(.note("body", handler.body.count)) }
    }
    return log.wait { event -> Int?? in
      switch event {
      case .note("body", let count): .some(count)
      case .closed(_, let code) where code != 0: .some(nil)
      default: nil
      }
    } ?? nil
  }

  /// How the server says a connection ended.
  func serverSaid() -> HTTP2Error.Kind?? {
    log.wait { event -> HTTP2Error.Kind?? in
      if case .connectionClosed(let kind) = event { return .some(kind) }
      return nil
    }
  }

  /// A plain socket to the listener.
  func wire() throws -> RawPeer {
    let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    let connected = listener.localAddress.withSockAddr { connect(fd, $0, $1) }
    try #require(connected == 0)
    return RawPeer(fd: fd)
  }

  /// It still serves.
  func lives() throws -> Bool { try call(client(roots)) == 5 }
}

@Suite struct TLSTests {
  @Test(arguments: [1, 10_000, 3 << 20])
  func calls(bytes: Int) throws {
    let room = try Room()
    let connection = try room.client(room.roots)
    #expect(connection.isEncrypted)
    #expect(try room.call(connection, bytes: bytes) == bytes)
    #expect(try room.call(connection, bytes: bytes) == bytes)
  }

  @Test func addressesAreNamesToo() throws {
    let room = try Room()
    #expect(try room.call(room.client(room.roots, as: "127.0.0.1")) == 5)
  }

  @Test(arguments: [
    ("server", "root", "localhost.evil", "is not for 'localhost.evil'"),
    ("server", "root", "127.0.0.2", "is not for '127.0.0.2'"),
    ("elsewhere", "root", "localhost", "is not for 'localhost'"),
    // An address is not a name, though a certificate may write it as one.
    ("elsewhere", "root", "10.0.0.9", "is not for '10.0.0.9'"),
    ("elsewhere", "root", "a.b.example.org", "is not for"),
    ("expired", "root", "localhost", "has expired"),
    ("server", "stranger", "localhost", "unknown issuer"),
  ])
  func wrongServersAreRefused(certificate: String, roots: String, name: String, says: String) throws
  {
    let room = try Room(certificate)
    let error = #expect(throws: HTTP2Error.self) {
      try room.client(.roots(room.certificates.pem(roots)), as: name)
    }
    #expect(error?.kind == .tlsFailed)
    #expect(error?.message.contains(says) == true, "\(error?.message ?? "")")
  }

  @Test func theRightNameBehindAWildcard() throws {
    let room = try Room("elsewhere")
    #expect(try room.call(room.client(room.roots, as: "chat.example.org")) == 5)
  }

  @Test func theSystemTrustsNobodyOfOurs() throws {
    let room = try Room()
    let error = #expect(throws: HTTP2Error.self) { try room.client(.systemRoots) }
    #expect(error?.message.contains("unknown issuer") == true)
  }

  @Test func aClientWithoutANameConnectsNowhere() throws {
    let room = try Room()
    #expect(throws: HTTP2Error.self) { try room.client(room.roots, as: nil) }
    #expect(throws: HTTP2Error.self) { try room.client(room.roots, as: "") }
  }

  @Test func clientsShowWhoTheyAre() throws {
    let room = try Room(clients: { .required(roots: $0.pem("people")) })
    let made = room.certificates
    let mutual = ClientTLS.mutual(
      certificate: made.pem("ana"), key: made.key("ana"), roots: made.pem("root"))
    #expect(try room.call(room.client(mutual)) == 5)
    let ana = try #require(room.identities.wait { $0 })
    #expect(ana.subject == "CN=añá,O=Vencejo")
    #expect(ana.uris == ["spiffe://vencejo.example/ana"])
    #expect(ana.emailAddresses == ["ana@vencejo.example"])
    #expect(ana.dnsNames == ["a.b"])
    #expect(ana.ipAddresses == [[UInt8](repeating: 0, count: 15) + [1]])
    try made.openssl([
      "x509", "-in", made.path("ana.pem"), "-outform", "DER", "-out", made.path("ana.der"),
    ])
    #expect(try PEM.file(made.path("ana.der")).load("it") == ana.certificate)
  }

  @Test func clientsWithoutOrWithAWrongCertificateStayOutside() throws {
    let room = try Room(clients: { .required(roots: $0.pem("people")) })
    let made = room.certificates
    let wrong = ClientTLS.mutual(
      certificate: made.pem("server"), key: made.key("server"), roots: made.pem("root"))
    for (tls, says) in [(room.roots, "wants a client certificate"), (wrong, "issuer of our")] {
      // TLS 1.3 lets the client believe for a moment that all is well.
      let connection = try room.client(tls)
      #expect(try room.call(connection) == nil)
      #expect(connection.closeReason?.message.contains(says) == true)
      #expect(room.serverSaid() == .some(.tlsFailed))
    }
    #expect(room.identities.all.isEmpty)
  }

  @Test func whoNeedNotShowACertificateMayNot() throws {
    let room = try Room(clients: { .optional(roots: $0.pem("people")) })
    #expect(try room.call(room.client(room.roots)) == 5)
    #expect(room.identities.all == [nil])
  }

  @Test func certificatesAreReloaded() throws {
    let made = try Certificates()
    try made.issuer("old")
    try made.issuer("new")
    try made.leaf("a", from: "old")
    try made.leaf("b", from: "new")
    func link(_ name: String) {
      for kind in ["pem", "key"] {
        unlink(made.path("now.\(kind)"))
        symlink(made.path("\(name).\(kind)"), made.path("now.\(kind)"))
      }
    }
    link("a")
    let group = try EventLoopGroup(count: 1)
    defer { group.shutdown() }
    let tls = try ServerTLS(certificate: made.pem("now"), key: made.key("now"))
    let room = try Room()
    let listener = try Listener(
      address: SocketAddress(parsing: "127.0.0.1:0"), loops: group.loops,
      configuration: ConnectionConfiguration(), tls: tls
    ) { connection in
      connection.acceptStream = { _ in
        let handler = Recorder(EventLog())
        behave(handler, handler.log)
        return handler
      }
    }
    defer { listener.close() }
    let address = listener.localAddress
    let first = try room.client(.roots(made.pem("old")), to: address)
    link("b")
    try tls.reload()
    #expect(try room.call(first) == 5)
    #expect(try room.call(room.client(.roots(made.pem("new")), to: address)) == 5)
    #expect(throws: HTTP2Error.self) { try room.client(.roots(made.pem("old")), to: address) }
    // What cannot be used changes nothing.
    unlink(made.path("now.key"))
    #expect(throws: HTTP2Error.self) { try tls.reload() }
    symlink(made.path("a.key"), made.path("now.key"))
    let error = #expect(throws: HTTP2Error.self) { try tls.reload() }
    #expect(error?.message.contains("key values mismatch") == true)
    #expect(try room.call(room.client(.roots(made.pem("new")), to: address)) == 5)
  }

  @Test func unusableFilesAreNamed() throws {
    let made = try Room.made.get()
    let missing = #expect(throws: HTTP2Error.self) {
      try ServerTLS(certificate: .file("/nowhere/x.pem"), key: made.key("server"))
    }
    #expect(missing?.message == "the certificate in /nowhere/x.pem: No such file or directory")
    let notOne = #expect(throws: HTTP2Error.self) {
      try ServerTLS(certificate: .bytes(Array("hello".utf8)), key: made.key("server"))
    }
    #expect(notOne?.message.contains("no certificate in PEM") == true)
    #expect(throws: HTTP2Error.self) {
      try ServerTLS(certificate: made.pem("server"), key: made.pem("server"))
    }
    try made.openssl([
      "ec", "-in", made.path("server.key"), "-aes128", "-passout", "pass:x", "-out",
      made.path("secret.key"),
    ])
    #expect(throws: HTTP2Error.self) {
      try ServerTLS(certificate: made.pem("server"), key: made.key("secret"))
    }
    #expect(throws: HTTP2Error.self) { try ClientTLS.roots(.bytes([])).check() }
    // Bytes serve as well as files.
    let bytes = try PEM.file(made.path("server.pem")).load("it")
    let key = try PEM.file(made.path("server.key")).load("it")
    _ = try ServerTLS(certificate: .bytes(bytes), key: .bytes(key))
  }
}

@Suite struct TLSAbuseTests {
  @Test func plainBytesOnTheTLSPort() throws {
    let room = try Room()
    let peer = try room.wire()
    peer.preface()
    _ = peer.readToEnd()
    #expect(peer.sawEnd)
    #expect(room.serverSaid() == .some(.tlsFailed))
    #expect(try room.lives())
  }

  @Test func noiseOnTheTLSPort() throws {
    let room = try Room()
    var chance = SystemRandomNumberGenerator()
    for size in [1, 5, 1_000, 100_000] {
      let peer = try room.wire()
      // A record's head, so that some of it gets further than the first byte.
      let head: [UInt8] = size > 5 ? [22, 3, 1, 0x27, 0x10] : []
      peer.send(head + (0..<size).map { _ in UInt8.random(in: 0...255, using: &chance) })
      shutdown(peer.fd, Int32(SHUT_WR))
      _ = peer.readToEnd()
      #expect(peer.sawEnd)
    }
    #expect(try room.lives())
  }

  @Test func aHandshakeThatStalls() throws {
    let room = try Room(change: { $0.handshakeTimeout = .milliseconds(50) })
    let peer = try room.wire()
    peer.send([22, 3, 1, 0x27])
    #expect(peer.readToEnd())
    #expect(room.serverSaid() == .some(.handshakeTimedOut))
  }

  @Test func aServerThatStalls() throws {
    let room = try Room()
    let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(fd) }
    _ = try SocketAddress(parsing: "127.0.0.1:0").withSockAddr { bind(fd, $0, $1) }
    _ = Glibc.listen(fd, 5)
    let address = try #require(SocketAddress.local(of: fd))
    let error = #expect(throws: HTTP2Error.self) {
      try room.client(room.roots, to: address) { $0.handshakeTimeout = .milliseconds(50) }
    }
    #expect(error?.kind == .handshakeTimedOut)
    #expect(error?.message == "no TLS handshake in time")
  }

  @Test func aServerInPlainText() throws {
    let room = try Room()
    let plain = try Listener(
      address: SocketAddress(parsing: "127.0.0.1:0"), loops: room.group.loops,
      configuration: ConnectionConfiguration()
    ) { _ in }
    defer { plain.close() }
    let error = #expect(throws: HTTP2Error.self) {
      try room.client(room.roots, to: plain.localAddress)
    }
    #expect(error?.message == "TLS: the server does not speak TLS")
  }

  /// Every cut of a handshake and a call into two writes, and every byte on its own.
  @Test func recordsInPieces() throws {
    let room = try Room()
    for pieces in [1, 7, 4_097] {
      let relay = try Relay(to: room.listener.localAddress, pieces: pieces)
      let connection = try room.client(room.roots, to: relay.address)
      #expect(try room.call(connection, bytes: 10_000) == 10_000)
    }
  }

  @Test func manyConnectionsLeaveNothingBehind() throws {
    let room = try Room()
    func round(_ count: Int) throws {
      for _ in 0..<count {
        let connection = try room.client(room.roots)
        #expect(try room.call(connection) == 5)
        connection.loop.execute { connection.close() }
      }
    }
    try round(20)
    let port = room.listener.localAddress.port
    let before = try sockets(of: port)
    #expect(before >= 1, "the listener at least")
    try round(50)
    let end = EventLog<Int>()
    // What lingers is closed within a second.
    for _ in 0..<2_000 {
      if try sockets(of: port) <= before + 4 { end.push(1); break }
      poll(nil, 0, 1)
    }
    #expect(end.all == [1])
  }

  /// Both ends of the connections of a port and its listener: other tests, which run at the same
  /// time, have descriptors too.
  private func sockets(of port: UInt16?) throws -> Int {
    let folder = try #require(opendir("/proc/self/fd"))
    defer { closedir(folder) }
    var count = 0
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      guard let descriptor = Int32(name) else { continue }
      let ends = [SocketAddress.local(of: descriptor), SocketAddress.peer(of: descriptor)]
      if ends.contains(where: { $0?.port == port }) { count += 1 }
    }
    return count
  }
}

/// Hands bytes on between two sockets, a few at a time.
private final class Relay: Sendable {
  let address: SocketAddress

  init(to target: SocketAddress, pieces: Int) throws {
    let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    _ = try SocketAddress(parsing: "127.0.0.1:0").withSockAddr { bind(fd, $0, $1) }
    _ = Glibc.listen(fd, 1)
    address = try #require(SocketAddress.local(of: fd))
    // The thread closes what it uses: a number closed elsewhere may be another's by then.
    Self.thread {
      let near = accept(fd, nil, nil)
      close(fd)
      let far = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      _ = target.withSockAddr { connect(far, $0, $1) }
      for one in [near, far] { Syscalls.setOption(one, Int32(IPPROTO_TCP), TCP_NODELAY, 1) }
      Self.thread { Self.copy(far, near, pieces) }
      Self.copy(near, far, pieces)
    }
  }

  private static func copy(_ from: Int32, _ to: Int32, _ pieces: Int) {
    var bytes = [UInt8](repeating: 0, count: pieces)
    while true {
      let count = recv(from, &bytes, pieces, 0)
      guard count > 0, send(to, bytes, count, Int32(MSG_NOSIGNAL)) == count else { break }
    }
    shutdown(to, Int32(SHUT_WR))
  }

  private static func thread(_ body: @escaping @Sendable () -> Void) {
    final class Box {
      let body: @Sendable () -> Void
      init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { argument in
        if let argument { Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body() }
        return nil
      }, Unmanaged.passRetained(Box(body)).toOpaque())
    pthread_detach(thread)
  }
}
