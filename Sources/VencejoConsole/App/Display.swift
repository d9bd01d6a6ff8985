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

/// Of results only the names, one a line: what another command can be given.
struct QuietDisplay: Display {
  let output: Output

  var width: Int? { nil }

  func show(_ lines: [StyledText]) {}

  func complain(_ lines: [StyledText]) {
    if !lines.isEmpty { output.complain(lines.map(\.plain).joined(separator: "\n")) }
  }

  func json(_ line: String) {
    if let name = Self.name(in: line) { output.line(VisibleText.clean(name)) }
  }

  func askSecret(_ prompt: String) -> String? { nil }

  /// The value of `name`, which is the first field of all that have one. Names are made of
  /// characters that JSON does not escape.
  static func name(in json: String) -> String? {
    let prefix = "{\"name\":\""
    guard json.hasPrefix(prefix) else { return nil }
    return String(json.dropFirst(prefix.count).prefix { $0 != "\"" })
  }
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
