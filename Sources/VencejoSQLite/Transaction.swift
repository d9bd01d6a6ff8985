extension Connection {
  /// What a transaction may do from its first statement on.
  public enum TransactionMode: Sendable {
    /// A snapshot for reading.
    case deferred
    /// Takes the write lock at once, so that it cannot fail half-way for lack of it.
    case immediate
  }

  public func begin(_ mode: TransactionMode) throws(SQLiteError) {
    switch mode {
    case .deferred: try run("BEGIN DEFERRED")
    case .immediate: try run("BEGIN IMMEDIATE")
    }
  }

  public func commit() throws(SQLiteError) { try run("COMMIT") }

  /// Undoes the open transaction, if any. A rollback cannot fail in a way that matters: when
  /// SQLite reports an error, the transaction is already gone.
  public func rollback() {
    if isInTransaction { _ = try? run("ROLLBACK") }
  }

  /// One transaction around `body`: committed when it returns, rolled back when it throws.
  public func transaction<R>(
    _ mode: TransactionMode, _ body: () throws(SQLiteError) -> R
  ) throws(SQLiteError) -> R {
    try begin(mode)
    do throws(SQLiteError) {
      let result = try body()
      try commit()
      return result
    } catch {
      rollback()
      throw error
    }
  }

  /// Begins a nested unit of work; not itself nestable, one level is all anybody needs.
  public func savepoint() throws(SQLiteError) { try run("SAVEPOINT unit") }

  /// Keeps what was done since ``savepoint()``.
  public func releaseSavepoint() throws(SQLiteError) { try run("RELEASE unit") }

  /// Undoes what was done since ``savepoint()``.
  public func rollbackToSavepoint() throws(SQLiteError) {
    try run("ROLLBACK TO unit")
    try run("RELEASE unit")
  }
}
