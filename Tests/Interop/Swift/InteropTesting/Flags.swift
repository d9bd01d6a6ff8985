/// The command line of gRPC's interoperability programs: `--name=value`, `--name value`, and
/// `--name` alone for true.
public struct Flags: Sendable {
  private var values: [String: String] = [:]
  /// The first argument that is none of the names known, or has no name.
  public private(set) var unknown: String?

  public init(_ arguments: some Sequence<String>, known: Set<String>) {
    var arguments = Array(arguments)[...]
    while let argument = arguments.popFirst() {
      let bare = argument.drop { $0 == "-" }
      let parts = bare.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard bare.startIndex != argument.startIndex, let name = parts.first.map(String.init),
        known.contains(name)
      else {
        unknown = unknown ?? argument
        continue
      }
      if parts.count == 2 {
        values[name] = String(parts[1])
      } else if let next = arguments.first, !next.hasPrefix("-") {
        values[name] = next
        arguments.removeFirst()
      } else {
        values[name] = "true"
      }
    }
  }

  public subscript(name: String) -> String? { values[name].flatMap { $0.isEmpty ? nil : $0 } }

  public func bool(_ name: String) -> Bool { ["true", "1", "yes"].contains(values[name] ?? "") }

  public func int(_ name: String, default number: Int) -> Int {
    values[name].flatMap { Int($0) } ?? number
  }
}
