import VencejoSQLite

extension Schema {
  /// The index in the order that queries answer in: every entry carries its record's name, so
  /// that a page is one range of it from any cursor on. Three more ways to find records: by the
  /// system columns, by *shape* (which fields a record has), and by place.
  static let recordIndexes = Migration(
    name: "record indexes",
    sql: """
      CREATE TABLE record_entry(
        record_key INTEGER NOT NULL,
        -- 0: any field (kind 31, words).
        field_key INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        value ANY NOT NULL,
        zone_key INTEGER NOT NULL,
        type_key INTEGER NOT NULL,
        record_name TEXT NOT NULL,
        -- Of a location: its row in record_geo.
        place_key INTEGER,
        PRIMARY KEY(record_key, field_key, kind, value)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX record_entry_by_value
        ON record_entry(zone_key, type_key, field_key, kind, value, record_name, record_key);
      INSERT INTO record_entry(
        record_key, field_key, kind, value, zone_key, type_key, record_name, place_key)
        SELECT i.record_key, i.field_key, i.kind, i.value, i.zone_key, i.type_key, r.record_name,
          CASE i.kind WHEN 8 THEN row_number() OVER () END
        FROM record_index i JOIN record r USING (record_key);

      -- One number for each field of a type of a zone: the fourth axis of record_geo.
      CREATE TABLE record_scope(
        scope_key INTEGER PRIMARY KEY,
        zone_key INTEGER NOT NULL,
        type_key INTEGER NOT NULL,
        field_key INTEGER NOT NULL,
        UNIQUE(zone_key, type_key, field_key)
      ) STRICT;
      INSERT INTO record_scope(zone_key, type_key, field_key)
        SELECT DISTINCT zone_key, type_key, field_key FROM record_index WHERE kind = 8;
      CREATE VIRTUAL TABLE record_geo USING rtree(
        place_key, x0, x1, y0, y1, z0, z1, s0, s1, +record_key, +record_name, +x, +y, +z);
      INSERT INTO record_geo
        SELECT e.place_key, i.x, i.x, i.y, i.y, i.value, i.value, s.scope_key, s.scope_key,
          e.record_key, e.record_name, i.x, i.y, i.value
        FROM record_entry e JOIN record_index i USING (record_key, field_key, kind, value)
        JOIN record_scope s
          ON s.zone_key = e.zone_key AND s.type_key = e.type_key AND s.field_key = e.field_key
        WHERE e.kind = 8;

      -- Words of texts that are there already, cut and folded as new ones are.
      CREATE TABLE record_old_text(
        text_key INTEGER PRIMARY KEY, record_key INTEGER NOT NULL, body TEXT NOT NULL);
      INSERT INTO record_old_text(record_key, body)
        SELECT record_key, value FROM record_index WHERE kind IN (3, 19);
      CREATE VIRTUAL TABLE record_old_fts
        USING fts5(body, tokenize = 'unicode61 remove_diacritics 2');
      INSERT INTO record_old_fts(rowid, body) SELECT text_key, body FROM record_old_text;
      CREATE VIRTUAL TABLE record_old_words USING fts5vocab(record_old_fts, 'instance');
      INSERT OR IGNORE INTO record_entry(
        record_key, field_key, kind, value, zone_key, type_key, record_name)
        SELECT t.record_key, 0, 31, w.term, r.zone_key, r.type_key, r.record_name
        FROM record_old_words w JOIN record_old_text t ON t.text_key = w.doc
        JOIN record r USING (record_key);
      DROP TABLE record_old_words;
      DROP TABLE record_old_fts;
      DROP TABLE record_old_text;

      -- Which fields a record has, by key, each with what it can be found by: v a value, p a
      -- place, l a list.
      CREATE TABLE record_shape(
        shape_key INTEGER PRIMARY KEY,
        zone_key INTEGER NOT NULL,
        type_key INTEGER NOT NULL,
        shape TEXT NOT NULL,
        records INTEGER NOT NULL,
        UNIQUE(zone_key, type_key, shape)
      ) STRICT;
      ALTER TABLE record ADD COLUMN shape_key INTEGER;
      CREATE TABLE record_old_shape(record_key INTEGER PRIMARY KEY, shape TEXT NOT NULL);
      INSERT INTO record_old_shape
        SELECT record_key, group_concat(part, ',') FROM (
          SELECT record_key, field_key ||
            CASE min(kind) WHEN 8 THEN 'p' WHEN 9 THEN 'l' ELSE 'v' END AS part
          FROM record_index GROUP BY record_key, field_key)
        GROUP BY record_key;
      INSERT INTO record_old_shape
        SELECT record_key, '' FROM record
        WHERE deleted = 0 AND record_key NOT IN (SELECT record_key FROM record_old_shape);
      INSERT INTO record_shape(zone_key, type_key, shape, records)
        SELECT zone_key, type_key, shape, count(*)
        FROM record_old_shape JOIN record USING (record_key) GROUP BY 1, 2, 3;
      UPDATE record SET shape_key = (
        SELECT s.shape_key FROM record_old_shape o JOIN record_shape s ON s.shape = o.shape
        WHERE o.record_key = record.record_key AND s.zone_key = record.zone_key
          AND s.type_key = record.type_key)
        WHERE deleted = 0;
      DROP TABLE record_old_shape;
      DROP TABLE record_index;
      CREATE INDEX record_by_shape ON record(shape_key, record_name) WHERE deleted = 0;
      CREATE INDEX record_by_create_time ON record(zone_key, type_key, created_us, record_name)
        WHERE deleted = 0;
      CREATE INDEX record_by_update_time ON record(zone_key, type_key, modified_us, record_name)
        WHERE deleted = 0;
      CREATE INDEX record_by_creator ON record(zone_key, type_key, creator, record_name)
        WHERE deleted = 0;
      CREATE INDEX record_zone_by_change ON record_zone(database_key, change);
      CREATE INDEX record_by_modifier ON record(zone_key, type_key, modifier, record_name)
        WHERE deleted = 0;
      """)

  /// Each entry once, in the order that queries read: what is saved tells where its old entries
  /// stand, so nothing has to find them by record. And what is not in the index yet.
  static let recordEntries = Migration(
    name: "record entries",
    sql: """
      ALTER TABLE record_entry RENAME TO record_old_entry;
      CREATE TABLE record_entry(
        zone_key INTEGER NOT NULL,
        type_key INTEGER NOT NULL,
        -- 0: any field (kind 31, words).
        field_key INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        value ANY NOT NULL,
        record_name TEXT NOT NULL,
        record_key INTEGER NOT NULL,
        -- Of a location: its row in record_geo.
        place_key INTEGER,
        PRIMARY KEY(zone_key, type_key, field_key, kind, value, record_name)
      ) STRICT, WITHOUT ROWID;
      INSERT OR IGNORE INTO record_entry
        SELECT zone_key, type_key, field_key, kind, value, record_name, record_key, place_key
        FROM record_old_entry ORDER BY 1, 2, 3, 4, 5, 6;
      DROP TABLE record_old_entry;
      -- Records of an import that are still to be indexed, as ranges of their keys.
      CREATE TABLE record_pending(
        first_key INTEGER PRIMARY KEY,
        last_key INTEGER NOT NULL,
        zone_key INTEGER NOT NULL
      ) STRICT;
      CREATE INDEX record_pending_by_zone ON record_pending(zone_key);
      """)
}
