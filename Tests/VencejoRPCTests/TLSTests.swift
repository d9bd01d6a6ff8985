import InteropEcho
import TestCertificates
import Testing
import VencejoHTTP2
import VencejoRPC

@Suite("Calls over TLS")
struct TLSTests {
  /// Tells callers who they are.
  private struct Door: Interop.EchoService {
    func unary(
      _ request: Interop.EchoRequest, _ context: ServerContext
    ) async throws -> Interop.EchoResponse {
      Interop.EchoResponse(payload: Array((context.peerIdentity?.uris.first ?? "nobody").utf8))
    }
  }

  private static let made = Result {
    let made = try Certificates()
    try made.issuer("root")
    try made.issuer("people")
    try made.leaf("server", from: "root")
    try made.leaf("ana", from: "people", alternatives: "URI:spiffe://vencejo.example/ana")
    return made
  }

  private func withServer(
    _ endpoints: [Server.Endpoint], _ body: (Server) async throws -> Void
  ) async throws {
    let server = try Server(
      listening: endpoints, configuration: Harness.quick, services: [Door()])
    do {
      try await body(server)
    } catch {
      await server.shutdown()
      throw error
    }
    await server.shutdown()
  }

  private func who(_ address: SocketAddress, _ tls: ClientTLS?) async throws -> String {
    let channel = try Channel("\(address)", tls: tls)
    defer { channel.close() }
    let answer = try await Interop.EchoClient(channel).unary(
      .init(), .init(timeout: .seconds(10)))
    return String(decoding: answer.payload, as: UTF8.self)
  }

  @Test func eachListenerHasItsOwn() async throws {
    let made = try Self.made.get()
    let address = try SocketAddress(parsing: "127.0.0.1:0")
    let open = try ServerTLS(certificate: made.pem("server"), key: made.key("server"))
    let closed = try ServerTLS(
      certificate: made.pem("server"), key: made.key("server"),
      clientCertificates: .required(roots: made.pem("people")))
    let endpoints: [Server.Endpoint] = [
      .init(address), .init(address, tls: open), .init(address, tls: closed),
    ]
    try await withServer(endpoints) { server in
      let roots = ClientTLS.roots(made.pem("root"))
      let ana = ClientTLS.mutual(
        certificate: made.pem("ana"), key: made.key("ana"), roots: made.pem("root"))
      #expect(try await who(server.addresses[0], nil) == "nobody")
      #expect(try await who(server.addresses[1], roots) == "nobody")
      #expect(try await who(server.addresses[2], ana) == "spiffe://vencejo.example/ana")
      for (index, tls) in [(0, roots), (1, nil), (2, roots)] {
        let error = try await failure { _ = try await who(server.addresses[index], tls) }
        #expect(error?.code == .unavailable && error?.origin == .transport)
      }
    }
  }

  @Test func theReasonIsTold() async throws {
    let made = try Self.made.get()
    let tls = try ServerTLS(certificate: made.pem("server"), key: made.key("server"))
    let address = try SocketAddress(parsing: "127.0.0.1:0")
    try await withServer([.init(address, tls: tls)]) { server in
      var other = ClientTLS.roots(made.pem("root"))
      other.serverName = "other.example"
      let wrong = try await failure { _ = try await who(server.addresses[0], other) }
      #expect(wrong?.message.contains("is not for 'other.example'") == true)
      // Whom requests are for is whom the certificate must be for.
      for (authority, name) in [
        ("other.example", "other.example"), ("other.example:1", "other.example"),
      ] {
        var configuration = Channel.Configuration()
        configuration.authority = authority
        let channel = try Channel(
          "\(server.addresses[0])", tls: .roots(made.pem("root")), configuration: configuration)
        let wrong = try await failure { _ = try await Interop.EchoClient(channel).unary(.init()) }
        #expect(wrong?.message.contains("is not for '\(name)'") == true)
      }
      let unknown = try await failure { _ = try await who(server.addresses[0], .systemRoots) }
      #expect(unknown?.message.contains("unknown issuer") == true)
    }
    let error = #expect(throws: RPCError.self) {
      _ = try Channel("localhost:1", tls: .roots(.file("/nowhere/ca.pem")))
    }
    #expect(error?.code == .invalidArgument)
    #expect(error?.message.contains("/nowhere/ca.pem") == true)
  }

  @Test func aStalledHandshakeDoesNotHoldAShutdown() async throws {
    let made = try Self.made.get()
    let tls = try ServerTLS(certificate: made.pem("server"), key: made.key("server"))
    let server = try Server(
      listening: [.init(SocketAddress(parsing: "127.0.0.1:0"), tls: tls)],
      configuration: .init(), services: [Door()])
    // A plain client speaks and waits for an answer that TLS does not give.
    let loop = try EventLoop(name: "test")
    defer { loop.shutdown() }
    await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
      HTTP2Connection.connect(
        to: server.addresses[0], on: loop, configuration: .init()
      ) { _ in continuation.resume() }
    }
    let began = ContinuousClock.now
    await server.shutdown()
    #expect(ContinuousClock.now - began < .seconds(5))
  }
}
