import VencejoTools

/// The bottom of an interactive terminal: keys become edits, edits become bytes for the screen,
/// and what happens elsewhere is printed above without spoiling the line being typed. Pure: bytes
/// in, bytes and effects out.
///
/// It is either editing (a prompt stands on the screen) or busy (a command runs). While busy, keys
/// wait, as a shell's type-ahead does, so that they meet the prompt they were meant for and a
/// password typed ahead is not echoed; only Ctrl-C goes through at once.
struct LineSurface: Sendable {
  /// What happened, and what to write to the terminal for it.
  struct Output: Sendable, Hashable {
    var bytes = ""
    var effects: [LineEditor.Effect] = []
  }

  private(set) var editor: LineEditor
  private(set) var isBusy = true
  var prompt: StyledText
  /// Whether a submitted line stays on the screen; a chat message does not, it comes back as a
  /// message of the conversation.
  var keepsLine: @Sendable (String) -> Bool = { _ in true }

  private var decoder = KeyDecoder()
  private var painter: Painter
  private var waiting: [Key] = []

  init(painter: Painter, prompt: StyledText, history: History = History()) {
    self.painter = painter
    self.prompt = prompt
    editor = LineEditor(history: history)
  }

  var columns: Int { painter.columns }
  var colour: Bool { painter.colour }
  /// See `KeyDecoder.awaitsEscape`.
  var awaitsEscape: Bool { decoder.awaitsEscape }
  var history: History {
    get { editor.history }
    set { editor.history = newValue }
  }

  mutating func setCompleter(_ completer: @escaping @Sendable (String) -> Completion) {
    editor.completer = completer
  }

  /// Shows the prompt and takes the next line, hidden when `secret`.
  mutating func begin(secret: Bool = false) -> Output {
    isBusy = false
    editor.reset()
    editor.isSecret = secret
    let keys = waiting
    waiting = []
    return process(keys)
  }

  mutating func feed(_ bytes: some Sequence<UInt8>) -> Output {
    process(decoder.decode(bytes))
  }

  /// The escape byte stood alone: see `KeyDecoder.flush()`.
  mutating func flushEscape() -> Output {
    process(decoder.flush())
  }

  /// Lines above the prompt.
  mutating func show(_ lines: [StyledText]) -> String {
    if lines.isEmpty { return "" }
    return painter.print(lines) + (isBusy ? "" : painter.draw(layout))
  }

  mutating func resize(columns: Int, lines: Int) -> String {
    painter.resize(columns: columns, lines: lines)
    return isBusy ? "" : painter.draw(layout)
  }

  /// Draws all again, after somebody else wrote to the terminal (a return from suspension).
  mutating func redraw() -> String {
    isBusy ? "" : painter.draw(layout)
  }

  /// Takes the prompt away, before the program ends.
  mutating func end() -> String {
    isBusy = true
    return painter.erase()
  }

  private var layout: InputLayout {
    InputLayout(editor: editor, prompt: prompt, columns: painter.columns)
  }

  private mutating func process(_ keys: [Key]) -> Output {
    var output = Output()
    for (index, key) in keys.enumerated() {
      if isBusy {
        guard key == .control("c") else {
          waiting.append(key)
          continue
        }
        waiting.removeAll()
        output.effects.append(.interrupt)
        continue
      }
      let before = editor
      for effect in editor.handle(key) {
        apply(effect, before, &output)
      }
      if isBusy, index + 1 == keys.count { return output }
    }
    if !isBusy { output.bytes += painter.draw(layout) }
    return output
  }

  private mutating func apply(
    _ effect: LineEditor.Effect, _ before: LineEditor, _ output: inout Output
  ) {
    switch effect {
    case .submit(let line):
      isBusy = true
      if before.isSecret || keepsLine(line) {
        var last = before
        _ = last.handle(.control("e"))
        output.bytes += painter.commit(
          InputLayout(editor: last, prompt: prompt, columns: painter.columns))
      } else {
        output.bytes += painter.erase()
      }
      output.effects.append(effect)
    case .list(let candidates):
      output.bytes += painter.print(Self.columns(candidates, width: painter.columns))
    case .clearScreen: output.bytes += painter.clearScreen()
    case .bell: output.bytes += "\u{07}"
    case .interrupt:
      isBusy = true
      output.bytes += painter.commit(
        InputLayout(editor: before, prompt: prompt, columns: painter.columns))
      output.effects.append(effect)
    case .endOfInput:
      isBusy = true
      output.bytes += painter.commit(layout)
      output.effects.append(effect)
    case .suspend:
      output.bytes += painter.erase()
      output.effects.append(effect)
    }
  }

  /// Candidates in columns, as a shell lists them.
  private static func columns(_ candidates: [String], width: Int) -> [StyledText] {
    let clean = candidates.map { VisibleText.clean($0) }
    let cell = (clean.map { CellWidth.of($0) }.max() ?? 0) + 2
    let perLine = max(1, width / max(cell, 1))
    return stride(from: 0, to: clean.count, by: perLine).map { start in
      let row = clean[start..<min(start + perLine, clean.count)]
      let text = row.map { Wrapping.padded($0, to: cell) }.joined()
      return StyledText(Wrapping.truncated(text, to: width), .faint)
    }
  }
}
