import InteropEcho
import Testing
import VencejoCompression
import VencejoHTTP2
import VencejoProtobuf
import VencejoRPC

// The examples of Calls.md; Tests/Scripts/test_docs.py compares them.

func fourKinds(_ echo: Interop.EchoClient) async throws {
  // One message each way.
  let reply = try await echo.unary(.init(payload: [1]), .init(timeout: .seconds(2)))

  // A stream of answers. Leaving the loop, or cancelling the task, resets the stream.
  for try await answer in echo.serverStream(.init(payload: [1], responseCount: 3)) {
    if answer.index == 1 { break }
  }

  // A stream of requests; `finish` is the half-close.
  let upload = echo.clientStream()
  for size in 1...3 { try await upload.send(.init(payload: Array(repeating: 7, count: size))) }
  upload.finish()
  let sum = try await upload.response.requestBytes

  // Both: one task sends while another receives, as each may have to wait for the other side.
  let talk = echo.bidirectional()
  try await withThrowingTaskGroup { group in
    group.addTask {
      for size in 1...3 { try await talk.send(.init(payload: Array(repeating: 7, count: size))) }
      talk.finish()
    }
    for try await answer in talk { print(answer.payload.count, reply.index, sum) }
    try await group.waitForAll()
  }
}

struct Answers: Interop.EchoService {
  func serverStream(
    _ request: Interop.EchoRequest, _ out: ResponseWriter<Interop.EchoResponse>,
    _ context: ServerContext
  ) async throws {
    // Waits while the client is behind.
    for index in 0..<request.responseCount { try await out.send(.init(index: index)) }
  }

  func clientStream(
    _ requests: RequestStream<Interop.EchoRequest>, _ context: ServerContext
  ) async throws -> Interop.EchoResponse {
    var count: Int32 = 0
    for try await request in requests {
      // An early end: the client is told at once, whatever it still has to send.
      if request.payload.isEmpty { throw RPCError(.invalidArgument, "an empty payload") }
      count += 1
    }
    return .init(requestCount: count)
  }
}

func anyMethod(_ channel: Channel, _ request: [UInt8]) async throws -> [[UInt8]] {
  let call = channel.bytes("/shop.v1.Orders/List", .init(timeout: .seconds(5)))
  try await call.send(EncodedMessage(serialized: request))
  call.finish()
  var answers: [[UInt8]] = []
  while let answer = try await call.next() { answers.append(answer) }
  return answers
}

struct Patient: Interop.EchoService {
  let upstream: Interop.EchoClient

  func unary(
    _ request: Interop.EchoRequest, _ context: ServerContext
  ) async throws -> Interop.EchoResponse {
    if let deadline = context.deadline, deadline - .now < .milliseconds(10) {
      throw RPCError(.deadlineExceeded, "not in this time")
    }
    // Ends with the call that is answered here: its deadline and its cancellation are this one's.
    return try await withTaskCancellationHandler {
      try await upstream.unary(request)
    } onCancel: {
      print("the client is gone")
    }
  }
}

func asked(_ echo: Interop.EchoClient) async throws -> String? {
  var metadata: Metadata = ["x-tenant": "north"]
  metadata.add("one", for: "x-tag")
  metadata.add("two", for: "x-tag")  // a key may have several values
  metadata.add([0, 255], for: "x-fingerprint-bin")  // bytes, for keys that end in -bin
  let call = echo.serverStream(.init(), .init(metadata: metadata))
  let initial = try await call.initialMetadata  // before the first message
  for try await _ in call {}
  let trailers = try await call.trailers  // after the last
  return initial["x-served-by"] ?? trailers["x-cost"]
}

struct Labelled: Interop.EchoService {
  func serverStream(
    _ request: Interop.EchoRequest, _ out: ResponseWriter<Interop.EchoResponse>,
    _ context: ServerContext
  ) async throws {
    context.sendInitialMetadata(["x-served-by": "one"])  // now, not with the first message
    let tags = context.metadata[all: "x-tag"]
    let bytes = context.metadata[binary: "x-fingerprint-bin"] ?? []
    context.setTrailingMetadata(["x-cost": "\(tags.count + bytes.count)"])
    try await out.send(.init())
  }
}

struct Strict: Interop.EchoService {
  func unary(
    _ request: Interop.EchoRequest, _ context: ServerContext
  ) async throws -> Interop.EchoResponse {
    guard request.payload.isEmpty else { return .init() }
    var error = RPCError(.invalidArgument, "the payload is empty", metadata: ["x-hint": "fill it"])
    error.add(detail: GoogleRPC.BadRequest(fieldViolations: [.init(field: "payload")]))
    error.add(detail: GoogleRPC.ErrorInfo(reason: "EMPTY", domain: "shop.example"))
    throw error
  }
}

func explained(_ echo: Interop.EchoClient) async -> [String] {
  do {
    _ = try await echo.unary(.init())
    return []
  } catch {  // an RPCError: calls throw nothing else
    let fields = error.detail(GoogleRPC.BadRequest.self)?.fieldViolations.map(\.field) ?? []
    return ["\(error.code)", error.message, "\(error.origin)"] + fields
  }
}

func narrow(_ echo: Interop.EchoClient) async throws {
  // Compressed, if the server can read it; an answer of at most 64 KiB, whatever it inflates to.
  let options = CallOptions(
    compression: .gzip, maxReceiveMessageBytes: 64 << 10, maxSendMessageBytes: 1 << 20)
  var answers = echo.serverStream(.init(payload: [1]), options).makeAsyncIterator()
  while try await answers.next() != nil { print(answers.messageWasCompressed) }
}

struct Squeezed: Interop.EchoService {
  func unary(
    _ request: Interop.EchoRequest, _ context: ServerContext
  ) async throws -> Interop.EchoResponse {
    // As it is where the client cannot read it.
    context.setResponseCompression(request.payload.count > 1_000 ? .gzip : nil)
    return .init(payload: request.payload)
  }
}

func locked(_ services: [any Service]) throws -> (Server, ServerTLS) {
  let tls = try ServerTLS(
    certificate: .file("server.pem"), key: .file("server.key"),
    clientCertificates: .optional(roots: .file("people.pem")))
  let server = try Server(
    listening: [SocketAddress(parsing: "0.0.0.0:443")], tls: tls, services: services)
  return (server, tls)  // tls.reload() reads the files anew; connections stay
}

func trusted() throws -> [Channel] {
  var named = ClientTLS.roots(.file("ca.pem"))
  named.serverName = "shop.example"  // whom the certificate must be for, and SNI
  return [
    try Channel("dns:///example.org:443", tls: .systemRoots),
    try Channel("10.0.0.1:443", tls: named),
    try Channel(
      "localhost:7447", tls: .mutual(certificate: .file("ana.pem"), key: .file("ana.key"))),
  ]
}

struct Members: Interop.EchoService {
  func unary(
    _ request: Interop.EchoRequest, _ context: ServerContext
  ) async throws -> Interop.EchoResponse {
    guard let who = context.peerIdentity else {
      throw RPCError(.unauthenticated, "show a certificate")
    }
    return .init(payload: Array(who.subject.utf8))
  }
}

func inProcess(_ services: [any Service]) async throws -> Interop.EchoResponse {
  let server = try Server(listening: [Server.Endpoint](), services: services)
  let reply = try await Interop.EchoClient(server.channel()).unary(.init(payload: [1]))
  await server.shutdown()
  return reply
}

func watched() throws -> (Server, Health) {
  let health = Health()
  let server = try Server(listening: SocketAddress(parsing: "127.0.0.1:0")) {
    Answers()
    health
    Reflection()
    Channelz()
  }
  health.set(.notServing, for: "vencejo.interop.v1.Echo")  // watchers hear of it
  return (server, health)
}

struct Copies: Interop.EchoService {
  func bidirectional(
    _ requests: RequestStream<Interop.EchoRequest>, _ out: ResponseWriter<Interop.EchoResponse>,
    _ context: ServerContext
  ) async throws {
    // Reads no faster than the client takes the answers: the client's own `send` waits then.
    for try await request in requests { try await out.send(.init(payload: request.payload)) }
  }
}

func wide() throws -> Channel {
  var configuration = Channel.Configuration()
  // Where a single stream is to fill a fast and long line; 256 KiB and 4 MiB otherwise.
  configuration.connection.initialStreamWindow = 1 << 20
  configuration.connection.maxStreamWindow = 16 << 20
  return try Channel("dns:///api.example:443", tls: .systemRoots, configuration: configuration)
}
