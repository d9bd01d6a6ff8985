import VencejoSQLite

extension Schema {
  static let chat = Migration(
    name: "chat",
    sql: """
      CREATE TABLE chat(
        chat_id INTEGER PRIMARY KEY,
        uuid BLOB NOT NULL UNIQUE,
        kind INTEGER NOT NULL,
        title TEXT NOT NULL,
        -- The two users of a direct chat, the one of a chat with oneself.
        pair_key TEXT UNIQUE,
        member_count INTEGER NOT NULL,
        last_seq INTEGER NOT NULL,
        last_pos INTEGER NOT NULL,
        create_us INTEGER NOT NULL,
        update_us INTEGER NOT NULL,
        -- Time of the newest message, or of creation; never goes back.
        activity_us INTEGER NOT NULL,
        version INTEGER NOT NULL
      ) STRICT;
      CREATE TABLE member(
        chat_id INTEGER NOT NULL REFERENCES chat(chat_id),
        user_id INTEGER NOT NULL REFERENCES user(user_id),
        role INTEGER NOT NULL,
        state INTEGER NOT NULL,
        join_us INTEGER NOT NULL,
        read_seq INTEGER NOT NULL,
        -- How far others are told this member has read.
        shown_seq INTEGER NOT NULL,
        -- Sequences and positions this member may see; the upper ends are open while a member.
        visible_from INTEGER NOT NULL,
        visible_to INTEGER,
        from_pos INTEGER NOT NULL,
        to_pos INTEGER,
        version INTEGER NOT NULL,
        PRIMARY KEY(chat_id, user_id)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX member_by_user ON member(user_id, chat_id);
      CREATE TABLE message(
        message_key INTEGER PRIMARY KEY,
        chat_id INTEGER NOT NULL REFERENCES chat(chat_id),
        seq INTEGER NOT NULL,
        uuid BLOB NOT NULL UNIQUE,
        -- NULL for system messages.
        sender_id INTEGER REFERENCES user(user_id),
        kind INTEGER NOT NULL,
        body TEXT NOT NULL,
        -- Of a system message: what it tells.
        content BLOB,
        reply_seq INTEGER,
        sent_us INTEGER NOT NULL,
        client_us INTEGER,
        version INTEGER NOT NULL,
        UNIQUE(chat_id, seq)
      ) STRICT;
      """)
}
