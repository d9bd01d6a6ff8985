import VencejoSQLite

extension Schema {
  /// Saved subscriptions, and what they have to tell.
  static let recordSubscriptions = Migration(
    name: "record subscriptions",
    sql: """
      -- Which subscriptions there are, as a number that differs after each change; 0: none.
      ALTER TABLE record_database ADD COLUMN subscriptions INTEGER NOT NULL DEFAULT 0;
      CREATE TABLE record_subscription(
        subscription_key INTEGER PRIMARY KEY,
        database_key INTEGER NOT NULL REFERENCES record_database,
        user_id INTEGER NOT NULL,
        name TEXT NOT NULL,
        definition BLOB NOT NULL,
        message BLOB NOT NULL,
        create_us INTEGER NOT NULL,
        -- Firings nobody acknowledged.
        waiting INTEGER NOT NULL DEFAULT 0,
        UNIQUE(database_key, user_id, name)
      ) STRICT;
      CREATE INDEX record_subscription_by_user ON record_subscription(user_id);
      -- By name and not by key: what fires once is gone when its firing is read.
      CREATE TABLE record_firing(
        firing_key INTEGER PRIMARY KEY,
        uuid BLOB NOT NULL UNIQUE,
        database_key INTEGER NOT NULL,
        user_id INTEGER NOT NULL,
        subscription TEXT NOT NULL,
        position INTEGER NOT NULL,
        collapse TEXT,
        -- Raised the badge.
        counts INTEGER NOT NULL,
        zone TEXT NOT NULL,
        content BLOB NOT NULL,
        fire_us INTEGER NOT NULL
      ) STRICT;
      CREATE INDEX record_firing_by_user ON record_firing(user_id, database_key, position);
      CREATE INDEX record_firing_by_subscription
        ON record_firing(user_id, database_key, subscription, position);
      CREATE UNIQUE INDEX record_firing_by_collapse
        ON record_firing(user_id, database_key, subscription, collapse) WHERE collapse IS NOT NULL;
      CREATE INDEX record_firing_by_age ON record_firing(fire_us);
      CREATE TABLE record_badge(
        user_id INTEGER NOT NULL,
        container_key INTEGER NOT NULL,
        badge INTEGER NOT NULL,
        PRIMARY KEY(user_id, container_key)
      ) STRICT, WITHOUT ROWID;
      """)
}
