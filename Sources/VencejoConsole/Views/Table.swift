import VencejoTools

/// Rows in aligned columns, by cells.
struct Table: Sendable {
  struct Column: Sendable {
    var title: String
    var alignsRight = false
    /// Gives way when the screen is too narrow; the widest of these first.
    var shrinks = false
    var style = TextStyle.plain
  }

  var columns: [Column]
  var rows: [[String]] = []

  private static let gap = 2
  private static let narrowest = 6
  /// What a column is filled up to where nothing is cut: one long cell must not blow up every
  /// other row.
  private static let widestFilled = 60

  /// Lines at most `width` cells wide where shrinking can do it; nil: as wide as they are.
  func lines(width: Int?) -> [StyledText] {
    let clean = rows.map { row in row.map { VisibleText.clean($0) } }
    var widths = columns.indices.map { index in
      max(
        CellWidth.of(columns[index].title),
        clean.map { index < $0.count ? CellWidth.of($0[index]) : 0 }.max() ?? 0)
    }
    let cuts = width != nil
    if let width {
      shrink(&widths, to: width)
    } else {
      widths = widths.map { min($0, Self.widestFilled) }
    }
    let header = line(columns.map(\.title), widths, cuts: cuts) { _ in .faint }
    return [header] + clean.map { row in line(row, widths, cuts: cuts) { columns[$0].style } }
  }

  private func shrink(_ widths: inout [Int], to width: Int) {
    func total() -> Int { widths.reduce(0, +) + Self.gap * (widths.count - 1) }
    while total() > width {
      let candidates = widths.indices.filter { columns[$0].shrinks && widths[$0] > Self.narrowest }
      guard let widest = candidates.max(by: { widths[$0] < widths[$1] }) else { return }
      widths[widest] -= min(total() - width, max(1, widths[widest] / 8))
      widths[widest] = max(widths[widest], Self.narrowest)
    }
  }

  private func line(
    _ row: [String], _ widths: [Int], cuts: Bool, style: (Int) -> TextStyle
  ) -> StyledText {
    var line = StyledText()
    for (index, cell) in row.enumerated() where index < widths.count {
      let text = cuts ? Wrapping.truncated(cell, to: widths[index]) : cell
      let space = Wrapping.spaces(widths[index] - CellWidth.of(text))
      if columns[index].alignsRight { line.append(space) }
      line.append(text, style(index))
      if index + 1 < row.count {
        if !columns[index].alignsRight { line.append(space) }
        line.append(Wrapping.spaces(Self.gap))
      }
    }
    while let last = line.spans.last, last.text.allSatisfy({ $0 == " " }) {
      line.spans.removeLast()
    }
    return line
  }
}
