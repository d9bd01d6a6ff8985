import VencejoSQLite

extension Schema {
  /// Shares, who takes part in them, and which records they cover.
  static let recordShares = Migration(
    name: "record shares",
    sql: """
      -- Name of the record above it, in the same zone.
      ALTER TABLE record ADD COLUMN parent TEXT NOT NULL DEFAULT '';
      -- The share that covers it by its place in a hierarchy; of a tombstone, the last one.
      ALTER TABLE record ADD COLUMN share TEXT NOT NULL DEFAULT '';
      CREATE INDEX record_by_parent ON record(zone_key, parent) WHERE parent <> '';
      CREATE INDEX record_by_share ON record(zone_key, type_key, share, record_name)
        WHERE deleted = 0 AND share <> '';
      CREATE INDEX record_by_share_change ON record(zone_key, share, change) WHERE share <> '';
      -- Records that left a share and may still be in caches of its participants.
      CREATE TABLE record_unshared(
        zone_key INTEGER NOT NULL,
        share TEXT NOT NULL,
        record_name TEXT NOT NULL,
        type_key INTEGER NOT NULL,
        change INTEGER NOT NULL,
        leave_us INTEGER NOT NULL,
        PRIMARY KEY(zone_key, share, record_name)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX record_unshared_by_change ON record_unshared(zone_key, share, change);
      CREATE INDEX record_unshared_by_age ON record_unshared(leave_us);
      CREATE TABLE record_share(
        share_key INTEGER PRIMARY KEY,
        database_key INTEGER NOT NULL,
        zone_key INTEGER NOT NULL,
        share TEXT NOT NULL UNIQUE,
        -- Name of the record at the top; empty: the whole zone.
        root TEXT NOT NULL,
        title TEXT NOT NULL,
        share_type TEXT NOT NULL,
        public_permission INTEGER NOT NULL,
        link TEXT NOT NULL UNIQUE,
        link_expire_us INTEGER NOT NULL,
        create_us INTEGER NOT NULL,
        update_us INTEGER NOT NULL,
        version INTEGER NOT NULL,
        UNIQUE(zone_key, root)
      ) STRICT;
      CREATE INDEX record_share_by_database ON record_share(database_key, share);
      CREATE TABLE record_participant(
        share_key INTEGER NOT NULL REFERENCES record_share ON DELETE CASCADE,
        user TEXT NOT NULL,
        role INTEGER NOT NULL,
        permission INTEGER NOT NULL,
        accepted INTEGER NOT NULL,
        add_us INTEGER NOT NULL,
        PRIMARY KEY(share_key, user)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX record_participant_by_user ON record_participant(user, share_key);
      -- Position of the last change of what a user may see of another's zone.
      CREATE TABLE record_access(
        user TEXT NOT NULL,
        zone_key INTEGER NOT NULL,
        container_key INTEGER NOT NULL,
        change INTEGER NOT NULL,
        PRIMARY KEY(user, zone_key)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX record_access_by_change ON record_access(user, container_key, change);
      """)
}
