import Glibc

/// Names and passwords by host, as curl and ftp keep them in `~/.netrc`.
enum Netrc {
  /// `NAME:PASSWORD` for the address' host, where the arguments ask for it. Throws when there is
  /// no file or no entry.
  static func user(
    for address: String, _ arguments: ArgumentList
  ) throws(ArgumentList.Fault) -> String? {
    guard arguments.has("netrc") || arguments.has("netrc-file") else { return nil }
    let home = getenv("HOME").map { String(cString: $0) } ?? "."
    let path = arguments["netrc-file"] ?? home + "/.netrc"
    var host = Substring(address)
    if let scheme = host.firstRange(of: "://") { host = host[scheme.upperBound...] }
    host = host.prefix { $0 != "/" }
    if let colon = host.lastIndex(of: ":"), !host.hasSuffix("]") { host = host[..<colon] }
    let text = String(decoding: try ProtoFiles.read(path), as: UTF8.self)
    guard let found = entry(of: String(host), in: text) else {
      throw ArgumentList.Fault("\(path) has no entry for \(host)")
    }
    return found
  }

  /// Of the machine, or the default. Pure.
  static func entry(of host: String, in text: String) -> String? {
    // A macro reaches to the next empty line.
    var lines: [Substring] = []
    var isMacro = false
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("macdef") { isMacro = true }
      if !isMacro, !line.hasPrefix("#") { lines.append(line) }
      if line.isEmpty { isMacro = false }
    }
    var words = lines.joined(separator: " ").split(whereSeparator: { $0 == " " || $0 == "\t" })[...]
    var (matches, name, password) = (false, "", "")
    while let word = words.popFirst() {
      switch word {
      case "machine", "default":
        if matches { return "\(name):\(password)" }
        matches = word == "default" || words.popFirst().map(String.init) == host
        (name, password) = ("", "")
      case "login": name = words.popFirst().map(String.init) ?? ""
      case "password": password = words.popFirst().map(String.init) ?? ""
      default: break
      }
    }
    return matches ? "\(name):\(password)" : nil
  }
}
