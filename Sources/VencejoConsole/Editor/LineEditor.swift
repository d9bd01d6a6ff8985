/// What Tab offers: the texts that may replace the input from `start` (in grapheme clusters) up to
/// the cursor.
struct Completion: Sendable, Hashable {
  var start: Int
  var candidates: [String]

  static let none = Completion(start: 0, candidates: [])
}

/// A line being edited, pure: keys in, changed text and effects out. It draws nothing; see
/// `InputLayout`.
struct LineEditor: Sendable {
  enum Effect: Sendable, Hashable {
    case submit(String)
    /// Ctrl-C.
    case interrupt
    /// Ctrl-D on an empty line.
    case endOfInput
    /// Candidates to show above the line.
    case list([String])
    case clearScreen, suspend, bell
  }

  /// The state of a search through the history (Ctrl-R).
  struct Search: Sendable, Hashable {
    var pattern = ""
    var match: Int?
    var savedText: [Character] = []
    var savedCursor = 0
  }

  private(set) var text: [Character] = []
  /// Between clusters: 0 is before the first.
  private(set) var cursor = 0
  private(set) var search: Search?
  var history: History
  /// Hides what is typed (passwords) and keeps it out of kill ring and history.
  var isSecret = false
  var completer: (@Sendable (String) -> Completion)?

  /// Position in the history; its count means the line being written, kept in `draft`.
  private var historyIndex: Int
  private var draft: [Character] = []
  private var killed: [[Character]] = []
  private var lastKill = LastCommand.other
  private var yankLength = 0
  private var listedCandidates = false

  private enum LastCommand { case other, kill, yank }

  /// More than this in one line is no line (bytes of UTF-8).
  static let longestLine = 1 << 17

  init(history: History = History()) {
    self.history = history
    historyIndex = history.lines.count
  }

  var line: String { String(text) }

  /// Starts over with an empty line, history position included.
  mutating func reset() {
    text.removeAll()
    cursor = 0
    search = nil
    historyIndex = history.lines.count
    draft.removeAll()
    lastKill = .other
  }

  mutating func handle(_ key: Key) -> [Effect] {
    if search != nil {
      if let effects = handleSearch(key) { return effects }
    }
    let previous = lastKill
    if key != .tab { listedCandidates = false }
    lastKill = .other
    switch key {
    case .text(let typed): return insert(typed) ? [] : [.bell]
    case .paste(let pasted): return insert(pasted) ? [] : [.bell]
    case .newline: return insert("\n") ? [] : [.bell]
    case .enter: return submit()
    case .tab: return complete()
    case .backspace: if cursor > 0 { remove(cursor - 1..<cursor) } else { return [.bell] }
    case .delete: if cursor < text.count { remove(cursor..<cursor + 1) } else { return [.bell] }
    case .left: cursor = max(0, cursor - 1)
    case .right: cursor = min(text.count, cursor + 1)
    case .home: cursor = lineStart
    case .end: cursor = lineEnd
    case .wordLeft: cursor = wordStart(before: cursor)
    case .wordRight: cursor = wordEnd(after: cursor)
    case .up: return moveVertically(-1)
    case .down: return moveVertically(1)
    case .killWordLeft: kill(wordStart(before: cursor)..<cursor, after: previous)
    case .control(let letter): return handleControl(letter, previous)
    case .alt(let letter): return handleAlt(letter, previous)
    case .escape, .backTab: break
    }
    return []
  }

  private mutating func handleControl(_ letter: Character, _ previous: LastCommand) -> [Effect] {
    switch letter {
    case "a": cursor = lineStart
    case "e": cursor = lineEnd
    case "b": cursor = max(0, cursor - 1)
    case "f": cursor = min(text.count, cursor + 1)
    case "p": return moveVertically(-1)
    case "n": return moveVertically(1)
    case "k":
      kill(cursor..<(cursor == lineEnd ? min(cursor + 1, text.count) : lineEnd), after: previous)
    case "u": kill(lineStart..<cursor, after: previous)
    case "w": kill(spaceStart(before: cursor)..<cursor, after: previous)
    case "y": yank()
    case "t": return transpose()
    case "d":
      if text.isEmpty { return [.endOfInput] }
      if cursor < text.count { remove(cursor..<cursor + 1) } else { return [.bell] }
    case "c":
      reset()
      return [.interrupt]
    case "r":
      if isSecret { return [.bell] }
      search = Search(savedText: text, savedCursor: cursor)
    case "l": return [.clearScreen]
    case "z": return [.suspend]
    default: break
    }
    return []
  }

  private mutating func handleAlt(_ letter: Character, _ previous: LastCommand) -> [Effect] {
    switch letter {
    case "b": cursor = wordStart(before: cursor)
    case "f": cursor = wordEnd(after: cursor)
    case "d": kill(cursor..<wordEnd(after: cursor), after: previous)
    case "y":
      guard previous == .yank, killed.count > 1 else { return [.bell] }
      remove(cursor - yankLength..<cursor)
      killed.insert(killed.removeLast(), at: 0)
      yank()
    default: break
    }
    return []
  }

  // MARK: Text

  /// Inserts at the cursor. The clusters are cut anew, since a combining mark joins what stands
  /// before it and a joiner what comes after.
  ///
  /// False when the line would be too long.
  @discardableResult
  private mutating func insert(_ new: String) -> Bool {
    var cleaned = String.UnicodeScalarView()
    for scalar in new.unicodeScalars where scalar.value != 0 { cleaned.append(scalar) }
    guard !cleaned.isEmpty else { return true }
    guard line.utf8.count + String(cleaned).utf8.count <= Self.longestLine else { return false }
    let head = String(text[..<cursor]) + String(cleaned)
    let tail = String(text[cursor...])
    let tailCount = tail.count
    text = Array(head + tail)
    // Counted from the end, unless the tail grew together with the head.
    let headCount = head.count
    cursor = headCount + tailCount == text.count ? headCount : max(0, text.count - tailCount)
    return true
  }

  private mutating func remove(_ range: Range<Int>) {
    text.removeSubrange(range)
    cursor = range.lowerBound
    // The neighbours may grow together now.
    let head = String(text[..<cursor])
    text = Array(String(text))
    cursor = min(head.count, text.count)
  }

  private mutating func kill(_ range: Range<Int>, after previous: LastCommand) {
    guard !range.isEmpty else { return }
    if !isSecret {
      let piece = Array(text[range])
      if previous == .kill, var last = killed.popLast() {
        last = range.lowerBound < cursor ? piece + last : last + piece
        killed.append(last)
      } else {
        killed.append(piece)
        if killed.count > 20 { killed.removeFirst() }
      }
      lastKill = .kill
    }
    remove(range)
  }

  private mutating func yank() {
    guard let last = killed.last else { return }
    let before = text.count
    insert(String(last))
    yankLength = max(0, text.count - before)
    lastKill = .yank
  }

  private mutating func transpose() -> [Effect] {
    guard cursor > 0, text.count > 1 else { return [.bell] }
    if cursor == text.count { cursor -= 1 }
    text.swapAt(cursor - 1, cursor)
    cursor += 1
    return []
  }

  private mutating func submit() -> [Effect] {
    let line = line
    if !isSecret { history.add(line) }
    reset()
    return [.submit(line)]
  }

  // MARK: Motions

  /// The hard line (between line feeds) that holds the cursor.
  private var lineStart: Int { text[..<cursor].lastIndex(of: "\n").map { $0 + 1 } ?? 0 }
  private var lineEnd: Int { text[cursor...].firstIndex(of: "\n") ?? text.count }

  private func wordStart(before index: Int) -> Int {
    var index = index
    while index > 0, !Self.isWord(text[index - 1]) { index -= 1 }
    while index > 0, Self.isWord(text[index - 1]) { index -= 1 }
    return index
  }

  private func wordEnd(after index: Int) -> Int {
    var index = index
    while index < text.count, !Self.isWord(text[index]) { index += 1 }
    while index < text.count, Self.isWord(text[index]) { index += 1 }
    return index
  }

  private func spaceStart(before index: Int) -> Int {
    var index = index
    while index > 0, text[index - 1].isWhitespace { index -= 1 }
    while index > 0, !text[index - 1].isWhitespace { index -= 1 }
    return index
  }

  private static func isWord(_ cluster: Character) -> Bool {
    cluster.isLetter || cluster.isNumber
  }

  /// Up and down: between the lines of a text with line feeds, otherwise through the history.
  private mutating func moveVertically(_ direction: Int) -> [Effect] {
    let start = lineStart
    if direction < 0, start > 0 {
      let column = cursor - start
      let previous = text[..<(start - 1)].lastIndex(of: "\n").map { $0 + 1 } ?? 0
      cursor = min(previous + column, start - 1)
      return []
    }
    if direction > 0, lineEnd < text.count {
      let column = cursor - start
      let next = lineEnd + 1
      let nextEnd = text[next...].firstIndex(of: "\n") ?? text.count
      cursor = min(next + column, nextEnd)
      return []
    }
    if isSecret { return [.bell] }
    let target = historyIndex + direction
    guard (0...history.lines.count).contains(target) else { return [.bell] }
    if historyIndex == history.lines.count { draft = text }
    historyIndex = target
    text = target == history.lines.count ? draft : Array(history.lines[target])
    cursor = text.count
    return []
  }

  // MARK: Completion

  private mutating func complete() -> [Effect] {
    guard !isSecret, let completion = completer?(String(text[..<cursor])) else { return [.bell] }
    guard completion.start <= cursor, let first = completion.candidates.first else {
      return [.bell]
    }
    let typed = cursor - completion.start
    if completion.candidates.count == 1 {
      replace(from: completion.start, with: first)
      return []
    }
    let common = completion.candidates.dropFirst().reduce(Array(first)) { common, next in
      zip(common, next).prefix { $0 == $1 }.map(\.0)
    }
    if common.count > typed {
      replace(from: completion.start, with: String(common))
      return []
    }
    if listedCandidates { return [.list(completion.candidates)] }
    listedCandidates = true
    return [.bell]
  }

  private mutating func replace(from start: Int, with new: String) {
    text.removeSubrange(start..<cursor)
    cursor = start
    insert(new)
  }

  // MARK: Search

  /// Nil when the key ends the search and acts on the line found.
  private mutating func handleSearch(_ key: Key) -> [Effect]? {
    guard var state = search else { return nil }
    switch key {
    case .control("r"): state = stepped(state, before: state.match ?? history.lines.count)
    case .text(let typed):
      state.pattern += typed
      state = stepped(state, before: state.match.map { $0 + 1 } ?? history.lines.count)
    case .backspace:
      _ = state.pattern.popLast()
      state.match = history.search(state.pattern, before: history.lines.count)
    case .control("g"), .control("c"), .escape:
      text = state.savedText
      cursor = state.savedCursor
      search = nil
      return []
    default:
      search = nil
      if let match = state.match {
        text = Array(history.lines[match])
        cursor = text.count
        historyIndex = match
      }
      return nil
    }
    let found = state.pattern.isEmpty || state.match != nil
    search = state
    return found ? [] : [.bell]
  }

  private func stepped(_ state: Search, before index: Int) -> Search {
    var state = state
    if let match = history.search(state.pattern, before: index) {
      state.match = match
    } else if state.match.map({ !history.lines[$0].contains(state.pattern) }) ?? true {
      state.match = nil
    }
    return state
  }
}
