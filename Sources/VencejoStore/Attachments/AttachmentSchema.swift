import VencejoSQLite

extension Schema {
  static let attachments = Migration(
    name: "attachments",
    sql: """
      -- Files by their content; several attachments may share one.
      CREATE TABLE attachment(
        attachment_id INTEGER PRIMARY KEY,
        uuid BLOB NOT NULL UNIQUE,
        sha256 BLOB NOT NULL,
        size INTEGER NOT NULL,
        file_name TEXT NOT NULL,
        content_type TEXT NOT NULL,
        uploader_id INTEGER NOT NULL REFERENCES user(user_id),
        create_us INTEGER NOT NULL,
        -- When it is collected; NULL while a message holds it.
        expire_us INTEGER
      ) STRICT;
      CREATE INDEX attachment_by_content ON attachment(sha256);
      CREATE INDEX attachment_by_uploader ON attachment(uploader_id);
      CREATE INDEX attachment_by_expiry ON attachment(expire_us) WHERE expire_us IS NOT NULL;
      CREATE TABLE attachment_ref(
        attachment_id INTEGER NOT NULL REFERENCES attachment(attachment_id),
        message_key INTEGER NOT NULL REFERENCES message(message_key) ON DELETE CASCADE,
        PRIMARY KEY(attachment_id, message_key)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX attachment_ref_by_message ON attachment_ref(message_key);
      -- What has begun and may be resumed: the bytes so far lie in uploads/.
      CREATE TABLE upload(
        upload_id INTEGER PRIMARY KEY,
        user_id INTEGER NOT NULL REFERENCES user(user_id),
        uuid BLOB NOT NULL,
        sha256 BLOB NOT NULL,
        size INTEGER NOT NULL,
        file_name TEXT NOT NULL,
        content_type TEXT NOT NULL,
        attachment_id INTEGER REFERENCES attachment(attachment_id) ON DELETE CASCADE,
        expire_us INTEGER NOT NULL,
        UNIQUE(user_id, uuid)
      ) STRICT;
      CREATE INDEX upload_by_expiry ON upload(expire_us);
      CREATE INDEX upload_by_attachment ON upload(attachment_id);
      """)
}
