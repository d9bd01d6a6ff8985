import CSQLite
import Glibc

/// One step of a schema, forward only. Its number is its place in the list, from 1.
public struct Migration: Sendable {
  /// For people who look into the file.
  public let name: String
  /// The statements.
  public let sql: String

  public init(name: String, sql: String) {
    self.name = name
    self.sql = sql
  }
}

extension Connection {
  /// Brings the schema to the last of `migrations`, each in a transaction of its own, and
  /// copies an existing file to `<path>.before-<version>` first.
  ///
  /// `application` marks the file as ours (PRAGMA application_id), so that another program's
  /// database is never touched.
  ///
  /// - Throws: ``SQLiteError`` with `.newerSchema` when the file knows more than we do,
  ///   `.notADatabase` when it is another program's.
  public func migrate(_ migrations: [Migration], application: Int32) throws(SQLiteError) {
    let version = try compatibleVersion(migrations, application)
    guard version < migrations.count else { return }
    if version > 0 {
      let backup = "\(path).before-\(migrations.count)"
      unlink(backup)
      try run("VACUUM INTO ?", backup)
    }
    for (index, migration) in migrations.enumerated().dropFirst(version) {
      try transaction(.immediate) { () throws(SQLiteError) in
        try execute(migration.sql)
        try execute("PRAGMA user_version = \(index + 1)")
        try execute("PRAGMA application_id = \(application)")
      }
    }
  }

  /// Refuses a file that is not exactly at the last of `migrations`, and changes nothing.
  ///
  /// - Throws: ``SQLiteError`` as ``migrate(_:application:)`` does, and `.other` for a file that
  ///   waits for its migration.
  public func check(_ migrations: [Migration], application: Int32) throws(SQLiteError) {
    guard try compatibleVersion(migrations, application) == migrations.count else {
      throw SQLiteError(
        kind: .other, message: "\(path) is not up to date: start the server once")
    }
  }

  private func compatibleVersion(_ migrations: [Migration], _ application: Int32)
    throws(SQLiteError) -> Int
  {
    let version = try schemaVersion()
    let mark = try first("PRAGMA application_id") { $0.int(0) } ?? 0
    let tables = try first("SELECT count(*) FROM sqlite_schema") { $0.int(0) } ?? 0
    guard mark == Int64(application) || (mark == 0 && version == 0 && tables == 0) else {
      throw SQLiteError(
        kind: .notADatabase, message: "\(path) is a database of another program")
    }
    guard version <= migrations.count else {
      throw SQLiteError(
        kind: .newerSchema(found: version, supported: migrations.count),
        message: "\(path) was written by a newer program: its schema is \(version), "
          + "this program knows up to \(migrations.count)")
    }
    return version
  }

  /// The number of the last migration the file has seen.
  public func schemaVersion() throws(SQLiteError) -> Int {
    Int(try first("PRAGMA user_version") { $0.int(0) } ?? 0)
  }
}
