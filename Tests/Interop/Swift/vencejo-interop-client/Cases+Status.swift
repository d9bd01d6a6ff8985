import InteropTesting
import VencejoRPC

/// Metadata, status, cancellation and deadlines.
extension Cases {
  static func customMetadata(_ setting: Setting) async throws {
    let (text, binary) = ("x-grpc-test-echo-initial", "x-grpc-test-echo-trailing-bin")
    var metadata: Metadata = [text: "test_initial_metadata_value"]
    metadata.add([0xAB, 0xAB, 0xAB], for: binary)

    func check(_ initial: Metadata, _ trailing: Metadata, _ call: String) throws {
      try expect(
        initial[text] == "test_initial_metadata_value", "\(call): initial metadata \(initial)")
      try expect(
        trailing[binary: binary] == [0xAB, 0xAB, 0xAB], "\(call): trailing metadata \(trailing)")
    }

    let unary: ServerStreamingCall<GRPCTesting.SimpleResponse> =
      setting.channel.serverStreaming(
        "/grpc.testing.TestService/UnaryCall", large(), .init(metadata: metadata))
    var count = 0
    for try await response in unary {
      try Cases.check(response.payload, is: largeResponse)
      count += 1
    }
    try expect(count == 1, "\(count) responses")
    try check(try await unary.initialMetadata, try await unary.trailers, "UnaryCall")

    let duplex = setting.client.fullDuplexCall(.init(metadata: metadata))
    try await duplex.send(
      .init(
        responseType: .compressable, responseParameters: [.init(size: Int32(largeResponse))],
        payload: zeros(largeRequest)))
    duplex.finish()
    for try await response in duplex { try Cases.check(response.payload, is: largeResponse) }
    try check(try await duplex.initialMetadata, try await duplex.trailers, "FullDuplexCall")
  }

  static func statusCodeAndMessage(_ setting: Setting) async throws {
    let wanted = GRPCTesting.EchoStatus(code: 2, message: "test status message")
    let unary = try await failure {
      _ = try await setting.client.unaryCall(.init(responseStatus: wanted))
    }
    try expect(
      unary.code == .unknown && unary.message == wanted.message, "UnaryCall ended with \(unary)")
    let call = setting.client.fullDuplexCall()
    let duplex = try await failure {
      try await call.send(.init(responseStatus: wanted))
      call.finish()
      for try await _ in call {}
    }
    try expect(
      duplex.code == .unknown && duplex.message == wanted.message,
      "FullDuplexCall ended with \(duplex)")
  }

  static func specialStatusMessage(_ setting: Setting) async throws {
    let message = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"
    let error = try await failure {
      _ = try await setting.client.unaryCall(
        .init(responseStatus: .init(code: 2, message: message)))
    }
    try expect(error.code == .unknown, "the call ended with \(error)")
    try expect(
      Array(error.message.utf8) == Array(message.utf8), "the message came as \(error.message)")
  }

  static func unimplementedMethod(_ setting: Setting) async throws {
    let error = try await failure { _ = try await setting.client.unimplementedCall(.init()) }
    try expect(error.code == .unimplemented, "the call ended with \(error)")
  }

  static func unimplementedService(_ setting: Setting) async throws {
    let client = GRPCTesting.UnimplementedClient(setting.channel)
    let error = try await failure { _ = try await client.unimplementedCall(.init()) }
    try expect(error.code == .unimplemented, "the call ended with \(error)")
  }

  static func cancelAfterBegin(_ setting: Setting) async throws {
    let call = setting.client.streamingInputCall()
    call.cancel()
    let error = try await failure { _ = try await call.response }
    try expect(error.code == .cancelled, "the call ended with \(error)")
  }

  static func cancelAfterFirstResponse(_ setting: Setting) async throws {
    let call = setting.client.fullDuplexCall()
    var responses = call.makeAsyncIterator()
    try await call.send(
      .init(
        responseType: .compressable, responseParameters: [.init(size: 31_415)],
        payload: zeros(27_182)))
    try check(try await responses.next()?.payload, is: 31_415)
    call.cancel()
    let error = try await failure { while try await responses.next() != nil {} }
    try expect(error.code == .cancelled, "the call ended with \(error)")
  }

  static func timeoutOnSleepingServer(_ setting: Setting) async throws {
    let call = setting.client.fullDuplexCall(.init(timeout: .milliseconds(1)))
    let error = try await failure {
      // The deadline may pass before the message is under way.
      try? await call.send(.init(payload: zeros(27_182)))
      for try await _ in call {}
    }
    try expect(error.code == .deadlineExceeded, "the call ended with \(error)")
  }
}
