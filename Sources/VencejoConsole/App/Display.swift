import Glibc
import VencejoTools

/// Where a command's results go.
protocol Display: Sendable {
  /// Columns of the screen; nil where there is none and nothing may be cut.
  var width: Int? { get async }
  /// A result.
  func show(_ lines: [StyledText]) async
  /// A message about the work: an error, a hint.
  func complain(_ lines: [StyledText]) async
  /// One line of JSON.
  func json(_ line: String) async
  /// Asks a person for something that must not be seen; nil when there is nobody to ask, or no
  /// answer.
  func askSecret(_ prompt: String) async -> String?
}

/// Results on standard output, the rest on standard error.
struct PlainDisplay: Display {
  let output: Output
  let columns: Int?
  let colour: Bool
  /// Whether standard error is coloured.
  let errorColour: Bool

  var width: Int? { columns }

  func show(_ lines: [StyledText]) {
    if !lines.isEmpty {
      output.line(lines.map { $0.rendered(colour: colour) }.joined(separator: "\n"))
    }
  }

  func complain(_ lines: [StyledText]) {
    if !lines.isEmpty {
      output.complain(lines.map { $0.rendered(colour: errorColour) }.joined(separator: "\n"))
    }
  }

  func json(_ line: String) { output.line(line) }

  func askSecret(_ prompt: String) -> String? { nil }
}
