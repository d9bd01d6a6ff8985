import VencejoCompression
import VencejoProtobuf
public import VencejoRPC

/// The service of gRPC's interoperability tests (interop-test-descriptions.md, "Server").
public struct InteropTestService: GRPCTesting.TestService {
  private let serverID: String
  private let hostname: String
  /// No response is larger than a message may be.
  private static let largest = 64 * 1024 * 1024

  public init(hostname: String) {
    serverID = "\(UInt64.random(in: 0 ... .max))"
    self.hostname = hostname
  }

  public var startsWithFirstMessage: Bool { true }

  public func emptyCall(
    _ request: GRPCTesting.Empty, _ context: ServerContext
  ) async throws -> GRPCTesting.Empty {
    echoMetadata(context)
    return .init()
  }

  public func unaryCall(
    _ request: GRPCTesting.SimpleRequest, _ context: ServerContext
  ) async throws -> GRPCTesting.SimpleResponse {
    echoMetadata(context)
    try check(request.expectCompressed, wasCompressed: context.requestWasCompressed)
    try throwIfAsked(request.responseStatus)
    if let wish = request.responseCompressed {
      context.setResponseCompression(wish.value ? .gzip : nil)
    }
    var response = GRPCTesting.SimpleResponse()
    if request.responseSize != 0 || request.payload != nil {
      response.payload = try payload(request.responseType, request.responseSize)
    }
    if request.fillServerId { response.serverId = serverID }
    response.hostname = hostname
    return response
  }

  /// Another answer each time, with leave for proxies to keep it.
  public func cacheableUnaryCall(
    _ request: GRPCTesting.SimpleRequest, _ context: ServerContext
  ) async throws -> GRPCTesting.SimpleResponse {
    context.setInitialMetadata(["cache-control": "max-age=60, public"])
    let body = Array("\(ContinuousClock.now)".utf8)
    return .init(payload: .init(type: .compressable, body: body))
  }

  public func streamingOutputCall(
    _ request: GRPCTesting.StreamingOutputCallRequest,
    _ out: ResponseWriter<GRPCTesting.StreamingOutputCallResponse>, _ context: ServerContext
  ) async throws {
    echoMetadata(context)
    if request.responseParameters.contains(where: { $0.compressed?.value == true }) {
      context.setResponseCompression(.gzip)
    }
    try await answer(request, out)
  }

  public func streamingInputCall(
    _ requests: RequestStream<GRPCTesting.StreamingInputCallRequest>, _ context: ServerContext
  ) async throws -> GRPCTesting.StreamingInputCallResponse {
    echoMetadata(context)
    var sum: Int32 = 0
    var iterator = requests.makeAsyncIterator()
    while let request = try await iterator.next() {
      try check(request.expectCompressed, wasCompressed: iterator.messageWasCompressed)
      sum &+= Int32(clamping: request.payload?.body.count ?? 0)
    }
    return .init(aggregatedPayloadSize: sum)
  }

  public func fullDuplexCall(
    _ requests: RequestStream<GRPCTesting.StreamingOutputCallRequest>,
    _ out: ResponseWriter<GRPCTesting.StreamingOutputCallResponse>, _ context: ServerContext
  ) async throws {
    echoMetadata(context)
    // Decided before the first message; each message may still go uncompressed.
    context.setResponseCompression(.gzip)
    for try await request in requests { try await answer(request, out) }
  }

  public func halfDuplexCall(
    _ requests: RequestStream<GRPCTesting.StreamingOutputCallRequest>,
    _ out: ResponseWriter<GRPCTesting.StreamingOutputCallResponse>, _ context: ServerContext
  ) async throws {
    echoMetadata(context)
    context.setResponseCompression(.gzip)
    var all: [GRPCTesting.StreamingOutputCallRequest] = []
    for try await request in requests { all.append(request) }
    for request in all { try await answer(request, out) }
  }

  private func answer(
    _ request: GRPCTesting.StreamingOutputCallRequest,
    _ out: ResponseWriter<GRPCTesting.StreamingOutputCallResponse>
  ) async throws {
    try throwIfAsked(request.responseStatus)
    for wanted in request.responseParameters {
      if wanted.intervalUs > 0 {
        // The pause is what the request asks for.
        try await Task.sleep(for: .microseconds(Int64(wanted.intervalUs)))
      }
      let response = GRPCTesting.StreamingOutputCallResponse(
        payload: try payload(request.responseType, wanted.size))
      try await out.send(response, compressed: wanted.compressed?.value == true)
    }
  }

  private func payload(
    _ type: GRPCTesting.PayloadType, _ size: Int32
  ) throws(RPCError) -> GRPCTesting.Payload {
    guard type == .compressable else {
      throw RPCError(.invalidArgument, "unknown payload type \(type.rawValue)")
    }
    guard (0...Self.largest).contains(Int(size)) else {
      throw RPCError(.invalidArgument, "no payload has \(size) bytes")
    }
    return .init(type: type, body: [UInt8](repeating: 0, count: Int(size)))
  }

  private func throwIfAsked(_ status: GRPCTesting.EchoStatus?) throws(RPCError) {
    guard let status, status.code != 0 else { return }
    throw RPCError(StatusCode(rawValue: Int(status.code)), status.message)
  }

  private func check(
    _ expected: GRPCTesting.BoolValue?, wasCompressed: Bool
  ) throws(RPCError) {
    guard expected?.value == true, !wasCompressed else { return }
    throw RPCError(.invalidArgument, "the request came uncompressed")
  }

  private func echoMetadata(_ context: ServerContext) {
    if let text = context.metadata["x-grpc-test-echo-initial"] {
      context.setInitialMetadata(["x-grpc-test-echo-initial": text])
    }
    if let bytes = context.metadata[binary: "x-grpc-test-echo-trailing-bin"] {
      var trailing = Metadata()
      trailing.add(bytes, for: "x-grpc-test-echo-trailing-bin")
      context.setTrailingMetadata(trailing)
    }
  }
}
