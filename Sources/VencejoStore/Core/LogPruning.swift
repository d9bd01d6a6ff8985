import VencejoSQLite

extension ReadTransaction {
  /// Positions below or at this one may be gone from the log: a token from there has expired.
  public func logFloor() throws(StoreError) -> Int64 {
    try first("SELECT floor FROM log_state") { $0.int(0) } ?? 0
  }
}

extension WriteTransaction {
  /// Days the log is kept: twice the life of a token and more.
  public static let logRetentionDays = 30

  /// Forgets up to 10,000 of the oldest events past their time; answers whether there may be
  /// more.
  @discardableResult
  public func pruneLog() throws(StoreError) -> Bool {
    let cutoff = now - Int64(Self.logRetentionDays) * TokenAuthority.microsecondsPerDay
    let floor = try first(
      """
      SELECT max(pos) FROM (SELECT pos, commit_us FROM event ORDER BY pos LIMIT 10000)
      WHERE commit_us < ?
      """, cutoff
    ) { $0.optionalInt(0) }
    guard let floor, let floor else { return false }
    let gone = try run("DELETE FROM event WHERE pos <= ?", floor)
    try run("UPDATE log_state SET floor = ?", floor)
    return gone == 10_000
  }
}
