import Glibc
import Synchronization
import VencejoAPI
import VencejoProtobuf
import VencejoRPC
import VencejoSQLite

/// What a device keeps of one account between runs, in one SQLite file: chats and their newest
/// messages, the token that says how far they go, profiles, and the messages that wait to be sent.
///
/// One process at a time: what two would write need not fit together.
///
/// `@unchecked Sendable`: the connection is used under the mutex only.
final class DeviceStore: @unchecked Sendable {
  /// All that a file holds.
  struct Contents: Sendable {
    var token = ""
    var chats: [String: ChatContents.Entry] = [:]
    var profiles: [Chat.Profile] = []
    var outbox: [Outbox.Pending] = []
  }

  /// Marks the file as ours: "veDC".
  private static let application: Int32 = 0x7665_4443
  private static let migrations = [
    Migration(
      name: "chats, profiles and the outbox",
      sql: """
        CREATE TABLE progress (id INTEGER PRIMARY KEY CHECK (id = 1), token TEXT NOT NULL) STRICT;
        CREATE TABLE chat (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE message (
          chat TEXT NOT NULL, sequence INTEGER NOT NULL, value BLOB NOT NULL,
          PRIMARY KEY (chat, sequence)) STRICT, WITHOUT ROWID;
        CREATE TABLE profile (user TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE outbox (
          position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, chat TEXT NOT NULL,
          content BLOB NOT NULL, queue_time INTEGER NOT NULL,
          failure_code INTEGER, failure_message TEXT) STRICT;
        """)
  ]

  private let connection: Connection
  private let mutex = Mutex(())
  /// Holds the lock for as long as it is open.
  private let lock: Int32
  private let path: String

  /// Opens the file, or makes it, readable to its owner only. Nil when another process has it.
  ///
  /// - Throws: FAILED_PRECONDITION when the file cannot be opened, is another program's, or was
  ///   written by a newer version.
  init?(path: String) throws(RPCError) {
    let lock = open("\(path).lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard lock >= 0 else {
      throw RPCError(
        .failedPrecondition, "cannot open \(path): \(String(cString: strerror(errno)))")
    }
    guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
      close(lock)
      return nil
    }
    // SQLite gives the files beside it the mode of this one.
    let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    if file >= 0 { close(file) }
    do throws(SQLiteError) {
      let connection = try Connection(path: path)
      try connection.migrate(Self.migrations, application: Self.application)
      // Whatever a power failure takes from the end of the log, the server sends again.
      try connection.execute("PRAGMA synchronous = NORMAL")
      self.connection = connection
      self.lock = lock
      self.path = path
    } catch {
      close(lock)
      throw Self.failure(error)
    }
  }

  deinit { close(lock) }

  /// Removes all that was kept.
  func erase() throws(RPCError) {
    try write { connection throws(SQLiteError) in
      try connection.execute(
        "DELETE FROM progress; DELETE FROM chat; DELETE FROM message; DELETE FROM profile; "
          + "DELETE FROM outbox;")
    }
  }

  // MARK: Reading

  /// - Throws: DATA_LOSS when the file holds what cannot be read.
  func load() throws(RPCError) -> Contents {
    try mutex.withLock { _ throws(RPCError) in
      do {
        var contents = Contents()
        contents.token = try connection.first("SELECT token FROM progress") { $0.text(0) } ?? ""
        for value in try connection.all("SELECT value FROM chat", read: { $0.blob(0) }) {
          let chat = try Chat.Chat(serializedBytes: value)
          contents.chats[chat.name] = .init(chat: chat)
        }
        let messages = try connection.all(
          "SELECT chat, value FROM message ORDER BY chat, sequence"
        ) { ($0.text(0), $0.blob(1)) }
        for (chat, value) in messages {
          contents.chats[chat]?.messages.append(try Chat.Message(serializedBytes: value))
        }
        for value in try connection.all("SELECT value FROM profile", read: { $0.blob(0) }) {
          contents.profiles.append(try Chat.Profile(serializedBytes: value))
        }
        let waiting = try connection.all(
          """
          SELECT id, chat, content, queue_time, failure_code, failure_message FROM outbox
          ORDER BY position
          """
        ) { row in
          (
            row.text(0), row.text(1), row.blob(2), row.int(3),
            row.optionalInt(4).map { RPCErrorSummary(code: Int($0), message: row.text(5)) }
          )
        }
        for (id, chat, content, time, failure) in waiting {
          contents.outbox.append(
            .init(
              id: id, chat: chat, content: try .init(serializedBytes: content), queueTime: time,
              state: failure.map { .failed($0) } ?? .queued))
        }
        return contents
      } catch let error as SQLiteError {
        throw Self.failure(error)
      } catch {
        throw RPCError(.dataLoss, "\(path) holds what cannot be read: \(error)")
      }
    }
  }

  // MARK: Writing

  /// What one or more transactions of the server changed, and the token that goes with it.
  func write(_ delta: ChatContents.Delta, token: String) throws(RPCError) {
    try write { connection throws(SQLiteError) in
      for chat in delta.removedChats {
        try connection.run("DELETE FROM chat WHERE name = ?", chat)
        try connection.run("DELETE FROM message WHERE chat = ?", chat)
      }
      for chat in delta.chats {
        try connection.run(
          "INSERT OR REPLACE INTO chat VALUES (?, ?)", chat.name, chat.serializedBytes())
      }
      for (chat, sequence) in delta.removedMessages {
        try connection.run(
          "DELETE FROM message WHERE chat = ? AND sequence = ?", chat, sequence)
      }
      for (chat, message) in delta.messages {
        try connection.run(
          "INSERT OR REPLACE INTO message VALUES (?, ?, ?)", chat, message.sequence,
          message.serializedBytes())
      }
      try connection.run("INSERT OR REPLACE INTO progress VALUES (1, ?)", token)
    }
  }

  /// Everything, in the place of what is there.
  func replace(by contents: ChatContents) throws(RPCError) {
    try write { connection throws(SQLiteError) in
      try connection.execute("DELETE FROM chat; DELETE FROM message;")
      for (name, entry) in contents.chats.entries {
        try connection.run("INSERT INTO chat VALUES (?, ?)", name, entry.chat.serializedBytes())
        for message in entry.messages {
          try connection.run(
            "INSERT OR REPLACE INTO message VALUES (?, ?, ?)", name, message.sequence,
            message.serializedBytes())
        }
      }
      try connection.run("INSERT OR REPLACE INTO progress VALUES (1, ?)", contents.token)
    }
  }

  func write(_ profiles: [Chat.Profile]) throws(RPCError) {
    try write { connection throws(SQLiteError) in
      for profile in profiles {
        try connection.run(
          "INSERT OR REPLACE INTO profile VALUES (?, ?)", profile.user, profile.serializedBytes())
      }
    }
  }

  /// On disk when it returns: nobody else has this message yet.
  func add(_ message: Outbox.Pending) throws(RPCError) {
    try mutex.withLock { _ throws(RPCError) in
      do throws(SQLiteError) {
        try connection.execute("PRAGMA synchronous = FULL")
        try connection.run(
          "INSERT INTO outbox (id, chat, content, queue_time) VALUES (?, ?, ?, ?)", message.id,
          message.chat, message.content.serializedBytes(), message.queueTime)
        try connection.execute("PRAGMA synchronous = NORMAL")
      } catch {
        _ = try? connection.execute("PRAGMA synchronous = NORMAL")
        throw Self.failure(error)
      }
    }
  }

  func set(_ failure: RPCErrorSummary?, of id: String) throws(RPCError) {
    try write { connection throws(SQLiteError) in
      try connection.run(
        "UPDATE outbox SET failure_code = ?, failure_message = ? WHERE id = ?", failure?.code,
        failure?.message, id)
    }
  }

  func remove(_ id: String) throws(RPCError) {
    try write { connection throws(SQLiteError) in
      try connection.run("DELETE FROM outbox WHERE id = ?", id)
    }
  }

  private func write(_ body: (Connection) throws(SQLiteError) -> Void) throws(RPCError) {
    try mutex.withLock { _ throws(RPCError) in
      do throws(SQLiteError) {
        try connection.transaction(.immediate) { () throws(SQLiteError) in try body(connection) }
      } catch {
        throw Self.failure(error)
      }
    }
  }

  private static func failure(_ error: SQLiteError) -> RPCError {
    switch error.kind {
    case .full: RPCError(.resourceExhausted, error.message)
    case .corrupt: RPCError(.dataLoss, error.message)
    default: RPCError(.failedPrecondition, error.message)
    }
  }
}
