import Testing

@testable import VencejoConsole

/// The hard part of a chat console, on a real pty: 200 events arrive while 40 characters are typed
/// one by one.
@Suite(.serialized) struct LiveLinesTests {
  /// The console's side: what reads keys and shows events, as the application does.
  private actor Program {
    var surface: LineSurface
    let device: TerminalDevice
    var submitted: [String] = []

    init(device: TerminalDevice) {
      self.device = device
      let size = device.size
      surface = LineSurface(
        painter: Painter(
          dialect: .ansi, colour: true, columns: size.columns, lines: size.lines),
        prompt: StyledText("ana> ", .strong))
    }

    func start() { device.write(surface.begin().bytes) }

    func handle(_ bytes: [UInt8]) {
      let output = surface.feed(bytes)
      device.write(output.bytes)
      for case .submit(let line) in output.effects { submitted.append(line) }
    }

    func show(_ line: StyledText) { device.write(surface.show([line])) }
  }

  @Test(.timeLimit(.minutes(1)), arguments: [(80, 24), (23, 6)])
  func twoHundredEventsWhileFortyCharactersAreTyped(columns: Int, lines: Int) async throws {
    let typed: [Character] = Array("hola 漢字テスト 👍🏽 ¿qué tal? 👩‍👩‍👧 한글 🇪🇸 fin de línea")
    try #require(typed.count >= 40)
    let pty = try #require(PseudoTerminal(columns: columns, lines: lines))
    let device = TerminalDevice(input: pty.program, output: pty.program)
    #expect(device.size == (columns, lines))
    try #require(device.enterRaw(brackets: false))
    defer { device.leaveRaw() }
    let program = Program(device: device)
    await program.start()

    let reading = Task {
      while case .bytes(let bytes) = await device.next() { await program.handle(bytes) }
    }
    var terminal = TerminalEmulator(columns: columns, lines: lines)
    var events: [String] = []
    for (index, character) in typed.enumerated() {
      // The bytes of one character may come apart, too.
      for byte in String(character).utf8 { pty.type([byte]) }
      for part in 0..<5 {
        let number = index * 5 + part
        let event = "\(number) 漢 " + String(repeating: "x", count: number % 15)
        events.append(event)
        await program.show(StyledText(event, .other))
      }
      while await program.surface.editor.text.count <= index { terminal.feed(pty.read(within: 5)) }
      terminal.feed(pty.read(within: 0))
    }
    // A marker, sent last, tells when all was read.
    await program.show("END")
    while !terminal.transcript.contains("END") { terminal.feed(pty.read(within: 1000)) }
    while await program.surface.editor.line != String(typed) {
      try? await Task.sleep(for: .milliseconds(1))
    }
    let settled = terminal.transcript
    #expect(terminal.errors.isEmpty)
    #expect(events.count >= 200)

    // Every event once, in order, each on a row of its own (wide ones broken by nobody: they fit
    // the 23 columns), then the line with its prompt and nothing else.
    let end = try #require(settled.firstIndex(of: "END"))
    #expect(Array(settled[..<end]) == events.map { $0.last == " " ? String($0.dropLast()) : $0 })
    let line = settled[(end + 1)...].joined()
    #expect(
      line.filter { $0 != " " } == ("ana> " + String(typed)).filter { $0 != " " })

    pty.type([0x0D])
    while await program.submitted.isEmpty { terminal.feed(pty.read(within: 5)) }
    #expect(await program.submitted == [String(typed)])
    device.stop()
    await reading.value
  }
}

extension LiveLinesTests {
  /// A console on a pty and another one beside it, on a real server.
  @Test(.timeLimit(.minutes(2))) func aMessageAppearsAboveTheLineBeingTyped() async throws {
    let house = try House()
    let password = "correct-horse-battery"
    _ = try await house.run(
      ["sign-up ana \(password)", "sign-up ben \(password)", "chat new ana"], on: "ben")
    let pty = try #require(PseudoTerminal(columns: 60, lines: 20))
    let (client, profile) = try house.client("ana")
    let device = TerminalDevice(input: pty.program, output: pty.program)
    let console = Task {
      await Interactive.run(
        ConsoleOptions(), client: client, profile: profile,
        device: device, dialect: .ansi)
    }
    var terminal = TerminalEmulator(columns: 60, lines: 20)
    /// Reads until the screen is as wanted; the suite's time limit ends a wait for ever.
    func until(_ isWanted: (TerminalEmulator) -> Bool) {
      while !isWanted(terminal) { terminal.feed(pty.read(within: 1000)) }
    }
    until { $0.transcript.last == "vencejo>" }
    pty.type(Array("sign-in ana\r".utf8))
    until { $0.transcript.last == "password:" }
    pty.type(Array("\(password)\r".utf8))
    until { $0.transcript.contains("signed in as ana") && $0.transcript.last == "ana>" }
    #expect(!terminal.transcript.contains { $0.contains(password) })

    // Half a line; then somebody else speaks.
    pty.type(Array("open b 漢字 👍🏽 a medias".utf8))
    until { $0.transcript.last?.hasSuffix("a medias") == true }
    while try await house.run(["say ana ¿estás?"], on: "ben").status != 0 {}
    until { $0.transcript.contains { $0.hasPrefix("ben ") && $0.hasSuffix(": ¿estás?") } }
    until { $0.transcript.last == "ana (1)> open b 漢字 👍🏽 a medias" }

    // The chat: its message on the left, the answer on the right, a blank one not sent.
    pty.type(Array("\u{15}open ben\r".utf8))
    until { $0.transcript.last == "ana · ben>" }
    #expect(terminal.transcript.contains("¿estás?"))
    pty.type(Array("aquí estoy\r".utf8))
    until { $0.transcript.contains { $0.hasSuffix("✓") && $0.contains("aquí estoy") } }
    let own = try #require(terminal.transcript.first { $0.contains("aquí estoy") })
    #expect(CellWidth.of(own) == 60)
    pty.type(Array("   \r/whoami\r".utf8))
    until { $0.transcript.contains { $0.hasPrefix("ana  users/") } }
    // Ctrl-C clears the line, Ctrl-D leaves, and the terminal is as it was.
    pty.type(Array("half\u{03}".utf8))
    until { $0.transcript.last == "ana · ben>" }
    pty.type([0x04])
    #expect(await console.value == 0)
    let after = try await house.run(["messages ana"], on: "ben")
    #expect(after.out.filter { $0.contains("ana: ") }.count == 1)
    #expect(terminal.errors.isEmpty)
    await house.close()
  }
}
