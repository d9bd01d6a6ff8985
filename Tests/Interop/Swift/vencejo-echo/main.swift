// The Swift side of interop.proto.
//
//   vencejo-echo serve ADDRESS [--loop] [--threads N]    serves until SIGTERM
//       [--tls-cert FILE --tls-key FILE [--tls-client-ca FILE]]
//       [--max-age MILLISECONDS] [--max-calls N [--refuse]]
//   vencejo-echo check TARGET [--tls-ca FILE]            drives the client against a server
//       [--service-config JSON]
//       [--tls-cert FILE --tls-key FILE] [--tls-server-name NAME]
//   vencejo-echo load ADDRESS [--seconds N] [--workers N]  calls of every kind, many cut off

import Glibc
import InteropEcho
import VencejoHTTP2
import VencejoRPC

/// Unbuffered: who started us waits for the line.
func write(_ text: String, to descriptor: Int32) {
  var text = text + "\n"
  text.withUTF8 { _ = Glibc.write(descriptor, $0.baseAddress, $0.count) }
}

let arguments = CommandLine.arguments.dropFirst()

func option(_ name: String) -> String? {
  guard let index = arguments.firstIndex(of: name), index + 1 < arguments.endIndex else {
    return nil
  }
  return arguments[index + 1]
}

let identity = option("--tls-cert").flatMap { certificate in
  option("--tls-key").map { (certificate: PEM.file(certificate), key: PEM.file($0)) }
}

func serverTLS() throws -> ServerTLS? {
  guard let identity else { return nil }
  let clients = option("--tls-client-ca").map {
    ServerTLS.ClientCertificates.required(roots: .file($0))
  }
  return try ServerTLS(
    certificate: identity.certificate, key: identity.key, clientCertificates: clients ?? .none)
}

func clientTLS() -> ClientTLS? {
  guard let roots = option("--tls-ca").map({ PEM.file($0) }) else { return nil }
  var tls =
    identity.map { .mutual(certificate: $0.certificate, key: $0.key, roots: roots) }
    ?? ClientTLS.roots(roots)
  tls.serverName = option("--tls-server-name")
  return tls
}

switch (arguments.first, arguments.dropFirst().first) {
case ("serve", let address?):
  do {
    var configuration = Server.Configuration()
    configuration.threads = option("--threads").flatMap { Int($0) } ?? configuration.threads
    configuration.connection.maxAge =
      option("--max-age").flatMap { Int($0) }.map { .milliseconds($0) }
    configuration.maxConcurrentCalls = option("--max-calls").flatMap { Int($0) }
    configuration.refusesBeyondLimits = arguments.contains("--refuse")
    let tls = try serverTLS()
    let server = try Server(
      listening: SocketAddress(parsing: address), tls: tls, configuration: configuration
    ) {
      Echo(execution: arguments.contains("--loop") ? .loop : .pool)
      Health()
      Reflection()
    }
    await server.run(
      reloading: { try? tls?.reload() },
      onceReady: { write("listening on \(server.addresses[0])", to: 1) })
  } catch {
    write("vencejo-echo: \(error)", to: 2)
    exit(1)
  }
case ("check", let address?):
  var configuration = Channel.Configuration()
  configuration.serviceConfig = option("--service-config")
  let checks = EchoChecks(address: address, tls: clientTLS(), configuration: configuration)
  exit(await checks.run() ? 0 : 1)
case ("load", let address?):
  let load = MixedLoad(
    address: address, tls: clientTLS(), seconds: option("--seconds").flatMap { Int($0) } ?? 10,
    workers: option("--workers").flatMap { Int($0) } ?? 100)
  exit(await load.run() ? 0 : 1)
default:
  write("usage: vencejo-echo serve ADDRESS [--loop] [--threads N] | check ADDRESS", to: 2)
  exit(1)
}
