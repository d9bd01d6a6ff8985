import VencejoSQLite

extension Schema {
  static let auth = Migration(
    name: "auth",
    sql: """
      CREATE TABLE user(
        user_id INTEGER PRIMARY KEY,
        uuid BLOB NOT NULL UNIQUE,
        handle TEXT NOT NULL UNIQUE,
        -- As given; unique without regard to case, through email_key.
        email TEXT NOT NULL,
        email_key TEXT UNIQUE,
        display_name TEXT NOT NULL,
        display_key TEXT NOT NULL,
        role INTEGER NOT NULL,
        create_us INTEGER NOT NULL,
        update_us INTEGER NOT NULL,
        version INTEGER NOT NULL,
        salt BLOB NOT NULL,
        hash BLOB NOT NULL,
        cost INTEGER NOT NULL,
        block_size INTEGER NOT NULL,
        parallelism INTEGER NOT NULL
      ) STRICT;
      CREATE INDEX user_by_display_name ON user(display_key);
      CREATE TABLE session(
        session_id INTEGER PRIMARY KEY,
        uuid BLOB NOT NULL UNIQUE,
        user_id INTEGER NOT NULL REFERENCES user(user_id),
        device_id TEXT NOT NULL,
        device_label TEXT NOT NULL,
        client_version TEXT NOT NULL,
        create_us INTEGER NOT NULL,
        last_seen_us INTEGER NOT NULL,
        expire_us INTEGER NOT NULL,
        revoke_us INTEGER
      ) STRICT;
      CREATE INDEX session_by_user ON session(user_id);
      -- Tokens are 256 random bits, so a plain SHA-256 keeps them.
      CREATE TABLE access_token(
        hash BLOB PRIMARY KEY,
        session_id INTEGER NOT NULL REFERENCES session(session_id),
        expire_us INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX access_token_by_session ON access_token(session_id);
      CREATE TABLE refresh_token(
        hash BLOB PRIMARY KEY,
        session_id INTEGER NOT NULL REFERENCES session(session_id),
        -- When its successor was made; NULL for the newest.
        replace_us INTEGER,
        successor BLOB
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX refresh_token_by_session ON refresh_token(session_id);
      """)
}
