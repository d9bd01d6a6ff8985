import Glibc
import Testing

@testable import VencejoHTTP2

/// Certificates that the openssl command makes, in a folder of their own.
final class Certificates: Sendable {
  let folder: String

  init() throws {
    var template = Array("/tmp/vencejo-tls-XXXXXX".utf8CString)
    folder = try #require(mkdtemp(&template).map { String(cString: $0) })
  }

  deinit { _ = Self.run(["rm", "-rf", folder]) }

  func path(_ name: String) -> String { "\(folder)/\(name)" }
  func pem(_ name: String) -> PEM { .file(path("\(name).pem")) }
  func key(_ name: String) -> PEM { .file(path("\(name).key")) }

  /// An issuer.
  func issuer(_ name: String) throws {
    try openssl(
      ["req", "-x509"] + Self.newKey + [
        "-nodes", "-keyout", path("\(name).key"), "-out", path("\(name).pem"), "-subj",
        "/CN=\(name)", "-days", "2",
      ])
  }

  /// A certificate `name` from `issuer`; `alternatives` as openssl's configuration writes them.
  func leaf(
    _ name: String, from issuer: String, subject: String? = nil,
    alternatives: String = "DNS:localhost,IP:127.0.0.1", days: Int = 2
  ) throws {
    let extensions = path("\(name).cnf")
    let file = try #require(fopen(extensions, "w"))
    fputs("subjectAltName=\(alternatives)\n", file)
    fclose(file)
    try openssl(
      ["req"] + Self.newKey + [
        "-utf8", "-nodes", "-keyout", path("\(name).key"), "-out", path("\(name).csr"), "-subj",
        subject ?? "/CN=\(name)",
      ])
    try openssl([
      "x509", "-req", "-in", path("\(name).csr"), "-CA", path("\(issuer).pem"), "-CAkey",
      path("\(issuer).key"), "-set_serial", "\(UInt32.random(in: 1 ... .max))", "-out",
      path("\(name).pem"), "-days", "\(days)", "-extfile", extensions,
    ])
  }

  private static let newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]

  @discardableResult
  func openssl(_ arguments: [String]) throws -> Int32 {
    let status = Self.run(["openssl"] + arguments)
    try #require(status == 0, "openssl \(arguments) failed")
    return status
  }

  /// Runs a program quietly and returns its exit status.
  private static func run(_ command: [String]) -> Int32 {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for descriptor: Int32 in 0...2 {
      posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
    }
    let words = command.map { strdup($0) }
    defer { for word in words { free(word) } }
    var pid = pid_t()
    guard posix_spawnp(&pid, command[0], &actions, nil, words + [nil], environ) == 0 else {
      return -1
    }
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
    return status
  }
}
