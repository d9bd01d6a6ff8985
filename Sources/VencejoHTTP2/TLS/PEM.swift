import Glibc

/// Certificates or a private key in PEM (RFC 7468), where they are or as they are.
public enum PEM: Sendable, Hashable {
  /// A file; read again when certificates are reloaded.
  case file(String)
  case bytes([UInt8])

  /// No certificate is so long.
  private static let limit = 16 << 20

  /// The text. `what` is for the error: "the certificate".
  func load(_ what: String) throws(HTTP2Error) -> [UInt8] {
    switch self {
    case .bytes(let bytes): return bytes
    case .file(let path): return try Self.read(path, what)
    }
  }

  /// For errors: ` in FILE`, never the bytes.
  var place: String {
    if case .file(let path) = self { return " in \(path)" }
    return ""
  }

  private static func read(_ path: String, _ what: String) throws(HTTP2Error) -> [UInt8] {
    let fd = open(path, O_RDONLY | O_CLOEXEC)
    guard fd >= 0 else { throw failure(what, path) }
    defer { Glibc.close(fd) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16 << 10)
    while true {
      let count = Glibc.read(fd, &chunk, chunk.count)
      if count == 0 { return bytes }
      if count > 0 {
        bytes += chunk[..<count]
        guard bytes.count <= limit else {
          throw HTTP2Error(.tlsFailed, "\(what) in \(path): longer than any")
        }
      } else if errno != EINTR {
        throw failure(what, path)
      }
    }
  }

  private static func failure(_ what: String, _ path: String) -> HTTP2Error {
    Syscalls.failure("\(what) in \(path)", .tlsFailed)
  }
}
