// The client of gRPC's interoperability tests, with the flags they name:
//
//   vencejo-interop-client --server_host=HOST --server_port=PORT --test_case=CASE
//       [--use_tls=BOOLEAN] [--use_test_ca=BOOLEAN] [--server_host_override=HOST]
//
// CASE is one of interop-test-descriptions.md or of negative-http2-interop-test-descriptions.md.
// Beyond the official flags: --ca_file=FILE in place of gRPC's test issuer, and --soak_… as
// other implementations' clients have them. Exits 0 when the case passed.

import Glibc
import InteropTesting
import VencejoHTTP2
import VencejoRPC

func write(_ text: String, to descriptor: Int32) {
  var text = text + "\n"
  text.withUTF8 { _ = Glibc.write(descriptor, $0.baseAddress, $0.count) }
}

let flags = Flags(
  CommandLine.arguments.dropFirst(),
  known: [
    "server_host", "server_host_override", "server_port", "test_case", "use_tls", "use_test_ca",
    "ca_file", "default_service_account", "oauth_scope", "service_account_key_file", "use_alts",
    "custom_credentials_type", "additional_metadata", "soak_iterations", "soak_max_failures",
    "soak_per_iteration_max_acceptable_latency_ms", "soak_overall_timeout_seconds",
    "soak_min_time_ms_between_rpcs", "soak_request_size", "soak_response_size", "soak_num_threads",
    "log_iterations", "calls", "timeout_ms", "unary", "service_config_json", "address_type",
    "alts_handshaker_service_address",
  ])
if let unknown = flags.unknown {
  write("vencejo-interop-client: unknown argument '\(unknown)'", to: 2)
  exit(64)
}
let name = flags["test_case"] ?? "large_unary"
guard let body = Cases.all[name] else {
  write("vencejo-interop-client: no case '\(name)'; there are \(Cases.names)", to: 2)
  exit(64)
}

let host = flags["server_host"] ?? "localhost"
let target =
  (host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host)
  + ":\(flags.int("server_port", default: 10_000))"

@Sendable func makeChannel() throws -> Channel {
  var configuration = Channel.Configuration()
  configuration.authority = flags["server_host_override"]
  guard flags.bool("use_tls") else { return try Channel(target, configuration: configuration) }
  var tls =
    flags.bool("use_test_ca") ? ClientTLS.roots(TestCertificates.issuer(flags)) : .systemRoots
  tls.serverName = flags["server_host_override"]
  return try Channel(target, tls: tls, configuration: configuration)
}

/// Apart from the program's end: the end of a channel waits for its loop, which may have yet to
/// send acknowledgements and the goodbye.
func play() async throws {
  let channel = try makeChannel()
  try await body(Setting(flags: flags, channel: channel, makeChannel: makeChannel))
  channel.close()
}

do {
  try await play()
  write("\(name): ok", to: 1)
} catch {
  write("\(name): FAILED: \(error)", to: 2)
  exit(1)
}
