import InteropEcho
import Synchronization
import Testing
import VencejoCompression
import VencejoHTTP2
import VencejoProtobuf
import VencejoRPC

@Suite("Compressed messages")
struct CompressedCallTests {
  private static let payload = [UInt8](repeating: 0x61, count: 200_000)

  /// Answers each request with itself, compressed as it is told.
  private struct Packer: Interop.EchoService {
    let compression: Compression?

    func unary(
      _ request: Interop.EchoRequest, _ context: ServerContext
    ) async throws -> Interop.EchoResponse {
      context.setResponseCompression(compression)
      return .init(payload: request.payload)
    }

    func serverStream(
      _ request: Interop.EchoRequest, _ out: ResponseWriter<Interop.EchoResponse>,
      _ context: ServerContext
    ) async throws {
      context.setResponseCompression(compression)
      for _ in 0..<3 { try await out.send(.init(payload: request.payload)) }
    }
  }

  @Test(arguments: [nil, Compression.gzip, .deflate], [nil, Compression.gzip, .deflate])
  func passBothWays(_ up: Compression?, _ down: Compression?) async throws {
    try await withHarness(services: [Packer(compression: down)]) { harness in
      let options = CallOptions(compression: up)
      let request = Interop.EchoRequest(payload: Self.payload)
      #expect(try await harness.echo.unary(request, options).payload == Self.payload)
      var count = 0
      for try await answer in harness.echo.serverStream(request, options) {
        #expect(answer.payload == Self.payload)
        count += 1
      }
      #expect(count == 3)
    }
  }

  @Test func theServerMayCompressEverything() async throws {
    var configuration = Harness.quick
    configuration.compression = .gzip
    try await withHarness(configuration: configuration) { harness in
      let answer = try await harness.echo.unary(.init(payload: Self.payload))
      #expect(answer.payload == Self.payload)
    }
  }

  /// 64 MiB of zeros are 64 KiB of gzip: the limit counts what comes out.
  @Test func aBombIsRefused() async throws {
    try await withHarness { harness in
      let error = try await failure {
        _ = try await harness.echo.unary(
          .init(payload: [UInt8](repeating: 0, count: 64 << 20)), .init(compression: .gzip))
      }
      #expect(error?.code == .resourceExhausted)
    }
  }
}
