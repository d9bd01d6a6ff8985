import VencejoSQLite

extension Schema {
  /// Addresses that events are posted to, what waits for them, and what users are notified of.
  static let hooks = Migration(
    name: "hooks",
    sql: """
      CREATE TABLE hook(
        hook_id INTEGER PRIMARY KEY,
        uuid BLOB NOT NULL UNIQUE,
        user_id INTEGER NOT NULL REFERENCES user(user_id),
        -- Which service it belongs to, and what of it.
        purpose INTEGER NOT NULL,
        subject BLOB NOT NULL,
        uri TEXT NOT NULL,
        secret BLOB NOT NULL,
        -- 1 JSON, 2 binary.
        format INTEGER NOT NULL,
        flags INTEGER NOT NULL,
        -- Events at or before this position are none of its business.
        from_pos INTEGER NOT NULL,
        create_us INTEGER NOT NULL,
        -- 1 active, 2 disabled.
        state INTEGER NOT NULL,
        fault TEXT NOT NULL DEFAULT '',
        -- Since when nothing was taken; NULL while all is well.
        fail_us INTEGER,
        success_us INTEGER,
        -- When the first of what waits may be tried; NULL when nothing waits.
        next_us INTEGER
      ) STRICT;
      CREATE INDEX hook_by_user ON hook(user_id, purpose);
      CREATE INDEX hook_by_due ON hook(next_us) WHERE next_us IS NOT NULL AND state = 1;
      CREATE INDEX hook_by_subject ON hook(purpose, subject);
      -- Keys and no text, as in the log: what is posted is rendered when it is sent.
      CREATE TABLE hook_delivery(
        delivery_id INTEGER PRIMARY KEY AUTOINCREMENT,
        hook_id INTEGER NOT NULL REFERENCES hook(hook_id) ON DELETE CASCADE,
        uuid BLOB NOT NULL,
        kind INTEGER NOT NULL,
        keys BLOB NOT NULL,
        event_us INTEGER NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0
      ) STRICT;
      CREATE INDEX hook_delivery_by_hook ON hook_delivery(hook_id, delivery_id);
      -- How far the log was looked through for what is to be pushed.
      CREATE TABLE push_cursor(
        one INTEGER PRIMARY KEY CHECK (one = 1),
        pos INTEGER NOT NULL
      ) STRICT;
      INSERT INTO push_cursor(one, pos) SELECT 1, ifnull(max(last_position), 0) FROM log_state;

      -- Passwords asked to be reset within the last hour.
      CREATE TABLE reset_request(
        user_id INTEGER NOT NULL,
        request_us INTEGER NOT NULL
      ) STRICT;
      CREATE INDEX reset_request_by_user ON reset_request(user_id);

      CREATE TABLE notification(
        notification_id INTEGER PRIMARY KEY AUTOINCREMENT,
        uuid BLOB NOT NULL UNIQUE,
        user_id INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        chat_id INTEGER NOT NULL,
        -- 0 where it is about the chat.
        seq INTEGER NOT NULL,
        actor_id INTEGER,
        create_us INTEGER NOT NULL,
        read_us INTEGER
      ) STRICT;
      CREATE INDEX notification_by_user ON notification(user_id, notification_id);
      CREATE INDEX notification_unread ON notification(user_id, notification_id)
        WHERE read_us IS NULL;
      CREATE INDEX notification_by_message ON notification(chat_id, seq, user_id);
      CREATE INDEX notification_by_age ON notification(create_us);
      ALTER TABLE message ADD COLUMN is_silent INTEGER NOT NULL DEFAULT 0;
      """)
}
