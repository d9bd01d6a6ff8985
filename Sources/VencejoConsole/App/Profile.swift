import Glibc
import Synchronization
import VencejoClient

/// What the console keeps between runs for one server: sessions, the place in use, the history.
/// Files of mode 0600 in a folder of mode 0700; one file per account, so that two consoles that
/// are signed in as different people do not overwrite each other.
final class Profile: SessionStorage {
  /// What `use` chose, and who was signed in last.
  struct Place: Sendable, Hashable {
    var user = ""
    var container = "default"
    var database = "private"
    var zone = ""
  }

  /// nil: nowhere to keep anything.
  private let folder: String?

  /// The folder of a profile and a server, made when missing.
  init(name: String, server: String, environment: [String: String] = Profile.environment) {
    let base: String? =
      environment["VENCEJO_PROFILES"]
      ?? environment["XDG_CONFIG_HOME"].map { $0 + "/vencejo" }
      ?? environment["HOME"].map { $0 + "/.config/vencejo" }
    guard let base, !base.isEmpty else {
      folder = nil
      return
    }
    let path = "\(base)/\(Self.safe(name))/\(Self.safe(server))"
    folder = Self.makeFolders(path) ? path : nil
  }

  static var environment: [String: String] {
    var values: [String: String] = [:]
    for name in ["VENCEJO_PROFILES", "XDG_CONFIG_HOME", "HOME"] {
      if let value = getenv(name) { values[name] = String(cString: value) }
    }
    return values
  }

  /// Where the client keeps what it knows of each account.
  var dataFolder: String? { folder }

  // MARK: Sessions

  func load(user: String) -> Session? { session(in: "session-" + Self.safe(user)) }

  func save(_ session: Session) {
    write(
      "session-" + Self.safe(session.user),
      fields: [
        ("user", session.user), ("handle", session.handle), ("access_token", session.accessToken),
        ("access_expiry", String(session.accessExpiry)), ("refresh_token", session.refreshToken),
      ])
  }

  func remove(user: String) {
    guard let folder else { return }
    unlink("\(folder)/session-\(Self.safe(user))")
  }

  /// A kept session by handle.
  func session(handle: String) -> Session? {
    guard let folder, let directory = opendir(folder) else { return nil }
    defer { closedir(directory) }
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name.hasPrefix("session-"), let session = session(in: name), session.handle == handle {
        return session
      }
    }
    return nil
  }

  private func session(in file: String) -> Session? {
    guard let fields = read(file), let user = fields["user"], let handle = fields["handle"],
      let access = fields["access_token"], let refresh = fields["refresh_token"]
    else { return nil }
    return Session(
      user: user, handle: handle, accessToken: access,
      accessExpiry: Int64(fields["access_expiry"] ?? "") ?? 0, refreshToken: refresh)
  }

  // MARK: Place and history

  var place: Place {
    get {
      guard let fields = read("place") else { return Place() }
      var place = Place()
      place.user = fields["user"] ?? place.user
      place.container = fields["container"] ?? place.container
      place.database = fields["database"] ?? place.database
      place.zone = fields["zone"] ?? place.zone
      return place
    }
    set {
      write(
        "place",
        fields: [
          ("user", newValue.user), ("container", newValue.container),
          ("database", newValue.database), ("zone", newValue.zone),
        ])
    }
  }

  /// One line per entry, line feeds inside as `\n`.
  var history: [String] {
    get {
      guard let folder, let bytes = Self.readFile("\(folder)/history") else { return [] }
      return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map { line in
        Self.unescaped(line)
      }
    }
    set {
      guard let folder else { return }
      let text = newValue.map { Self.escaped($0) + "\n" }.joined()
      Self.writeFile("\(folder)/history", Array(text.utf8))
    }
  }

  // MARK: Files

  /// Lines of `key=value`.
  private func read(_ file: String) -> [String: String]? {
    guard let folder, let bytes = Self.readFile("\(folder)/\(file)") else { return nil }
    var fields: [String: String] = [:]
    for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
      guard let equals = line.firstIndex(of: "=") else { continue }
      fields[String(line[..<equals])] = Self.unescaped(line[line.index(after: equals)...])
    }
    return fields
  }

  private func write(_ file: String, fields: [(String, String)]) {
    guard let folder else { return }
    let text = fields.map { "\($0.0)=\(Self.escaped($0.1))\n" }.joined()
    Self.writeFile("\(folder)/\(file)", Array(text.utf8))
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
  }

  private static func unescaped(_ text: Substring) -> String {
    var plain = ""
    var isEscape = false
    for character in text {
      if isEscape {
        plain.append(character == "n" ? "\n" : character)
        isEscape = false
      } else if character == "\\" {
        isEscape = true
      } else {
        plain.append(character)
      }
    }
    return plain
  }

  /// A file's name made of anything: letters, digits, dot and dash; the rest as underscores.
  private static func safe(_ name: String) -> String {
    let kept = name.utf8.map { byte -> Character in
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E: Character(Unicode.Scalar(byte))
      default: "_"
      }
    }
    return kept.first == "." ? "_" + String(kept) : String(kept)
  }

  private static func makeFolders(_ path: String) -> Bool {
    var made = ""
    for part in path.split(separator: "/", omittingEmptySubsequences: true) {
      made += (made.isEmpty && !path.hasPrefix("/") ? "" : "/") + part
      mkdir(made, 0o700)
    }
    return access(path, W_OK | X_OK) == 0
  }

  private static func readFile(_ path: String) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      if count <= 0 { return count < 0 ? nil : bytes }
      bytes += chunk[..<count]
    }
  }

  /// Written aside and moved into place: a reader never sees half a file.
  private static func writeFile(_ path: String, _ bytes: [UInt8]) {
    let aside = "\(path).\(getpid())"
    let descriptor = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { return }
    let written = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
    close(descriptor)
    if written != bytes.count || rename(aside, path) != 0 { unlink(aside) }
  }
}
