import InteropEcho
import Testing
import VencejoCompression
import VencejoHTTP2
import VencejoProtobuf
import VencejoRPC

// The examples of Channels.md and Servers.md; Tests/Scripts/test_docs.py compares them.

// MARK: Channels.md

func channels(_ addresses: [SocketAddress]) throws -> [Channel] {
  [
    try Channel("dns:///api.example:443", tls: .systemRoots),
    try Channel("ipv4:10.0.0.1:7447,10.0.0.2:7447"),
    try Channel("ipv6:[2001:db8::1]:7447"),
    try Channel("unix:/run/shop.sock"),
    try Channel("unix-abstract:shop"),
    try Channel(addresses: addresses, authority: "api.example"),
  ]
}

struct Registry: Channel.Resolver {
  let changes: @Sendable () -> AsyncStream<[SocketAddress]>

  func resolve(_ found: @escaping @Sendable (Channel.Resolution) -> Void) async throws {
    for await addresses in changes() {
      found(
        Channel.Resolution(
          addresses: addresses,
          serviceConfig: #"{ "loadBalancingConfig": [{ "round_robin": {} }] }"#))
    }
  }
}

func registered(_ registry: Registry) throws -> Channel {
  try Channel(resolver: registry, authority: "api.example", tls: .systemRoots)
}

func configured() throws -> Channel {
  var configuration = Channel.Configuration()
  configuration.serviceConfig = """
    {
      "loadBalancingConfig": [{ "round_robin": {} }],
      "healthCheckConfig": { "serviceName": "shop.v1.Orders" },
      "methodConfig": [
        { "name": [{ "service": "shop.v1.Orders" }],
          "timeout": "2s", "waitForReady": true,
          "retryPolicy": { "maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s",
            "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"] } },
        { "name": [{ "service": "shop.v1.Orders", "method": "Price" }],
          "hedgingPolicy": { "maxAttempts": 3, "hedgingDelay": "0.05s",
            "nonFatalStatusCodes": ["UNAVAILABLE"] } }
      ],
      "retryThrottling": { "maxTokens": 100, "tokenRatio": 0.1 }
    }
    """
  return try Channel("dns:///shop.example:443", tls: .systemRoots, configuration: configuration)
}

func patient() throws -> Channel {
  var configuration = Channel.Configuration()
  configuration.connection.keepaliveInterval = .seconds(30)
  configuration.connection.keepaliveTimeout = .seconds(10)
  configuration.maxConnectionsPerAddress = 4
  configuration.idleTimeout = .seconds(600)
  return try Channel("dns:///api.example:443", tls: .systemRoots, configuration: configuration)
}

func authorized(_ token: @escaping @Sendable (String) async throws -> String) throws -> Channel {
  var configuration = Channel.Configuration()
  configuration.credentials = { method, audience in
    ["authorization": "Bearer \(try await token(audience))"]
  }
  return try Channel("dns:///api.example:443", tls: .systemRoots, configuration: configuration)
}

func upload(_ echo: Interop.EchoClient, _ picture: [UInt8]) async throws {
  let call = echo.clientStream(.init(compression: .gzip))
  try await call.send(.init(payload: Array("a line of text, over and over".utf8)))
  try await call.send(.init(payload: picture), compressed: false)  // compressed as it is
  call.finish()
  _ = try await call.response
}

// MARK: Servers.md

func listening(_ tls: ServerTLS, _ services: [any Service]) async throws {
  var configuration = Server.Configuration()
  configuration.connection.maxAge = .seconds(3_600)
  configuration.connection.maxAgeGrace = .seconds(60)
  configuration.connection.idleTimeout = .seconds(600)
  configuration.maxConcurrentCalls = 10_000
  let server = try Server(
    listening: [
      Server.Endpoint(try SocketAddress(parsing: "0.0.0.0:443"), tls: tls),
      Server.Endpoint(try SocketAddress(parsing: "unix:/run/shop.sock")),
    ],
    configuration: configuration, services: services)
  await server.run()
}

func pluggedIn(_ server: Server, _ plugin: any Service) async throws {
  try await server.register(plugin)
  await server.unregister("shop.v1.Coupons")
}

func ended(_ server: Server) async {
  await server.shutdown(grace: .seconds(30))  // as long as calls run, 30 seconds at most
  await server.shutdown(grace: .zero)  // now
}

func proxy(to upstream: Channel) -> ServerMethod {
  .bidirectional("*") {
    (requests: RequestStream<RawMessage>, out: ResponseWriter<RawMessage>, context) in
    let call: BidirectionalCall<RawMessage, RawMessage> = upstream.bidirectional(
      context.method, CallOptions(metadata: context.metadata))
    try await withThrowingTaskGroup { group in
      group.addTask {
        for try await message in requests { try await call.send(message) }
        call.finish()
      }
      context.sendInitialMetadata(try await call.initialMetadata)
      for try await message in call { try await out.send(message) }
      context.setTrailingMetadata(try await call.trailers)
      group.cancelAll()
    }
  }
}

struct Relay: Interop.EchoService {
  var startsWithFirstMessage: Bool { true }

  func bidirectional(
    _ requests: RequestStream<Interop.EchoRequest>, _ out: ResponseWriter<Interop.EchoResponse>,
    _ context: ServerContext
  ) async throws {
    for try await request in requests { try await out.send(.init(payload: request.payload)) }
  }
}

struct Orders: Interop.EchoService {
  var maxConcurrentCalls: Int? { 100 }
  var execution: HandlerExecution { .loop }

  func unary(
    _ request: Interop.EchoRequest, _ context: ServerContext
  ) async throws -> Interop.EchoResponse {
    guard let peer = context.peerCredentials, peer.userID == 0 else {
      throw RPCError(.permissionDenied, "root only")
    }
    return Interop.EchoResponse(payload: request.payload)
  }
}
