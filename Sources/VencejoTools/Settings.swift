/// Options that come from elsewhere than the command line: a file, and variables of the
/// environment. What the command line says counts first, then the environment, then the file.
public struct Settings: Sendable {
  /// What variables begin with: `PREFIX_LOG_LEVEL` is `--log-level`.
  private let prefix: String
  private let environment: [String: String]

  public init(prefix: String, environment: [String: String]) {
    self.prefix = prefix
    self.environment = environment
  }

  /// `arguments`, filled up with what they leave open. `file` is the text of a file, if there is
  /// one, and `path` its name for complaints.
  ///
  /// A file has lines `name = value`, blank lines and comments behind `#`; a name may come again
  /// where an option may. An option without a value is `true` or `false`. In the environment,
  /// values of options that may be repeated are parted by commas.
  ///
  /// - Throws: A fault that names the line for what is not understood, with what may be meant; and
  ///   for a variable that is all but one of ours.
  public func filled(
    _ arguments: ArgumentList, options: [ArgumentList.Option], repeatable: Set<String>,
    file: (path: String, text: String)? = nil
  ) throws(ArgumentList.Fault) -> ArgumentList {
    var result = arguments
    var taken = Set(options.map(\.long).filter { arguments.has($0) })
    for (name, option, value) in try variables(options) where !taken.contains(option.long) {
      let values =
        repeatable.contains(option.long)
        ? value.split(separator: ",").map { Self.trimmed($0) }.filter { !$0.isEmpty } : [value]
      for value in values { try result.set(option, value, from: name) }
      taken.insert(option.long)
    }
    guard let file else { return result }
    for (index, line) in file.text.split(separator: "\n", omittingEmptySubsequences: false)
      .enumerated()
    {
      let text = Self.trimmed(Self.withoutComment(line))
      guard !text.isEmpty else { continue }
      let place = "\(file.path):\(index + 1)"
      guard let mark = text.firstIndex(of: "=") else {
        throw ArgumentList.Fault("\(place): write name = value")
      }
      let name = Self.trimmed(text[..<mark])
      guard let option = options.first(where: { $0.long == name }) else {
        throw ArgumentList.Fault(
          "\(place): '\(name)' is no setting" + Self.suggestion(name, options.map(\.long)))
      }
      guard !taken.contains(name) else { continue }
      try result.set(
        option, Self.unquoted(Self.trimmed(text[text.index(after: mark)...])), from: place)
      if !repeatable.contains(name), result.all(name).count > 1 {
        throw ArgumentList.Fault("\(place): '\(name)' is there twice")
      }
    }
    return result
  }

  /// Our variables, and a complaint for those that are nearly ours: a misspelt one would be passed
  /// over without a word.
  private func variables(
    _ options: [ArgumentList.Option]
  ) throws(ArgumentList.Fault) -> [(name: String, option: ArgumentList.Option, value: String)] {
    var found: [(String, ArgumentList.Option, String)] = []
    let names = options.map { (variable($0.long), $0) }
    for (name, value) in environment.sorted(by: { $0.key < $1.key })
    where name.hasPrefix(prefix + "_") {
      if let known = names.first(where: { $0.0 == name }) {
        found.append((name, known.1, value))
      } else if let close = names.map(\.0).min(by: {
        editDistance(name, $0) < editDistance(name, $1)
      }), editDistance(name, close) <= 2 {
        throw ArgumentList.Fault("\(name) is no variable of ours (did you mean \(close)?)")
      }
    }
    return found
  }

  private func variable(_ option: String) -> String {
    prefix + "_" + option.map { $0 == "-" ? "_" : $0.uppercased() }.joined()
  }

  private static func suggestion(_ name: String, _ known: [String]) -> String {
    guard let close = known.min(by: { editDistance(name, $0) < editDistance(name, $1) }),
      editDistance(name, close) <= 3
    else { return "" }
    return " (did you mean '\(close)'?)"
  }

  private static func trimmed(_ text: some StringProtocol) -> String {
    var text = Substring(text)
    while text.first?.isWhitespace == true { text.removeFirst() }
    while text.last?.isWhitespace == true { text.removeLast() }
    return String(text)
  }

  /// A comment begins a line or follows a space, so that `#` may stand in a value.
  private static func withoutComment(_ line: Substring) -> Substring {
    var before: Character = " "
    for index in line.indices {
      if line[index] == "#", before.isWhitespace { return line[..<index] }
      before = line[index]
    }
    return line
  }

  private static func unquoted(_ text: String) -> String {
    guard text.count >= 2, text.first == "\"", text.last == "\"" else { return text }
    return String(text.dropFirst().dropLast())
  }
}

extension ArgumentList {
  /// Sets an option as its text says; one without a value by `true`, and not by `false`.
  mutating func set(_ option: Option, _ value: String, from place: String) throws(Fault) {
    if option.takesValue {
      guard !value.isEmpty else { throw Fault("\(place): \(option.long) needs a value") }
      append(value, to: option.long)
      return
    }
    switch value.lowercased() {
    case "true", "yes", "on", "1": append("", to: option.long)
    case "false", "no", "off", "0": break
    default: throw Fault("\(place): \(option.long) is true or false, not '\(value)'")
    }
  }
}
