import Glibc
import Synchronization

/// The folder with everything a server remembers, held by one process at a time.
final class DataFolder: Sendable {
  let path: String
  private let lock: Mutex<CInt?>

  var databasePath: String { path + "/vencejo.sqlite" }

  /// Makes the folder when it is missing and takes its lock file.
  init(_ path: String) throws(StoreError) {
    var status = stat()
    if stat(path, &status) != 0 {
      guard errno == ENOENT, mkdir(path, 0o700) == 0 else {
        throw Self.unreadable(path, errno)
      }
    } else if status.st_mode & S_IFMT != S_IFDIR {
      throw Self.unreadable(path, ENOTDIR)
    }
    // A lock of the kernel's goes with the process, however it ends: nothing is left behind
    // by kill -9.
    let descriptor = open(path + "/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.unreadable(path, errno) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      close(descriptor)
      throw StoreError(
        .failedPrecondition, "DATA_FOLDER_IN_USE",
        "another server already uses the data folder \(path)", metadata: ["path": path])
    }
    self.path = path
    self.lock = Mutex(descriptor)
  }

  deinit { release() }

  /// Lets another store have the folder.
  func release() {
    lock.withLock { descriptor in
      if let descriptor { close(descriptor) }
      descriptor = nil
    }
  }

  private static func unreadable(_ path: String, _ code: CInt) -> StoreError {
    StoreError(
      .failedPrecondition, "DATA_FOLDER_UNREADABLE",
      "cannot use the data folder \(path): \(String(cString: strerror(code)))",
      metadata: ["path": path])
  }
}
