/// Collects lines of source, indented.
struct Printer {
  private(set) var text = ""
  private var depth = 0

  /// Prints a line; empty ones without blanks at their end.
  mutating func line(_ line: String = "") {
    if !line.isEmpty {
      for _ in 0..<depth { text += "  " }
      text += line
    }
    text += "\n"
  }

  /// Prints a line that opens a block, the block, and its end.
  mutating func block(_ head: String, end: String = "}", _ body: (inout Printer) -> Void) {
    line(head)
    depth += 1
    body(&self)
    depth -= 1
    line(end)
  }

  /// Prints more, indented by one.
  mutating func indented(_ body: (inout Printer) -> Void) {
    depth += 1
    body(&self)
    depth -= 1
  }

  /// Prints what another printer has collected, at this depth.
  mutating func insert(_ other: Printer) {
    for part in other.text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
      line(String(part))
    }
  }

  /// Prints a documentation comment.
  mutating func doc(_ comment: String?) {
    guard let comment else { return }
    for part in comment.split(separator: "\n", omittingEmptySubsequences: false) {
      line(part.isEmpty ? "///" : "/// \(part)")
    }
  }
}
