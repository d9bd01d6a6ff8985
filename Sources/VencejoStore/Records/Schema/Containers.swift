import VencejoSQLite

/// A container as operators see it.
public struct RecordContainer: Sendable, Hashable {
  /// Internal key.
  public var key: Int64
  public var container: String
  public var displayName: String
  public var environment: RecordEnvironment
  /// Identifiers of users who may change the schema, beside the server's administrators.
  public var administrators: [String]
  /// Bytes that each of its databases may hold.
  public var quota: Int64
  /// Microseconds since 1970.
  public var createTime: Int64
  public var updateTime: Int64
  var version: Int64

  public var name: String { "containers/\(container)" }
  /// Differs after each change.
  public var etag: String { String(key, radix: 36) + "-" + String(version, radix: 36) }
}

/// What an operator changes of a container; nil leaves it.
public struct ContainerChange: Sendable {
  public var displayName: String?
  public var environment: RecordEnvironment?
  public var administrators: [String]?
  public var quota: Int64?

  public init(
    displayName: String? = nil, environment: RecordEnvironment? = nil,
    administrators: [String]? = nil, quota: Int64? = nil
  ) {
    self.displayName = displayName
    self.environment = environment
    self.administrators = administrators
    self.quota = quota
  }
}

extension ReadTransaction {
  /// A container.
  ///
  /// - Throws: `CONTAINER_NOT_FOUND`.
  public func container(_ container: String) throws(StoreError) -> RecordContainer {
    guard let found = try containers("WHERE name = ?", [container]).first else {
      throw .containerNotFound(container)
    }
    return found
  }

  /// Containers by name, after `name`.
  public func containers(after name: String, limit: Int) throws(StoreError) -> [RecordContainer] {
    // A deleted one begins with ~, which no name does.
    try containers("WHERE name > ? AND name < '~' ORDER BY name LIMIT ?", [name, limit])
  }

  private func containers(
    _ clause: String, _ values: [any SQLiteBindable]
  ) throws(StoreError) -> [RecordContainer] {
    var found: [RecordContainer] = []
    try each(
      dynamic: """
        SELECT container_key, name, display_name, environment, quota, create_us, update_us, version
        FROM record_container \(clause)
        """, values
    ) {
      found.append(
        RecordContainer(
          key: $0.int(0), container: $0.text(1), displayName: $0.text(2),
          environment: RecordEnvironment(rawValue: $0.int(3)) ?? .production,
          administrators: [], quota: $0.int(4), createTime: $0.int(5), updateTime: $0.int(6),
          version: $0.int(7)))
      return true
    }
    for index in found.indices {
      found[index].administrators = try all(
        "SELECT user FROM record_container_admin WHERE container_key = ? ORDER BY user",
        found[index].key
      ) { $0.text(0) }
    }
    return found
  }

  /// The schema of one environment; an empty one when nothing is in it.
  public func schema(
    of container: RecordContainer, _ environment: RecordEnvironment
  ) throws(StoreError) -> RecordSchema {
    try schema(ofContainer: container.key, environment)
  }

  func schema(
    ofContainer key: Int64, _ environment: RecordEnvironment
  ) throws(StoreError) -> RecordSchema {
    let digest = try first(
      "SELECT digest FROM record_schema WHERE container_key = ? AND environment = ?", key,
      environment.rawValue
    ) { $0.int(0) }
    guard let digest else { return RecordSchema() }
    if let known = RecordSchema.known(digest) { return known }
    let body = try first(
      "SELECT body FROM record_schema WHERE container_key = ? AND environment = ?", key,
      environment.rawValue
    ) { $0.blob(0) }
    guard let body, let schema = RecordSchema(bytes: body) else { throw .damagedRecord }
    RecordSchema.remember(schema, digest)
    return schema
  }

  func isAdministrator(_ caller: RecordCaller, ofContainer key: Int64) throws(StoreError) -> Bool {
    if caller.isAdministrator { return true }
    return try first(
      "SELECT 1 FROM record_container_admin WHERE container_key = ? AND user = ?", key,
      caller.user
    ) { _ in true } ?? false
  }

  /// Throws unless the caller may change the container and its schema.
  public func checkAdministrator(
    _ caller: RecordCaller, of container: RecordContainer
  ) throws(StoreError) {
    guard try isAdministrator(caller, ofContainer: container.key) else {
      throw StoreError(
        .permissionDenied, "NOT_AN_ADMINISTRATOR",
        "only administrators of \(container.name) do this",
        metadata: ["resource": container.name])
    }
  }

  func checkEtag(_ etag: String, _ container: RecordContainer) throws(StoreError) {
    guard etag.isEmpty || etag == container.etag else {
      throw StoreError(
        .aborted, "ETAG_MISMATCH", "\(container.name) was changed since this etag",
        metadata: ["resource": container.name])
    }
  }
}

extension WriteTransaction {
  /// Makes a container; for administrators of the server.
  ///
  /// - Throws: `NOT_AN_ADMINISTRATOR`, `CONTAINER_EXISTS`, `INVALID_REQUEST`.
  public func createContainer(
    _ container: String, _ change: ContainerChange, caller: RecordCaller
  ) throws(StoreError) -> RecordContainer {
    guard RecordNaming.isContainer(container) else {
      throw StoreError(
        RecordViolation(
          "container_id",
          "a container identifier is 1 to 128 of A-Z a-z 0-9 . _ - and starts with a letter or"
            + " digit"))
    }
    guard caller.isAdministrator else {
      throw StoreError(
        .permissionDenied, "NOT_AN_ADMINISTRATOR", "only administrators make containers")
    }
    let exists = try first("SELECT 1 FROM record_container WHERE name = ?", container) { _ in true }
    guard exists == nil else {
      throw StoreError(
        .alreadyExists, "CONTAINER_EXISTS", "containers/\(container) exists already",
        metadata: ["resource": "containers/\(container)"],
        details: [
          .resource(type: "vencejo.record.v1.Container", name: "containers/\(container)")
        ])
    }
    try run(
      "INSERT INTO record_container(name, create_us, update_us) VALUES (?, ?, ?)", container, now,
      now)
    try apply(change, to: lastInsertRowID)
    return try self.container(container)
  }

  /// Changes a container.
  ///
  /// - Throws: `CONTAINER_NOT_FOUND`, `NOT_AN_ADMINISTRATOR`, `ETAG_MISMATCH`, `INVALID_REQUEST`.
  public func updateContainer(
    _ name: String, etag: String, _ change: ContainerChange, caller: RecordCaller
  ) throws(StoreError) -> RecordContainer {
    let container = try container(name)
    try checkAdministrator(caller, of: container)
    try checkEtag(etag, container)
    try apply(change, to: container.key)
    // Another schema counts from here on.
    if change.environment ?? container.environment != container.environment {
      try tellAccess(ofContainer: container.key)
    }
    return try self.container(name)
  }

  private func apply(_ change: ContainerChange, to key: Int64) throws(StoreError) {
    if let name = change.displayName {
      guard name.utf8.count <= 255 else {
        throw StoreError(
          RecordViolation("container.display_name", "a display name has at most 255 bytes"))
      }
      try run("UPDATE record_container SET display_name = ? WHERE container_key = ?", name, key)
    }
    if let environment = change.environment {
      try run(
        "UPDATE record_container SET environment = ? WHERE container_key = ?",
        environment.rawValue, key)
    }
    if let quota = change.quota {
      guard quota > 0 else {
        throw StoreError(
          RecordViolation("container.limits.max_database_bytes", "a quota is more than 0 bytes"))
      }
      try run("UPDATE record_container SET quota = ? WHERE container_key = ?", quota, key)
    }
    if let users = change.administrators {
      guard users.count <= 100 else { throw .tooMany("administrators", limit: 100) }
      try run("DELETE FROM record_container_admin WHERE container_key = ?", key)
      for user in Set(users) {
        try run(
          "INSERT INTO record_container_admin(container_key, user) VALUES (?, ?)", key, user)
      }
    }
    try run(
      "UPDATE record_container SET update_us = ?, version = version + 1 WHERE container_key = ?",
      now, key)
  }

  /// Deletes a container with everything in it.
  ///
  /// - Throws: `CONTAINER_NOT_FOUND`, `NOT_AN_ADMINISTRATOR`, `ETAG_MISMATCH`,
  ///   `CONTAINER_NOT_EMPTY` without `force`.
  public func deleteContainer(
    _ name: String, etag: String, force: Bool, caller: RecordCaller
  ) throws(StoreError) {
    let container = try container(name)
    guard caller.isAdministrator else {
      throw StoreError(
        .permissionDenied, "NOT_AN_ADMINISTRATOR", "only administrators delete containers",
        metadata: ["resource": container.name])
    }
    try checkEtag(etag, container)
    let isUsed = try first(
      """
      SELECT 1 FROM record_shape s JOIN record_zone z USING (zone_key)
        JOIN record_database d USING (database_key)
      WHERE d.container_key = ? AND s.records > 0 LIMIT 1
      """, container.key
    ) { _ in true }
    guard isUsed == nil || force else {
      throw StoreError(
        .failedPrecondition, "CONTAINER_NOT_EMPTY",
        "\(container.name) holds records: set force to delete them too",
        metadata: ["resource": container.name])
    }
    try emptyContainer(container, remakeDefault: false)
    for table in ["record_container_admin", "record_schema", "record_badge"] {
      try run(dynamic: "DELETE FROM \(table) WHERE container_key = ?", [container.key])
    }
    // The log speaks of its zones: what is left of it stays under a name that nobody can ask for.
    try run(
      "UPDATE record_container SET name = '~' || container_key WHERE container_key = ?",
      container.key)
  }

  /// Deletes every zone of every database.
  func emptyContainer(
    _ container: RecordContainer, remakeDefault: Bool
  ) throws(StoreError) {
    let databases = try all(
      "SELECT database_key, name FROM record_database WHERE container_key = ?", container.key
    ) { (key: $0.int(0), name: $0.text(1)) }
    for row in databases {
      guard let id = try? DatabaseID(container: container.container, database: row.name) else {
        throw .damagedRecord
      }
      let database = RecordDatabase(id: id, key: row.key)
      while true {
        let zones = try recordZones(in: database, after: "", limit: 1_000)
        for zone in zones { try purge(zone, in: database) }
        guard zones.count == 1_000 else { break }
      }
      if remakeDefault { try insertZone(ZoneID.defaultZone, in: database) }
      try run("DELETE FROM record_subscription WHERE database_key = ?", row.key)
      try run("DELETE FROM record_firing WHERE database_key = ?", row.key)
      try run("UPDATE record_database SET subscriptions = 0 WHERE database_key = ?", row.key)
    }
  }
}

extension WriteTransaction {
  /// Replaces the development schema; with `validateOnly` only says what would change.
  ///
  /// - Throws: `CONTAINER_NOT_FOUND`, `NOT_AN_ADMINISTRATOR`, `ETAG_MISMATCH`, `INVALID_REQUEST`.
  public func updateSchema(
    _ name: String, _ schema: RecordSchema, etag: String, validateOnly: Bool,
    caller: RecordCaller
  ) throws(StoreError) -> [SchemaChange] {
    let container = try container(name)
    try checkAdministrator(caller, of: container)
    let old = try self.schema(of: container, .development)
    guard etag.isEmpty || etag == old.etag else {
      throw StoreError(
        .aborted, "ETAG_MISMATCH", "the schema was changed since this etag",
        metadata: ["resource": container.name])
    }
    do throws(RecordViolation) { try schema.check() } catch { throw StoreError(error) }
    let changes = SchemaChange.changes(from: old, to: schema)
    if !validateOnly, !changes.isEmpty {
      try keep(schema, of: container.key, .development)
      if container.environment == .development { try tellAccess(ofContainer: container.key) }
    }
    return changes
  }

  /// Copies the development schema to production: what production has stays.
  ///
  /// - Throws: `CONTAINER_NOT_FOUND`, `NOT_AN_ADMINISTRATOR`, `SCHEMA_NOT_ADDITIVE`.
  public func deploySchema(
    _ name: String, validateOnly: Bool, caller: RecordCaller
  ) throws(StoreError) -> [SchemaChange] {
    let container = try container(name)
    try checkAdministrator(caller, of: container)
    let development = try schema(of: container, .development)
    let production = try schema(of: container, .production)
    let changes = SchemaChange.changes(from: production, to: development)
    if let first = changes.first(where: \.isDestructive) {
      throw StoreError(
        .failedPrecondition, "SCHEMA_NOT_ADDITIVE",
        "production only grows: \(first.description)",
        metadata: ["record_type": first.type, "field": first.field],
        details: [.field(first.type, description: first.description)])
    }
    if !validateOnly, !changes.isEmpty {
      try keep(development.deployed, of: container.key, .production)
      if container.environment == .production { try tellAccess(ofContainer: container.key) }
    }
    return changes
  }

  /// Drops every record of a container in development, and goes back to the production schema.
  ///
  /// - Throws: `CONTAINER_NOT_FOUND`, `NOT_AN_ADMINISTRATOR`, `NOT_IN_DEVELOPMENT`.
  public func resetDevelopment(_ name: String, caller: RecordCaller) throws(StoreError) {
    let container = try container(name)
    try checkAdministrator(caller, of: container)
    guard container.environment == .development else {
      throw StoreError(
        .failedPrecondition, "NOT_IN_DEVELOPMENT",
        "\(container.name) is in production: its records stay",
        metadata: ["resource": container.name])
    }
    try emptyContainer(container, remakeDefault: true)
    try keep(schema(of: container, .production), of: container.key, .development)
    try tellAccess(ofContainer: container.key)
  }

  func keep(
    _ schema: RecordSchema, of container: Int64, _ environment: RecordEnvironment
  ) throws(StoreError) {
    let bytes = schema.bytes
    try run(
      """
      INSERT INTO record_schema(container_key, environment, digest, body) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET digest = excluded.digest, body = excluded.body
      """, container, environment.rawValue, RecordSchema.digest(bytes), bytes)
  }

  /// Tells the streams of the public database that other rights count now: they start afresh.
  private func tellAccess(ofContainer key: Int64) throws(StoreError) {
    let zone = try first(
      """
      SELECT zone_key, database_key FROM record_zone JOIN record_database USING (database_key)
      WHERE container_key = ? AND name = ? AND zone = ? AND deleted = 0
      """, key, DatabaseID.publicName, ZoneID.defaultZone
    ) { (zone: $0.int(0), database: $0.int(1)) }
    guard let zone else { return }
    append(
      .accessChanged, zone: zone.zone,
      payload: RecordsTouched(database: zone.database, change: .accessChanged))
  }
}

extension ReadTransaction {
  /// Whether a user, by internal key, administers the server.
  func isServerAdministrator(_ user: Int64) throws(StoreError) -> Bool {
    try first("SELECT role FROM user WHERE user_id = ?", user) {
      $0.int(0) == ServerRole.administrator.rawValue
    } ?? false
  }
}
