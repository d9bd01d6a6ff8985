import VencejoSQLite

extension Schema {
  /// Containers with what their operators decide: environment, schema, roles.
  static let recordContainers = Migration(
    name: "record containers",
    sql: """
      ALTER TABLE record_container ADD COLUMN display_name TEXT NOT NULL DEFAULT '';
      -- RecordEnvironment.
      ALTER TABLE record_container ADD COLUMN environment INTEGER NOT NULL DEFAULT 1;
      ALTER TABLE record_container ADD COLUMN update_us INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE record_container ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
      -- Bytes that each of its databases may hold.
      ALTER TABLE record_container ADD COLUMN quota INTEGER NOT NULL DEFAULT 10737418240;
      UPDATE record_container SET update_us = create_us;
      CREATE TABLE record_container_admin(
        container_key INTEGER NOT NULL,
        user TEXT NOT NULL,
        PRIMARY KEY(container_key, user)
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE record_schema(
        container_key INTEGER NOT NULL,
        environment INTEGER NOT NULL,
        -- Of the body; what is known by it needs not be read again.
        digest INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY(container_key, environment)
      ) STRICT;
      """)
}
