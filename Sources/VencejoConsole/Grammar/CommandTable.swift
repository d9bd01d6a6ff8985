import VencejoTools

/// One command: how it is called, what it does, two examples, how its words are read. Help,
/// completion and the grammar come from the same table, so none can forget another.
struct CommandSpec: Sendable {
  enum Group: String, Sendable, CaseIterable {
    case account = "Account"
    case chats = "Chats"
    case records = "Records"
    case general = "General"
  }

  var name: String
  var aliases: [String] = []
  var usage: String
  var summary: String
  var details: String = ""
  var examples: [String]
  var group: Group
  /// The command ends in a message, where quotes need no partner.
  var takesText = false
  var parse: @Sendable (inout Arguments) throws(GrammarError) -> Command
}

/// The table and how a line finds its command.
enum CommandTable {
  static let all: [CommandSpec] = account + chats + records + general

  /// Every name and alias.
  static let names: [String] = all.flatMap { [$0.name] + $0.aliases }

  static func spec(named name: String) -> CommandSpec? {
    let name = name.lowercased()
    return all.first { $0.name == name || $0.aliases.contains(name) }
  }

  /// The command in a line; nil when there is nothing to do (a blank line, a comment).
  ///
  /// With a chat open every line is a message, as in a messenger, and commands begin with a slash;
  /// two slashes begin a message that starts with one. With none open the slash may be left out.
  static func parse(_ line: String, chatIsOpen: Bool) throws(GrammarError) -> Command? {
    if VisibleText.isBlank(line) { return nil }
    let characters = Array(line)
    let start = characters.firstIndex { !$0.isWhitespace } ?? 0
    if chatIsOpen {
      // Spaces around a message are not part of it.
      let end = characters.lastIndex { !$0.isWhitespace }.map { $0 + 1 } ?? characters.count
      guard characters[start] == "/" else { return .send(String(characters[start..<end])) }
      if start + 1 < characters.count, characters[start + 1] == "/" {
        return .send(String(characters[start + 1..<end]))
      }
    } else if characters[start] == "#" {
      return nil
    }
    let begin = characters[start] == "/" ? start + 1 : start
    let (spec, name) = try find(characters, begin, chatIsOpen: chatIsOpen)
    let words = try Words(characters, from: name.upperBound, literalQuotes: spec.takesText)
    var arguments = Arguments(
      line: characters, usage: spec.usage, name: name, words: words.words[...])
    let command = try spec.parse(&arguments)
    try arguments.done()
    return command
  }

  /// The command whose name stands at `start`: two words where there is such a name, else one.
  private static func find(
    _ line: [Character], _ start: Int, chatIsOpen: Bool
  ) throws(GrammarError) -> (CommandSpec, Range<Int>) {
    func end(from index: Int) -> Int {
      line[index...].firstIndex { $0.isWhitespace } ?? line.count
    }
    let firstEnd = end(from: start)
    let first = String(line[start..<firstEnd])
    if let second = line[firstEnd...].firstIndex(where: { !$0.isWhitespace }) {
      let secondEnd = end(from: second)
      let pair = "\(first) \(String(line[second..<secondEnd]))"
      if let spec = spec(named: pair) { return (spec, start..<secondEnd) }
    }
    if let spec = spec(named: first) { return (spec, start..<firstEnd) }
    throw unknown(first, start..<max(firstEnd, start + 1))
  }

  private static func unknown(_ name: String, _ range: Range<Int>) -> GrammarError {
    let begun = names.filter { $0.hasPrefix(name.lowercased() + " ") }
    if !begun.isEmpty {
      return GrammarError(
        message: "\(name) what?", hint: "one of: \(begun.joined(separator: ", "))", range: range)
    }
    let hint =
      Suggestion.nearest(to: name, among: names).map { "did you mean \($0)? See: help \($0)" }
      ?? "see help; to send a text, open a chat first: open ana"
    return GrammarError(message: "no such command: \(name)", hint: hint, range: range)
  }
}
