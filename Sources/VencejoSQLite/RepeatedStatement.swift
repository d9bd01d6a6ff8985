import CSQLite

/// A statement that is run very often, its parameters bound in place: for writing many rows at
/// once, where a list of values for each costs more than the row.
///
/// Not Sendable: it belongs to its connection's thread.
public final class RepeatedStatement {
  private let statement: Statement
  private let database: OpaquePointer
  /// The first binding that failed since the last run.
  private var failure: Int32 = SQLITE_OK

  init(_ statement: Statement, _ database: OpaquePointer) {
    self.statement = statement
    self.database = database
  }

  private func note(_ code: Int32) { if code != SQLITE_OK, failure == SQLITE_OK { failure = code } }

  /// Binds the parameter at `index`, from 1.
  public func bind(_ index: Int32, _ value: Int64) {
    note(sqlite3_bind_int64(statement.handle, index, value))
  }

  public func bind(_ index: Int32, _ value: Double) {
    note(sqlite3_bind_double(statement.handle, index, value))
  }

  public func bind(_ index: Int32, _ value: String) {
    var text = value
    text.withUTF8 { bytes in
      bytes.withMemoryRebound(to: CChar.self) {
        note(vencejo_bind_text(statement.handle, index, $0.baseAddress, Int64($0.count)))
      }
    }
  }

  public func bind(_ index: Int32, _ value: [UInt8]) {
    value.withUnsafeBytes {
      note(vencejo_bind_blob(statement.handle, index, $0.baseAddress, Int64($0.count)))
    }
  }

  public func bindNull(_ index: Int32) { note(sqlite3_bind_null(statement.handle, index)) }

  /// Runs it with what is bound, which stays bound; answers how many rows it changed.
  @discardableResult
  public func run() throws(SQLiteError) -> Int {
    defer {
      sqlite3_reset(statement.handle)
      failure = SQLITE_OK
    }
    guard failure == SQLITE_OK else {
      throw SQLiteError(database, code: failure, doing: "binding a parameter")
    }
    while try statement.step(database) {}
    return Int(sqlite3_changes64(database))
  }
}

extension Connection {
  /// A statement of its own, to be run many times.
  public func repeated(_ sql: String) throws(SQLiteError) -> RepeatedStatement {
    var text = sql
    let statement: Statement
    do {
      statement = try text.withUTF8 { bytes in try Statement(database, bytes) }
    } catch let error as SQLiteError {
      throw error
    } catch {
      throw SQLiteError(kind: .other, message: "\(error)")
    }
    return RepeatedStatement(statement, database)
  }
}
