import Glibc
import VencejoCrypto

/// The bytes of attachments, in files beside the database: `assets/ab/cd/<SHA-256>` when they are
/// whole, `uploads/<key>` before. Blocking work on threads of its own.
public final class FileShelf: Sendable {
  private let directory: String
  private let queue = WorkQueue<@Sendable () -> Void>(capacity: 4096)
  private let threads: [WorkerThread]

  init(_ directory: String) throws(StoreError) {
    self.directory = directory
    for folder in ["uploads", "assets"] {
      guard mkdir("\(directory)/\(folder)", 0o700) == 0 || errno == EEXIST else {
        throw Self.failed("making \(folder)")
      }
    }
    let queue = self.queue
    threads = (0..<2).compactMap { index in
      WorkerThread("vencejo-file-\(index)") {
        while let jobs = queue.pop(1) { for job in jobs { job() } }
      }
    }
    guard threads.count == 2 else {
      throw StoreError(.resourceExhausted, "NO_THREADS", "the system gives no more threads")
    }
  }

  func close() {
    queue.close()
    for thread in threads { thread.join() }
  }

  private func run<R: Sendable>(_ body: @Sendable @escaping () -> Result<R, StoreError>)
    async throws(StoreError) -> R
  {
    try await withUnsafeContinuation {
      (continuation: UnsafeContinuation<Result<R, StoreError>, Never>) in
      switch queue.push({ continuation.resume(returning: body()) }) {
      case .accepted: break
      case .closed: continuation.resume(returning: .failure(Store.closed))
      case .full:
        continuation.resume(
          returning: .failure(
            StoreError(
              .resourceExhausted, "STORE_BUSY", "too many files are read and written",
              details: [.retry(afterMilliseconds: 1000)])))
      }
    }.get()
  }

  // MARK: Writing

  private func uploadPath(_ key: Int64) -> String { "\(directory)/uploads/\(key)" }

  private func assetPath(_ sha256: [UInt8]) -> (folder: String, parent: String, file: String) {
    Self.path(sha256, in: directory)
  }

  /// Where the bytes of a SHA-256 lie in a data folder.
  static func path(_ sha256: [UInt8], in directory: String) -> (
    folder: String, parent: String, file: String
  ) {
    let name = hexadecimal(sha256)
    let parent = "\(directory)/assets/\(name.prefix(2))"
    let folder = "\(parent)/\(name.dropFirst(2).prefix(2))"
    return (folder, parent, "\(folder)/\(name)")
  }

  static func hexadecimal(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Bytes kept of an upload.
  public func size(ofUpload key: Int64) async throws(StoreError) -> Int64 {
    let path = uploadPath(key)
    return try await run {
      var status = stat()
      return .success(stat(path, &status) == 0 ? Int64(status.st_size) : 0)
    }
  }

  /// Writes a chunk where it belongs; what lay behind it is cut off.
  public func write(_ bytes: [UInt8], toUpload key: Int64, at offset: Int64)
    async throws(StoreError)
  {
    let path = uploadPath(key)
    try await run { () -> Result<Void, StoreError> in
      let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
      guard file >= 0 else { return .failure(Self.failed("opening an upload")) }
      defer { Glibc.close(file) }
      guard ftruncate(file, off_t(offset)) == 0 else {
        return .failure(Self.failed("writing an upload"))
      }
      var done = 0
      while done < bytes.count {
        let count = bytes.withUnsafeBytes { buffer in
          pwrite(
            file, buffer.baseAddress?.advanced(by: done), bytes.count - done,
            off_t(offset) + off_t(done))
        }
        guard count > 0 else { return .failure(Self.failed("writing an upload")) }
        done += count
      }
      return .success(())
    }
  }

  /// Checks the whole of an upload and keeps it on the disk for good.
  ///
  /// - Throws: `DIGEST_MISMATCH` (DATA_LOSS), after which the upload begins anew.
  public func check(upload key: Int64, sha256: [UInt8]) async throws(StoreError) {
    let path = uploadPath(key)
    try await run { () -> Result<Void, StoreError> in
      let file = open(path, O_RDWR | O_CLOEXEC)
      guard file >= 0 else { return .failure(Self.failed("reading an upload")) }
      defer { Glibc.close(file) }
      let hash = SHA256.Stream()
      var chunk = [UInt8](repeating: 0, count: 1 << 18)
      while true {
        let count = Glibc.read(file, &chunk, chunk.count)
        guard count >= 0 else { return .failure(Self.failed("reading an upload")) }
        if count == 0 { break }
        hash.update(chunk[..<count])
      }
      guard hash.finish() == sha256 else {
        unlink(path)
        return .failure(
          StoreError(
            .dataLoss, "DIGEST_MISMATCH", "the bytes are not those the SHA-256 was made of"))
      }
      guard fsync(file) == 0 else { return .failure(Self.failed("keeping an upload")) }
      return .success(())
    }
  }

  /// Puts the bytes of an upload where attachments have theirs. On the writer's thread, in the
  /// transaction that makes the attachment: there it cannot meet ``unlinkAsset(_:)``.
  func place(upload key: Int64, sha256: [UInt8]) throws(StoreError) {
    let target = assetPath(sha256)
    for folder in [target.parent, target.folder] {
      guard mkdir(folder, 0o700) == 0 || errno == EEXIST else {
        throw Self.failed("making a folder")
      }
    }
    guard rename(uploadPath(key), target.file) == 0 else {
      throw Self.failed("keeping an upload")
    }
    for folder in [target.folder, target.parent, "\(directory)/assets"] {
      let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      guard descriptor >= 0 else { continue }
      fsync(descriptor)
      Glibc.close(descriptor)
    }
  }

  /// Takes a file away that no attachment needs; on the writer's thread.
  func unlinkAsset(_ sha256: [UInt8]) { unlink(assetPath(sha256).file) }

  // MARK: Reading

  /// Up to `count` bytes of a file from `offset` on; none behind its end.
  ///
  /// - Throws: `ATTACHMENT_LOST` (DATA_LOSS) where the file is gone.
  public func read(_ sha256: [UInt8], at offset: Int64, count: Int) async throws(StoreError)
    -> [UInt8]
  {
    let path = assetPath(sha256).file
    return try await run {
      let file = open(path, O_RDONLY | O_CLOEXEC)
      guard file >= 0 else {
        return .failure(
          StoreError(.dataLoss, "ATTACHMENT_LOST", "the bytes of the attachment are gone"))
      }
      defer { Glibc.close(file) }
      var bytes = [UInt8](repeating: 0, count: count)
      let found = bytes.withUnsafeMutableBytes { pread(file, $0.baseAddress, count, off_t(offset)) }
      guard found >= 0 else { return .failure(Self.failed("reading an attachment")) }
      bytes.removeLast(count - found)
      return .success(bytes)
    }
  }

  /// Takes what is left of uploads away.
  public func remove(uploads: [Int64]) async throws(StoreError) {
    let paths = uploads.map(uploadPath)
    try await run { () -> Result<Void, StoreError> in
      for path in paths { unlink(path) }
      return .success(())
    }
  }

  private static func failed(_ doing: String) -> StoreError {
    let code = errno
    return StoreError(
      [ENOSPC, EDQUOT, EFBIG].contains(code) ? .resourceExhausted : .internalError,
      [ENOSPC, EDQUOT, EFBIG].contains(code) ? "DISK_FULL" : "STORAGE_FAILED",
      "\(doing) failed: \(String(cString: strerror(code)))")
  }
}
