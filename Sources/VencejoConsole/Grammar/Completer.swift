/// What Tab offers, from the command table and from names seen lately; pure, so it never blocks
/// typing.
struct Completer: Sendable {
  var chatIsOpen = false
  var chats: [String] = []
  var handles: [String] = []
  var containers: [String] = []
  var zones: [String] = []
  var recordTypes: [String] = []
  var recordNames: [String] = []
  var fields: [String] = []

  /// The candidates for the end of `line`, the text before the cursor.
  func complete(_ line: String) -> Completion {
    let characters = Array(line)
    guard let start = characters.firstIndex(where: { !$0.isWhitespace }) else { return .none }
    let hasSlash = characters[start] == "/"
    if chatIsOpen, !hasSlash { return completeWord(characters, among: handles) }
    let begin = hasSlash ? start + 1 : start
    let typed = String(characters[begin...]).lowercased()
    let names = CommandTable.names.filter { $0.hasPrefix(typed) }.sorted()
    if !names.isEmpty, !CommandTable.names.contains(where: { typed.hasPrefix($0 + " ") }) {
      return Completion(start: begin, candidates: names.map { $0 + " " })
    }
    return completeWord(characters, among: words(after: typed))
  }

  /// What may stand after the words typed so far.
  private func words(after typed: String) -> [String] {
    let words = typed.split(separator: " ", omittingEmptySubsequences: true).map(String.init)
    let isSecond = words.count < 2 || (words.count == 2 && !typed.hasSuffix(" "))
    switch words.first {
    case "open", "say", "messages", "history", "read": return isSecond ? chats : []
    case "chat", "new", "users", "find", "sign-in", "login": return handles
    case "help": return CommandTable.all.map(\.name)
    case "zone": return zones
    case "get", "delete": return recordNames
    case "put", "save": return isSecond ? recordTypes : fields.map { $0 + "=" }
    case "query", "explain":
      return isSecond ? recordTypes : fields + ["where", "order by", "limit", "desc"]
    case "watch":
      return isSecond
        ? ["zone", "query"] : recordTypes + zones + fields + ["where", "--count", "--timeout"]
    case "use":
      if isSecond { return ["container", "zone", "database"] }
      return words[1] == "zone"
        ? zones : words[1] == "container" ? containers : Command.Database.allCases.map(\.rawValue)
    default: return []
    }
  }

  private func completeWord(_ line: [Character], among words: [String]) -> Completion {
    let start = (line.lastIndex { $0.isWhitespace }.map { $0 + 1 }) ?? 0
    let typed = String(line[start...]).lowercased()
    let plain = typed.hasPrefix("\"") ? String(typed.dropFirst()) : typed
    if chatIsOpen, plain.isEmpty { return .none }
    let fitting = Set(words.filter { $0.lowercased().hasPrefix(plain) }).sorted()
    return Completion(
      start: start,
      candidates: fitting.map { word in
        let isKeyword = word == "order by"
        let quoted = word.contains(" ") && !isKeyword ? "\"\(word)\"" : word
        return quoted.hasSuffix("=") ? quoted : quoted + " "
      })
  }
}
