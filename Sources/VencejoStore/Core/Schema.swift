import VencejoSQLite

/// The tables, in the order they came into being. Nothing in a landed migration changes once
/// a release carries it.
enum Schema {
  /// "VENC": marks a file as ours.
  static let application: Int32 = 0x5645_4e43

  static let migrations: [Migration] = [
    core, auth, chat, records, conversation, recordIndexes, recordReferences, accounts, attachments,
    recordSubscriptions, recordContainers, hooks, recordShares, recordAssets, operations,
    recordEntries,
  ]

  static let core = Migration(
    name: "core",
    sql: """
      -- One row. The counter is the log's own: a rowid would start again at 1 once the log is
      -- pruned, and old tokens would point into the future.
      CREATE TABLE log_state(
        one INTEGER PRIMARY KEY CHECK (one = 1),
        last_position INTEGER NOT NULL,
        -- Events up to here may be gone.
        floor INTEGER NOT NULL,
        history BLOB NOT NULL
      ) STRICT;
      CREATE TABLE event(
        pos INTEGER PRIMARY KEY,
        chat_id INTEGER,
        zone_id INTEGER,
        user_id INTEGER,
        kind INTEGER NOT NULL,
        keys BLOB NOT NULL,
        last INTEGER NOT NULL,
        commit_us INTEGER NOT NULL
      ) STRICT;
      CREATE INDEX event_by_chat ON event(chat_id, pos) WHERE chat_id IS NOT NULL;
      CREATE INDEX event_by_zone ON event(zone_id, pos) WHERE zone_id IS NOT NULL;
      CREATE INDEX event_by_user ON event(user_id, pos) WHERE user_id IS NOT NULL;
      CREATE TABLE token_key(
        key_id INTEGER PRIMARY KEY,
        secret BLOB NOT NULL,
        create_us INTEGER NOT NULL
      ) STRICT;
      -- Answers of requests with a request_id (AIP-155), for 24 hours.
      CREATE TABLE request_log(
        user_id INTEGER NOT NULL,
        rpc TEXT NOT NULL,
        request_id TEXT NOT NULL,
        body_hash BLOB NOT NULL,
        answer BLOB NOT NULL,
        expire_us INTEGER NOT NULL,
        PRIMARY KEY(user_id, rpc, request_id)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX request_log_by_expiry ON request_log(expire_us);
      """)
}
