import InteropTesting
import VencejoRPC

/// The cases of gRPC's negative-http2-interop-test-descriptions.md: each is played against a
/// server that misbehaves in that way.
enum NegativeCases {
  static let all: [String: Cases.Body] = [
    "goaway": goaway, "rst_after_header": fails, "rst_during_data": fails,
    "rst_after_data": fails, "ping": succeeds, "max_streams": maxStreams,
    "data_frame_padding": succeeds,
  ]

  /// The server chooses the size: the descriptions speak of 1024 bytes, the servers that
  /// other implementations use send what the request asks for.
  private static func succeeds(_ setting: Setting) async throws {
    let response = try await setting.client.unaryCall(Cases.large())
    let size = response.payload?.body.count ?? 0
    try expect(
      response.payload?.type == .compressable && [1_024, Cases.largeResponse].contains(size),
      "the payload has \(size) bytes")
  }

  private static func fails(_ setting: Setting) async throws {
    _ = try await failure { _ = try await setting.client.unaryCall(Cases.large()) }
  }

  private static func goaway(_ setting: Setting) async throws {
    try await succeeds(setting)
    try await succeeds(setting)
  }

  private static func maxStreams(_ setting: Setting) async throws {
    try await succeeds(setting)
    try await withThrowingTaskGroup { group in
      for _ in 0..<10 { group.addTask { try await succeeds(setting) } }
      try await group.waitForAll()
    }
  }
}
