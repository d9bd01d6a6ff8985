import VencejoTools

/// An error as it is shown: what went wrong, why, where in the line, and what to do next.
struct ErrorReport: Sendable, Hashable {
  var message: String
  /// The status' name and the reason of its details: `NOT_FOUND, CHAT_NOT_FOUND`.
  var reason: String?
  var hint: String?
  /// The line typed and the offending place in it.
  var line: String?
  var range: Range<Int>?
  /// 1 for usage, 64 and more for a status of the server.
  var exitCode: Int32

  init(_ error: GrammarError, line: String) {
    message = error.message
    hint = error.hint
    self.line = line
    range = error.range
    exitCode = ExitCode.usage
  }

  init(message: String, reason: String? = nil, hint: String? = nil, exitCode: Int32) {
    self.message = message
    self.reason = reason
    self.hint = hint
    self.exitCode = exitCode
  }

  /// `width` nil: for a pipe, where nothing is cut.
  func lines(width: Int?) -> [StyledText] {
    var first = StyledText("error: ", .error)
    first.append(VisibleText.clean(message))
    if let reason { first.append(" (\(VisibleText.clean(reason)))", .faint) }
    var lines = [first]
    if let line, let range { lines += underlined(line, range, width: width) }
    if let hint {
      var last = StyledText("hint: ", .hint)
      last.append(VisibleText.clean(hint))
      lines.append(last)
    }
    return lines
  }

  /// The line with carets below the place. A long line shows what is around it.
  private func underlined(_ line: String, _ range: Range<Int>, width: Int?) -> [StyledText] {
    // Cluster by cluster, so that cleaning cannot move the place.
    let cells = line.map { cluster -> String in
      let clean = VisibleText.clean(String(cluster))
      return clean.isEmpty ? " " : clean
    }
    let lower = min(range.lowerBound, cells.count)
    let upper = min(max(range.upperBound, lower), cells.count)
    let room = max(20, (width ?? 1000) - 2)
    var start = 0
    while start < lower, CellWidth.of(cells[start..<upper].joined()) > room * 2 / 3 { start += 1 }
    let shown = Wrapping.truncated(cells[start...].joined(), to: room)
    let before = CellWidth.of(cells[start..<lower].joined())
    let place = max(1, min(CellWidth.of(cells[lower..<upper].joined()), room - before))
    return [
      StyledText("  " + shown),
      StyledText(Wrapping.spaces(2 + before) + String(repeating: "^", count: place), .error),
    ]
  }
}
