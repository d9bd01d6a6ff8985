/// Arguments as a command sees them: options by name, the rest in order.
///
/// `--name value`, `--name=value` and `-n value`; `-name` too, as the tools of Go's users have
/// it; `--` ends the options.
public struct ArgumentList: Sendable {
  /// An option that a command takes.
  public struct Option: Sendable {
    public let long: String
    public let short: Character?
    /// Other long names for it.
    public let aliases: [String]
    public let takesValue: Bool

    /// `value`: whether a value follows.
    public init(
      _ long: String, short: Character? = nil, aliases: [String] = [], value: Bool = false
    ) {
      self.long = long
      self.short = short
      self.aliases = aliases
      takesValue = value
    }

    fileprivate func answers(to name: Substring) -> Bool {
      if let short, name == "-\(short)" { return true }
      let word = name.hasPrefix("--") ? name.dropFirst(2) : name.dropFirst()
      guard word.count > 1 else { return false }
      return word == long || aliases.contains(String(word))
    }
  }

  /// Words that make no sense, in words for the user.
  public struct Fault: Error, Sendable, CustomStringConvertible {
    public let description: String

    public init(_ description: String) { self.description = description }
  }

  /// Everything that is no option.
  public private(set) var words: [String] = []
  private var values: [String: [String]] = [:]

  /// Throws a `Fault` for an unknown option or a missing value.
  public init(_ arguments: some Sequence<String>, options: [Option]) throws(Fault) {
    var pending: Option?
    var onlyWords = false
    for argument in arguments {
      if let option = pending {
        values[option.long, default: []].append(argument)
        pending = nil
      } else if onlyWords || !argument.hasPrefix("-") || argument == "-" {
        words.append(argument)
      } else if argument == "--" {
        onlyWords = true
      } else {
        pending = try take(argument, options)
      }
    }
    if let pending { throw Fault("option --\(pending.long) needs a value") }
  }

  private mutating func take(_ argument: String, _ options: [Option]) throws(Fault) -> Option? {
    let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = parts[0]
    guard let option = options.first(where: { $0.answers(to: name) }) else {
      throw Fault("unknown option \(name)" + Self.suggestion(for: String(name), among: options))
    }
    if parts.count == 2 {
      guard option.takesValue else {
        // As Go's programs have it.
        switch parts[1] {
        case "true", "1": values[option.long, default: []].append("")
        case "false", "0": values[option.long] = nil
        default: throw Fault("option --\(option.long) takes no value")
        }
        return nil
      }
      values[option.long, default: []].append(String(parts[1]))
      return nil
    }
    if option.takesValue { return option }
    values[option.long, default: []].append("")
    return nil
  }

  private static func suggestion(for name: String, among options: [Option]) -> String {
    let close = options.map { "--" + $0.long }.min {
      editDistance(name, $0) < editDistance(name, $1)
    }
    guard let close, editDistance(name, close) <= 3 else { return "" }
    return " (did you mean \(close)?)"
  }

  mutating func append(_ value: String, to name: String) {
    values[name, default: []].append(value)
  }

  public func has(_ name: String) -> Bool { values[name] != nil }
  public subscript(_ name: String) -> String? { values[name]?.last }
  public func all(_ name: String) -> [String] { values[name] ?? [] }
}

/// Insertions, deletions, substitutions, and swaps of neighbours: the optimal string alignment
/// distance.
public func editDistance(_ left: String, _ right: String) -> Int {
  let left = Array(left)
  let right = Array(right)
  var beforeLast: [Int] = []
  var last = Array(0...right.count)
  for i in left.indices {
    var row = [i + 1]
    for j in right.indices {
      let same = left[i] == right[j]
      var best = min(last[j] + (same ? 0 : 1), row[j] + 1, last[j + 1] + 1)
      if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] {
        best = min(best, beforeLast[j - 1] + 1)
      }
      row.append(best)
    }
    beforeLast = last
    last = row
  }
  return last[right.count]
}
