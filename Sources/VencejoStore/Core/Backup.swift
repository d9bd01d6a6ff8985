import Glibc
import VencejoCrypto
import VencejoSQLite

/// Copies of a data folder, and data folders of copies.
extension Store {
  /// Copies a data folder, as it is at one moment, into a new folder: the database, and the files
  /// of all attachments it knows. Writers go on meanwhile. The folder has its name when it is whole
  /// and on the disk. Blocks.
  ///
  /// - Throws: `BACKUP_EXISTS` when the folder is there, `BACKUP_FAILED`, `STORAGE_…`.
  public static func backUp(directory: String, to folder: String) throws(StoreError) {
    guard access(folder, F_OK) != 0 else {
      throw StoreError(
        .alreadyExists, "BACKUP_EXISTS", "\(folder) is there already", metadata: ["path": folder])
    }
    let partial = folder + ".partial"
    remove(partial)
    guard mkdir(partial, 0o700) == 0 else { throw failed("making \(partial)") }
    let connection = try existing(directory)
    var files: [[UInt8]] = []
    do throws(SQLiteError) {
      try connection.run("VACUUM INTO ?", partial + "/vencejo.sqlite")
      // From the copy: what comes later is none of its business. What goes later stays for a day.
      let copy = try Connection(path: partial + "/vencejo.sqlite", mode: .readWrite)
      files = try copy.all("SELECT DISTINCT sha256 FROM attachment") { $0.blob(0) }
      try copy.execute("PRAGMA journal_mode = DELETE")
    } catch { throw StoreError(error) }
    for sha256 in files {
      let source = FileShelf.path(sha256, in: directory)
      let target = FileShelf.path(sha256, in: partial)
      for folder in ["\(partial)/assets", target.parent, target.folder] {
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw failed("making \(folder)") }
      }
      // One that nobody shows may have been collected since.
      guard access(source.file, R_OK) == 0 else { continue }
      try copy(source.file, target.file)
    }
    sync(partial)
    guard rename(partial, folder) == 0 else { throw failed("naming \(folder)") }
    sync(parent(of: folder))
  }

  /// Makes a data folder from a backup, or from a database alone. Clients notice: their tokens
  /// belong to another history, so they drop what the backup does not know. Blocks.
  ///
  /// - Throws: `DATA_FOLDER_NOT_EMPTY`, `DATA_FOLDER_IN_USE`, `NOT_A_DATABASE`, `NEWER_SCHEMA`,
  ///   `BACKUP_FAILED`, `STORAGE_…`.
  public static func restore(_ backup: String, to directory: String) throws(StoreError) {
    let folder = try DataFolder(directory)
    defer { folder.release() }
    guard access(folder.databasePath, F_OK) != 0 else {
      throw StoreError(
        .failedPrecondition, "DATA_FOLDER_NOT_EMPTY",
        "\(directory) holds a database: choose another folder", metadata: ["path": directory])
    }
    var status = stat()
    let isFolder = stat(backup, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    do throws(SQLiteError) {
      // SQLite's own copy, so that what is no database is never taken for one.
      let source = try Connection(
        path: isFolder ? backup + "/vencejo.sqlite" : backup, mode: .readWrite)
      try source.run("VACUUM INTO ?", folder.databasePath)
      let connection = try Connection(path: folder.databasePath, mode: .readWrite)
      try connection.migrate(Schema.migrations, application: Schema.application)
      try connection.run("UPDATE log_state SET history = ?", SecureRandom.bytes(8))
      guard isFolder else { return }
      let files = try connection.all("SELECT DISTINCT sha256 FROM attachment") { $0.blob(0) }
      do throws(StoreError) {
        for sha256 in files {
          let source = FileShelf.path(sha256, in: backup)
          guard access(source.file, R_OK) == 0 else { continue }
          let target = FileShelf.path(sha256, in: directory)
          for folder in ["\(directory)/assets", target.parent, target.folder] {
            guard mkdir(folder, 0o700) == 0 || errno == EEXIST else {
              throw failed("making \(folder)")
            }
          }
          try copy(source.file, target.file)
        }
      } catch { throw SQLiteError(kind: .other, message: error.message) }
    } catch {
      unlink(folder.databasePath)
      throw StoreError(error)
    }
  }

  /// Attachments whose files are gone or of another size; a few of them.
  static func lostFiles(_ connection: Connection, _ directory: String) throws(SQLiteError)
    -> [String]
  {
    var faults: [String] = []
    let files = try connection.all(
      "SELECT DISTINCT a.sha256, a.size FROM attachment a JOIN attachment_ref USING (attachment_id)"
    ) { (sha256: $0.blob(0), size: $0.int(1)) }
    for file in files where faults.count < 20 {
      var status = stat()
      let path = FileShelf.path(file.sha256, in: directory).file
      if stat(path, &status) != 0 || Int64(status.st_size) != file.size {
        faults.append("the file of an attachment is gone or cut: \(path)")
      }
    }
    return faults
  }

  /// Takes unused pages out of the file, and words nobody wrote any more out of the index. No
  /// server may use the folder. Blocks.
  ///
  /// - Throws: `DATA_FOLDER_IN_USE`, `STORAGE_…`.
  public static func compact(directory: String) throws(StoreError) {
    let folder = try DataFolder(directory)
    defer { folder.release() }
    let connection = try existing(directory)
    do throws(SQLiteError) {
      try connection.run("INSERT INTO message_fts(message_fts) VALUES ('optimize')")
      try connection.execute("VACUUM")
      try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    } catch { throw StoreError(error) }
  }

  private static func copy(_ source: String, _ target: String) throws(StoreError) {
    let from = Glibc.open(source, O_RDONLY | O_CLOEXEC)
    guard from >= 0 else { throw failed("reading \(source)") }
    defer { Glibc.close(from) }
    let to = Glibc.open(target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard to >= 0 else { throw failed("writing \(target)") }
    defer { Glibc.close(to) }
    var chunk = [UInt8](repeating: 0, count: 1 << 18)
    while true {
      let count = Glibc.read(from, &chunk, chunk.count)
      guard count >= 0 else { throw failed("reading \(source)") }
      if count == 0 { break }
      var done = 0
      while done < count {
        let written = chunk.withUnsafeBytes {
          Glibc.write(to, $0.baseAddress?.advanced(by: done), count - done)
        }
        guard written > 0 else { throw failed("writing \(target)") }
        done += written
      }
    }
    guard fsync(to) == 0 else { throw failed("writing \(target)") }
  }

  private static func sync(_ folder: String) {
    let descriptor = Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    fsync(descriptor)
    Glibc.close(descriptor)
  }

  private static func parent(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// What an attempt that broke off left behind.
  private static func remove(_ folder: String) {
    guard let entries = opendir(folder) else { return }
    while let entry = readdir(entries) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      guard name != ".", name != ".." else { continue }
      if unlink("\(folder)/\(name)") != 0 { remove("\(folder)/\(name)") }
    }
    closedir(entries)
    rmdir(folder)
  }

  private static func failed(_ doing: String) -> StoreError {
    let code = errno
    return StoreError(
      [ENOSPC, EDQUOT, EFBIG].contains(code) ? .resourceExhausted : .internalError,
      [ENOSPC, EDQUOT, EFBIG].contains(code) ? "DISK_FULL" : "BACKUP_FAILED",
      "\(doing) failed: \(String(cString: strerror(code)))")
  }
}
