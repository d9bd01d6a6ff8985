import VencejoCrypto
import VencejoSQLite

/// What an operator asks for while a server may be running: it is written beside the server and
/// done by the server, which tells those whom it concerns. Without a server it is done at once.
public enum AdminTask: Sendable, Hashable {
  case suspend(handle: String)
  case reinstate(handle: String)
  /// Begins the end of an account, as its owner may.
  case deleteUser(handle: String)
  /// Signs out every device of an account.
  case revokeSessions(handle: String)
  /// Makes an API key worthless; by its id.
  case revokeKey(String)
  /// Deletes for everyone what was sent more than so many days ago, but for what is starred.
  case retain(days: Int64)

  fileprivate var columns: (kind: String, argument: String) {
    switch self {
    case .suspend(let handle): ("suspend", handle)
    case .reinstate(let handle): ("reinstate", handle)
    case .deleteUser(let handle): ("delete-user", handle)
    case .revokeSessions(let handle): ("sign-out", handle)
    case .revokeKey(let id): ("revoke-key", id)
    case .retain(let days): ("retain", String(days))
    }
  }

  fileprivate init?(kind: String, argument: String) {
    switch kind {
    case "suspend": self = .suspend(handle: argument)
    case "reinstate": self = .reinstate(handle: argument)
    case "delete-user": self = .deleteUser(handle: argument)
    case "sign-out": self = .revokeSessions(handle: argument)
    case "revoke-key": self = .revokeKey(argument)
    case "retain":
      guard let days = Int64(argument), days > 0 else { return nil }
      self = .retain(days: days)
    default: return nil
    }
  }
}

extension Schema {
  /// What operators ask of a running server.
  static let operations = Migration(
    name: "operations",
    sql: """
      CREATE TABLE admin_task(
        task_id INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        argument TEXT NOT NULL,
        create_us INTEGER NOT NULL,
        -- NULL until it is done; the answer is empty when all went well.
        done_us INTEGER,
        answer TEXT NOT NULL DEFAULT ''
      ) STRICT;
      CREATE INDEX admin_task_open ON admin_task(task_id) WHERE done_us IS NULL;
      """)
}

extension ReadTransaction {
  /// An account, acting for who holds the data folder.
  ///
  /// - Throws: `USER_NOT_FOUND`.
  public func principal(ofHandle handle: String) throws(StoreError) -> Principal {
    asOperator(try account(named: handle))
  }

  /// Who holds the data folder may do what an administrator may.
  func asOperator(_ account: Account) -> Principal {
    Principal(
      user: account.key, session: 0, userID: account.id, sessionID: account.id,
      role: .administrator, scopes: nil, accessExpireTime: .max, sessionExpireTime: .max)
  }

  /// Whether an operator waits for something.
  public func hasAdminTasks() throws(StoreError) -> Bool {
    try first("SELECT 1 FROM admin_task WHERE done_us IS NULL LIMIT 1") { _ in true } ?? false
  }

  /// The answer of a task that is done: empty when all went well; nil while it is not.
  public func answer(ofTask key: Int64) throws(StoreError) -> String? {
    try first("SELECT answer FROM admin_task WHERE task_id = ? AND done_us IS NOT NULL", key) {
      $0.text(0)
    }
  }

  /// Accounts, oldest first, for who holds the data folder.
  public func everyAccount(after key: Int64 = 0, limit: Int = 1000) throws(StoreError)
    -> [Account]
  {
    try accounts("WHERE user_id > ? ORDER BY user_id LIMIT ?", [key, limit])
  }
}

extension WriteTransaction {
  /// Writes down what is to be done; answers its key.
  public func ask(_ task: AdminTask) throws(StoreError) -> Int64 {
    try run("DELETE FROM admin_task WHERE create_us < ?", now - 86_400_000_000)
    let (kind, argument) = task.columns
    try run(
      "INSERT INTO admin_task(kind, argument, create_us) VALUES (?, ?, ?)", kind, argument, now)
    return lastInsertRowID
  }

  /// Does the first task that waits; answers whether there was one.
  public func runAdminTask() throws(StoreError) -> Bool {
    let next = try first(
      "SELECT task_id, kind, argument FROM admin_task WHERE done_us IS NULL ORDER BY task_id LIMIT 1"
    ) { (key: $0.int(0), task: AdminTask(kind: $0.text(1), argument: $0.text(2))) }
    guard let next else { return false }
    var answer = ""
    if let task = next.task {
      do throws(StoreError) { try perform(task) } catch { answer = "\(error)" }
    } else {
      answer = "UNKNOWN_TASK: this server is older than the tool"
    }
    try run(
      "UPDATE admin_task SET done_us = ?, answer = ? WHERE task_id = ?", now, answer, next.key)
    return true
  }

  /// Does a task now.
  public func perform(_ task: AdminTask) throws(StoreError) {
    switch task {
    case .suspend(let handle):
      let account = try account(named: handle)
      _ = try setAccount(account.id, state: .suspended, role: nil, by: asOperator(account))
    case .reinstate(let handle):
      let account = try account(named: handle)
      _ = try setAccount(account.id, state: .active, role: nil, by: asOperator(account))
    case .deleteUser(let handle):
      let account = try account(named: handle)
      _ = try deleteAccount(account.id, by: asOperator(account))
    case .revokeSessions(let handle):
      let account = try account(named: handle)
      try revoke(user: account.key, sessions: try sessions(ofUser: account.key).map(\.key))
    case .revokeKey(let id):
      guard let id = UUID(parsing: id),
        let key = try first(
          "SELECT key_id, user_id FROM api_key WHERE uuid = ? AND revoke_us IS NULL", id,
          read: { (key: $0.int(0), user: $0.int(1)) })
      else { throw .notFound("KEY_NOT_FOUND", type: "vencejo.auth.v1.ApiKey", name: id) }
      try run("UPDATE api_key SET revoke_us = ? WHERE key_id = ?", now, key.key)
      try revoke(user: key.user, sessions: [-key.key])
    case .retain(let days):
      try expire(sentBefore: now - days * 86_400_000_000)
    }
  }

  /// Lets messages expire that are older: the sweep takes them from there, with events. Times grow
  /// with the sequence, so each chat is searched by halves and no index over times is kept.
  private func expire(sentBefore cutoff: Int64) throws(StoreError) {
    let chats = try all("SELECT chat_id, last_seq FROM chat WHERE delete_us IS NULL") {
      (key: $0.int(0), last: $0.int(1))
    }
    for chat in chats {
      var (low, high) = (Int64(0), chat.last)
      while low < high {
        let middle = low + (high - low + 1) / 2
        let time = try first(
          "SELECT sent_us FROM message WHERE chat_id = ? AND seq = ?", chat.key, middle
        ) { $0.int(0) }
        if let time, time < cutoff { low = middle } else { high = middle - 1 }
      }
      guard low > 0 else { continue }
      try run(
        """
        UPDATE message SET expire_us = ?1 WHERE chat_id = ?2 AND seq <= ?3 AND is_purged = 0
          AND (expire_us IS NULL OR expire_us > ?1)
          AND NOT EXISTS (SELECT 1 FROM star s WHERE s.chat_id = ?2 AND s.seq = message.seq)
        """, now, chat.key, low)
    }
  }
}
