/// What reading and writing throw inside: turned into a ``JSONError`` by whoever knows the text.
struct JSONFault: Error {
  let message: String
  /// In bytes.
  var offset = 0
  /// The path, innermost step first: added on the way out, as a path kept up to date on the way
  /// in would cost time even when nothing is wrong, and with long keys much of it.
  var steps: [String] = []
  /// Whether nothing is wrong but the order of encoded fields.
  var isDisorder = false

  static var disorder: JSONFault { JSONFault(message: "fields in disorder", isDisorder: true) }

  /// The same from one step further out.
  func at(_ step: String) -> JSONFault {
    var fault = self
    fault.steps.append(step)
    return fault
  }

  func error(line: Int = 0, column: Int = 0) -> JSONError {
    JSONError(
      message: message, path: "$" + steps.reversed().joined(), line: line, column: column)
  }
}
