// The Swift side of interop.proto.
//
//   vencejo-echo serve ADDRESS [--loop]   serves until SIGTERM
//   vencejo-echo check ADDRESS            drives the client against a server

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
switch (arguments.first, arguments.dropFirst().first) {
case ("serve", let address?):
  do {
    var configuration = Server.Configuration()
    if let index = arguments.firstIndex(of: "--threads"), index + 1 < arguments.endIndex {
      configuration.threads = Int(arguments[index + 1]) ?? 1
    }
    let server = try Server(
      listening: SocketAddress(parsing: address), configuration: configuration
    ) {
      Echo(execution: arguments.contains("--loop") ? .loop : .pool)
      Health()
      Reflection()
    }
    await server.run(onceReady: { write("listening on \(server.addresses[0])", to: 1) })
  } catch {
    write("vencejo-echo: \(error)", to: 2)
    exit(1)
  }
case ("check", let address?):
  exit(await EchoChecks(address: address).run() ? 0 : 1)
default:
  write("usage: vencejo-echo serve ADDRESS [--loop] [--threads N] | check ADDRESS", to: 2)
  exit(1)
}
