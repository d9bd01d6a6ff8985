import VencejoSQLite

extension Schema {
  /// The tables of the record store. A whole record is one blob; what can be
  /// asked for stands beside it in `record_index`, one row per value, so that
  /// a new field needs no ALTER.
  static let records = Migration(
    name: "records",
    sql: """
      CREATE TABLE record_container(
        container_key INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        create_us INTEGER NOT NULL
      ) STRICT;
      CREATE TABLE record_database(
        database_key INTEGER PRIMARY KEY,
        container_key INTEGER NOT NULL REFERENCES record_container,
        name TEXT NOT NULL,
        UNIQUE(container_key, name)
      ) STRICT;
      -- A deleted zone stays as a row: the log speaks of it. AUTOINCREMENT, so that a token of
      -- an old zone never fits a new one of the same name.
      CREATE TABLE record_zone(
        zone_key INTEGER PRIMARY KEY AUTOINCREMENT,
        database_key INTEGER NOT NULL REFERENCES record_database,
        zone TEXT NOT NULL,
        create_us INTEGER NOT NULL,
        update_us INTEGER NOT NULL,
        change INTEGER NOT NULL,
        -- Tombstones up to here may be gone.
        tombstone_floor INTEGER NOT NULL DEFAULT 0,
        deleted INTEGER NOT NULL DEFAULT 0
      ) STRICT;
      CREATE UNIQUE INDEX record_zone_by_name ON record_zone(database_key, zone) WHERE deleted = 0;
      CREATE INDEX record_zone_by_database ON record_zone(database_key);
      -- Names of record types and fields, once each.
      CREATE TABLE record_word(
        word_key INTEGER PRIMARY KEY,
        word TEXT NOT NULL UNIQUE
      ) STRICT;
      -- A deleted record stays as a tombstone with deleted = 1 and no fields.
      CREATE TABLE record(
        record_key INTEGER PRIMARY KEY,
        zone_key INTEGER NOT NULL REFERENCES record_zone,
        record_name TEXT NOT NULL,
        type_key INTEGER NOT NULL REFERENCES record_word,
        fields BLOB NOT NULL,
        change INTEGER NOT NULL,
        change_tag TEXT NOT NULL,
        created_us INTEGER NOT NULL,
        modified_us INTEGER NOT NULL,
        creator TEXT NOT NULL,
        modifier TEXT NOT NULL,
        deleted INTEGER NOT NULL,
        UNIQUE(zone_key, record_name)
      ) STRICT;
      CREATE INDEX record_by_change ON record(zone_key, change);
      CREATE INDEX record_by_age ON record(modified_us) WHERE deleted = 1;
      CREATE INDEX record_by_type ON record(zone_key, type_key, record_name) WHERE deleted = 0;
      -- kind and value: see IndexKind. x and y only for locations.
      CREATE TABLE record_index(
        record_key INTEGER NOT NULL,
        field_key INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        value ANY NOT NULL,
        zone_key INTEGER NOT NULL,
        type_key INTEGER NOT NULL,
        x REAL,
        y REAL,
        PRIMARY KEY(record_key, field_key, kind, value)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX record_index_by_value
        ON record_index(zone_key, type_key, field_key, kind, value, record_key);
      -- The request_id of a user's last ModifyRecords in a zone, to know an echo by.
      CREATE TABLE record_echo(
        zone_key INTEGER NOT NULL,
        user_id INTEGER NOT NULL,
        request_id TEXT NOT NULL,
        PRIMARY KEY(zone_key, user_id)
      ) STRICT, WITHOUT ROWID;
      """)
}
