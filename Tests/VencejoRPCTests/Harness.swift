import Glibc
import InteropEcho
import VencejoHTTP2
import VencejoRPC

/// A server on a Unix socket or on loopback and a client of it, gone with the value.
final class Harness: Sendable {
  let server: Server
  let channel: Channel
  let echo: Interop.EchoClient

  init(
    configuration: Server.Configuration = Harness.quick, services: [any Service] = [Echo()]
  ) throws {
    server = try Server(
      listening: [SocketAddress(parsing: "127.0.0.1:0")], configuration: configuration,
      services: services)
    channel = try Channel("\(server.addresses[0])")
    echo = Interop.EchoClient(channel)
  }

  var address: String { "\(server.addresses[0])" }

  func stop() async {
    channel.close()
    await server.shutdown()
  }

  static var quick: Server.Configuration {
    var configuration = Server.Configuration()
    configuration.threads = 2
    configuration.drainGrace = .seconds(2)
    return configuration
  }
}

/// Runs the body against a server and stops it, whatever happens.
func withHarness(
  configuration: Server.Configuration = Harness.quick, services: [any Service] = [Echo()],
  _ body: (Harness) async throws -> Void
) async throws {
  let harness = try Harness(configuration: configuration, services: services)
  do {
    try await body(harness)
  } catch {
    await harness.stop()
    throw error
  }
  await harness.stop()
}

/// The error a call ends with; nil when it succeeds.
func failure(of body: () async throws -> Void) async throws -> RPCError? {
  do {
    try await body()
    return nil
  } catch let error as RPCError {
    return error
  }
}
