import Glibc
import TestSupport
import Testing
import VencejoSQLite

/// A folder that goes away with the test.
final class Scratch {
  private let folder: TemporaryFolder
  var path: String { folder.path }

  init() throws { folder = try TemporaryFolder("sqlite") }

  func file(_ name: String) -> String { path + "/" + name }

  func write(_ name: String, _ bytes: [UInt8]) throws {
    let file = try #require(fopen(self.file(name), "w"))
    fwrite(bytes, 1, bytes.count, file)
    fclose(file)
  }
}

@Suite struct ConnectionTests {
  let scratch: Scratch
  init() throws { scratch = try Scratch() }

  private func error(_ body: () throws -> Void) -> SQLiteError? {
    do {
      try body()
      return nil
    } catch { return error as? SQLiteError }
  }

  @Test func bindsAndReadsEveryStorageClass() throws {
    let db = try Connection(path: scratch.file("a"))
    let values: [SQLiteValue] = [
      .null, .integer(.min), .integer(.max), .real(-1.5), .text(""), .text("né\u{0}日本"),
      .blob([]), .blob([0, 255]),
    ]
    for value in values {
      #expect(try db.first("SELECT ?", value) { $0.value(0) } == value)
    }
    let name: String? = nil
    #expect(try db.first("SELECT ?", name) { $0.isNull(0) } == true)
  }

  @Test func refusesAWrongNumberOfValues() throws {
    let db = try Connection(path: scratch.file("a"))
    #expect(throws: SQLiteError.self) { try db.run("SELECT ?, ?", 1) }
  }

  @Test func aStatementInUseServesASecondTime() throws {
    let db = try Connection(path: scratch.file("a"))
    try db.execute("CREATE TABLE t(x); INSERT INTO t VALUES (1), (2), (3)")
    func rows() throws -> [Int64] { try db.all("SELECT x FROM t ORDER BY x") { $0.int(0) } }
    let pairs = try db.all("SELECT x FROM t ORDER BY x") { row in (row.int(0), try? rows()) }
    #expect(pairs.map(\.0) == [1, 2, 3])
    #expect(pairs.allSatisfy { $0.1 == [1, 2, 3] })
  }

  @Test func savepointsUndoOneUnitOnly() throws {
    let db = try Connection(path: scratch.file("a"))
    try db.execute("CREATE TABLE t(x UNIQUE)")
    try db.transaction(.immediate) { () throws(SQLiteError) in
      try db.savepoint()
      try db.run("INSERT INTO t VALUES (1)")
      try db.releaseSavepoint()
      try db.savepoint()
      try db.run("INSERT INTO t VALUES (2)")
      try db.rollbackToSavepoint()
    }
    #expect(try db.all("SELECT x FROM t") { $0.int(0) } == [1])
    let failure = error { try db.run("INSERT INTO t VALUES (1)") }
    #expect(failure?.kind == .constraint)
  }

  @Test func namesTheFolderItCannotOpen() throws {
    let failure = error { _ = try Connection(path: "/proc/nowhere/x") }
    #expect(failure?.kind == .cannotOpen)
    #expect(failure?.message.contains("/proc/nowhere/x") == true)
  }

  @Test func refusesAFileThatIsNoDatabase() throws {
    try scratch.write("junk", Array("this is not a database, far from it".utf8) + Array(0..<255))
    #expect(error { _ = try Connection(path: scratch.file("junk")) }?.kind == .notADatabase)
  }

  @Test func migratesForwardOnceAndKeepsABackup() throws {
    let one = Migration(name: "one", sql: "CREATE TABLE a(x)")
    let two = Migration(name: "two", sql: "CREATE TABLE b(x)")
    do {
      let db = try Connection(path: scratch.file("a"))
      try db.migrate([one], application: 7)
      try db.run("INSERT INTO a VALUES (42)")
      #expect(try db.schemaVersion() == 1)
      #expect(access(scratch.file("a.before-1"), F_OK) != 0)
    }
    do {
      let db = try Connection(path: scratch.file("a"))
      try db.migrate([one, two], application: 7)
      try db.migrate([one, two], application: 7)
      #expect(try db.schemaVersion() == 2)
      #expect(try db.first("SELECT count(*) FROM b") { $0.int(0) } == 0)
    }
    let backup = try Connection(path: scratch.file("a.before-2"), mode: .readWrite)
    #expect(try backup.schemaVersion() == 1)
    #expect(try backup.first("SELECT x FROM a") { $0.int(0) } == 42)
    let old = error {
      try Connection(path: scratch.file("a")).migrate([one], application: 7)
    }
    #expect(old?.kind == .newerSchema(found: 2, supported: 1))
  }

  @Test func aFailedMigrationLeavesNothing() throws {
    let bad = Migration(name: "bad", sql: "CREATE TABLE a(x); CREATE TABLE a(x)")
    let db = try Connection(path: scratch.file("a"))
    #expect(throws: SQLiteError.self) { try db.migrate([bad], application: 7) }
    #expect(try db.schemaVersion() == 0)
    #expect(try db.first("SELECT count(*) FROM sqlite_schema") { $0.int(0) } == 0)
    #expect(!db.isInTransaction)
  }

  @Test func leavesAnotherProgramsDatabaseAlone() throws {
    do {
      let db = try Connection(path: scratch.file("a"))
      try db.execute("CREATE TABLE theirs(x)")
    }
    let db = try Connection(path: scratch.file("a"))
    let failure = error { try db.migrate([Migration(name: "x", sql: "")], application: 7) }
    #expect(failure?.kind == .notADatabase)
  }

  @Test func aDeadlineInterruptsALongStatement() throws {
    let db = try Connection(path: scratch.file("a"))
    db.setDeadline(Connection.monotonicNanoseconds() + 10_000_000)
    let failure = error {
      _ = try db.first(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n"
      ) { $0.int(0) }
    }
    #expect(failure?.kind == .interrupted)
    db.setDeadline(nil)
    #expect(try db.first("SELECT 1") { $0.int(0) } == 1)
  }
}
