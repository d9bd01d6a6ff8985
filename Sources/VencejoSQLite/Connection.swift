import CSQLite
import Glibc

/// One connection to a database file, opened without SQLite's own mutexes.
///
/// Not Sendable: whoever owns it uses it from one thread at a time (it may be handed
/// over). Statements are prepared once and kept.
public final class Connection {
  /// How a file is opened.
  public enum Mode: Sendable {
    /// Creates the file when there is none.
    case readWriteCreate
    case readWrite
    case readOnly
  }

  let database: OpaquePointer
  /// The file's path.
  public let path: String
  // Literals are found by address, which is a word; other texts by their content.
  private var literals: [UnsafePointer<UInt8>: Statement] = [:]
  private var dynamics: [String: Statement] = [:]
  private var deadline: Deadline?

  /// Opens `path` and sets what every connection of this package wants: WAL, synchronous
  /// FULL (an acknowledged commit is on disk), foreign keys, 5 s of patience with locks.
  ///
  /// - Throws: ``SQLiteError`` with `.cannotOpen` or `.notADatabase` and the path in its text.
  public init(path: String, mode: Mode = .readWriteCreate) throws(SQLiteError) {
    let flags =
      switch mode {
      case .readWriteCreate: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
      case .readWrite: SQLITE_OPEN_READWRITE
      case .readOnly: SQLITE_OPEN_READONLY
      }
    var handle: OpaquePointer?
    let code = sqlite3_open_v2(path, &handle, flags | SQLITE_OPEN_NOMUTEX, nil)
    guard code == SQLITE_OK, let handle else {
      let reason = handle.map { sqlite3_system_errno($0) } ?? 0
      sqlite3_close_v2(handle)
      let text =
        reason == 0 ? String(cString: sqlite3_errstr(code)) : String(cString: strerror(reason))
      throw SQLiteError(kind: .cannotOpen, code: code, message: "cannot open \(path): \(text)")
    }
    self.database = handle
    self.path = path
    sqlite3_extended_result_codes(handle, 1)
    do throws(SQLiteError) {
      sqlite3_busy_timeout(handle, 5000)
      if mode != .readOnly { try execute("PRAGMA journal_mode = WAL") }
      try execute("PRAGMA synchronous = FULL")
      try execute("PRAGMA foreign_keys = ON")
      try execute("PRAGMA secure_delete = ON")
      try execute("PRAGMA journal_size_limit = 200000000")
      try execute("PRAGMA cache_size = -32000")
      try execute("PRAGMA temp_store = MEMORY")
      try execute("PRAGMA mmap_size = 268435456")
      try registerNear()
      // Reads the header, so that a file that is no database is refused now.
      _ = try first("SELECT count(*) FROM sqlite_schema") { $0.int(0) }
    } catch {
      // deinit does not run for a class whose initialiser throws before it is complete, but
      // here every property is set, so it does and closes the handle.
      guard error.kind != .notADatabase else {
        throw SQLiteError(
          kind: .notADatabase, code: error.code, message: "\(path) is not a database")
      }
      throw error
    }
  }

  deinit {
    literals.removeAll()
    dynamics.removeAll()
    sqlite3_close_v2(database)
  }

  /// Runs statements without parameters; rows are ignored.
  public func execute(_ sql: String) throws(SQLiteError) {
    let code = sqlite3_exec(database, sql, nil, nil, nil)
    guard code == SQLITE_OK else {
      throw SQLiteError(database, code: code, doing: "running \(sql)")
    }
  }

  /// Runs a statement to its end and answers how many rows it changed.
  @discardableResult
  public func run(_ sql: StaticString, _ values: any SQLiteBindable...) throws(SQLiteError) -> Int {
    try each(statement(sql), values) { _ in true }
    return changedRows
  }

  /// The first row, or nil.
  public func first<T>(
    _ sql: StaticString, _ values: any SQLiteBindable..., read: (Row) -> T
  ) throws(SQLiteError) -> T? {
    var result: T?
    try each(statement(sql), values) {
      result = read($0)
      return false
    }
    return result
  }

  /// All rows.
  public func all<T>(
    _ sql: StaticString, _ values: any SQLiteBindable..., read: (Row) -> T
  ) throws(SQLiteError) -> [T] {
    var result: [T] = []
    try each(statement(sql), values) {
      result.append(read($0))
      return true
    }
    return result
  }

  /// Row by row while `read` answers true; for SQL put together at run time, with its
  /// values always bound.
  public func each(
    dynamic sql: String, _ values: [any SQLiteBindable], read: (Row) -> Bool
  ) throws(SQLiteError) {
    try each(statement(dynamic: sql), values, read)
  }

  /// Row by row while `read` answers true.
  public func each(
    _ sql: StaticString, _ values: [any SQLiteBindable], read: (Row) -> Bool
  ) throws(SQLiteError) {
    try each(statement(sql), values, read)
  }

  private func each(_ statement: Statement, _ values: [any SQLiteBindable], _ read: (Row) -> Bool)
    throws(SQLiteError)
  {
    statement.isBusy = true
    defer { statement.reset() }
    try statement.bind(values, database)
    let row = Row(statement: statement.handle)
    while try statement.step(database) {
      guard read(row) else { return }
    }
  }

  private func statement(_ sql: StaticString) throws(SQLiteError) -> Statement {
    guard sql.hasPointerRepresentation else { return try statement(dynamic: "\(sql)") }
    if let known = literals[sql.utf8Start], !known.isBusy { return known }
    let text = UnsafeBufferPointer(start: sql.utf8Start, count: sql.utf8CodeUnitCount)
    let fresh = try Statement(database, text)
    if literals[sql.utf8Start] == nil { literals[sql.utf8Start] = fresh }
    return fresh
  }

  private func statement(dynamic sql: String) throws(SQLiteError) -> Statement {
    if let known = dynamics[sql], !known.isBusy { return known }
    var text = sql
    let fresh: Statement
    do {
      fresh = try text.withUTF8 { bytes in try Statement(database, bytes) }
    } catch let error as SQLiteError {
      throw error
    } catch {
      throw SQLiteError(kind: .other, message: "\(error)")
    }
    // Texts made at run time are many: forget them all now and then.
    if dynamics.count >= 256 { dynamics.removeAll() }
    dynamics[sql] = fresh
    return fresh
  }

  /// Rows the last INSERT, UPDATE or DELETE changed.
  public var changedRows: Int { Int(sqlite3_changes64(database)) }

  /// Rows changed since the connection was opened, by triggers and virtual tables too.
  public var totalChanges: Int { Int(sqlite3_total_changes64(database)) }

  /// Steps that SQLite's machine took for the statements this connection keeps: a measure of work
  /// that does not depend on the machine.
  package var stepCount: Int {
    var count = 0
    var statement = sqlite3_next_stmt(database, nil)
    while let each = statement {
      count += Int(sqlite3_stmt_status(each, SQLITE_STMTSTATUS_VM_STEP, 0))
      statement = sqlite3_next_stmt(database, each)
    }
    return count
  }

  /// The row id of the last insert.
  public var lastInsertRowID: Int64 { sqlite3_last_insert_rowid(database) }

  /// Whether a transaction is open. SQLite ends one by itself after some errors (disk full).
  public var isInTransaction: Bool { sqlite3_get_autocommit(database) == 0 }

  // MARK: Interrupting

  /// Stops whatever runs on this connection when a moment has passed.
  private final class Deadline {
    var nanoseconds: UInt64 = .max
  }

  /// Statements that still run at `nanoseconds` of the monotonic clock fail with
  /// `.interrupted`; nil takes the limit away.
  public func setDeadline(_ nanoseconds: UInt64?) {
    if let deadline {
      deadline.nanoseconds = nanoseconds ?? .max
      return
    }
    guard let nanoseconds else { return }
    let box = Deadline()
    box.nanoseconds = nanoseconds
    deadline = box
    sqlite3_progress_handler(
      database, 20_000,
      { context in
        guard let context else { return 0 }
        let limit = Unmanaged<Deadline>.fromOpaque(context).takeUnretainedValue().nanoseconds
        return limit != .max && Connection.monotonicNanoseconds() > limit ? 1 : 0
      }, Unmanaged.passUnretained(box).toOpaque())
  }

  /// CLOCK_MONOTONIC in nanoseconds, the clock of ``setDeadline(_:)``.
  public static func monotonicNanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
  }
}
