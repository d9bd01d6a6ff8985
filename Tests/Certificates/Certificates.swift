import Glibc
public import VencejoHTTP2

/// Certificates that the openssl command makes, in a folder of their own.
public final class Certificates: Sendable {
  struct Failed: Error {
    let command: [String]
  }

  private let folder: String

  public init() throws {
    var template = Array("/tmp/vencejo-tls-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else { throw Failed(command: ["mkdtemp"]) }
    folder = String(cString: made)
  }

  deinit { _ = Self.run(["rm", "-rf", folder]) }

  /// A file in the folder.
  public func path(_ name: String) -> String { "\(folder)/\(name)" }
  /// A certificate made before, and its key.
  public func pem(_ name: String) -> PEM { .file(path("\(name).pem")) }
  public func key(_ name: String) -> PEM { .file(path("\(name).key")) }

  /// An issuer.
  public func issuer(_ name: String) throws {
    try openssl(
      ["req", "-x509"] + Self.newKey + [
        "-nodes", "-keyout", path("\(name).key"), "-out", path("\(name).pem"), "-subj",
        "/CN=\(name)", "-days", "2",
      ])
  }

  /// A certificate `name` from `issuer`; `alternatives` as openssl's configuration writes them.
  public func leaf(
    _ name: String, from issuer: String, subject: String? = nil,
    alternatives: String = "DNS:localhost,IP:127.0.0.1", days: Int = 2
  ) throws {
    let extensions = path("\(name).cnf")
    guard let file = fopen(extensions, "w") else { throw Failed(command: [extensions]) }
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

  /// Runs the openssl command.
  public func openssl(_ arguments: [String]) throws {
    guard Self.run(["openssl"] + arguments) == 0 else { throw Failed(command: arguments) }
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
