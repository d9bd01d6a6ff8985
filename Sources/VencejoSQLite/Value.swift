import CSQLite

/// Something that can be bound to a parameter of a statement.
public protocol SQLiteBindable {
  var sqliteValue: SQLiteValue { get }
}

/// One value of SQLite's five storage classes.
public enum SQLiteValue: Sendable, Hashable, SQLiteBindable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])

  public var sqliteValue: SQLiteValue { self }
}

extension Int64: SQLiteBindable {
  public var sqliteValue: SQLiteValue { .integer(self) }
}
extension Int: SQLiteBindable {
  public var sqliteValue: SQLiteValue { .integer(Int64(self)) }
}
extension Int32: SQLiteBindable {
  public var sqliteValue: SQLiteValue { .integer(Int64(self)) }
}
extension Bool: SQLiteBindable {
  public var sqliteValue: SQLiteValue { .integer(self ? 1 : 0) }
}
extension Double: SQLiteBindable {
  public var sqliteValue: SQLiteValue { .real(self) }
}
extension String: SQLiteBindable {
  public var sqliteValue: SQLiteValue { .text(self) }
}
extension [UInt8]: SQLiteBindable {
  public var sqliteValue: SQLiteValue { .blob(self) }
}
extension Optional: SQLiteBindable where Wrapped: SQLiteBindable {
  public var sqliteValue: SQLiteValue { self?.sqliteValue ?? .null }
}

/// The row a statement stands on; valid only inside the closure it is given to.
public struct Row {
  let statement: OpaquePointer

  /// Columns of the row.
  public var count: Int { Int(sqlite3_column_count(statement)) }

  public func isNull(_ column: Int) -> Bool {
    sqlite3_column_type(statement, Int32(column)) == SQLITE_NULL
  }
  /// An integer; 0 for NULL.
  public func int(_ column: Int) -> Int64 { sqlite3_column_int64(statement, Int32(column)) }
  /// An integer, nil for NULL.
  public func optionalInt(_ column: Int) -> Int64? { isNull(column) ? nil : int(column) }
  public func bool(_ column: Int) -> Bool { int(column) != 0 }
  public func double(_ column: Int) -> Double { sqlite3_column_double(statement, Int32(column)) }

  /// A text; empty for NULL.
  public func text(_ column: Int) -> String {
    let index = Int32(column)
    guard let start = sqlite3_column_text(statement, index) else { return "" }
    let length = Int(sqlite3_column_bytes(statement, index))
    return String(decoding: UnsafeBufferPointer(start: start, count: length), as: UTF8.self)
  }

  /// A text, nil for NULL.
  public func optionalText(_ column: Int) -> String? { isNull(column) ? nil : text(column) }

  /// Bytes; empty for NULL.
  public func blob(_ column: Int) -> [UInt8] {
    let index = Int32(column)
    guard let start = sqlite3_column_blob(statement, index) else { return [] }
    let length = Int(sqlite3_column_bytes(statement, index))
    return Array(UnsafeRawBufferPointer(start: start, count: length))
  }

  /// Bytes, nil for NULL.
  public func optionalBlob(_ column: Int) -> [UInt8]? { isNull(column) ? nil : blob(column) }

  /// The value in its own storage class.
  public func value(_ column: Int) -> SQLiteValue {
    switch sqlite3_column_type(statement, Int32(column)) {
    case SQLITE_INTEGER: .integer(int(column))
    case SQLITE_FLOAT: .real(double(column))
    case SQLITE_TEXT: .text(text(column))
    case SQLITE_BLOB: .blob(blob(column))
    default: .null
    }
  }
}
