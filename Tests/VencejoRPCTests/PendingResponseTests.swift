import InteropEcho
import Testing
import VencejoHTTP2
import VencejoRPC

@Suite("Responses that wait")
struct PendingResponseTests {
  /// The bytes of a response count from the handler's return until its stream has closed.
  @Test func areBounded() async throws {
    var configuration = Harness.quick
    configuration.maxPendingResponseBytesPerConnection = 5 << 20
    try await withHarness(configuration: configuration) { harness in
      let echo = harness.echo
      // One that is larger than the room is refused at once; the next one fits.
      let large = Interop.EchoRequest(responseBytes: 6 << 20)
      let options = CallOptions(maxReceiveMessageBytes: 16 << 20)
      let error = try await failure { _ = try await echo.unary(large, options) }
      #expect(error?.code == .resourceExhausted)
      let fits = try await echo.unary(.init(responseBytes: 4 << 20), options)
      #expect(fits.payload.count == 4 << 20)
      let again = try await echo.unary(.init(responseBytes: 4 << 20), options)
      #expect(again.payload.count == 4 << 20)
    }
  }
}
