/// A terminal in 200 lines: bytes to a grid of cells, for tests that ask what a person would see.
///
/// Independent of the console on purpose: its own decoding, its own table of widths, its own
/// wrapping (with the "pending wrap" of real terminals: the last column holds its character until
/// the next one comes). An escape sequence it does not know is recorded as an error.
struct TerminalEmulator {
  private(set) var columns: Int
  private(set) var lines: Int
  /// What scrolled off, oldest first.
  private(set) var scrollback: [String] = []
  private(set) var row = 0
  private(set) var column = 0
  private(set) var bells = 0
  private(set) var errors: [String] = []

  /// nil: the right half of a wide character.
  private typealias Cell = String?
  private var grid: [[Cell]]
  private var pendingWrap = false
  private var bytes: [UInt8] = []
  /// Where the last character went, for marks that join it.
  private var last: (row: Int, column: Int)?
  private var joinNext = false

  init(columns: Int, lines: Int) {
    self.columns = columns
    self.lines = lines
    grid = Self.blank(columns, lines)
  }

  /// The rows of the screen without trailing spaces.
  var screen: [String] { grid.map(Self.text) }

  /// Everything that was ever printed and not erased, without empty rows at the end.
  var transcript: [String] {
    var all = scrollback + screen
    while all.last == "" { all.removeLast() }
    return all
  }

  mutating func feed(_ text: String) { feed(Array(text.utf8)) }

  mutating func feed(_ new: [UInt8]) {
    bytes += new
    while let length = step() { bytes.removeFirst(length) }
  }

  /// As terminals that reflow do: rows that became too long are broken.
  mutating func resize(columns: Int, lines: Int) {
    var rows: [[Cell]] = []
    var cursor = (row: 0, column: 0)
    for (index, old) in grid.enumerated() {
      var cells = old
      while let end = cells.last, end == " " { cells.removeLast() }
      if index == row { cursor = (rows.count + column / columns, column % columns) }
      var start = 0
      repeat {
        var part = Array(cells[start..<min(cells.count, start + columns)])
        start += columns
        while part.count < columns { part.append(" ") }
        rows.append(part)
      } while start < cells.count
    }
    while rows.count > cursor.row + 1, rows.last == Array(repeating: " ", count: columns) {
      rows.removeLast()
    }
    while rows.count > lines {
      scrollback.append(Self.text(rows.removeFirst()))
      cursor.row -= 1
    }
    while rows.count < lines { rows.append(Array(repeating: " ", count: columns)) }
    (self.columns, self.lines, grid) = (columns, lines, rows)
    (row, column) = (max(0, cursor.row), cursor.column)
    pendingWrap = false
    last = nil
  }

  // MARK: Parsing

  /// Length of the first complete item, after acting on it; nil when more bytes are needed.
  private mutating func step() -> Int? {
    guard let first = bytes.first else { return nil }
    switch first {
    case 0x1B: return escape()
    case 0x0D: (column, pendingWrap, last) = (0, false, nil)
    case 0x0A: lineFeed()
    case 0x08: (column, pendingWrap, last) = (max(0, column - 1), false, nil)
    case 0x07: bells += 1
    case 0x20..<0x7F: put(Unicode.Scalar(first))
    case 0x80...:
      let length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2
      guard bytes.count >= length else { return nil }
      let text = String(decoding: bytes[..<length], as: UTF8.self)
      for scalar in text.unicodeScalars { put(scalar) }
      return length
    default: errors.append("control \(first)")
    }
    return 1
  }

  private mutating func escape() -> Int? {
    guard bytes.count >= 2 else { return nil }
    guard bytes[1] == 0x5B else {
      errors.append("escape \(bytes[1])")
      return 2
    }
    guard let end = bytes.dropFirst(2).firstIndex(where: { (0x40...0x7E).contains($0) }) else {
      return nil
    }
    let parameters = String(decoding: bytes[2..<end], as: UTF8.self)
    let number = max(1, Int(parameters) ?? 1)
    switch Character(Unicode.Scalar(bytes[end])) {
    case "A": move(row - number, column)
    case "B": move(row + number, column)
    case "C": move(row, column + number)
    case "D": move(row, column - number)
    case "H" where parameters.isEmpty: move(0, 0)
    case "J" where parameters.isEmpty:
      erase(row, from: column)
      for below in grid.indices.dropFirst(row + 1) { erase(below, from: 0) }
    case "J" where parameters == "2": for index in grid.indices { erase(index, from: 0) }
    case "K" where parameters.isEmpty: erase(row, from: column)
    case "m": break
    case "h" where parameters == "?2004", "l" where parameters == "?2004": break
    default: errors.append("sequence \(String(decoding: bytes[2...end], as: UTF8.self))")
    }
    return end + 1
  }

  private mutating func move(_ row: Int, _ column: Int) {
    self.row = min(max(0, row), lines - 1)
    self.column = min(max(0, column), columns - 1)
    pendingWrap = false
    last = nil
  }

  private mutating func lineFeed() {
    pendingWrap = false
    last = nil
    if row + 1 < lines {
      row += 1
    } else {
      scrollback.append(Self.text(grid.removeFirst()))
      grid.append(Array(repeating: " ", count: columns))
    }
  }

  private mutating func put(_ scalar: Unicode.Scalar) {
    let width = Self.width(scalar)
    if let place = last, width == 0 || joinNext || Self.isTone(scalar) || joinsFlag(scalar) {
      joinNext = scalar.value == 0x200D
      grid[place.row][place.column]?.unicodeScalars.append(scalar)
      // A lone regional indicator took one cell, the flag takes two.
      if (0x1F1E6...0x1F1FF).contains(scalar.value), place.column + 1 < columns {
        grid[place.row][place.column + 1] = nil
        column = min(place.column + 2, columns - 1)
        pendingWrap = place.column + 2 >= columns
      }
      return
    }
    if pendingWrap || column + width > columns {
      column = 0
      lineFeed()
    }
    grid[row][column] = String(scalar)
    if width == 2 { grid[row][column + 1] = nil }
    last = (row, column)
    pendingWrap = column + width >= columns
    column = min(column + width, columns - 1)
  }

  private func joinsFlag(_ scalar: Unicode.Scalar) -> Bool {
    guard let last, (0x1F1E6...0x1F1FF).contains(scalar.value) else { return false }
    let cell = grid[last.row][last.column].map { Array($0.unicodeScalars) } ?? []
    return cell.count == 1 && (0x1F1E6...0x1F1FF).contains(cell[0].value)
  }

  private mutating func erase(_ row: Int, from column: Int) {
    for index in column..<columns { grid[row][index] = " " }
    last = nil
  }

  private static func isTone(_ scalar: Unicode.Scalar) -> Bool {
    (0x1F3FB...0x1F3FF).contains(scalar.value)
  }

  private static func blank(_ columns: Int, _ lines: Int) -> [[Cell]] {
    Array(repeating: Array(repeating: " ", count: columns), count: lines)
  }

  private static func text(_ cells: [Cell]) -> String {
    var text = cells.compactMap { $0 }.joined()
    while text.last == " " { text.removeLast() }
    return text
  }

  /// From the East Asian Width and emoji tables of Unicode 15, as far as the tests use them.
  private static func width(_ scalar: Unicode.Scalar) -> Int {
    switch scalar.value {
    case 0x0300...0x036F, 0x200B...0x200D, 0xFE00...0xFE0F, 0x20D0...0x20FF: 0
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF,
      0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60,
      0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1F9FF, 0x20000...0x3FFFD:
      2
    default: 1
    }
  }
}
