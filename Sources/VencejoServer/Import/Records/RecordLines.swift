import VencejoAPI
import VencejoJSON
import VencejoProtobuf
package import VencejoStore

/// Records as JSON Lines: the frames of `ExportRecords`, one a line.
package struct RecordLines {
  /// What an import came to.
  package struct Outcome: Sendable {
    package var imported: Int64
    package var unchanged: Int64
    package var failed: Int64
    /// The first of them.
    package var failures: [(record: String, problem: String)]
  }

  /// Where records are, and who asks: of a data folder that no server uses.
  package let store: Store
  package let database: DatabaseID
  package let caller: RecordCaller

  /// The database of `user`, or the public one; files that an import brings become `owner`'s.
  ///
  /// - Throws: ``StoreError`` with `USER_NOT_FOUND`, `INVALID_ARGUMENT`.
  package init(
    _ store: Store, container: String, user: String?, owner: String?
  ) async throws {
    self.store = store
    let handle = user == DatabaseID.publicName ? nil : user
    let account: (key: Int64, id: String)?
    if let handle = handle ?? owner {
      let found = try await store.write { try $0.account(named: handle) }
      account = (found.key, "\(found.id)")
    } else {
      account = nil
    }
    caller = RecordCaller(
      key: account?.key ?? 0, user: account?.id ?? "system", isAdministrator: true)
    var database = DatabaseID.publicName
    if handle != nil, let account { database = "u-\(account.id)" }
    self.database = try DatabaseID(container: container, database: database)
  }

  /// Writes a zone, or all zones, with files; `write` takes the lines. Answers how many records
  /// there were.
  package func export(
    zone: String?, includesAssets: Bool, _ write: ([UInt8]) throws -> Void
  ) async throws -> Int64 {
    var count: Int64 = 0
    let zone = try zone.map { try ZoneID(database: database, zone: $0) }
    try await RecordExporter(
      store: store, database: database, zone: zone, caller: caller, includesAssets: includesAssets
    ).run(pageToken: "") { frame in
      if case .progress(let progress)? = frame.payload {
        count = progress.exportedCount
      } else {
        try write(Array((try frame.jsonString() + "\n").utf8))
      }
    }
    return count
  }

  /// Whether a file is one of these.
  package static func holds(_ source: ByteSource) -> Bool {
    defer { source.rewind() }
    guard let window = try? TextWindow(source),
      window.bytes.first(where: { $0 > 0x20 }) == UInt8(ascii: "{")
    else { return false }
    var rows = JSONRows(window)
    guard let row = try? rows.next(), rows.key == nil, let first = row.members.first,
      row.members.count == 1, case .object(let inner) = first.value
    else { return false }
    let keys = Set(inner.map(\.key))
    switch first.key {
    case "record": return keys.isSuperset(of: ["name", "recordType"])
    case "assetPart": return keys.contains("asset")
    case "progress": return keys.isSubset(of: ["exportedCount", "pageToken", "done"])
    default: return false
    }
  }

  /// How many records and files there are in a file.
  ///
  /// - Throws: ``DelimitedText/Fault`` for a line that is none.
  package static func count(_ source: ByteSource) throws -> (records: Int, files: Int) {
    var counts = (records: 0, files: 0)
    var lines = try Lines(source)
    while let frame = try lines.next() {
      switch frame.payload {
      case .record?: counts.records += 1
      case .assetPart(let part)? where part.asset != nil: counts.files += 1
      default: break
      }
    }
    return counts
  }

  /// Takes a file's records in, with their system fields, over what is there; into one zone, or
  /// each into the zone it came from.
  ///
  /// - Throws: ``DelimitedText/Fault`` for a line that is none, and what an import throws.
  package func take(_ source: ByteSource, zone: String?) async throws -> Outcome {
    var header = Record.ImportHeader()
    header.parent = zone.map { "\(database.name)/zones/\($0)" } ?? database.name
    header.preserveSystemFields = true
    var importer = try RecordImporter(store, header, by: caller)
    var lines = try Lines(source)
    while let frame = try lines.next() {
      switch frame.payload {
      case .record(let record)?: try await importer.take(record)
      case .assetPart(let part)?:
        guard caller.key != 0 else {
          throw DelimitedText.Fault(
            line: lines.line, problem: "there are files: say whose they become, --owner HANDLE")
        }
        try await importer.take(part)
      default: break
      }
    }
    let outcome = try await importer.finish()
    return Outcome(
      imported: outcome.imported, unchanged: outcome.unchanged, failed: outcome.failed,
      failures: outcome.failures.map { ($0.name, $0.failure.error.message) })
  }

  private struct Lines {
    private var window: TextWindow
    private(set) var line = 0

    init(_ source: ByteSource) throws { window = try TextWindow(source) }

    mutating func next() throws -> Record.ExportRecordsResponse? {
      while true {
        try window.refill()
        guard window.at < window.bytes.count else { return nil }
        line += 1
        let rest = window.bytes[window.at...]
        let end = rest.firstIndex(of: UInt8(ascii: "\n"))
        guard end != nil || window.isLast else {
          throw DelimitedText.Fault(line: line, problem: "a line is longer than \(window.limit)")
        }
        let bytes = rest[..<(end ?? window.bytes.count)]
        window.at = end.map { $0 + 1 } ?? window.bytes.count
        guard bytes.contains(where: { $0 > 0x20 }) else { continue }
        var options = JSONOptions()
        options.ignoreUnknown = true
        do {
          return try Record.ExportRecordsResponse(
            jsonString: String(decoding: bytes, as: UTF8.self), options)
        } catch {
          throw DelimitedText.Fault(line: line, problem: "\(error)")
        }
      }
    }
  }
}
