import Glibc
import VencejoCrypto
import VencejoServer
import VencejoStore
import VencejoTools

/// `vencejo admin import-records`: shows what a file holds, then takes it in.
enum RecordCommand {
  static let options: [ArgumentList.Option] = [
    .init("container", value: true), .init("database", value: true), .init("records", value: true),
    .init("type", value: true), .init("id", value: true), .init("column", value: true),
    .init("null", value: true), .init("dates", value: true), .init("separator", value: true),
    .init("skip-faults"),
  ]

  /// Records of one transaction.
  private static let batch = 5_000

  static func run(
    _ arguments: ArgumentList, _ file: String, _ data: String, _ output: Output
  ) async throws -> Int32 {
    let bytes = try ImportCommand.read(file)
    var table = try RecordTable(bytes, options(arguments))
    show(table, output)
    let id = try column(named: arguments["id"], of: table)
    guard arguments.has("yes") else {
      output.line("nothing was imported; --yes imports")
      return ExitCode.ok
    }
    guard table.faultCount == 0 || arguments.has("skip-faults") else {
      output.complain(
        "vencejo admin: \(table.faultCount) rows have a fault; --skip-faults leaves them out")
      return ExitCode.failure
    }
    guard let container = arguments["container"], let type = arguments["type"] else {
      throw ArgumentList.Fault("say where it goes: --container NAME --type RECORDTYPE")
    }
    let store = try Store.open(directory: data)
    defer { store.close() }
    let caller: RecordCaller
    let database: DatabaseID
    if let handle = arguments["database"], handle != DatabaseID.publicName {
      let account = try await store.write { try $0.account(named: handle) }
      caller = RecordCaller(key: account.key, user: "\(account.id)", isAdministrator: true)
      database = try DatabaseID(container: container, database: "u-\(account.id)")
    } else {
      caller = RecordCaller(key: 0, user: "system", isAdministrator: true)
      database = try DatabaseID(container: container, database: DatabaseID.publicName)
    }
    let zone = try ZoneID(
      database: database, zone: arguments["records"] ?? ZoneID.defaultZone)
    try await makeZone(zone, store, caller)
    let outcome = try await take(
      &table, type: type, id: id, into: zone, store, caller)
    output.line("imported\t\(outcome.imported)")
    for fault in table.faults.prefix(20) { output.line("left out\t\(fault)") }
    for failure in outcome.failures.prefix(20) {
      output.line("refused\t\(failure.record.record)\t\(failure.error.message)")
    }
    let lost = table.faultCount + outcome.failures.count
    if lost > 0 { output.line("not imported\t\(lost)") }
    return lost == 0 ? ExitCode.ok : ExitCode.failure
  }

  private static func options(_ arguments: ArgumentList) throws -> RecordTable.Options {
    var options = RecordTable.Options()
    options.nulls = Set(arguments.all("null"))
    for pair in arguments.all("column") {
      guard let mark = pair.lastIndex(of: "=") else {
        throw ArgumentList.Fault("--column needs NAME=TYPE")
      }
      options.types[String(pair[..<mark])] = String(pair[pair.index(after: mark)...])
    }
    switch arguments["dates"] {
    case "dmy": options.dates = .dayFirst
    case "mdy": options.dates = .monthFirst
    case nil: break
    default: throw ArgumentList.Fault("--dates is dmy or mdy")
    }
    if let separator = arguments["separator"] {
      let text = separator == "tab" ? "\t" : separator
      guard let byte = text.utf8.first, text.utf8.count == 1 else {
        throw ArgumentList.Fault("--separator is one character, or tab")
      }
      options.separator = byte
      options.isJSON = false
    }
    return options
  }

  private static func column(
    named name: String?, of table: RecordTable
  ) throws -> RecordTable.Column? {
    guard let name else { return nil }
    guard let found = table.columns.first(where: { $0.title == name || $0.field == name }) else {
      throw ArgumentList.Fault("there is no column '\(name)' to take names from")
    }
    return found
  }

  private static func show(_ table: RecordTable, _ output: Output) {
    output.line("encoding\t\(table.encoding.rawValue)")
    if table.isJSON {
      output.line("format\tJSON")
    } else {
      let mark =
        table.separator == UInt8(ascii: "\t") ? "tab" : String(UnicodeScalar(table.separator))
      output.line("format\tCSV, cells separated by \(mark)")
    }
    output.line("rows\t\(table.rows)")
    for column in table.columns {
      let type =
        column.isSkipped
        ? "(skipped)" : column.isList ? "LIST<\(column.type.name)>" : column.type.name
      let title = column.title == column.field ? "" : "\tfrom '\(column.title)'"
      let note = column.guess.isAmbiguousDate ? "\tdates: day or month first? --dates" : ""
      output.line(
        "field\t\(column.field)\t\(type)\t\(column.guess.filled) filled, \(column.empty) empty"
          + "\t\(column.guess.example.prefix(40))\(title)\(note)")
    }
    for fault in table.faults.prefix(20) { output.line("fault\t\(fault)") }
    if table.faultCount > 20 { output.line("faults\t\(table.faultCount)") }
  }

  private static func makeZone(
    _ zone: ZoneID, _ store: Store, _ caller: RecordCaller
  ) async throws {
    guard !zone.isDefault else { return }
    do throws(StoreError) {
      _ = try await store.writeRecords(zone.database, caller: caller) {
        try $0.createZone(zone, in: $1, caller: caller)
      }
    } catch {
      guard error.code == .alreadyExists else { throw error }
    }
  }

  private static func take(
    _ table: inout RecordTable, type: String, id: RecordTable.Column?, into zone: ZoneID,
    _ store: Store, _ caller: RecordCaller
  ) async throws -> BulkOutcome {
    var outcome = BulkOutcome()
    var part: [StoredRecord] = []
    try table.rewind()
    while true {
      let row = try table.next()
      if let row { part.append(try record(row, type, id, zone)) }
      guard part.count == batch || (row == nil && !part.isEmpty) else {
        if row == nil { break }
        continue
      }
      let records = part
      part = []
      let done = try await store.writeRecords(zone.database, caller: caller) {
        try $0.importRecords(records, into: zone, in: $1, caller: caller)
      }
      outcome.imported += done.imported
      outcome.failures += done.failures
    }
    return outcome
  }

  private static func record(
    _ row: (line: Int, fields: [String: RecordValue]), _ type: String, _ id: RecordTable.Column?,
    _ zone: ZoneID
  ) throws -> StoredRecord {
    let name = id.map { row.fields[$0.field].map(RecordTable.name) ?? "" } ?? UUID.v7().description
    do throws(RecordViolation) {
      return StoredRecord(
        id: try RecordID(zone: zone, record: name), type: type, fields: row.fields)
    } catch {
      throw DelimitedText.Fault(
        line: row.line, problem: "'\(name.prefix(40))' cannot be a record's name: \(error)")
    }
  }
}
