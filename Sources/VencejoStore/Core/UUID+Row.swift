public import VencejoCrypto
public import VencejoSQLite

extension Row {
  /// An identifier kept as 16 bytes; nil for anything else.
  func uuid(_ column: Int) -> UUID? { optionalBlob(column).flatMap(UUID.init(bytes:)) }
}

extension UUID: SQLiteBindable {
  public var sqliteValue: SQLiteValue { .blob(bytes) }
}
