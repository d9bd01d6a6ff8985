import Testing

@testable import VencejoStore

/// Containers, schemas, and what they allow.
@Suite struct SchemaTests {
  private func bench() async throws -> RecordBench {
    let bench = try RecordBench()
    try await bench.makeZone()
    return bench
  }

  private func schema(
    _ bench: RecordBench, _ environment: RecordEnvironment = .development
  ) async throws -> RecordSchema {
    try await bench.store.read {
      try $0.schema(of: $0.container("notes"), environment)
    }
  }

  private func write<R: Sendable>(
    _ bench: RecordBench, _ body: @Sendable @escaping (WriteTransaction) throws -> R
  ) async throws -> R {
    try await bench.store.write(body)
  }

  @Test func developmentLearnsFromSaves() async throws {
    let bench = try await bench()
    try await bench.save([
      bench.record(
        "a",
        [
          "s": .string(""), "i": .int64(1), "d": .double(1), "b": .bytes([]), "t": .timestamp(0),
          "p": .location(RecordLocation(latitude: 0, longitude: 0)),
          "r": .reference(RecordReference(zone: "z", record: "x")),
          "l": .list([.string("")]), "e": .list([]),
        ])
    ])
    let fields = try #require(try await schema(bench).types["Note"]?.fields)
    #expect(
      fields.mapValues(\.kind) == [
        "s": .string, "i": .int64, "d": .double, "b": .bytes, "t": .timestamp, "p": .location,
        "r": .reference, "l": .string,
      ])
    #expect(fields["l"]?.isList == true && fields["l"]?.isSortable == false)
    #expect(fields.values.allSatisfy { $0.isInferred && $0.isQueryable })
    #expect(fields.filter { $0.value.isSearchable }.keys.sorted() == ["l", "s"])
    // Another type for a field is a mistake, and leaves nothing behind.
    let wrong = try await bench.save([bench.record("b", ["s": .int64(1), "new": .int64(1)])])
    #expect(wrong[0].reason == "TYPE_MISMATCH")
    #expect(try await schema(bench).types["Note"]?.fields["new"] == nil)
    // An empty list fits any list, and nothing else.
    #expect(
      try await bench.save([bench.record("c", ["l": .list([]), "e": .list([.int64(1)])])])[0].saved
        != nil)
    #expect(
      try await bench.save([bench.record("d", ["l": .string("")])])[0].reason == "TYPE_MISMATCH")
  }

  @Test func productionKnowsWhatWasDeployed() async throws {
    let bench = try await bench()
    let caller = bench.caller
    try await bench.save([bench.record("a", ["n": .int64(1)])])
    let changes = try await write(bench) {
      try $0.deploySchema("notes", validateOnly: false, caller: caller)
    }
    #expect(changes.map(\.kind) == [.typeAdded, .fieldAdded])
    #expect(try await schema(bench, .production).types["Note"]?.fields["n"]?.isInferred == false)
    try await bench.save([bench.record("b", ["later": .int64(1)])])
    _ = try await write(bench) {
      try $0.updateContainer(
        "notes", etag: "", ContainerChange(environment: .production), caller: caller)
    }
    #expect(try await bench.save([bench.record("c", ["n": .int64(2)])])[0].saved != nil)
    #expect(
      try await bench.save([bench.record("d", ["later": .int64(2)])])[0].reason == "UNKNOWN_FIELD")
    var other = try bench.record("e")
    other.type = "Other"
    #expect(try await bench.save([other])[0].reason == "UNKNOWN_RECORD_TYPE")
    #expect(
      await reason { _ = try await bench.query(RecordQuery(type: "Other")) }
        == "UNKNOWN_RECORD_TYPE")
    // What a record has already may stay: only what is written is checked.
    let kept = try bench.record("b", ["n": .int64(5)])
    #expect(try await bench.save([kept], policy: .changedKeys)[0].saved?.fields.count == 2)
    #expect(
      await reason {
        try await bench.store.write { try $0.resetDevelopment("notes", caller: caller) }
      } == "NOT_IN_DEVELOPMENT")
  }

  @Test func deploymentOnlyAdds() async throws {
    let bench = try await bench()
    let caller = bench.caller
    func deploy(_ text: String) async throws -> [SchemaChange.Kind] {
      try await write(bench) {
        _ = try $0.updateSchema(
          "notes", RecordSchema(text: text), etag: "", validateOnly: false, caller: caller)
        return try $0.deploySchema("notes", validateOnly: false, caller: caller).map(\.kind)
      }
    }
    try await bench.save([bench.record("a")])
    #expect(
      try await deploy("DEFINE SCHEMA RECORD TYPE Note (a STRING, b INT64 QUERYABLE)")
        == [.typeAdded, .fieldAdded, .fieldAdded])
    #expect(
      try await deploy(
        "DEFINE SCHEMA CREATE ROLE x; RECORD TYPE Note (a STRING QUERYABLE, b INT64, GRANT READ TO x)"
      ) == [.indexChanged, .indexChanged, .grantChanged, .roleChanged])
    for text in [
      "DEFINE SCHEMA", "DEFINE SCHEMA RECORD TYPE Note (a STRING)",
      "DEFINE SCHEMA RECORD TYPE Note (a INT64, b INT64)",
      "DEFINE SCHEMA RECORD TYPE Note (a LIST<STRING>, b INT64)",
    ] {
      #expect(await reason { _ = try await deploy(text) } == "SCHEMA_NOT_ADDITIVE")
    }
    // What is refused is undone as a whole.
    #expect(try await schema(bench).types["Note"]?.fields.count == 2)
  }

  @Test func onlyMarkedFieldsAreAskedFor() async throws {
    let bench = try await bench()
    let caller = bench.caller
    try await bench.save([
      bench.record("a", ["plain": .string("x word"), "found": .string("word")]),
      bench.record("b", ["plain": .string("word y")]),
    ])
    _ = try await write(bench) {
      try $0.updateSchema(
        "notes",
        RecordSchema(
          text: "DEFINE SCHEMA RECORD TYPE Note (plain STRING, found STRING QUERYABLE SEARCHABLE)"),
        etag: "", validateOnly: false, caller: caller)
    }
    func refused(_ predicate: Predicate?, _ sort: [SortKey] = []) async -> String? {
      await reason {
        _ = try await bench.query(RecordQuery(type: "Note", predicate: predicate, sort: sort))
      }
    }
    let equal = Predicate.comparison(field: "plain", .equal, .string("x"))
    #expect(await refused(equal) == "FIELD_NOT_QUERYABLE")
    #expect(
      await refused(.anyOf([.not(.allOf([equal])), .present(field: "found")]))
        == "FIELD_NOT_QUERYABLE")
    #expect(await refused(nil, [SortKey("found")]) == "FIELD_NOT_SORTABLE")
    #expect(
      await refused(.search(words: ["word"], all: true, fields: ["plain"]))
        == "FIELD_NOT_SEARCHABLE")
    #expect(await refused(.comparison(field: "found", .equal, .string("word"))) == nil)
    let page = try await bench.query(
      RecordQuery(type: "Note", predicate: .search(words: ["word"], all: true, fields: [])))
    #expect(page.records.map(\.id.record) == ["a"])
    // Live targets are held to the same.
    let feed = try RecordFeed(
      database: bench.database,
      targets: [(1, .query(RecordQuery(type: "Note", predicate: equal)))])
    #expect(
      await reason {
        _ = try await bench.store.readRecords(bench.database, caller: caller) {
          try feed.prepared(in: $1)
        }
      } == "FIELD_NOT_QUERYABLE")
  }

  /// The worked example of roles: editors write, everybody else sees what is their own.
  @Test func rolesDecideInThePublicDatabase() async throws {
    let bench = try await bench()
    let admin = bench.caller
    let database = try DatabaseID(container: "notes", database: "public")
    let zone = try ZoneID(database: database, zone: ZoneID.defaultZone)
    var schema = try RecordSchema(
      text: """
        DEFINE SCHEMA
          CREATE ROLE editors;
          RECORD TYPE Draft ( n INT64 QUERYABLE,
            GRANT CREATE TO _authenticated, GRANT READ TO "_creator",
            GRANT READ, WRITE TO editors );
          RECORD TYPE Secret ( n INT64, GRANT READ TO editors );
        """)
    schema.roles["editors"] = ["eve"]
    let given = schema
    try await write(bench) {
      _ = try $0.updateSchema("notes", given, etag: "", validateOnly: false, caller: admin)
    }
    func who(_ name: String, _ key: Int64) -> RecordCaller {
      RecordCaller(key: key, user: name, isAdministrator: false)
    }
    let (eve, bob, cat) = (who("eve", 2), who("bob", 3), who("cat", 4))
    func save(_ name: String, _ type: String, by caller: RecordCaller) async throws -> String? {
      let record = StoredRecord(
        id: try RecordID(zone: zone, record: name), type: type, fields: ["n": .int64(1)])
      let batch = ModifyBatch(operations: [.save(record, changedKeys: [], .replace)])
      return try await bench.store.writeRecords(database, caller: caller) {
        try $0.modifyRecords(batch, in: $1, caller: caller).results[0]
      }.reason
    }
    func seen(_ type: String, by caller: RecordCaller) async throws -> [String] {
      try await bench.store.readRecords(database, caller: caller) {
        try $0.queryRecords(
          RecordQuery(type: type), zone: nil, in: $1, pageSize: 10, pageToken: ""
        ).records.map(\.id.record)
      }
    }
    #expect(try await save("b", "Draft", by: bob) == nil)
    #expect(try await save("c", "Draft", by: cat) == nil)
    #expect(try await save("b", "Draft", by: bob) == "PERMISSION_FAILURE")
    #expect(try await save("b", "Draft", by: eve) == nil)
    #expect(try await save("s", "Secret", by: bob) == "PERMISSION_FAILURE")
    #expect(try await save("s", "Secret", by: admin) == nil)
    #expect(try await seen("Draft", by: bob) == ["b"])
    #expect(try await seen("Draft", by: cat) == ["c"])
    #expect(try await seen("Draft", by: eve) == ["b", "c"])
    #expect(try await seen("Secret", by: eve) == ["s"])
    #expect(await reason { _ = try await seen("Secret", by: bob) } == "PERMISSION_FAILURE")
    let secret = try RecordID(zone: zone, record: "s")
    #expect(
      await reason {
        _ = try await bench.store.readRecords(database, caller: bob) {
          try $0.record(secret, in: $1)
        }
      } == "RECORD_NOT_FOUND")
    #expect(
      try await bench.store.readRecords(database, caller: bob) {
        try $0.countRecords(RecordQuery(type: "Draft"), zone: nil, in: $1, limit: 0).count
      } == 1)
    // The log tells a follower of what they may read, and of a change of that.
    let feed = try RecordFeed(database: database, targets: [(1, .zone(zone))])
    func frames(_ caller: RecordCaller, after: Int64) async throws -> (Int, Bool) {
      try await bench.store.readRecords(database, caller: caller) {
        let page = try $0.feedPage(feed, in: $1, after: after, limit: 100)
        return (
          try $0.frames(page.entries[...], of: feed, in: $1, caller: caller).frames.count,
          page.isReset
        )
      }
    }
    let head = try await bench.store.read { try $0.head() }
    #expect(try await save("c2", "Draft", by: cat) == nil)
    #expect(try await frames(bob, after: head) == (0, false))
    #expect(try await frames(cat, after: head) == (1, false))
    try await write(bench) {
      _ = try $0.updateSchema(
        "notes", RecordSchema(text: given.text), etag: "", validateOnly: false, caller: admin)
    }
    #expect(try await frames(cat, after: head).1)
    // A text keeps no users, so the role is empty now.
    #expect(try await seen("Draft", by: eve) == [])
  }

  @Test func containersAreMadeChangedAndDeleted() async throws {
    let bench = try await bench()
    let admin = bench.caller
    let eve = RecordCaller(key: 2, user: "eve", isAdministrator: false)
    let made = try await write(bench) {
      try $0.createContainer(
        "second", ContainerChange(displayName: "Second", administrators: ["eve"]), caller: admin)
    }
    #expect(made.displayName == "Second" && made.environment == .development)
    #expect(
      await reason {
        try await write(bench) {
          _ = try $0.createContainer("second", ContainerChange(), caller: admin)
        }
      } == "CONTAINER_EXISTS")
    #expect(
      await reason {
        try await write(bench) {
          _ = try $0.createContainer("third", ContainerChange(), caller: eve)
        }
      } == "NOT_AN_ADMINISTRATOR")
    let changed = try await write(bench) {
      try $0.updateContainer(
        "second", etag: made.etag, ContainerChange(displayName: "2"), caller: eve)
    }
    #expect(changed.displayName == "2" && changed.administrators == ["eve"])
    #expect(
      await reason {
        try await write(bench) {
          _ = try $0.updateContainer(
            "second", etag: made.etag, ContainerChange(displayName: "3"), caller: eve)
        }
      } == "ETAG_MISMATCH")
    #expect(
      await reason {
        try await write(bench) {
          _ = try $0.updateContainer(
            "notes", etag: "", ContainerChange(displayName: "3"), caller: eve)
        }
      } == "NOT_AN_ADMINISTRATOR")
    try await bench.save([bench.record("a")])
    func delete(_ name: String, force: Bool) async -> String? {
      await reason {
        try await write(bench) {
          try $0.deleteContainer(name, etag: "", force: force, caller: admin)
        }
      }
    }
    #expect(await delete("notes", force: false) == "CONTAINER_NOT_EMPTY")
    #expect(await delete("notes", force: true) == nil)
    #expect(await delete("second", force: false) == nil)
    #expect(try await bench.store.read { try $0.containers(after: "", limit: 10) }.isEmpty)
    // Another one of the name has nothing of it.
    try await bench.makeZone()
    #expect(try await bench.query(RecordQuery(type: "Note")).records.isEmpty)
  }

  @Test func resettingGoesBackToProduction() async throws {
    let bench = try await bench()
    let caller = bench.caller
    try await bench.save([bench.record("a", ["n": .int64(1)])])
    try await write(bench) {
      _ = try $0.deploySchema("notes", validateOnly: false, caller: caller)
    }
    try await bench.save([bench.record("b", ["later": .int64(1)])])
    try await bench.subscribe(
      SavedSubscription(
        id: SubscriptionID(database: bench.database, subscription: "s"),
        kind: .database(type: nil)))
    try await write(bench) { try $0.resetDevelopment("notes", caller: caller) }
    #expect(try await schema(bench).types["Note"]?.fields.keys.sorted() == ["n"])
    #expect(
      await reason { _ = try await bench.query(RecordQuery(type: "Note")) } == "ZONE_NOT_FOUND")
    try await bench.makeZone()
    #expect(try await bench.query(RecordQuery(type: "Note")).records.isEmpty)
    #expect(try await bench.firings().firings.isEmpty)
  }

  /// The text is CloudKit's: this is what `cktool export-schema` writes, shortened.
  @Test func textsComeBack() throws {
    let text = """
      DEFINE SCHEMA

          CREATE ROLE DeveloperRelations;

          RECORD TYPE Users (
              "___createTime" TIMESTAMP,
              "___recordID"   REFERENCE QUERYABLE,
              roles           LIST<INT64>, -- of the user
              name            STRING QUERYABLE SEARCHABLE SORTABLE,
              GRANT WRITE TO "_creator",
              GRANT READ, CREATE TO DeveloperRelations,
              GRANT READ TO "_icloud"
          );
      """
    let schema = try RecordSchema(text: text)
    #expect(Array(schema.types.keys) == ["Users"] && schema.roles == ["DeveloperRelations": []])
    #expect(
      schema.types["Users"]?.fields == [
        "roles": .init(.int64, isList: true),
        "name": .init(.string, queryable: true, sortable: true, searchable: true),
      ])
    #expect(
      schema.types["Users"]?.grants == [
        "_creator": .write, "DeveloperRelations": [.read, .create], "_authenticated": .read,
      ])
    #expect(try RecordSchema(text: schema.text) == schema)
    #expect(RecordSchema(bytes: schema.bytes) == schema)
    for bad in [
      "", "DEFINE", "DEFINE SCHEMA RECORD TYPE", "DEFINE SCHEMA RECORD TYPE A (b)",
      "DEFINE SCHEMA RECORD TYPE A (b NUMBER)", "DEFINE SCHEMA RECORD TYPE A (b LIST<INT64)",
      "DEFINE SCHEMA RECORD TYPE A (b INT64", "DEFINE SCHEMA RECORD TYPE A (b INT64, b INT64)",
      "DEFINE SCHEMA RECORD TYPE A (GRANT FLY TO x)", "DEFINE SCHEMA CREATE ROLE x",
      "DEFINE SCHEMA RECORD TYPE A (\"b", "DEFINE SCHEMA RECORD TYPE A (); RECORD TYPE A ();",
    ] {
      #expect(throws: RecordViolation.self) { try RecordSchema(text: bad) }
    }
    #expect(throws: RecordViolation.self) {
      try RecordSchema(text: "DEFINE SCHEMA RECORD TYPE A (b INT64 SEARCHABLE)").check()
    }
    #expect(throws: RecordViolation.self) {
      try RecordSchema(text: "DEFINE SCHEMA RECORD TYPE A (GRANT READ TO nobody)").check()
    }
  }
}
