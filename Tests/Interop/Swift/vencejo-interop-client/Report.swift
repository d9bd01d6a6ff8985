import InteropTesting
import VencejoRPC

/// `report`, which no description names: `--calls=N` calls of EmptyCall, one after the other,
/// and a line for each that says how it ended. Tests read it. `--unary` makes them of one
/// message each way.
extension Cases {
  static func report(_ setting: Setting) async throws {
    for _ in 0..<setting.flags.int("calls", default: 1) {
      do {
        if setting.flags.bool("unary") {
          _ = try await setting.client.emptyCall(.init())
          write("0   ", to: 1)
          continue
        }
        let call: ServerStreamingCall<GRPCTesting.Empty> =
          setting.channel.serverStreaming(
            "/grpc.testing.TestService/EmptyCall", GRPCTesting.Empty(),
            .init(timeout: .milliseconds(setting.flags.int("timeout_ms", default: 5_000))))
        for try await _ in call {}
        let (initial, trailing) = (try await call.initialMetadata, try await call.trailers)
        write("0  \(text(initial)) \(text(trailing))", to: 1)
      } catch {
        write(
          "\(error.code.rawValue) \(hexadecimal(error.message.utf8))  \(text(error.metadata))",
          to: 1)
      }
    }
  }

  private static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { byte in
      let digits = String(byte, radix: 16)
      return digits.count == 1 ? "0" + digits : digits
    }.joined()
  }

  private static func text(_ metadata: Metadata) -> String {
    metadata.map { entry in
      switch entry.value {
      case .text(let text): "\(entry.key)=\(hexadecimal(text.utf8))"
      case .bytes(let bytes): "\(entry.key)=\(hexadecimal(bytes))"
      }
    }.joined(separator: ",")
  }
}
