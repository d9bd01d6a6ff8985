import Testing

@testable import VencejoConsole

@Suite struct LineEditorTests {
  /// Types bytes into a fresh editor.
  private func edited(_ input: String, history: [String] = []) -> LineEditor {
    var editor = LineEditor(history: History(history))
    var decoder = KeyDecoder()
    for key in decoder.decode(Array(input.utf8)) + decoder.flush() { _ = editor.handle(key) }
    return editor
  }

  @Test(arguments: [
    ("hola", "hola", 4),
    ("hola\u{01}¡", "¡hola", 1),
    ("hola\u{1B}[D\u{1B}[DX", "hoXla", 3),
    ("one two three\u{17}", "one two ", 8),
    ("one two\u{1B}b\u{1B}b\u{0B}", "", 0),
    ("one two\u{15}x\u{19}", "xone two", 8),
    ("a b c\u{17}\u{17}\u{19}", "a b c", 5),
    ("one two\u{01}\u{1B}dX", "X two", 1),
    ("ab\u{14}", "ba", 2),
    ("one two\u{1B}[1;5D-", "one -two", 5),
    ("abc\u{7F}\u{7F}", "a", 1),
    ("abc\u{1B}[D\u{1B}[3~", "ab", 2),
    ("one.two\u{1B}\u{7F}", "one.", 4),
    ("k1\u{15}k2\u{15}\u{19}\u{1B}y", "k1", 2),
  ])
  func motionsAndKills(input: String, text: String, cursor: Int) {
    let editor = edited(input)
    #expect(editor.line == text)
    #expect(editor.cursor == cursor)
  }

  @Test(arguments: ["👩‍👩‍👧", "👍🏽", "🇪🇸", "é", "한", "❤️", "1️⃣"])
  func aClusterIsOneStep(cluster: String) {
    let editor = edited("a" + cluster)
    #expect(editor.cursor == 2)
    #expect(edited("a" + cluster + "\u{7F}").line == "a")
    #expect(edited("a" + cluster + "\u{1B}[Dx").line == "ax" + cluster)
  }

  @Test func scalarsGrowTogether() {
    // Typed apart, a letter and its accent are one cluster, and so are two halves of a flag.
    #expect(edited("e\u{301}x\u{1B}[D\u{1B}[D|").line == "|e\u{301}x")
    #expect(edited("🇪🇸").cursor == 1)
    // Removing what stood between two regional indicators makes them a flag.
    let joined = edited("\u{1F1EA}x\u{1F1F8}\u{1B}[D\u{7F}")
    #expect(joined.text.count == 1)
    #expect(joined.cursor == 1)
  }

  @Test func invalidBytesBecomeReplacements() {
    var decoder = KeyDecoder()
    let keys = decoder.decode([0x61, 0xFF, 0x62, 0xE4, 0xBD, 0x63, 0xED, 0xA0, 0x80, 0xC0, 0x64])
    let text = keys.map { if case .text(let typed) = $0 { typed } else { "?" } }.joined()
    #expect(text == "a\u{FFFD}b\u{FFFD}c\u{FFFD}\u{FFFD}d")
  }

  @Test func everyByteStringIsSurvived() {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<300 {
      var surface = LineSurface(
        painter: Painter(dialect: .ansi, colour: true, columns: 7, lines: 3), prompt: "> ")
      _ = surface.begin()
      let bytes = (0..<200).map { _ in
        Bool.random(using: &generator)
          ? [0x1B, 0x5B, 0x41, 0x44, 0x7F, 0x12, 0x0D, 0xF0, 0x9F, 0x20].randomElement() ?? 0
          : UInt8.random(in: 0...255, using: &generator)
      }
      if !surface.feed(bytes).effects.isEmpty { _ = surface.begin() }
      _ = surface.flushEscape()
      #expect(surface.editor.cursor <= surface.editor.text.count)
    }
  }

  @Test func bytesMayArriveOneByOne() {
    var decoder = KeyDecoder()
    let input = Array("ñ漢👍🏽\u{1B}[1;5C\u{1B}OA".utf8)
    let whole = decoder.decode(input)
    var single = KeyDecoder()
    #expect(input.flatMap { single.decode([$0]) } == whole)
    #expect(whole.suffix(2) == [.wordRight, .up])
  }

  @Test func pasteIsTextAndNoCommand() {
    var editor = LineEditor()
    var decoder = KeyDecoder()
    let keys = decoder.decode(Array("\u{1B}[200~one\r\ntwo\u{03}\r\u{1B}[201~".utf8))
    #expect(keys == [.paste("one\ntwo\u{03}")])
    #expect(keys.flatMap { editor.handle($0) }.isEmpty)
    #expect(editor.line == "one\ntwo\u{03}")
  }

  @Test func aLoneEscapeWaitsForItsTime() {
    var decoder = KeyDecoder()
    #expect(decoder.decode([0x1B]).isEmpty)
    #expect(decoder.awaitsEscape)
    #expect(decoder.flush() == [.escape])
    #expect(decoder.decode([0x61]) == [.text("a")])
  }

  @Test func historyWalksAndKeepsTheDraft() {
    var editor = edited("draft", history: ["first", "second", "first"])
    #expect(editor.history.lines == ["second", "first"])
    _ = editor.handle(.up)
    #expect(editor.line == "first")
    _ = editor.handle(.up)
    #expect(editor.line == "second")
    #expect(editor.handle(.up) == [.bell])
    _ = editor.handle(.down)
    _ = editor.handle(.down)
    #expect(editor.line == "draft")
  }

  @Test func searchFindsNarrowsAndSteps() {
    let history = ["open ana", "query Note", "open bob", "chats"]
    #expect(edited("\u{12}open\r", history: history).history.lines.last == "open bob")
    #expect(edited("\u{12}open\u{12}\u{05}!", history: history).line == "open ana!")
    #expect(edited("typed\u{12}open\u{07}", history: history).line == "typed")
    var editor = edited("\u{12}nothing", history: history)
    #expect(editor.search?.match == nil)
    _ = editor.handle(.escape)
    #expect(editor.line.isEmpty)
  }

  @Test func tabCompletesThenLists() {
    var editor = LineEditor()
    editor.completer = { line in
      let all = ["open", "options", "query"].filter { $0.hasPrefix(line) }
      return Completion(start: 0, candidates: all)
    }
    _ = editor.handle(.text("o"))
    _ = editor.handle(.tab)
    #expect(editor.line == "op")
    #expect(editor.handle(.tab) == [.bell])
    #expect(editor.handle(.tab) == [.list(["open", "options"])])
    _ = editor.handle(.text("e"))
    _ = editor.handle(.tab)
    #expect(editor.line == "open")
  }

  @Test func controlCAndD() {
    var editor = edited("half")
    #expect(editor.handle(.control("d")) == [.bell])
    #expect(editor.handle(.control("c")) == [.interrupt])
    #expect(editor.line.isEmpty)
    #expect(editor.handle(.control("d")) == [.endOfInput])
  }

  @Test func secretsLeaveNoTrace() {
    var editor = LineEditor()
    editor.isSecret = true
    for key in [Key.text("pw"), .control("u"), .text("pw2"), .enter] { _ = editor.handle(key) }
    editor.isSecret = false
    _ = editor.handle(.control("y"))
    #expect(editor.line.isEmpty)
    #expect(editor.history.lines.isEmpty)
  }
}

extension LineEditorTests {
  @Test func aPasteThatIsNoLineIsRefusedAloud() {
    var editor = LineEditor()
    _ = editor.handle(.text("kept"))
    let huge = String(repeating: "漢", count: LineEditor.longestLine / 3)
    #expect(editor.handle(.paste(huge)) == [.bell])
    #expect(editor.line == "kept")
    #expect(editor.handle(.paste(String(huge.prefix(20_000)))) == [])
    #expect(editor.cursor == 20_004)
  }
}
