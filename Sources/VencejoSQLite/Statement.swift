import CSQLite

/// A prepared statement of one connection.
final class Statement {
  let handle: OpaquePointer
  /// In the middle of its rows: a second use of the same text needs another statement.
  var isBusy = false

  init(_ database: OpaquePointer, _ sql: UnsafeBufferPointer<UInt8>) throws(SQLiteError) {
    var handle: OpaquePointer?
    let code = sql.withMemoryRebound(to: CChar.self) { text in
      sqlite3_prepare_v3(
        database, text.baseAddress, Int32(clamping: text.count), UInt32(SQLITE_PREPARE_PERSISTENT),
        &handle, nil)
    }
    guard code == SQLITE_OK, let handle else {
      let text = String(decoding: sql, as: UTF8.self)
      throw SQLiteError(database, code: code, doing: "preparing \(text)")
    }
    self.handle = handle
  }

  deinit { sqlite3_finalize(handle) }

  func bind(_ values: [any SQLiteBindable], _ database: OpaquePointer) throws(SQLiteError) {
    guard Int(sqlite3_bind_parameter_count(handle)) == values.count else {
      throw SQLiteError(
        kind: .other,
        message: "\(values.count) values for: \(String(cString: sqlite3_sql(handle)))")
    }
    var index: Int32 = 0
    for value in values {
      index += 1
      let code: Int32
      switch value.sqliteValue {
      case .null: code = sqlite3_bind_null(handle, index)
      case .integer(let number): code = sqlite3_bind_int64(handle, index, number)
      case .real(let number): code = sqlite3_bind_double(handle, index, number)
      case .text(var text):
        code = text.withUTF8 { bytes in
          bytes.withMemoryRebound(to: CChar.self) {
            vencejo_bind_text(handle, index, $0.baseAddress, Int64($0.count))
          }
        }
      case .blob(let bytes):
        code = bytes.withUnsafeBytes {
          vencejo_bind_blob(handle, index, $0.baseAddress, Int64($0.count))
        }
      }
      guard code == SQLITE_OK else {
        throw SQLiteError(database, code: code, doing: "binding parameter \(index)")
      }
    }
  }

  /// Whether there is a row to read.
  func step(_ database: OpaquePointer) throws(SQLiteError) -> Bool {
    switch sqlite3_step(handle) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let code:
      throw SQLiteError(
        database, code: code, doing: "running \(String(cString: sqlite3_sql(handle)))")
    }
  }

  func reset() {
    sqlite3_reset(handle)
    sqlite3_clear_bindings(handle)
    isBusy = false
  }
}
