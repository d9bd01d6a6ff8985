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
