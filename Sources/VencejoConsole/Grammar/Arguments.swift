/// The words after a command's name, taken one by one.
struct Arguments: Sendable {
  let line: [Character]
  let usage: String
  /// The name of the command as typed.
  let name: Range<Int>
  private var words: ArraySlice<Word>

  init(line: [Character], usage: String, name: Range<Int>, words: ArraySlice<Word>) {
    self.line = line
    self.usage = usage
    self.name = name
    self.words = words
  }

  var isEmpty: Bool { words.isEmpty }
  var first: Word? { words.first }

  /// Where the next word begins, or the line ends.
  var position: Int { words.first?.range.lowerBound ?? line.count }

  mutating func next() -> Word? { words.popFirst() }

  mutating func next(_ what: String) throws(GrammarError) -> String {
    guard let word = words.popFirst() else {
      throw GrammarError(
        message: "\(what) is missing", hint: "usage: \(usage)", range: line.count..<line.count + 1)
    }
    return word.text
  }

  /// All that follows, as it was typed; a single quoted text is taken out of its quotes.
  mutating func rest() -> String {
    defer { words.removeAll() }
    guard let first = words.first else { return "" }
    if words.count == 1, first.isQuoted, first.key == nil { return first.text }
    let typed = line[first.range.lowerBound...]
    let end = typed.lastIndex { !$0.isWhitespace }.map { $0 + 1 } ?? typed.endIndex
    return String(typed[..<end])
  }

  /// Takes the value of `key=…` wherever it stands.
  mutating func value(_ key: String) -> String? {
    guard let index = words.firstIndex(where: { $0.key == key }) else { return nil }
    return words.remove(at: index).value
  }

  /// Takes `--name`.
  mutating func flag(_ name: String) -> Bool {
    guard let index = words.firstIndex(where: { $0.text == name && !$0.isQuoted }) else {
      return false
    }
    words.remove(at: index)
    return true
  }

  /// Takes `--name VALUE` or `--name=VALUE`.
  mutating func option(_ name: String) throws(GrammarError) -> Word? {
    guard
      let index = words.firstIndex(where: { !$0.isQuoted && ($0.text == name || $0.key == name) })
    else { return nil }
    var word = words.remove(at: index)
    if word.key == name {
      word.text = word.value
      word.range = word.valueStart..<word.range.upperBound
      return word
    }
    guard index < words.endIndex else {
      throw GrammarError(
        message: "\(name) needs a value", hint: "usage: \(usage)", range: word.range)
    }
    return words.remove(at: index)
  }

  mutating func count(_ name: String) throws(GrammarError) -> Int? {
    guard let word = try option(name) else { return nil }
    return try Self.positive(word)
  }

  static func positive(_ word: Word) throws(GrammarError) -> Int {
    guard let value = Int(word.text), value > 0 else {
      throw GrammarError(
        message: "a whole number above zero belongs here", hint: nil, range: word.range)
    }
    return value
  }

  /// `--count N` and `--timeout SECONDS`.
  mutating func limit() throws(GrammarError) -> Command.Limit {
    var limit = Command.Limit(count: try count("--count"), timeout: nil)
    if let word = try option("--timeout") {
      guard let seconds = Double(word.text), seconds >= 0, seconds.isFinite, seconds < 1e9 else {
        throw GrammarError(
          message: "a number of seconds belongs here", hint: nil, range: word.range)
      }
      limit.timeout = seconds
    }
    return limit
  }

  /// Refuses what is left.
  func done() throws(GrammarError) {
    guard let word = words.first else { return }
    throw GrammarError(
      message: word.text.hasPrefix("--")
        ? "no such option: \(word.text)" : "nothing more was expected here",
      hint: "usage: \(usage)", range: word.range)
  }
}
