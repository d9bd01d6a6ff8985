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
    .init("skip-faults"), .init("no-files"),
  ]

  /// Records of one transaction.
  private static let batch = 20_000
  /// Rows up to which they are in the index when the command ends.
  private static let indexedAtOnce = 10_000

  static func run(
    _ arguments: ArgumentList, _ file: String, _ data: String, _ output: Output
  ) async throws -> Int32 {
    let source = try ByteSource(path: file)
    if RecordLines.holds(source) { return try await runLines(arguments, source, data, output) }
    var table = try RecordTable(source, options(arguments))
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
    let place = try await RecordLines(
      store, container: container, user: arguments["database"], owner: nil)
    let caller = place.caller
    let zone = try ZoneID(
      database: place.database, zone: arguments["records"] ?? ZoneID.defaultZone)
    try await makeZone(zone, store, caller)
    let outcome = try await take(
      &table, type: type, id: id, into: zone, store, caller)
    output.line("imported\t\(outcome.imported)")
    for fault in table.faults.prefix(20) { output.line("left out\t\(fault)") }
    for refusal in outcome.refusals { output.line("refused\t\(refusal)") }
    let pending = try await store.read { try $0.pendingRecords() }
    if pending > 0 {
      output.line(
        "to index\t\(pending) (the server does it when it starts; index-records does it now)")
    }
    let lost = table.faultCount + outcome.refused
    if lost > 0 { output.line("not imported\t\(lost)") }
    return lost == 0 ? ExitCode.ok : ExitCode.failure
  }

  /// What `export-records` wrote.
  private static func runLines(
    _ arguments: ArgumentList, _ source: ByteSource, _ data: String, _ output: Output
  ) async throws -> Int32 {
    let counts = try RecordLines.count(source)
    output.line("format\texport of records")
    output.line("records\t\(counts.records)")
    output.line("files\t\(counts.files)")
    guard arguments.has("yes") else {
      output.line("nothing was imported; --yes imports")
      return ExitCode.ok
    }
    guard let container = arguments["container"] else {
      throw ArgumentList.Fault("say where it goes: --container NAME")
    }
    let store = try Store.open(directory: data)
    defer { store.close() }
    let outcome = try await RecordLines(
      store, container: container, user: arguments["database"], owner: arguments["owner"]
    ).take(source, zone: arguments["records"])
    output.line("imported\t\(outcome.imported)")
    output.line("unchanged\t\(outcome.unchanged)")
    for failure in outcome.failures.prefix(20) {
      output.line("refused\t\(failure.record)\t\(failure.problem)")
    }
    if outcome.failed > 0 { output.line("not imported\t\(outcome.failed)") }
    return outcome.failed == 0 ? ExitCode.ok : ExitCode.failure
  }

  /// `vencejo admin export-records`: a zone or a database as JSON Lines.
  static func export(
    _ arguments: ArgumentList, _ path: String, _ data: String, _ output: Output
  ) async throws -> Int32 {
    guard let container = arguments["container"] else {
      throw ArgumentList.Fault("say what to take along: --container NAME")
    }
    let store = try Store.open(directory: data)
    defer { store.close() }
    let place = try await RecordLines(
      store, container: container, user: arguments["database"], owner: nil)
    let count = try await ImportCommand.writing(path) { write in
      try await place.export(
        zone: arguments["records"], includesAssets: !arguments.has("no-files"), write)
    }
    output.line("exported\t\(count)")
    return ExitCode.ok
  }

  /// `vencejo admin index-records`.
  static func index(_ data: String, _ output: Output) async throws -> Int32 {
    let store = try Store.open(directory: data)
    defer { store.close() }
    let pending = try await store.read { try $0.pendingRecords() }
    while try await store.write({ try $0.indexPendingRecords(step: 20_000) }) {}
    output.line("indexed\t\(pending)")
    return ExitCode.ok
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
      output.line("format\tJSON" + (table.key.map { ", rows in '\($0)'" } ?? ""))
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
          + "\t\(shown(column.guess.example))\(title)\(note)")
    }
    for fault in table.faults.prefix(20) { output.line("fault\t\(fault)") }
    if table.faultCount > 20 { output.line("faults\t\(table.faultCount)") }
  }

  /// The beginning of a cell, on one line.
  private static func shown(_ text: String) -> String {
    String(
      String.UnicodeScalarView(text.prefix(40).unicodeScalars.map { $0.value < 0x20 ? " " : $0 }))
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

  private struct Outcome {
    var imported = 0
    var refused = 0
    /// The first ones, with their lines.
    var refusals: [DelimitedText.Fault] = []
  }

  /// Reads and writes at the same time: while a part is written the next is read.
  private static func take(
    _ table: inout RecordTable, type: String, id: RecordTable.Column?, into zone: ZoneID,
    _ store: Store, _ caller: RecordCaller
  ) async throws -> Outcome {
    let fields = table.fields
    let named = id.flatMap { column in fields.firstIndex(of: column.field) }
    let indexing: BulkIndexing = table.rows > indexedAtOnce ? .later : .now
    var outcome = Outcome()
    var part = BulkRows(type: type, fields: fields)
    var lines: [Int] = []
    var names = AscendingUUIDs()
    var writing: (task: Task<BulkOutcome, any Error>, lines: [Int], part: BulkRows)?
    func finish() async throws {
      guard let (task, lines, part) = writing else { return }
      writing = nil
      let done = try await task.value
      outcome.imported += done.imported
      outcome.refused += done.failures.count
      for failure in done.failures where outcome.refusals.count < 20 {
        let place = part.ids.firstIndex(of: failure.record)
        outcome.refusals.append(
          .init(line: place.map { lines[$0] } ?? 0, problem: failure.error.message))
      }
    }
    try table.rewind()
    while true {
      let line = try table.next(into: &part, named: named) {
        try record($0 ?? names.next().description, $1, zone)
      }
      if let line { lines.append(line) }
      guard part.count == batch || (line == nil && part.count > 0) else {
        if line == nil { break }
        continue
      }
      try await finish()
      let rows = part
      writing = (
        Task {
          try await store.writeRecords(zone.database, caller: caller) {
            try $0.importRows(rows, into: zone, in: $1, caller: caller, indexing: indexing)
          }
        }, lines, rows
      )
      part.removeAll()
      lines = []
    }
    try await finish()
    return outcome
  }

  private static func record(_ name: String, _ line: Int, _ zone: ZoneID) throws -> RecordID {
    do throws(RecordViolation) {
      return try RecordID(zone: zone, record: name)
    } catch {
      throw DelimitedText.Fault(
        line: line, problem: "'\(name.prefix(40))' cannot be a record's name: \(error)")
    }
  }
}
