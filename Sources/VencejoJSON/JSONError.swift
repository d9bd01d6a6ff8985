import Synchronization
public import VencejoDescriptors

/// Why JSON could not be read or written.
public struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong.
  public var message: String
  /// Where in the message, for example `$.message.attachments[2].size`.
  public var path: String
  /// The line in the text, from 1; 0 when writing.
  public var line = 0
  /// The character in the line, from 1; 0 when writing.
  public var column = 0

  public var description: String {
    line == 0 ? "\(path): \(message)" : "\(line):\(column): \(path): \(message)"
  }
}

/// How JSON is read and written.
public struct JSONOptions: Sendable {
  /// Writing: field names as in the file, not in lowerCamel. Reading accepts both.
  public var originalNames = false
  /// Writing: also fields that have no presence and hold their default value.
  public var defaults = false
  /// Writing: enums as numbers, not names. Reading accepts both.
  public var enumNumbers = false
  /// Writing: one field a line, indented by two.
  public var pretty = false
  /// Reading: names nobody knows are skipped, not refused; names of enum values too.
  public var ignoreUnknown = false
  /// Where the types packed in `Any` are found, besides the message's own pool and the
  /// well-known types. For a generated message it may also know extensions: when it has the
  /// message's type, that is used.
  public var types: DescriptorPool?
  /// Writing: an `Any` of an unknown type is shown by its bytes, in `@value`, and its type is
  /// noted here; nil throws.
  package var unknownTypes: UnknownTypes?

  /// The defaults of the protobuf JSON mapping.
  public init() {}
}

/// The names of types that were packed in an `Any` and are nowhere declared.
package final class UnknownTypes: Sendable {
  private let noted = Mutex<Set<String>>([])

  package init() {}

  package var names: Set<String> { noted.withLock { $0 } }

  func note(_ url: String) {
    let name = String(url.split(separator: "/").last ?? "")
    noted.withLock { _ = $0.insert(name) }
  }
}
