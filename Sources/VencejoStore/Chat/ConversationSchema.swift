import VencejoSQLite

extension Schema {
  /// What a messenger's users do beyond sending and reading: roles, edits, deletions, reactions,
  /// settings, blocks, search.
  static let conversation = Migration(
    name: "conversation",
    sql: """
      ALTER TABLE chat ADD COLUMN description TEXT NOT NULL DEFAULT '';
      -- Messages sent from now on expire so long after; NULL for never.
      ALTER TABLE chat ADD COLUMN ttl_us INTEGER;
      -- The policy: least roles, and windows; NULL for the server's own.
      ALTER TABLE chat ADD COLUMN send_role INTEGER NOT NULL DEFAULT 2;
      ALTER TABLE chat ADD COLUMN add_role INTEGER NOT NULL DEFAULT 2;
      ALTER TABLE chat ADD COLUMN edit_role INTEGER NOT NULL DEFAULT 2;
      ALTER TABLE chat ADD COLUMN pin_role INTEGER NOT NULL DEFAULT 2;
      ALTER TABLE chat ADD COLUMN shows_history INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE chat ADD COLUMN edit_window_us INTEGER;
      ALTER TABLE chat ADD COLUMN delete_window_us INTEGER;
      ALTER TABLE chat ADD COLUMN slow_us INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE chat ADD COLUMN delete_us INTEGER;
      CREATE INDEX chat_deleted ON chat(chat_id) WHERE delete_us IS NOT NULL;

      -- How far a device of the member has received.
      ALTER TABLE member ADD COLUMN delivered_seq INTEGER NOT NULL DEFAULT 0;
      UPDATE member SET delivered_seq = read_seq;
      -- For slow mode.
      ALTER TABLE member ADD COLUMN last_send_us INTEGER NOT NULL DEFAULT 0;

      ALTER TABLE message ADD COLUMN edit_count INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE message ADD COLUMN edit_us INTEGER;
      -- Deleted for everyone: the row stays as a stub without its text.
      ALTER TABLE message ADD COLUMN delete_us INTEGER;
      ALTER TABLE message ADD COLUMN expire_us INTEGER;
      -- The text of an expired message is gone from the disk.
      ALTER TABLE message ADD COLUMN is_purged INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE message ADD COLUMN forward_hops INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE message ADD COLUMN is_imported INTEGER NOT NULL DEFAULT 0;
      CREATE INDEX message_by_expiry ON message(expire_us)
        WHERE expire_us IS NOT NULL AND is_purged = 0;

      CREATE TABLE reaction(
        message_key INTEGER NOT NULL REFERENCES message(message_key) ON DELETE CASCADE,
        user_id INTEGER NOT NULL REFERENCES user(user_id),
        emoji TEXT NOT NULL,
        react_us INTEGER NOT NULL,
        PRIMARY KEY(message_key, user_id)
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE poll_vote(
        message_key INTEGER NOT NULL REFERENCES message(message_key) ON DELETE CASCADE,
        option_id INTEGER NOT NULL,
        user_id INTEGER NOT NULL REFERENCES user(user_id),
        PRIMARY KEY(message_key, option_id, user_id)
      ) STRICT, WITHOUT ROWID;
      -- Deleted for one user only: ranges that neither touch nor overlap.
      CREATE TABLE message_hidden(
        user_id INTEGER NOT NULL,
        chat_id INTEGER NOT NULL,
        first_seq INTEGER NOT NULL,
        last_seq INTEGER NOT NULL,
        PRIMARY KEY(user_id, chat_id, first_seq)
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE star(
        user_id INTEGER NOT NULL,
        chat_id INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        PRIMARY KEY(user_id, chat_id, seq)
      ) STRICT, WITHOUT ROWID;
      -- User 0 stands for everyone.
      CREATE TABLE mention(
        chat_id INTEGER NOT NULL,
        user_id INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        PRIMARY KEY(chat_id, user_id, seq)
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE pin(
        chat_id INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        pin_us INTEGER NOT NULL,
        until_us INTEGER,
        PRIMARY KEY(chat_id, seq)
      ) STRICT, WITHOUT ROWID;
      -- A member's own view of a chat; no row is the default.
      CREATE TABLE chat_setting(
        user_id INTEGER NOT NULL,
        chat_id INTEGER NOT NULL,
        mute_us INTEGER,
        is_archived INTEGER NOT NULL DEFAULT 0,
        pin_rank INTEGER NOT NULL DEFAULT 0,
        is_marked_unread INTEGER NOT NULL DEFAULT 0,
        mentions_only INTEGER NOT NULL DEFAULT 0,
        draft_kind INTEGER,
        draft_body TEXT NOT NULL DEFAULT '',
        draft_content BLOB,
        draft_reply BLOB,
        draft_us INTEGER,
        version INTEGER NOT NULL DEFAULT 1,
        PRIMARY KEY(user_id, chat_id)
      ) STRICT, WITHOUT ROWID;
      -- Messages with keys above from_key, and up to to_key once unblocked, never reach the
      -- user.
      CREATE TABLE block(
        user_id INTEGER NOT NULL,
        blocked_id INTEGER NOT NULL,
        from_key INTEGER NOT NULL,
        to_key INTEGER,
        PRIMARY KEY(user_id, blocked_id, from_key)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX block_by_blocked ON block(blocked_id, user_id) WHERE to_key IS NULL;
      CREATE TABLE invite(
        invite_id INTEGER PRIMARY KEY,
        uuid BLOB NOT NULL UNIQUE,
        chat_id INTEGER NOT NULL REFERENCES chat(chat_id),
        creator_id INTEGER NOT NULL,
        code TEXT NOT NULL UNIQUE,
        create_us INTEGER NOT NULL,
        expire_us INTEGER,
        max_uses INTEGER NOT NULL,
        use_count INTEGER NOT NULL DEFAULT 0,
        needs_approval INTEGER NOT NULL,
        revoke_us INTEGER
      ) STRICT;
      CREATE INDEX invite_by_chat ON invite(chat_id);
      CREATE TABLE join_request(
        chat_id INTEGER NOT NULL REFERENCES chat(chat_id),
        user_id INTEGER NOT NULL REFERENCES user(user_id),
        invite_id INTEGER NOT NULL REFERENCES invite(invite_id),
        create_us INTEGER NOT NULL,
        PRIMARY KEY(chat_id, user_id)
      ) STRICT, WITHOUT ROWID;
      -- When a marker passed which sequence; kind 1 delivered, 2 read.
      CREATE TABLE marker_move(
        chat_id INTEGER NOT NULL,
        user_id INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        move_us INTEGER NOT NULL,
        PRIMARY KEY(chat_id, user_id, kind, seq)
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE report(
        report_id INTEGER PRIMARY KEY,
        uuid BLOB NOT NULL UNIQUE,
        message_key INTEGER,
        message_name TEXT NOT NULL,
        reporter_id INTEGER NOT NULL,
        reason TEXT NOT NULL,
        create_us INTEGER NOT NULL,
        resolve_us INTEGER,
        resolution TEXT NOT NULL DEFAULT ''
      ) STRICT;

      ALTER TABLE user ADD COLUMN status_text TEXT NOT NULL DEFAULT '';
      ALTER TABLE user ADD COLUMN hides_last_seen INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE user ADD COLUMN hides_receipts INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE user ADD COLUMN refuses_adds INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE user ADD COLUMN last_seen_us INTEGER;
      -- 1 a person, 2 a service account of its owner.
      ALTER TABLE user ADD COLUMN kind INTEGER NOT NULL DEFAULT 1;
      ALTER TABLE user ADD COLUMN owner_id INTEGER;
      -- 1 active, 3 suspended, 4 deleted and to be purged at purge_us.
      ALTER TABLE user ADD COLUMN state INTEGER NOT NULL DEFAULT 1;
      ALTER TABLE user ADD COLUMN purge_us INTEGER;

      -- The scope is a word like any other of the index, so that a search over few chats looks
      -- at their messages only.
      CREATE VIEW message_words AS
        SELECT message_key, body, 'c' || chat_id AS scope FROM message;
      CREATE VIRTUAL TABLE message_fts USING fts5(
        body, scope, content='message_words', content_rowid='message_key',
        tokenize='unicode61 remove_diacritics 2', prefix='2 3');
      INSERT INTO message_fts(rowid, body, scope)
        SELECT message_key, body, 'c' || chat_id FROM message WHERE body <> '';
      CREATE TRIGGER message_fts_insert AFTER INSERT ON message WHEN new.body <> '' BEGIN
        INSERT INTO message_fts(rowid, body, scope)
          VALUES (new.message_key, new.body, 'c' || new.chat_id);
      END;
      CREATE TRIGGER message_fts_delete AFTER DELETE ON message WHEN old.body <> '' BEGIN
        INSERT INTO message_fts(message_fts, rowid, body, scope)
          VALUES ('delete', old.message_key, old.body, 'c' || old.chat_id);
      END;
      CREATE TRIGGER message_fts_update AFTER UPDATE OF body ON message
      WHEN old.body IS NOT new.body BEGIN
        INSERT INTO message_fts(message_fts, rowid, body, scope)
          SELECT 'delete', old.message_key, old.body, 'c' || old.chat_id WHERE old.body <> '';
        INSERT INTO message_fts(rowid, body, scope)
          SELECT new.message_key, new.body, 'c' || new.chat_id WHERE new.body <> '';
      END;
      """)
}
