package import VencejoStore

/// The rows of a CSV or JSON file, with the types of their columns inferred.
package struct RecordTable {
  /// A column of the file, and the field it becomes.
  package struct Column {
    package var title: String
    package var field: String
    package var type: ColumnType = .string
    package var isList = false
    package var isSkipped = false
    package var guess = ColumnGuess()
    package var empty = 0
  }

  package struct Options {
    /// Nil: as the file looks.
    package var separator: UInt8?
    package var isJSON: Bool?
    /// Cells without quotes that are no value.
    package var nulls: Set<String> = []
    /// By title or field: a type, or `skip`.
    package var types: [String: String] = [:]
    /// Day or month first, where a column leaves both open.
    package var dates: TimeForm?
    /// Bytes of a row, at most; a window of twice as many is in memory.
    var maxRow = TextWindow.maxRow

    package init() {}
  }

  private enum Cell {
    case none
    case text(String)
    /// Surely a text: it may be a time, but is no number.
    case string(String)
    case list([Cell])
  }

  package var encoding: TextEncoding { window.encoding }
  package private(set) var separator: UInt8 = 0
  package private(set) var isJSON: Bool
  package private(set) var columns: [Column] = []
  package private(set) var rows = 0
  /// Rows that cannot be taken, and why; the first thousand.
  package private(set) var faults: [DelimitedText.Fault] = []
  package private(set) var faultCount = 0

  /// The key of the array that the rows of a JSON file are in, where it is not the whole file.
  package private(set) var key: String?

  private var window: TextWindow
  private let options: Options
  private var places: [String: Int] = [:]
  private var source: Source?

  /// Reads all of it once, for the types.
  ///
  /// - Throws: ``DelimitedText/Fault`` when it cannot be read on, ``RecordViolation`` for options
  ///   that do not fit.
  package init(_ file: ByteSource, _ options: Options = Options()) throws {
    window = try TextWindow(file, maxRow: options.maxRow)
    self.options = options
    let first = window.bytes.first { $0 > 0x20 }
    isJSON = options.isJSON ?? (first == UInt8(ascii: "{") || first == UInt8(ascii: "["))
    if !isJSON {
      separator = options.separator ?? DelimitedText.separator(of: window)
      try window.rewind()
    }
    source = start()
    try seeDelimited()
    while let cells = try nextCells() {
      rows += 1
      for index in columns.indices { see(index < cells.count ? cells[index] : .none, index) }
    }
    if case .json(let rows) = source { key = rows.key }
    try settle()
  }

  /// All rows of a CSV file: of most cells no text is made.
  private mutating func seeDelimited() throws {
    guard case .delimited(var text, let isAtHead) = source, options.nulls.isEmpty else { return }
    source = nil
    defer { source = .delimited(text, isAtHead: false) }
    if isAtHead {
      guard let head = try text.next() else { return }
      takeHead(head.cells)
    }
    while let found = try text.nextSpans() {
      line = found
      guard let count = count(of: text.spans) else { continue }
      rows += 1
      text.withRow { row in
        for index in 0..<count {
          let span = text.spans[index]
          if span.start == span.end, span.text == nil {
            columns[index].empty += 1
          } else if span.text != nil || !columns[index].guess.see(row.bytes(span)) {
            see(.text(row.text(span)), index)
          }
        }
      }
    }
  }

  /// The row's cells without empty ones behind the last column; nil when there are more or fewer
  /// than there should be.
  private mutating func count(of spans: [DelimitedText.Span]) -> Int? {
    var count = spans.count
    // Separators at the end of a row are nothing, however many.
    while count > columns.count, !spans[count - 1].isQuoted,
      spans[count - 1].start == spans[count - 1].end
    {
      count -= 1
    }
    guard count == columns.count else {
      note(line, "\(count) cells, and the header has \(columns.count)")
      return nil
    }
    return count
  }

  private mutating func see(_ cell: Cell, _ index: Int) {
    switch cell {
    case .none: columns[index].empty += 1
    case .text(let text):
      // In quotes, but nothing: a text or no value, whatever the column is.
      if text.isEmpty { columns[index].empty += 1 } else { columns[index].guess.see(text) }
    case .string(let text): columns[index].guess.see(string: text)
    case .list(let cells):
      columns[index].isList = true
      for cell in cells { see(cell, index) }
    }
  }

  private mutating func settle() throws(RecordViolation) {
    var known: Set<String> = []
    for index in columns.indices {
      columns[index].type = columns[index].guess.type
      if columns[index].guess.isAmbiguousDate, let dates = options.dates {
        columns[index].type = .timestamp(dates)
      }
      for name in [columns[index].title, columns[index].field] {
        guard let wanted = options.types[name] else { continue }
        known.insert(name)
        if wanted == "skip" {
          columns[index].isSkipped = true
        } else if let type = ColumnType(name: wanted) {
          columns[index].type = type
        } else {
          throw RecordViolation(
            name,
            "\(wanted) is no type: string, int64, bool, double, decimal-comma, timestamp,"
              + " timestamp-dmy, timestamp-mdy or skip")
        }
      }
    }
    if let stray = options.types.keys.first(where: { !known.contains($0) }) {
      throw RecordViolation(stray, "there is no column \(stray)")
    }
  }

  // MARK: Rows

  /// Begins again at the first row, for ``next()``.
  package mutating func rewind() throws {
    faults = []
    faultCount = 0
    source = nil
    try window.rewind()
    source = start()
  }

  /// The fields of the columns that are not skipped, in the order of ``nextValues()``.
  package var fields: [String] { columns.filter { !$0.isSkipped }.map(\.field) }

  /// The fields of the next row, and its line; rows with a fault are left out. Nil at the end.
  package mutating func next() throws -> (line: Int, fields: [String: RecordValue])? {
    guard let row = try nextValues() else { return nil }
    var fields: [String: RecordValue] = [:]
    for (name, value) in zip(self.fields, row.values) { fields[name] = value }
    return (row.line, fields)
  }

  /// The next row's values, none where a cell has none; rows with a fault are left out.
  package mutating func nextValues() throws -> (line: Int, values: [RecordValue?])? {
    while let cells = try nextCells() {
      if let values = values(of: cells) { return (line, values) }
    }
    return nil
  }

  /// Adds the next row to others, by the name that `name` makes of the value in a column; answers
  /// its line, nil at the end. Rows with a fault are left out.
  package mutating func next(
    into part: inout BulkRows, named: Int?, _ name: (String?, Int) throws -> RecordID
  ) throws -> Int? {
    if case .delimited(var text, false) = source, options.nulls.isEmpty {
      source = nil
      defer { source = .delimited(text, isAtHead: false) }
      while let found = try text.nextSpans() {
        line = found
        guard count(of: text.spans) != nil else { continue }
        let isTaken = try text.withRow { row in
          try add(text.spans, row, to: &part, named: named, name)
        }
        if isTaken { return found }
      }
      return nil
    }
    guard let row = try nextValues() else { return nil }
    part.add(try name(named.map { row.values[$0].map(Self.name) ?? "" }, row.line), row.values)
    return row.line
  }

  /// False of a row with a fault.
  private mutating func add(
    _ spans: [DelimitedText.Span], _ row: DelimitedText.RowBytes, to part: inout BulkRows,
    named: Int?, _ name: (String?, Int) throws -> RecordID
  ) throws -> Bool {
    var cells: [BulkRows.Cell] = []
    cells.reserveCapacity(columns.count)
    for index in columns.indices where !columns[index].isSkipped {
      let span = spans[index]
      let type = columns[index].type
      if span.text == nil, span.start == span.end {
        // In quotes it is an empty text, where there are texts.
        cells.append(span.isQuoted && type == .string ? .value(.string("")) : .none)
      } else if span.text == nil, type == .string {
        cells.append(.text(row.bytes(span)))
      } else if span.text == nil, type == .int64,
        let number = ColumnType.shortInteger(row.bytes(span))
      {
        cells.append(.value(.int64(number)))
      } else {
        switch value(.text(row.text(span)), type, isList: false, columns[index].field) {
        case .success(let value): cells.append(value.map { .value($0) } ?? .none)
        case .failure(let violation):
          note(line, "\(columns[index].title): \(violation.description)")
          return false
        }
      }
    }
    let given = named.map { index in
      switch cells[index] {
      case .none: ""
      case .text(let bytes): String(decoding: bytes, as: UTF8.self)
      case .value(let value): Self.name(value)
      }
    }
    part.add(try name(given, line)) { cells[$0] }
    return true
  }

  private mutating func values(of cells: [Cell]) -> [RecordValue?]? {
    var values: [RecordValue?] = []
    values.reserveCapacity(columns.count)
    for index in columns.indices where !columns[index].isSkipped {
      guard index < cells.count else {
        values.append(nil)
        continue
      }
      switch value(
        cells[index], columns[index].type, isList: columns[index].isList, columns[index].field)
      {
      case .success(let value): values.append(value)
      case .failure(let violation):
        note(line, "\(columns[index].title): \(violation.description)")
        return nil
      }
    }
    return values
  }

  private func value(
    _ cell: Cell, _ type: ColumnType, isList: Bool, _ field: String
  ) -> Result<RecordValue?, RecordViolation> {
    switch cell {
    case .none: return .success(nil)
    case .text(let text), .string(let text):
      if text.isEmpty, type != .string { return .success(nil) }
      guard let value = type.value(text) else {
        return .failure(RecordViolation(field, "'\(text.prefix(40))' is no \(type.name)"))
      }
      return .success(isList ? .list([value]) : value)
    case .list(let cells):
      var values: [RecordValue] = []
      for cell in cells {
        switch value(cell, type, isList: false, field) {
        case .success(let value): if let value { values.append(value) }
        case .failure(let violation): return .failure(violation)
        }
      }
      return .success(.list(values))
    }
  }

  /// Of the row under way.
  private var line = 0

  private mutating func note(_ line: Int, _ problem: String) {
    faultCount += 1
    if faults.count < 1_000 { faults.append(DelimitedText.Fault(line: line, problem: problem)) }
  }

  private enum Source {
    case delimited(DelimitedText, isAtHead: Bool)
    case json(JSONRows)
  }

  private func start() -> Source {
    isJSON
      ? .json(JSONRows(window))
      : .delimited(DelimitedText(window, separator: separator), isAtHead: true)
  }

  private mutating func nextCells() throws -> [Cell]? {
    switch source {
    case .delimited(var text, let isAtHead):
      // Taken out while it is used: two owners would copy what it holds.
      source = nil
      defer { source = .delimited(text, isAtHead: false) }
      if isAtHead {
        guard let head = try text.next() else { return nil }
        takeHead(head.cells)
      }
      while let row = try text.next() {
        line = row.line
        if let cells = cells(of: row.cells) { return cells }
      }
      return nil
    case .json(var rows):
      source = nil
      defer { source = .json(rows) }
      guard let row = try rows.next() else { return nil }
      line = row.line
      var cells = [Cell](repeating: .none, count: columns.count)
      for member in row.members { add(member.key, member.value, to: &cells) }
      return cells
    case nil: return nil
    }
  }

  private mutating func takeHead(_ cells: [DelimitedText.Cell]) {
    guard columns.isEmpty else { return }
    var names: Set<String> = []
    for (index, cell) in cells.enumerated() {
      columns.append(Column(title: cell.text, field: Self.field(cell.text, index, &names)))
    }
  }

  /// Nil when there are more or fewer than there should be.
  private mutating func cells(of row: [DelimitedText.Cell]) -> [Cell]? {
    var cells = row
    // Separators at the end of a row are nothing, however many.
    while cells.count > columns.count, cells[cells.count - 1] == .init(text: "", isQuoted: false) {
      cells.removeLast()
    }
    guard cells.count == columns.count else {
      note(line, "\(cells.count) cells, and the header has \(columns.count)")
      return nil
    }
    return cells.map {
      !$0.isQuoted && ($0.text.isEmpty || options.nulls.contains($0.text))
        ? .none : .text($0.text)
    }
  }

  /// Objects in objects become fields of their own, by the names of both.
  private mutating func add(_ title: String, _ value: JSONRow, to cells: inout [Cell]) {
    if case .object(let members) = value {
      for member in members { add("\(title).\(member.key)", member.value, to: &cells) }
      return
    }
    let index: Int
    if let known = places[title] {
      index = known
    } else {
      var names = Set(columns.map(\.field))
      index = columns.count
      places[title] = index
      var column = Column(title: title, field: Self.field(title, index, &names))
      // The rows before it had none.
      column.empty = max(0, rows)
      columns.append(column)
      cells.append(.none)
    }
    cells[index] = Self.cell(value)
  }

  private static func cell(_ value: JSONRow) -> Cell {
    switch value {
    case .null: .none
    case .bool(let value): .text(value ? "true" : "false")
    case .number(let text): .text(text)
    case .string(let text): .string(text)
    case .array(let values):
      .list(values.map { if case .array = $0 { .string($0.text) } else { cell($0) } })
    // In an array, objects and arrays stay as they are written.
    case .object: .string(value.text)
    }
  }

  /// A field's name for a title: what a name may not have becomes `_`, and no two are alike.
  private static func field(_ title: String, _ index: Int, _ names: inout Set<String>) -> String {
    var name = ""
    for scalar in title.unicodeScalars {
      let isPlain =
        scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
      if isPlain {
        name.unicodeScalars.append(scalar)
      } else if !name.hasSuffix("_") {
        name += "_"
      }
    }
    while name.hasSuffix("_") { name.removeLast() }
    while name.hasPrefix("_") { name.removeFirst() }
    if name.isEmpty { name = "column_\(index + 1)" }
    if let first = name.utf8.first, (0x30...0x39).contains(first) { name = "f_\(name)" }
    name = String(name.prefix(200))
    var unique = name
    var number = 2
    while !names.insert(unique).inserted {
      unique = "\(name)_\(number)"
      number += 1
    }
    return unique
  }
}

extension ColumnGuess {
  /// Sees what is surely a text.
  package mutating func see(string text: String) {
    keepTimes()
    if text.isEmpty { return }
    see(text)
  }
}

extension RecordTable {
  /// A value as the name of a record.
  package static func name(_ value: RecordValue) -> String {
    switch value {
    case .string(let text): text
    case .int64(let number): String(number)
    case .double(let number): String(number)
    default: ""
    }
  }
}
