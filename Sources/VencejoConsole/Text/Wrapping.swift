/// Fitting text into columns, by cells.
enum Wrapping {
  /// The text cut to `columns` cells, with an ellipsis where something is missing.
  static func truncated(_ text: String, to columns: Int) -> String {
    if CellWidth.of(text) <= columns { return text }
    guard columns > 0 else { return "" }
    var kept = ""
    var width = 0
    for cluster in text {
      let cells = CellWidth.of(cluster)
      if width + cells > columns - 1 { break }
      kept.append(cluster)
      width += cells
    }
    return kept + "…"
  }

  /// The text followed by spaces up to `columns` cells.
  static func padded(_ text: String, to columns: Int) -> String {
    text + spaces(columns - CellWidth.of(text))
  }

  static func spaces(_ count: Int) -> String {
    count > 0 ? String(repeating: " ", count: count) : ""
  }

  /// Lines of at most `columns` cells: broken at line feeds, then between words, and inside a word
  /// only where it is wider than a line or its script has no spaces (wide cells).
  static func wrapped(_ text: String, to columns: Int) -> [String] {
    text.split(separator: "\n", omittingEmptySubsequences: false).flatMap {
      wrappedLine($0, to: max(columns, 2))
    }
  }

  private static func wrappedLine(_ line: Substring, to columns: Int) -> [String] {
    var lines: [String] = []
    var current: [(cluster: Character, cells: Int)] = []
    var width = 0
    // Index in `current` after the last place where a break is good.
    var breakAt = 0
    for cluster in line {
      let cells = CellWidth.of(cluster)
      if cluster == " ", width + cells > columns {
        // A space at the edge is the break itself.
        lines.append(String(current.map(\.cluster)))
        current.removeAll()
        (width, breakAt) = (0, 0)
        continue
      }
      if cells == 2 { breakAt = current.count }
      if width + cells > columns, !current.isEmpty {
        let end = breakAt > 0 ? breakAt : current.count
        var kept = current[..<end].map(\.cluster)
        while kept.last == " " { kept.removeLast() }
        lines.append(String(kept))
        current.removeFirst(end)
        width = current.reduce(0) { $0 + $1.cells }
        breakAt = 0
      }
      current.append((cluster, cells))
      width += cells
      if cluster == " " || cells == 2 { breakAt = current.count }
    }
    lines.append(String(current.map(\.cluster)))
    return lines
  }
}
