import InteropTesting
import VencejoCompression
import VencejoRPC

/// What a case gets: the flags, a channel, and the way to more of them.
struct Setting: Sendable {
  let flags: Flags
  let channel: Channel
  let makeChannel: @Sendable () throws -> Channel

  var client: GRPCTesting.TestClient { .init(channel) }
}

struct Failed: Error, CustomStringConvertible {
  let description: String
}

func expect(_ condition: Bool, _ message: @autoclosure () -> String) throws(Failed) {
  if !condition { throw Failed(description: message()) }
}

/// The error that the body ends with, which must be one.
func failure(of body: () async throws -> Void) async throws -> RPCError {
  do {
    try await body()
  } catch let error as RPCError {
    return error
  }
  throw Failed(description: "the call succeeded")
}

func zeros(_ count: Int) -> GRPCTesting.Payload {
  .init(type: .compressable, body: [UInt8](repeating: 0, count: count))
}

/// The cases of gRPC's interop-test-descriptions.md that need no cloud account, by the names
/// given there.
enum Cases {
  typealias Body = @Sendable (Setting) async throws -> Void

  static let all: [String: Body] = {
    var all: [String: Body] = [
      "empty_unary": emptyUnary, "large_unary": largeUnary,
      "client_compressed_unary": clientCompressedUnary,
      "server_compressed_unary": serverCompressedUnary,
      "client_streaming": clientStreaming,
      "client_compressed_streaming": clientCompressedStreaming,
      "server_streaming": serverStreaming,
      "server_compressed_streaming": serverCompressedStreaming, "ping_pong": pingPong,
      "empty_stream": emptyStream, "custom_metadata": customMetadata,
      "status_code_and_message": statusCodeAndMessage,
      "special_status_message": specialStatusMessage,
      "unimplemented_method": unimplementedMethod,
      "unimplemented_service": unimplementedService, "cancel_after_begin": cancelAfterBegin,
      "cancel_after_first_response": cancelAfterFirstResponse,
      "timeout_on_sleeping_server": timeoutOnSleepingServer,
      "rpc_soak": { try await soak($0, newChannels: false) },
      "channel_soak": { try await soak($0, newChannels: true) }, "report": report,
    ]
    all.merge(NegativeCases.all) { first, _ in first }
    return all
  }()

  static var names: String { all.keys.sorted().joined(separator: ", ") }

  static let largeRequest = 271_828
  static let largeResponse = 314_159

  static func large() -> GRPCTesting.SimpleRequest {
    .init(
      responseType: .compressable, responseSize: Int32(largeResponse),
      payload: zeros(largeRequest))
  }

  static func check(
    _ payload: GRPCTesting.Payload?, is size: Int
  ) throws(Failed) {
    try expect(
      payload?.type == .compressable, "the payload's type is \(String(describing: payload?.type))")
    try expect(
      payload?.body.count == size, "the payload has \(payload?.body.count ?? 0) bytes, not \(size)")
    try expect(payload?.body.allSatisfy { $0 == 0 } == true, "the payload is not all zeros")
  }

  // MARK: Unary

  private static func emptyUnary(_ setting: Setting) async throws {
    let response = try await setting.client.emptyCall(.init())
    try expect(response == .init(), "the response is not empty")
  }

  static func largeUnary(_ setting: Setting) async throws {
    let response = try await setting.client.unaryCall(large())
    try check(response.payload, is: largeResponse)
  }

  private static func clientCompressedUnary(_ setting: Setting) async throws {
    var request = large()
    request.expectCompressed = .init(value: true)
    let probe = request
    let refused = try await failure { _ = try await setting.client.unaryCall(probe) }
    try expect(refused.code == .invalidArgument, "the probe ended with \(refused)")
    let compressed = try await setting.client.unaryCall(request, .init(compression: .gzip))
    try check(compressed.payload, is: largeResponse)
    request.expectCompressed = .init(value: false)
    let plain = try await setting.client.unaryCall(request)
    try check(plain.payload, is: largeResponse)
  }

  private static func serverCompressedUnary(_ setting: Setting) async throws {
    for wish in [true, false] {
      var request = large()
      request.responseCompressed = .init(value: wish)
      // A unary method answers a call for a stream with a stream of one message.
      let call: ServerStreamingCall<GRPCTesting.SimpleResponse> =
        setting.channel.serverStreaming("/grpc.testing.TestService/UnaryCall", request)
      var responses = call.makeAsyncIterator()
      let response = try await responses.next()
      try check(response?.payload, is: largeResponse)
      try expect(
        responses.messageWasCompressed == wish,
        "the response is \(wish ? "not " : "")compressed although asked for")
      try expect(try await responses.next() == nil, "a second response")
    }
  }

  // MARK: Streams

  private static func clientStreaming(_ setting: Setting) async throws {
    let call = setting.client.streamingInputCall()
    for size in [27_182, 8, 1_828, 45_904] { try await call.send(.init(payload: zeros(size))) }
    call.finish()
    let sum = try await call.response.aggregatedPayloadSize
    try expect(sum == 74_922, "the sum is \(sum)")
  }

  private static func clientCompressedStreaming(_ setting: Setting) async throws {
    let probe = setting.client.streamingInputCall(.init(compression: .gzip))
    let refused = try await failure {
      // The server may answer before it has read; what it says counts.
      try? await probe.send(
        .init(payload: zeros(27_182), expectCompressed: .init(value: true)), compressed: false)
      probe.finish()
      _ = try await probe.response
    }
    try expect(refused.code == .invalidArgument, "the probe ended with \(refused)")

    let call = setting.client.streamingInputCall(.init(compression: .gzip))
    try await call.send(.init(payload: zeros(27_182), expectCompressed: .init(value: true)))
    try await call.send(
      .init(payload: zeros(45_904), expectCompressed: .init(value: false)), compressed: false)
    call.finish()
    let sum = try await call.response.aggregatedPayloadSize
    try expect(sum == 73_086, "the sum is \(sum)")
  }

  private static let sizes: [Int] = [31_415, 9, 2_653, 58_979]

  private static func serverStreaming(_ setting: Setting) async throws {
    let call = setting.client.streamingOutputCall(
      .init(
        responseType: .compressable, responseParameters: sizes.map { .init(size: Int32($0)) }))
    var count = 0
    for try await response in call {
      try expect(count < sizes.count, "more than \(sizes.count) responses")
      try check(response.payload, is: sizes[count])
      count += 1
    }
    try expect(count == sizes.count, "\(count) responses")
  }

  private static func serverCompressedStreaming(_ setting: Setting) async throws {
    let wanted = [(31_415, true), (92_653, false)]
    let call = setting.client.streamingOutputCall(
      .init(
        responseType: .compressable,
        responseParameters: wanted.map {
          .init(size: Int32($0.0), compressed: .init(value: $0.1))
        }))
    var responses = call.makeAsyncIterator()
    for (size, compressed) in wanted {
      try check(try await responses.next()?.payload, is: size)
      try expect(
        responses.messageWasCompressed == compressed,
        "the response of \(size) bytes is \(compressed ? "not " : "")compressed although asked for")
    }
    try expect(try await responses.next() == nil, "a third response")
  }

  private static func pingPong(_ setting: Setting) async throws {
    let call = setting.client.fullDuplexCall()
    var responses = call.makeAsyncIterator()
    for (size, body) in zip(sizes, [27_182, 8, 1_828, 45_904]) {
      try await call.send(
        .init(
          responseType: .compressable, responseParameters: [.init(size: Int32(size))],
          payload: zeros(body)))
      try check(try await responses.next()?.payload, is: size)
    }
    call.finish()
    try expect(try await responses.next() == nil, "a fifth response")
  }

  private static func emptyStream(_ setting: Setting) async throws {
    let call = setting.client.fullDuplexCall()
    call.finish()
    for try await _ in call { throw Failed(description: "a response") }
    _ = try await call.trailers
  }
}
