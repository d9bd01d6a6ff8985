import VencejoCrypto
import VencejoSQLite

/// What the writer needs to know of the log when it starts.
struct LogState {
  let lastPosition: Int64
  let authority: TokenAuthority

  /// Reads the state, and makes it in a new database.
  static func load(_ connection: Connection, now: Int64) throws(SQLiteError) -> LogState {
    try connection.transaction(.immediate) { () throws(SQLiteError) in
      try connection.run(
        "INSERT OR IGNORE INTO log_state(one, last_position, floor, history) VALUES (1, 0, 0, ?)",
        SecureRandom.bytes(8))
      // Keys change once in the lifetime of a token, so that the one before the current one
      // still opens everything that has not expired.
      let newest = try connection.first("SELECT max(create_us) FROM token_key") {
        $0.optionalInt(0)
      }
      let renewal = Int64(TokenAuthority.lifetimeDays) * TokenAuthority.microsecondsPerDay
      if (newest ?? nil).map({ now - $0 > renewal }) ?? true {
        try connection.run(
          "INSERT INTO token_key(secret, create_us) VALUES (?, ?)", SecureRandom.bytes(32), now)
      }
      let keys = try connection.all(
        "SELECT key_id, secret FROM token_key ORDER BY key_id DESC LIMIT 2"
      ) { TokenAuthority.Key(id: $0.int(0), secret: $0.blob(1)) }
      // The key of refresh tokens is the first there was: it must outlive rotation.
      let root = try connection.first("SELECT secret FROM token_key ORDER BY key_id LIMIT 1") {
        $0.blob(0)
      }
      let (position, history) =
        try connection.first("SELECT last_position, history FROM log_state") {
          ($0.int(0), $0.blob(1))
        } ?? (0, [])
      return LogState(
        lastPosition: position,
        authority: TokenAuthority(keys: keys, root: root ?? [], history: history))
    }
  }
}
