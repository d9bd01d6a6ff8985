import Glibc
import Synchronization
import VencejoClient
import VencejoTools

/// The prompt: reads lines, runs them, shows what happens meanwhile.
enum Interactive {
  static func run(
    _ options: ConsoleOptions, client: VencejoClient, profile: Profile,
    device: TerminalDevice = TerminalDevice(), dialect: Painter.Dialect = Console.dialect
  ) async -> Int32 {
    guard device.enterRaw(brackets: dialect == .ansi) else {
      Output.standard.complain("error: this terminal cannot be put into raw mode")
      return ExitCode.failure
    }
    defer { device.leaveRaw() }
    let screen = TerminalScreen(
      device: device, dialect: dialect, colour: Console.usesColour(options),
      history: History(profile.history))
    let runner = CommandRunner(
      client: client, display: screen, mode: .interactive, json: options.json, profile: profile)
    await loop(screen, runner, profile, options)
    await runner.shutDown()
    await screen.finish()
    return ExitCode.ok
  }

  /// What the closures of the surface look at; set between two lines.
  private final class Shared: Sendable {
    let completer = Mutex(Completer())
  }

  private static func loop(
    _ screen: TerminalScreen, _ runner: CommandRunner, _ profile: Profile,
    _ options: ConsoleOptions
  ) async {
    let shared = Shared()
    await screen.setCompleter { line in shared.completer.withLock { $0.complete(line) } }
    // A message comes back as a message of the conversation; the line itself goes.
    await screen.setKeepsLine { line in
      let isMessage = shared.completer.withLock { $0.chatIsOpen } && !line.hasPrefix("/")
      return !isMessage && !VisibleText.isBlank(line)
    }
    let pump = Task { await screen.pump() }
    defer { pump.cancel() }

    await screen.show([
      StyledText("Vencejo", .strong) + StyledText(" at \(options.server); ", .faint)
        + StyledText("help", .hint) + StyledText(" helps, ", .faint) + StyledText("quit", .hint)
        + StyledText(" leaves", .faint)
    ])
    await runner.restore()
    var interrupts = 0
    while await !runner.isFinished {
      let current = await runner.completer
      shared.completer.withLock { $0 = current }
      switch await screen.readLine(await runner.prompt()) {
      case .end: return
      case .interrupt:
        interrupts += 1
        if interrupts == 2 {
          let leave = await runner.chatIsOpen ? "/quit" : "quit"
          await screen.show([StyledText("\(leave) or Ctrl-D leaves", .hint)])
        }
      case .line(let line):
        interrupts = 0
        let task = Task { await runner.execute(line) }
        await screen.setInterrupt { task.cancel() }
        if await task.value == ExitCode.interrupted {
          await screen.show([StyledText("interrupted", .faint)])
        }
        await screen.setInterrupt(nil)
        if line.utf8.count < 4096, !isSecret(line) {
          profile.history = await screen.history.filter { !isSecret($0) }
        }
      }
    }
  }

  /// Lines with a password in them are not written down.
  private static func isSecret(_ line: String) -> Bool {
    let words = line.split(separator: " ").map { $0.lowercased() }
    guard words.count > 2, let first = words.first else { return false }
    return ["sign-in", "signin", "login", "sign-up", "signup"].contains(
      first.hasPrefix("/") ? String(first.dropFirst()) : first)
  }
}
