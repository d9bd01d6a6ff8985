import VencejoSQLite

/// A snapshot of everything, for the length of one closure.
///
/// Not Sendable and not to be kept: it lives on the reader's thread.
public class ReadTransaction {
  let connection: Connection
  /// The key ring of this moment.
  public let tokens: TokenAuthority
  /// Microseconds since the Unix epoch when the transaction began: the only clock operations
  /// look at.
  public let now: Int64
  /// What readers of the log share; nil where nobody else reads.
  let sharedEntries: SharedEntries?

  init(
    _ connection: Connection, tokens: TokenAuthority, now: Int64,
    sharedEntries: SharedEntries? = nil
  ) {
    self.connection = connection
    self.tokens = tokens
    self.now = now
    self.sharedEntries = sharedEntries
  }

  /// Position of the newest event in this snapshot; 0 when nothing ever happened.
  public func head() throws(StoreError) -> Int64 {
    try first("SELECT last_position FROM log_state") { $0.int(0) } ?? 0
  }

  // SQL stays inside this room, in this room's error type.

  func first<T>(
    _ sql: StaticString, _ values: any SQLiteBindable..., read: (Row) -> T
  ) throws(StoreError) -> T? {
    var result: T?
    try each(sql, values) {
      result = read($0)
      return false
    }
    return result
  }

  func all<T>(
    _ sql: StaticString, _ values: any SQLiteBindable..., read: (Row) -> T
  ) throws(StoreError) -> [T] {
    var result: [T] = []
    try each(sql, values) {
      result.append(read($0))
      return true
    }
    return result
  }

  func each(
    _ sql: StaticString, _ values: [any SQLiteBindable], read: (Row) -> Bool
  ) throws(StoreError) {
    do throws(SQLiteError) {
      try connection.each(sql, values, read: read)
    } catch { throw StoreError(error) }
  }

  func each(
    dynamic sql: String, _ values: [any SQLiteBindable], read: (Row) -> Bool
  ) throws(StoreError) {
    do throws(SQLiteError) {
      try connection.each(dynamic: sql, values, read: read)
    } catch { throw StoreError(error) }
  }
}

/// One operation of the writer: all of it or nothing.
public final class WriteTransaction: ReadTransaction {
  private let base: Int64
  let board: SubscriptionBoard
  private var events: [PendingEvent] = []
  /// Something waits to be posted that did not before.
  var hasQueuedHooks = false

  private struct PendingEvent {
    let chat: Int64?
    let zone: Int64?
    let user: Int64?
    let kind: EventKind
    let keys: [UInt8]
    let payload: (any Sendable)?
  }

  init(
    _ connection: Connection, tokens: TokenAuthority, now: Int64, base: Int64,
    board: SubscriptionBoard = SubscriptionBoard()
  ) {
    self.base = base
    self.board = board
    super.init(connection, tokens: tokens, now: now)
  }

  /// Positions taken for changes without an event of their own.
  private var reserved: Int64 = 0

  /// The log's position as this operation leaves it, events appended so far included.
  public override func head() throws(StoreError) -> Int64 { position }

  var position: Int64 { base + reserved + Int64(events.count) }

  /// Takes positions for changes that no event tells of; answers the first. Before any event.
  func reserve(_ count: Int) -> Int64 {
    let first = position + 1
    if events.isEmpty { reserved += Int64(count) }
    return first
  }

  @discardableResult
  func run(_ sql: StaticString, _ values: any SQLiteBindable...) throws(StoreError) -> Int {
    try each(sql, values) { _ in true }
    return connection.changedRows
  }

  @discardableResult
  func run(dynamic sql: String, _ values: [any SQLiteBindable]) throws(StoreError) -> Int {
    try each(dynamic: sql, values) { _ in true }
    return connection.changedRows
  }

  /// A statement to be run many times in this transaction.
  func repeated(_ sql: String) throws(StoreError) -> RepeatedStatement {
    do throws(SQLiteError) { return try connection.repeated(sql) } catch { throw StoreError(error) }
  }

  @discardableResult
  func run(_ statement: RepeatedStatement) throws(StoreError) -> Int {
    do throws(SQLiteError) { return try statement.run() } catch { throw StoreError(error) }
  }

  /// The row id of the last insert.
  var lastInsertRowID: Int64 { connection.lastInsertRowID }

  /// Appends an event to the log and answers the position it will have.
  @discardableResult
  func append(
    _ kind: EventKind, chat: Int64? = nil, zone: Int64? = nil, user: Int64? = nil,
    keys: [UInt8] = [], payload: (any Sendable)? = nil
  ) -> Int64 {
    events.append(
      PendingEvent(chat: chat, zone: zone, user: user, kind: kind, keys: keys, payload: payload))
    return position
  }

  /// Writes the events; the last one is known only now.
  func flushEvents() throws(StoreError) -> [LoggedEvent] {
    var logged: [LoggedEvent] = []
    logged.reserveCapacity(events.count)
    for (index, event) in events.enumerated() {
      let position = base + reserved + Int64(index) + 1
      let isLast = index == events.count - 1
      try run(
        """
        INSERT INTO event(pos, chat_id, zone_id, user_id, kind, keys, last, commit_us)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """, position, event.chat, event.zone, event.user, event.kind.rawValue, event.keys, isLast,
        now)
      logged.append(
        LoggedEvent(
          position: position, chat: event.chat, zone: event.zone, user: event.user,
          kind: event.kind, keys: event.keys, isLast: isLast, commitTime: now,
          payload: event.payload))
    }
    return logged
  }
}
