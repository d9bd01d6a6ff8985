import VencejoSQLite

extension Schema {
  /// What an operator and a back end need of accounts: keys, codes, an end.
  static let accounts = Migration(
    name: "accounts",
    sql: """
      -- Secrets are 256 random bits, so a plain SHA-256 keeps them.
      CREATE TABLE api_key(
        key_id INTEGER PRIMARY KEY,
        uuid BLOB NOT NULL UNIQUE,
        user_id INTEGER NOT NULL REFERENCES user(user_id),
        hash BLOB NOT NULL UNIQUE,
        prefix TEXT NOT NULL,
        display_name TEXT NOT NULL,
        -- Words with spaces between.
        scopes TEXT NOT NULL,
        create_us INTEGER NOT NULL,
        last_used_us INTEGER,
        expire_us INTEGER,
        revoke_us INTEGER
      ) STRICT;
      CREATE INDEX api_key_by_user ON api_key(user_id);
      CREATE TABLE sign_up_code(
        hash BLOB PRIMARY KEY,
        create_us INTEGER NOT NULL,
        expire_us INTEGER NOT NULL,
        uses_left INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE reset_code(
        hash BLOB PRIMARY KEY,
        user_id INTEGER NOT NULL REFERENCES user(user_id),
        expire_us INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX user_by_purge ON user(purge_us) WHERE purge_us IS NOT NULL;
      CREATE INDEX user_by_owner ON user(owner_id) WHERE owner_id IS NOT NULL;
      CREATE INDEX message_by_sender ON message(sender_id, message_key);
      """)
}
