// The server of gRPC's interoperability tests, with the flags they name:
//
//   vencejo-interop-server --port=PORT [--use_tls=BOOLEAN]
//
// Beyond those: --host=ADDRESS (both loopback addresses by default), --tls_cert_file=FILE and
// --tls_key_file=FILE in place of gRPC's test certificate. Port 0 takes a free one; the line
// `listening on ADDRESS` says which.

import Glibc
import InteropTesting
import VencejoHTTP2
import VencejoRPC

/// Unbuffered: who started us waits for the line.
func write(_ text: String, to descriptor: Int32) {
  var text = text + "\n"
  text.withUTF8 { _ = Glibc.write(descriptor, $0.baseAddress, $0.count) }
}

func hostname() -> String {
  var name = [CChar](repeating: 0, count: 256)
  gethostname(&name, name.count - 1)
  return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
}

let flags = Flags(
  CommandLine.arguments.dropFirst(),
  known: ["port", "use_tls", "host", "tls_cert_file", "tls_key_file", "use_alts", "address_type"])
if let unknown = flags.unknown {
  write("vencejo-interop-server: unknown argument '\(unknown)'", to: 2)
  exit(64)
}

do {
  let port = flags.int("port", default: 10_000)
  let identity = TestCertificates.server(flags)
  let tls =
    flags.bool("use_tls")
    ? try ServerTLS(certificate: identity.certificate, key: identity.key) : nil
  var addresses: [SocketAddress] = []
  if let host = flags["host"] {
    addresses = [
      try SocketAddress(parsing: host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)")
    ]
  } else {
    addresses = [try SocketAddress(parsing: "127.0.0.1:\(port)")]
  }
  func serve(_ addresses: [SocketAddress]) throws -> Server {
    try Server(
      listening: addresses, tls: tls,
      services: [InteropTestService(hostname: hostname()), Health(), Reflection()])
  }
  // `localhost` may mean either; a machine without IPv6 has the one only.
  let both = flags["host"] == nil && port != 0
  let server =
    both
    ? try (try? serve(addresses + [SocketAddress(parsing: "[::1]:\(port)")])) ?? serve(addresses)
    : try serve(addresses)
  await server.run(onceReady: { write("listening on \(server.addresses[0])", to: 1) })
} catch {
  write("vencejo-interop-server: \(error)", to: 2)
  exit(1)
}
