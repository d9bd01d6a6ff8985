import VencejoAPI
import VencejoTools

/// Records as tables and as lists of fields.
enum RecordView {
  struct Row: Sendable, Hashable {
    var name: String
    var type: String
    var fields: [String: String]
    var changeTag = ""
    /// Seconds since 1970.
    var updated: Int64?
  }

  /// One row per record, one column per field that any of them has.
  static func table(_ rows: [Row], width: Int?) -> [StyledText] {
    let fields = Set(rows.flatMap(\.fields.keys)).sorted()
    var table = Table(
      columns: [.init(title: "Name", shrinks: true, style: .strong), .init(title: "Type")]
        + fields.map { .init(title: $0, shrinks: true) })
    table.rows = rows.map { row in [row.name, row.type] + fields.map { row.fields[$0] ?? "" } }
    return table.lines(width: width)
  }

  /// One field per line.
  static func details(_ row: Row, time: TimeText) -> [StyledText] {
    var lines = [StyledText("\(VisibleText.clean(row.type)) ", .faint)]
    lines[0].append(VisibleText.clean(row.name), .strong)
    let widest = row.fields.keys.map { CellWidth.of($0) }.max() ?? 0
    for (field, value) in row.fields.sorted(by: { $0.key < $1.key }) {
      var line = StyledText(
        "  " + Wrapping.padded(VisibleText.clean(field), to: widest) + "  ", .faint)
      line.append(VisibleText.clean(value))
      lines.append(line)
    }
    let saved = row.updated.map { "saved \(time.full($0)), " } ?? ""
    lines.append(StyledText("  \(saved)change tag \(VisibleText.clean(row.changeTag))", .faint))
    return lines
  }

  /// What a query reads.
  static func explanation(
    _ explanation: Record.QueryExplanation, records: Int
  ) -> [StyledText] {
    var lines = [
      StyledText("read \(explanation.rowsRead) rows for \(records) records", .strong)
    ]
    if explanation.cutShort {
      lines.append(
        StyledText(
          "the page ended before it was full: no index has both the condition and the order", .badge
        ))
    }
    for step in explanation.steps {
      lines.append(StyledText("  " + VisibleText.clean(step.statement), .faint))
      for line in step.plan.split(separator: "\n") {
        lines.append(StyledText("    " + VisibleText.clean(String(line))))
      }
    }
    return lines
  }

  /// On one line: a live change.
  static func line(_ verb: String, _ row: Row) -> StyledText {
    var line = StyledText("\(verb) ", .badge)
    line.append(VisibleText.clean(row.type) + " ", .faint)
    line.append(VisibleText.clean(row.name), .strong)
    for (field, value) in row.fields.sorted(by: { $0.key < $1.key }) {
      line.append("  \(VisibleText.clean(field))=", .faint)
      line.append(VisibleText.clean(value))
    }
    return line
  }
}
