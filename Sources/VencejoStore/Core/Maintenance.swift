import VencejoSQLite

/// What is in a data folder.
public struct StoreStatistics: Sendable, Hashable {
  public let users: Int64
  public let sessions: Int64
  public let chats: Int64
  public let messages: Int64
  public let records: Int64
  public let events: Int64
  /// Of the database file.
  public let bytes: Int64
}

/// What only who holds the data folder may do, beside a server that may be running.
extension Store {
  /// Runs one small transaction of SQLite's own beside the server's writer; it must log no event.
  /// Blocks.
  ///
  /// - Throws: What `body` throws, and what ``open(directory:options:)`` throws but
  ///   `DATA_FOLDER_IN_USE`.
  @discardableResult
  public static func administer<R>(
    directory: String, _ body: (WriteTransaction) throws -> R
  ) throws -> R {
    let connection = try existing(directory)
    do throws(SQLiteError) { try connection.begin(.immediate) } catch { throw StoreError(error) }
    defer { connection.rollback() }
    let transaction = WriteTransaction(
      connection, tokens: TokenAuthority(keys: [], root: [], history: []), now: systemClock(),
      base: 0)
    let result = try body(transaction)
    do throws(SQLiteError) { try connection.commit() } catch { throw StoreError(error) }
    return result
  }

  static func existing(_ directory: String) throws(StoreError) -> Connection {
    do throws(SQLiteError) {
      let connection = try Connection(path: "\(directory)/vencejo.sqlite", mode: .readWrite)
      try connection.check(Schema.migrations, application: Schema.application)
      return connection
    } catch { throw StoreError(error) }
  }

  /// Looks for damage; answers what is wrong, nothing when all is well. Blocks.
  ///
  /// - Throws: As ``administer(directory:_:)``.
  public static func examine(directory: String) throws(StoreError) -> [String] {
    let connection = try existing(directory)
    var faults: [String] = []
    do throws(SQLiteError) {
      try connection.each("PRAGMA integrity_check(20)", []) {
        if $0.text(0) != "ok" { faults.append($0.text(0)) }
        return true
      }
      try connection.each("PRAGMA foreign_key_check", []) {
        faults.append("a row of \($0.text(0)) points to one of \($0.text(2)) that is not there")
        return faults.count < 20
      }
      for check in Self.examinations {
        try connection.each(dynamic: check.sql, []) {
          faults.append("\(check.fault): chat \($0.int(0))")
          return faults.count < 40
        }
      }
    } catch { throw StoreError(error) }
    do throws(SQLiteError) {
      try connection.run("INSERT INTO message_fts(message_fts) VALUES ('integrity-check')")
    } catch { faults.append("the search index does not fit the messages: \(error.message)") }
    do throws(SQLiteError) { faults += try lostFiles(connection, directory) } catch {
      throw StoreError(error)
    }
    return faults
  }

  private static let examinations: [(fault: String, sql: String)] = [
    (
      "its members are not as many as it says",
      """
      SELECT chat_id FROM chat c WHERE delete_us IS NULL AND member_count <>
        (SELECT count(*) FROM member m WHERE m.chat_id = c.chat_id AND m.state = 1)
      """
    ),
    (
      "its sequences have a hole",
      """
      SELECT chat_id FROM chat c WHERE delete_us IS NULL AND last_seq <>
        (SELECT count(*) FROM message m WHERE m.chat_id = c.chat_id)
      """
    ),
    (
      "somebody has read past its end",
      """
      SELECT chat_id FROM member m JOIN chat c USING (chat_id)
      WHERE c.delete_us IS NULL AND (m.read_seq > c.last_seq OR m.delivered_seq > c.last_seq)
      """
    ),
  ]

  /// Counts what is in a data folder. Blocks.
  ///
  /// - Throws: As ``administer(directory:_:)``.
  public static func statistics(directory: String) throws(StoreError) -> StoreStatistics {
    let connection = try existing(directory)
    func count(_ table: String) throws(SQLiteError) -> Int64 {
      var result: Int64 = 0
      try connection.each(dynamic: "SELECT count(*) FROM \(table)", []) {
        result = $0.int(0)
        return false
      }
      return result
    }
    do throws(SQLiteError) {
      return StoreStatistics(
        users: try count("user"),
        sessions: try count("session WHERE revoke_us IS NULL"),
        chats: try count("chat WHERE delete_us IS NULL"), messages: try count("message"),
        records: try count("record WHERE deleted = 0"), events: try count("event"),
        bytes: try connection.first(
          "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        ) { $0.int(0) } ?? 0)
    } catch { throw StoreError(error) }
  }
}
