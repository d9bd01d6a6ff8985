/// A parsed JSON value and where it stands in the text.
package struct JSONNode {
  package struct Member {
    package let name: String
    let offset: Int
    package let value: JSONNode
  }

  package indirect enum Kind {
    case null
    case bool(Bool)
    /// The number as it is written: conversion depends on the field.
    case number(String)
    case string(String)
    case array([JSONNode])
    case object([Member])
  }

  package let kind: Kind
  /// In bytes.
  let offset: Int

  package var isNull: Bool { if case .null = kind { true } else { false } }

  /// What it is, for messages.
  package var description: String {
    switch kind {
    case .null: "null"
    case .bool: "a boolean"
    case .number: "a number"
    case .string: "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }
}

/// What reading and writing throw inside: turned into a ``JSONError`` by whoever knows the text.
struct JSONFault: Error {
  let message: String
  /// In bytes.
  var offset = 0
  /// The path, innermost step first: added on the way out, as a path kept up to date on the way
  /// in would cost time even when nothing is wrong, and with long keys much of it.
  var steps: [String] = []

  func error(line: Int = 0, column: Int = 0) -> JSONError {
    JSONError(
      message: message, path: "$" + steps.reversed().joined(), line: line, column: column)
  }
}

/// Runs a part of the work; a fault in it gets another step of its path.
func within<T>(
  _ step: @autoclosure () -> String, _ body: () throws(JSONFault) -> T
) throws(JSONFault) -> T {
  do throws(JSONFault) {
    return try body()
  } catch {
    var fault = error
    fault.steps.append(step())
    throw fault
  }
}
