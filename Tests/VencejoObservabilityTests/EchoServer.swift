import InteropEcho
import VencejoHTTP2
import VencejoRPC

/// A server of echoes in this process.
final class EchoServer: Sendable {
  let server: Server

  init(
    server interceptors: [any ServerInterceptor] = [], observers: [any RPCObserver] = [],
    services: [any Service] = [Echo()]
  ) throws {
    var configuration = Server.Configuration()
    configuration.threads = 1
    configuration.interceptors = interceptors
    configuration.observers = observers
    server = try Server(
      listening: [Server.Endpoint](), configuration: configuration, services: services)
  }

  func channel(
    client interceptors: [any ClientInterceptor] = [], observers: [any RPCObserver] = []
  ) -> Channel {
    var configuration = Channel.Configuration()
    configuration.interceptors = interceptors
    configuration.observers = observers
    return server.channel(configuration: configuration)
  }

  func stop() async { await server.shutdown() }
}
