/// One word of a line: what it says, and where it stands.
struct Word: Sendable, Hashable {
  /// Without quotes, escapes resolved.
  var text: String
  /// In grapheme clusters of the line.
  var range: Range<Int>
  var isQuoted = false
  /// For `key=value`: the key, and the value as it was typed.
  var key: String?
  var value = ""
  var valueStart = 0
}

/// A line cut into words.
///
/// Words end at white space. A double quote at the start of a word, or right after its first `=`,
/// begins a text in which only `\"`, `\\`, `\n`, `\t` and `\u{…}` mean something else; elsewhere
/// quotes and apostrophes are letters, because people write *don't*. A `[` right after `=` goes on
/// to its `]`.
struct Words: Sendable {
  let line: [Character]
  private(set) var words: [Word] = []

  init(_ line: String) throws(GrammarError) {
    try self.init(Array(line))
  }

  /// With `literalQuotes` a quote without a partner is a letter: the line holds a message.
  init(
    _ line: [Character], from start: Int = 0, literalQuotes: Bool = false
  ) throws(GrammarError) {
    self.line = line
    var index = start
    while true {
      while index < line.count, line[index].isWhitespace { index += 1 }
      if index >= line.count { return }
      let begin = index
      do throws(GrammarError) {
        words.append(try Self.word(line, &index))
      } catch {
        guard literalQuotes else { throw error }
        index = line[begin...].firstIndex { $0.isWhitespace } ?? line.count
        words.append(Word(text: String(line[begin..<index]), range: begin..<index))
      }
    }
  }

  private static func word(_ line: [Character], _ index: inout Int) throws(GrammarError) -> Word {
    let start = index
    if line[index] == "\"" {
      let text = try quoted(line, &index)
      return Word(text: text, range: start..<index, isQuoted: true)
    }
    var equals: Int?
    while index < line.count, !line[index].isWhitespace {
      let isFirstEquals = line[index] == "=" && equals == nil && index > start
      index += 1
      guard isFirstEquals else { continue }
      equals = index - 1
      guard index < line.count else { break }
      if line[index] == "\"" {
        let valueStart = index
        let text = try quoted(line, &index)
        return Word(
          text: String(line[start..<index]), range: start..<index, isQuoted: true,
          key: String(line[start..<valueStart - 1]), value: text, valueStart: valueStart)
      }
      if line[index] == "[" { try list(line, &index) }
    }
    var word = Word(text: String(line[start..<index]), range: start..<index)
    if let equals {
      word.key = String(line[start..<equals])
      word.value = String(line[equals + 1..<index])
      word.valueStart = equals + 1
    }
    return word
  }

  /// The text from the quote at `index` to its partner; `index` is then after it.
  static func quoted(_ line: [Character], _ index: inout Int) throws(GrammarError) -> String {
    let start = index
    var text = ""
    index += 1
    while index < line.count {
      switch line[index] {
      case "\"":
        index += 1
        return text
      case "\\": text.append(try escape(line, &index))
      case let other:
        text.append(other)
        index += 1
      }
    }
    throw GrammarError(
      message: "this quote has no partner", hint: "end the text with \"", range: start..<line.count)
  }

  private static func escape(
    _ line: [Character], _ index: inout Int
  ) throws(GrammarError) -> Character {
    let start = index
    index += 2
    switch start + 1 < line.count ? line[start + 1] : " " {
    case "\"": return "\""
    case "\\": return "\\"
    case "n": return "\n"
    case "t": return "\t"
    case "u":
      if index < line.count, line[index] == "{",
        let end = line[index...].firstIndex(of: "}"),
        let value = UInt32(String(line[index + 1..<end]), radix: 16),
        let scalar = Unicode.Scalar(value)
      {
        index = end + 1
        return Character(scalar)
      }
    default: break
    }
    throw GrammarError(
      message: "no such escape", hint: "known are \\\" \\\\ \\n \\t \\u{1F44D}",
      range: start..<min(start + 2, line.count))
  }

  private static func list(_ line: [Character], _ index: inout Int) throws(GrammarError) {
    let start = index
    while index < line.count, line[index] != "]" {
      if line[index] == "\"" { _ = try quoted(line, &index) } else { index += 1 }
    }
    guard index < line.count else {
      throw GrammarError(
        message: "this list has no end", hint: "end it with ]", range: start..<line.count)
    }
    index += 1
  }
}
