import VencejoTools

/// The interactive terminal: one actor owns the surface, so that keys and live lines never write
/// at the same time.
actor TerminalScreen: Display {
  /// What came of asking for a line.
  enum Answer: Sendable, Hashable {
    case line(String)
    case interrupt
    case end
  }

  private let device: TerminalDevice
  private let brackets: Bool
  private var surface: LineSurface
  private var waiter: CheckedContinuation<Answer, Never>?
  private var hasEnded = false
  /// Called for Ctrl-C while a command runs.
  private var onInterrupt: (@Sendable () -> Void)?

  init(device: TerminalDevice, dialect: Painter.Dialect, colour: Bool, history: History) {
    self.device = device
    brackets = dialect == .ansi
    let size = device.size
    surface = LineSurface(
      painter: Painter(
        dialect: dialect, colour: colour, columns: size.columns, lines: size.lines),
      prompt: "> ", history: history)
  }

  var width: Int? { surface.columns }
  var history: [String] { surface.history.lines }

  func setCompleter(_ completer: @escaping @Sendable (String) -> Completion) {
    surface.setCompleter(completer)
  }

  func setKeepsLine(_ keeps: @escaping @Sendable (String) -> Bool) { surface.keepsLine = keeps }

  func set(prompt: StyledText) {
    if surface.prompt == prompt || surface.editor.isSecret { return }
    surface.prompt = prompt
    device.write(surface.redraw())
  }

  func setInterrupt(_ action: (@Sendable () -> Void)?) { onInterrupt = action }

  // MARK: Display

  func show(_ lines: [StyledText]) { device.write(surface.show(lines)) }

  func complain(_ lines: [StyledText]) { show(lines) }

  func json(_ line: String) { show([StyledText(VisibleText.clean(line))]) }

  func askSecret(_ prompt: String) async -> String? {
    let before = surface.prompt
    let answer = await read(StyledText(prompt), secret: true)
    surface.prompt = before
    if case .line(let text) = answer { return text }
    return nil
  }

  // MARK: Input

  func readLine(_ prompt: StyledText) async -> Answer { await read(prompt, secret: false) }

  private func read(_ prompt: StyledText, secret: Bool) async -> Answer {
    if hasEnded { return .end }
    surface.prompt = prompt
    return await withCheckedContinuation { continuation in
      waiter = continuation
      let output = surface.begin(secret: secret)
      device.write(output.bytes)
      handle(output.effects)
    }
  }

  /// Reads the terminal until it ends. Runs beside everything else.
  func pump() async {
    while !hasEnded {
      // A terminal sends the bytes of one key together; what stays alone this long is the key.
      switch await device.next(within: surface.awaitsEscape ? 50 : nil) {
      case .bytes(let bytes): apply(surface.feed(bytes))
      case .silence: apply(surface.flushEscape())
      case .resized:
        let size = device.size
        device.write(surface.resize(columns: size.columns, lines: size.lines))
      case .ended: end()
      }
    }
  }

  private func apply(_ output: LineSurface.Output) {
    device.write(output.bytes)
    handle(output.effects)
  }

  private func handle(_ effects: [LineEditor.Effect]) {
    for effect in effects {
      switch effect {
      case .submit(let line): answer(.line(line))
      case .interrupt:
        if waiter != nil { answer(.interrupt) } else { onInterrupt?() }
      case .endOfInput: answer(.end)
      case .suspend:
        device.suspend(brackets: brackets)
        let size = device.size
        device.write(surface.resize(columns: size.columns, lines: size.lines))
      case .list, .clearScreen, .bell: break
      }
    }
  }

  private func answer(_ answer: Answer) {
    waiter?.resume(returning: answer)
    waiter = nil
  }

  private func end() {
    hasEnded = true
    answer(.end)
    onInterrupt?()
  }

  /// Takes the prompt away and gives the terminal back.
  func finish() {
    hasEnded = true
    device.write(surface.end())
    device.leaveRaw()
    device.stop()
  }
}
