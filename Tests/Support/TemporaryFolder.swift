import Glibc

/// A folder that goes away with its owner, and all that is in it.
public final class TemporaryFolder: Sendable {
  public let path: String

  struct Failed: Error {
    let number: Int32
  }

  /// `/tmp/vencejo-NAME-…`.
  public init(_ name: String) throws {
    var template = Array("/tmp/vencejo-\(name)-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else { throw Failed(number: errno) }
    path = String(cString: made)
  }

  deinit { Self.remove(path) }

  /// The names in the folder, in alphabetical order.
  public var names: [String] { Self.names(path) ?? [] }

  /// Removes a file, or a folder and all that is in it; one that is not there is no error.
  public static func remove(_ path: String) {
    guard let names = names(path) else {
      unlink(path)
      return
    }
    for name in names { remove("\(path)/\(name)") }
    rmdir(path)
  }

  /// Nil where there is no folder.
  private static func names(_ path: String) -> [String]? {
    // Not opendir(3), which goes where a link leads.
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0, let folder = fdopendir(descriptor) else { return nil }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
  }
}
