/// How a piece of text looks; the names say the purpose, the colours are chosen in one place.
enum TextStyle: Sendable, Hashable {
  case plain, strong, faint, own, other, badge, error, hint

  /// The SGR parameters (ECMA-48, 8.3.117), or nil for plain text.
  var sgr: String? {
    switch self {
    case .plain: nil
    case .strong: "1"
    case .faint: "2"
    case .own: "36"
    case .other: "1;33"
    case .badge: "1;32"
    case .error: "1;31"
    case .hint: "35"
    }
  }
}

/// Text in pieces of one style each. It knows its width, because styles take no cells.
struct StyledText: Sendable, Hashable, ExpressibleByStringLiteral {
  struct Span: Sendable, Hashable {
    var text: String
    var style: TextStyle
  }

  var spans: [Span]

  init(_ text: String = "", _ style: TextStyle = .plain) {
    spans = text.isEmpty ? [] : [Span(text: text, style: style)]
  }

  init(stringLiteral value: String) { self.init(value) }

  /// The text alone.
  var plain: String { spans.map(\.text).joined() }

  var width: Int { spans.reduce(0) { $0 + CellWidth.of($1.text) } }

  mutating func append(_ text: String, _ style: TextStyle = .plain) {
    if !text.isEmpty { spans.append(Span(text: text, style: style)) }
  }

  static func + (left: StyledText, right: StyledText) -> StyledText {
    var sum = left
    sum.spans += right.spans
    return sum
  }

  /// For the terminal: with SGR sequences when `colour`, bare otherwise (`NO_COLOR`, dumb
  /// terminals, pipes).
  func rendered(colour: Bool) -> String {
    guard colour else { return plain }
    return spans.map { span in
      span.style.sgr.map { "\u{1B}[\($0)m\(span.text)\u{1B}[0m" } ?? span.text
    }.joined()
  }
}
