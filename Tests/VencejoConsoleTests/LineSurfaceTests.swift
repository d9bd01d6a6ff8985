import Testing

@testable import VencejoConsole

/// What a person sees: the surface's bytes go through the emulator.
@Suite struct LineSurfaceTests {
  private struct Desk {
    var surface: LineSurface
    var terminal: TerminalEmulator

    init(columns: Int = 20, lines: Int = 6, dialect: Painter.Dialect = .ansi) {
      surface = LineSurface(
        painter: Painter(dialect: dialect, colour: true, columns: columns, lines: lines),
        prompt: "> ")
      terminal = TerminalEmulator(columns: columns, lines: lines)
      terminal.feed(surface.begin().bytes)
    }

    @discardableResult
    mutating func type(_ text: String) -> [LineEditor.Effect] {
      let output = surface.feed(Array(text.utf8))
      terminal.feed(output.bytes)
      return output.effects
    }

    mutating func show(_ lines: String...) {
      terminal.feed(surface.show(lines.map { StyledText($0) }))
    }
  }

  @Test func typingWrapsWithoutSplittingWideCells() {
    var desk = Desk(columns: 10)
    desk.type("abcdefg漢字")
    // Nine cells are taken; the wide character does not fit in the tenth.
    #expect(desk.terminal.transcript == ["> abcdefg", "漢字"])
    #expect((desk.terminal.row, desk.terminal.column) == (1, 4))
    desk.type("\u{01}")
    #expect((desk.terminal.row, desk.terminal.column) == (0, 2))
    desk.type("\u{05}\u{7F}\u{7F}\u{7F}")
    #expect(desk.terminal.transcript == ["> abcdef"])
    #expect(desk.terminal.errors.isEmpty)
  }

  @Test func aFullRowPutsTheCursorOnTheNext() {
    var desk = Desk(columns: 10)
    desk.type("12345678")
    #expect((desk.terminal.row, desk.terminal.column) == (1, 0))
    desk.type("9")
    #expect(desk.terminal.transcript == ["> 12345678", "9"])
  }

  @Test func linesAppearAboveAHalfTypedLine() {
    var desk = Desk(columns: 12, lines: 4)
    desk.type("half 漢字 typed line")
    desk.show("one", "two")
    desk.show("exactly 12 c")
    #expect(
      desk.terminal.transcript
        == ["one", "two", "exactly 12 c", "> half 漢字 ", "typed line"].map(trimmed))
    desk.type("\u{1B}[D\u{1B}[DX")
    #expect(desk.terminal.transcript.last == "typed liXne")
  }

  private func trimmed(_ text: String) -> String {
    String(text.reversed().drop { $0 == " " }.reversed())
  }

  @Test func submittedLinesStayOrGo() {
    var desk = Desk()
    desk.surface.keepsLine = { $0.hasPrefix("/") }
    #expect(desk.type("hello\r") == [.submit("hello")])
    #expect(desk.terminal.transcript == [])
    desk.terminal.feed(desk.surface.begin().bytes)
    #expect(desk.type("/chats\r") == [.submit("/chats")])
    desk.show("a table")
    #expect(desk.terminal.transcript == ["> /chats", "a table"])
  }

  @Test func typeAheadWaitsForItsPrompt() {
    var desk = Desk()
    #expect(desk.type("sign-in ana\rsecret\r") == [.submit("sign-in ana")])
    desk.surface.prompt = "password: "
    let output = desk.surface.begin(secret: true)
    desk.terminal.feed(output.bytes)
    #expect(output.effects == [.submit("secret")])
    #expect(desk.terminal.transcript == ["> sign-in ana", "password: ••••••"])
  }

  @Test func controlCGoesThroughWhileBusy() {
    var desk = Desk()
    desk.type("watch\r")
    #expect(desk.type("typed ahead\u{03}") == [.interrupt])
    desk.terminal.feed(desk.surface.begin().bytes)
    #expect(desk.terminal.transcript == ["> watch", ">"])
  }

  @Test func aRegionHigherThanTheScreenShowsTheCursor() {
    var desk = Desk(columns: 10, lines: 3)
    desk.type(String(repeating: "0123456789", count: 5))
    #expect(desk.terminal.screen == ["8901234567", "8901234567", "89"])
    desk.type("\u{01}")
    #expect(desk.terminal.screen.first == "> 01234567")
    #expect((desk.terminal.row, desk.terminal.column) == (0, 2))
  }

  @Test(arguments: [7, 9, 16, 25, 40])
  func resizing(columns: Int) {
    var desk = Desk(columns: 20, lines: 8)
    desk.show("above")
    desk.type("a line of 漢字 that takes two rows")
    desk.terminal.resize(columns: columns, lines: 8)
    desk.terminal.feed(desk.surface.resize(columns: columns, lines: 8))
    desk.type("!")
    let typed = desk.terminal.transcript.dropFirst().joined()
    #expect(desk.terminal.transcript.first == "above")
    #expect(
      typed.filter { $0 != " " } == "> a line of 漢字 that takes two rows!".filter { $0 != " " })
  }

  @Test func candidatesAreListedAbove() {
    var desk = Desk(columns: 20)
    desk.surface.setCompleter { _ in Completion(start: 0, candidates: ["open", "options", "opus"]) }
    desk.type("op\t\t")
    #expect(desk.terminal.transcript == ["open     options", "opus", "> op"])
    #expect(desk.terminal.bells == 1)
  }

  @Test func dumbTerminalsGetNoEscapes() {
    var desk = Desk(columns: 20, dialect: .dumb)
    desk.type("typed 漢字")
    desk.show("live")
    desk.type("\u{7F}x")
    #expect(desk.terminal.transcript == ["live", "> typed 漢x"])
    desk.type(" and a long tail")
    #expect(desk.terminal.transcript.last?.hasSuffix("long tail") == true)
    #expect(desk.terminal.transcript.count == 2)
    desk.type("\u{01}")
    #expect(desk.terminal.transcript.last?.hasPrefix("> typed") == true)
    var bytes = desk.surface.feed(Array("\u{01}abc\u{05}\r".utf8)).bytes
    bytes += desk.surface.show([StyledText("coloured", .error)])
    #expect(!bytes.contains("\u{1B}"))
  }

  @Test func noColourMeansNoStyles() {
    var painter = Painter(dialect: .ansi, colour: false, columns: 20, lines: 5)
    #expect(painter.print([StyledText("x", .error)]) == "x\r\n")
  }
}
