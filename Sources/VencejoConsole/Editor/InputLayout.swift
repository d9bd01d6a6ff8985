import VencejoTools

/// The input line laid out in rows of a given width, with the place of the cursor.
///
/// The rows are broken here and not by the terminal: then nobody has to guess what a terminal does
/// with a wide character in its last column.
struct InputLayout: Sendable, Hashable {
  struct Row: Sendable, Hashable {
    var text = StyledText()
    var width = 0
  }

  private(set) var rows: [Row] = [Row()]
  private(set) var cursorRow = 0
  private(set) var cursorColumn = 0

  init(prompt: StyledText, text: [Character], cursor: Int, columns: Int) {
    let columns = max(columns, 2)
    for span in prompt.spans {
      for cluster in span.text { place(cluster, span.style, columns) }
    }
    for (index, cluster) in text.enumerated() {
      if index == cursor { markCursor(before: cluster, columns) }
      if cluster == "\n" || cluster == "\r\n" {
        rows.append(Row())
      } else {
        for drawn in Self.drawn(cluster) { place(drawn, .plain, columns) }
      }
    }
    if cursor >= text.count { markCursor(before: nil, columns) }
  }

  /// The line as an editor shows it: the secret as bullets, a search in place of the prompt.
  init(editor: LineEditor, prompt: StyledText, columns: Int) {
    if let search = editor.search {
      let line = search.match.map { Array(editor.history.lines[$0]) } ?? []
      self.init(
        prompt: StyledText("(search) \(search.pattern): ", .faint), text: line,
        cursor: line.count, columns: columns)
    } else {
      let text = editor.isSecret ? editor.text.map { _ in Character("•") } : editor.text
      self.init(prompt: prompt, text: text, cursor: editor.cursor, columns: columns)
    }
  }

  private mutating func place(_ cluster: Character, _ style: TextStyle, _ columns: Int) {
    let cells = CellWidth.of(cluster)
    if rows[rows.count - 1].width + cells > columns { rows.append(Row()) }
    let last = rows.count - 1
    rows[last].width += cells
    if let span = rows[last].text.spans.last, span.style == style {
      rows[last].text.spans[rows[last].text.spans.count - 1].text.append(cluster)
    } else {
      rows[last].text.append(String(cluster), style)
    }
  }

  /// The cursor stands where the next cluster will: at the start of a new row when this one has no
  /// room for it.
  private mutating func markCursor(before cluster: Character?, _ columns: Int) {
    let isBreak = cluster == "\n" || cluster == "\r\n"
    let next = cluster.flatMap { isBreak ? nil : Self.drawn($0).first }
    let cells = next.map { max(CellWidth.of($0), 1) } ?? 1
    let last = rows.count - 1
    if rows[last].width + cells <= columns {
      (cursorRow, cursorColumn) = (last, rows[last].width)
    } else if cluster == nil {
      rows.append(Row())
      (cursorRow, cursorColumn) = (last + 1, 0)
    } else if isBreak {
      (cursorRow, cursorColumn) = (last, columns - 1)
    } else {
      (cursorRow, cursorColumn) = (last + 1, 0)
    }
  }

  /// Controls in a line (pasted ones) are shown as pictures, not obeyed.
  private static func drawn(_ cluster: Character) -> [Character] {
    let scalars = cluster.unicodeScalars
    guard let first = scalars.first, first.value < 0x20 || (0x7F..<0xA0).contains(first.value)
    else { return [cluster] }
    return Array(VisibleText.clean(String(cluster)))
  }
}
