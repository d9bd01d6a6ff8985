import CSQLite
import Glibc

/// Anything that goes wrong between us and a database file.
public struct SQLiteError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What a caller can act on; everything else is `.other`.
  public enum Kind: Sendable, Hashable {
    /// The file or its folder cannot be opened or created.
    case cannotOpen
    /// The file is not an SQLite database, or is another program's.
    case notADatabase
    /// The file was written by a newer program.
    case newerSchema(found: Int, supported: Int)
    /// Another connection holds a lock for longer than the busy timeout.
    case busy
    /// A constraint (unique, foreign key, check, type) refused a row.
    case constraint
    /// The disk or a quota is full.
    case full
    /// The statement was interrupted or ran past its deadline.
    case interrupted
    /// The file is damaged.
    case corrupt
    /// The file or its folder cannot be written.
    case readOnly
    case other
  }

  public let kind: Kind
  /// SQLite's extended result code; 0 when the error is ours.
  public let code: Int32
  public let message: String

  /// An error that SQLite did not raise itself.
  public init(kind: Kind, code: Int32 = 0, message: String) {
    self.kind = kind
    self.code = code
    self.message = message
  }

  public var description: String { message }

  static func kind(of code: Int32) -> Kind {
    switch code & 0xff {
    case SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH: .cannotOpen
    case SQLITE_NOTADB: .notADatabase
    case SQLITE_BUSY, SQLITE_LOCKED: .busy
    case SQLITE_CONSTRAINT, SQLITE_MISMATCH: .constraint
    case SQLITE_FULL: .full
    case SQLITE_INTERRUPT: .interrupted
    case SQLITE_CORRUPT: .corrupt
    case SQLITE_READONLY: .readOnly
    default: .other
    }
  }

  init(_ database: OpaquePointer?, code: Int32, doing: String) {
    let extended = database.map { sqlite3_extended_errcode($0) } ?? code
    let text =
      database.map { String(cString: sqlite3_errmsg($0)) }
      ?? String(cString: sqlite3_errstr(code))
    // SQLite knows one way to be out of room; a quota and a limit on files are others.
    // SQLite does not always keep what the system said; the thread does.
    let reasons = [errno, database.map { sqlite3_system_errno($0) } ?? 0]
    let isFull =
      extended & 0xff == SQLITE_IOERR
      && reasons.contains { [ENOSPC, EDQUOT, EFBIG].contains($0) }
    self.init(
      kind: isFull ? .full : Self.kind(of: extended), code: extended,
      message: "\(doing): \(text) (\(extended))")
  }
}
