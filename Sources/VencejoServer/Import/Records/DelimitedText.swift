/// Rows of a delimited text (RFC 4180 and what programs make of it): quoted cells with separators,
/// line ends and doubled quotes in them; lines that end as on Unix, Windows or an old Mac.
package struct DelimitedText {
  /// A cell, and whether it stood in quotes: an empty one without is no value.
  package struct Cell: Equatable {
    package var text: String
    package var isQuoted: Bool
  }

  /// What cannot be read, and where.
  package struct Fault: Error, Equatable, CustomStringConvertible {
    package var line: Int
    package var problem: String
    package var description: String { line > 0 ? "line \(line): \(problem)" : problem }

    package init(line: Int, problem: String) {
      self.line = line
      self.problem = problem
    }
  }

  private var window: TextWindow
  private let separator: UInt8
  /// Of the next row, from 1.
  package private(set) var line = 1
  /// The row that was read last.
  private(set) var spans: [Span] = []

  /// Where a cell stands in the window, without its quotes.
  struct Span {
    var start: Int
    var end: Int
    var isQuoted = false
    /// What it says, where that is not what stands there.
    var text: [UInt8]?
  }

  init(_ window: TextWindow, separator: UInt8) {
    self.window = window
    self.separator = separator
    // Excel's own way to say which separator follows.
    if window.bytes.starts(with: "sep=".utf8), window.bytes.count > 5,
      window.bytes[4] == separator
    {
      var end = 5
      while end < window.bytes.count, window.bytes[end] == UInt8(ascii: "\r") { end += 1 }
      if end < window.bytes.count, window.bytes[end] == UInt8(ascii: "\n") {
        self.window.at = end + 1
        line = 2
      }
    }
  }

  /// The next row that is not blank; nil at the end.
  ///
  /// - Throws: ``Fault`` for a quote that is never closed, and a row that is too long.
  package mutating func next() throws(Fault) -> (line: Int, cells: [Cell])? {
    guard let line = try nextSpans() else { return nil }
    return (
      line,
      withRow { row in
        spans.map { Cell(text: row.text($0), isQuoted: $0.isQuoted) }
      }
    )
  }

  /// As ``next()``, for who looks at the bytes: the row's line.
  ///
  /// - Throws: As that.
  mutating func nextSpans() throws(Fault) -> Int? {
    while true {
      try window.refill()
      guard window.at < window.bytes.count else { return nil }
      let start = line
      try row()
      if spans.count > 1 || spans[0].isQuoted || spans[0].start < spans[0].end { return start }
    }
  }

  /// The bytes of a row, while somebody looks at them.
  struct RowBytes {
    fileprivate let window: UnsafeBufferPointer<UInt8>

    func bytes(_ span: borrowing Span) -> UnsafeBufferPointer<UInt8> {
      UnsafeBufferPointer(rebasing: window[span.start..<span.end])
    }

    func text(_ span: Span) -> String {
      span.text.map { String(decoding: $0, as: UTF8.self) }
        ?? String(decoding: bytes(span), as: UTF8.self)
    }
  }

  func withRow<Result>(_ body: (RowBytes) throws -> Result) rethrows -> Result {
    try window.bytes.withUnsafeBufferPointer { try body(RowBytes(window: $0)) }
  }

  private mutating func row() throws(Fault) {
    let first = line
    spans.removeAll(keepingCapacity: true)
    var scan = Scan(at: window.at, line: line, separator: separator)
    let problem = window.bytes.withUnsafeBufferPointer { bytes in
      scan.row(bytes, isLast: window.isLast, into: &spans)
    }
    window.at = scan.at
    line = scan.line
    switch problem {
    case nil: return
    case .openQuote(let opened):
      throw Fault(
        line: opened,
        problem: window.isLast
          ? "a quote is opened here and never closed"
          : "a quote is opened here and not closed within \(window.limit)")
    case .tooLong: throw Fault(line: first, problem: "a row is longer than \(window.limit)")
    }
  }

  private enum Problem {
    case openQuote(line: Int)
    case tooLong
  }

  /// One row's way through the window.
  private struct Scan {
    var at: Int
    var line: Int
    let separator: UInt8

    mutating func row(
      _ bytes: UnsafeBufferPointer<UInt8>, isLast: Bool, into cells: inout [Span]
    ) -> Problem? {
      while true {
        if let problem = cell(bytes, into: &cells) { return problem }
        guard at < bytes.count else { return isLast ? nil : .tooLong }
        let byte = bytes[at]
        at += 1
        if byte == separator { continue }
        if byte == UInt8(ascii: "\r"), at < bytes.count, bytes[at] == UInt8(ascii: "\n") { at += 1 }
        line += 1
        return nil
      }
    }

    private mutating func cell(
      _ bytes: UnsafeBufferPointer<UInt8>, into cells: inout [Span]
    ) -> Problem? {
      let quote = UInt8(ascii: "\"")
      let start = at
      guard at < bytes.count, bytes[at] == quote else {
        while at < bytes.count, !isEnd(bytes[at]) { at += 1 }
        cells.append(Span(start: start, end: at))
        return nil
      }
      let opened = line
      at += 1
      let inner = at
      // Most cells in quotes have none inside.
      while at < bytes.count, bytes[at] != quote {
        countLine(bytes)
        at += 1
      }
      guard at < bytes.count else { return .openQuote(line: opened) }
      at += 1
      if at >= bytes.count || isEnd(bytes[at]) {
        cells.append(Span(start: inner, end: at - 1, isQuoted: true))
        return nil
      }
      var text = Array(bytes[inner..<at - 1])
      var isOpen = bytes[at] == quote
      if isOpen {
        text.append(quote)
        at += 1
      }
      while isOpen {
        guard at < bytes.count else { return .openQuote(line: opened) }
        let byte = bytes[at]
        if byte != quote {
          countLine(bytes)
          text.append(byte)
          at += 1
        } else if at + 1 < bytes.count, bytes[at + 1] == quote {
          text.append(quote)
          at += 2
        } else {
          isOpen = false
          at += 1
        }
      }
      // What follows the quote before the separator belongs to the cell, as Excel has it.
      while at < bytes.count, !isEnd(bytes[at]) {
        text.append(bytes[at])
        at += 1
      }
      cells.append(Span(start: inner, end: at, isQuoted: true, text: text))
      return nil
    }

    /// A line end within a cell may be two bytes, and is one line.
    private mutating func countLine(_ bytes: UnsafeBufferPointer<UInt8>) {
      let byte = bytes[at]
      guard byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") else { return }
      let isPair =
        byte == UInt8(ascii: "\r") && at + 1 < bytes.count && bytes[at + 1] == UInt8(ascii: "\n")
      if !isPair { line += 1 }
    }

    private func isEnd(_ byte: UInt8) -> Bool {
      byte == separator || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
    }
  }

  /// The separator that cuts the first rows into most cells, alike in all of them.
  static func separator(of window: TextWindow) -> UInt8 {
    if window.bytes.starts(with: "sep=".utf8), window.bytes.count > 5 { return window.bytes[4] }
    var best = (separator: UInt8(ascii: ","), score: 0)
    for mark in [",", ";", "\t", "|"] as [Character] {
      guard let separator = mark.asciiValue else { continue }
      var text = DelimitedText(window, separator: separator)
      var counts: [Int: Int] = [:]
      var rows = 0
      while rows < 100, let row = try? text.next() {
        rows += 1
        counts[row.cells.count, default: 0] += 1
      }
      let (cells, alike) = counts.max { ($0.value, $0.key) < ($1.value, $1.key) } ?? (1, 0)
      guard cells > 1, rows > 0 else { continue }
      let score = alike * 1000 / rows * 100 + min(cells, 99)
      if score > best.score { best = (separator, score) }
    }
    return best.separator
  }
}
