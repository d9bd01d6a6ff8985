/// Puts the input region at the bottom of what was printed and takes it away again: layouts in,
/// bytes for the terminal out. It remembers only what it drew last.
///
/// Every movement is relative to the region, so it needs no knowledge of where on the screen the
/// region is, and scrolling does no harm.
struct Painter: Sendable {
  enum Dialect: Sendable, Hashable {
    /// The common subset of ECMA-48 that every terminal of the last 40 years speaks.
    case ansi
    /// `TERM=dumb`: carriage return, backspace-free, one row, no escapes.
    case dumb
  }

  let dialect: Dialect
  let colour: Bool
  private(set) var columns: Int
  private(set) var lines: Int

  /// Widths of the rows on the screen; empty when no region is drawn.
  private var drawn: [Int] = []
  private var cursorRow = 0
  private var cursorColumn = 0

  init(dialect: Dialect, colour: Bool, columns: Int, lines: Int) {
    self.dialect = dialect
    self.colour = colour && dialect == .ansi
    self.columns = max(columns, 2)
    self.lines = max(lines, 2)
  }

  /// The terminal has another size. It has broken our rows anew where they no longer fit, so the
  /// cursor is further from the region's first row.
  mutating func resize(columns: Int, lines: Int) {
    let columns = max(columns, 2)
    let before = drawn.prefix(cursorRow).reduce(0) { $0 + max(1, ($1 + columns - 1) / columns) }
    if !drawn.isEmpty { cursorRow = before + cursorColumn / columns }
    self.columns = columns
    self.lines = max(lines, 2)
  }

  /// Draws the region in place of the one on the screen.
  mutating func draw(_ layout: InputLayout) -> String {
    dialect == .ansi ? erase() + paint(layout) : paintDumb(layout)
  }

  /// Takes the region away; the cursor is then where it began.
  mutating func erase() -> String {
    defer { forget() }
    if drawn.isEmpty { return "" }
    guard dialect == .ansi else { return "\r" + Wrapping.spaces(drawn[0]) + "\r" }
    return (cursorRow > 0 ? "\u{1B}[\(cursorRow)A" : "") + "\r\u{1B}[J"
  }

  /// Text above the region: each line ends with a line feed; the caller draws the region again.
  mutating func print(_ text: [StyledText]) -> String {
    erase() + text.map { $0.rendered(colour: colour) + "\r\n" }.joined()
  }

  /// Leaves the line on the screen as it is and goes on below it.
  mutating func commit(_ layout: InputLayout) -> String {
    defer { forget() }
    guard dialect == .ansi else { return paintDumb(layout) + "\r\n" }
    var bytes = erase() + paint(layout)
    let below = drawn.count - 1 - cursorRow
    if below > 0 { bytes += "\u{1B}[\(below)B" }
    return bytes + "\r\n"
  }

  mutating func clearScreen() -> String {
    forget()
    return dialect == .ansi ? "\u{1B}[H\u{1B}[2J" : "\r\n"
  }

  private mutating func forget() {
    drawn.removeAll()
    (cursorRow, cursorColumn) = (0, 0)
  }

  private mutating func paint(_ layout: InputLayout) -> String {
    // A region higher than the screen shows the part around the cursor.
    let first = min(max(0, layout.cursorRow - lines + 1), max(0, layout.rows.count - lines))
    let rows = layout.rows[first..<min(layout.rows.count, first + lines)]
    var bytes = rows.map { $0.text.rendered(colour: colour) }.joined(separator: "\r\n")
    drawn = rows.map(\.width)
    cursorRow = layout.cursorRow - first
    cursorColumn = layout.cursorColumn
    let up = rows.count - 1 - cursorRow
    if up > 0 { bytes += "\u{1B}[\(up)A" }
    if up > 0 || cursorColumn != drawn[cursorRow] || drawn[cursorRow] == columns {
      bytes += "\r" + (cursorColumn > 0 ? "\u{1B}[\(cursorColumn)C" : "")
    }
    return bytes
  }

  /// One row, scrolled sideways so that the cursor is in it, written over the old one.
  private mutating func paintDumb(_ layout: InputLayout) -> String {
    let width = columns - 1
    var clusters: [Character] = []
    var cursor = 0
    for (index, row) in layout.rows.enumerated() {
      if index == layout.cursorRow {
        var cells = 0
        cursor = clusters.count
        for cluster in row.text.plain where cells < layout.cursorColumn {
          cells += CellWidth.of(cluster)
          cursor += 1
        }
      }
      clusters += Array(row.text.plain)
    }
    var start = 0
    func cells(_ range: Range<Int>) -> Int {
      clusters[range].reduce(0) { $0 + CellWidth.of($1) }
    }
    while start < cursor, cells(start..<cursor) >= width { start += 1 }
    var end = cursor
    while end < clusters.count, cells(start..<end + 1) <= width { end += 1 }
    let shown = cells(start..<end)
    let old = drawn.first ?? 0
    drawn = [shown]
    return "\r" + String(clusters[start..<end]) + Wrapping.spaces(old - shown) + "\r"
      + String(clusters[start..<cursor])
  }
}
