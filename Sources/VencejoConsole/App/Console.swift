import Glibc
import Synchronization
import VencejoClient
import VencejoRPC
import VencejoTools

/// The program `vencejo console`.
public enum Console {
  /// Runs the console with the arguments after `console`, on the process's own terminal or
  /// standard streams. Answers the exit status: 0 ok, 1 usage, 64 and the gRPC code for an error of
  /// the server, 124 timeout, 130 interrupted.
  public static func run(arguments: [String]) async -> Int32 {
    // A closed pipe is an error of a write, not the end of the process.
    signal(SIGPIPE, SIG_IGN)
    let options: ConsoleOptions
    do {
      options = try ConsoleOptions(arguments)
    } catch {
      Output.standard.complain("error: \(error)\nhint: vencejo console --help")
      return ExitCode.usage
    }
    if options.help {
      Output.standard.line(ConsoleOptions.usage)
      return ExitCode.ok
    }
    let profile = Profile(name: options.profile, server: options.server)
    let isInteractive =
      options.commands.isEmpty && options.file == nil
      && TerminalDevice.isTerminal(STDIN_FILENO) && TerminalDevice.isTerminal(STDOUT_FILENO)
    let client: VencejoClient
    do {
      var configuration = VencejoClient.Configuration()
      configuration.deviceLabel = "console"
      configuration.clientVersion = "vencejo-console"
      // A script asks the server; it keeps nothing, and leaves the file to whoever sits at a prompt.
      configuration.dataFolder = isInteractive ? profile.dataFolder : nil
      client = try VencejoClient(
        options.server, tls: options.tls, configuration: configuration, storage: profile)
    } catch {
      Output.standard.complain("error: \(error.message)\nhint: --server HOST:PORT")
      return ExitCode.usage
    }
    return isInteractive
      ? await Interactive.run(options, client: client, profile: profile)
      : await script(options, client: client, profile: profile)
  }

  private static func script(
    _ options: ConsoleOptions, client: VencejoClient, profile: Profile
  ) async -> Int32 {
    let isScreen = TerminalDevice.isTerminal(STDOUT_FILENO)
    let device = TerminalDevice(input: -1, output: STDOUT_FILENO)
    let width = isScreen ? device.size.columns : nil
    device.stop()
    let plain = PlainDisplay(
      output: .standard, columns: width, colour: isScreen && usesColour(options),
      errorColour: TerminalDevice.isTerminal(STDERR_FILENO) && usesColour(options))
    let display: any Display = options.quiet ? QuietDisplay(output: .standard) : plain
    let lines: AsyncStream<String>
    if !options.commands.isEmpty {
      lines = Script.lines(of: options.commands)
    } else if let file = options.file, file != "-" {
      let descriptor = open(file, O_RDONLY | O_CLOEXEC)
      // Reading nothing tells a folder, which opens like a file.
      var nothing: UInt8 = 0
      guard descriptor >= 0, read(descriptor, &nothing, 0) == 0 else {
        Output.standard.complain("error: cannot read \(file): \(String(cString: strerror(errno)))")
        return ExitCode.usage
      }
      lines = Script.lines(of: descriptor)
    } else {
      lines = Script.lines(of: STDIN_FILENO)
    }
    let task = Task {
      await Script.run(
        lines, client: client, profile: profile, display: display, options: options)
    }
    let interrupts = Interrupts { task.cancel() }
    let status = await task.value
    interrupts.end()
    return status
  }

  /// `NO_COLOR` is an agreement of many programs (no-color.org).
  static func usesColour(_ options: ConsoleOptions) -> Bool {
    let isOff = getenv("NO_COLOR").map { $0.pointee != 0 } ?? false
    return !options.noColour && !isOff && dialect == .ansi
  }

  static var dialect: Painter.Dialect {
    guard let terminal = getenv("TERM").map({ String(cString: $0) }) else { return .dumb }
    return terminal == "dumb" || terminal.isEmpty ? .dumb : .ansi
  }
}

/// Ctrl-C in a script: the first ends the command under way, with the status 130; a second one ends
/// the process.
final class Interrupts: Sendable {
  private static let pipeEnd = Atomic<Int32>(-1)
  private let device: TerminalDevice
  private let ends: (read: Int32, write: Int32)

  init(_ action: @escaping @Sendable () -> Void) {
    var ends: [Int32] = [-1, -1]
    _ = pipe(&ends)
    self.ends = (ends[0], ends[1])
    let device = TerminalDevice(input: ends[0], output: -1)
    self.device = device
    Self.pipeEnd.store(ends[1], ordering: .releasing)
    var handler = sigaction()
    handler.__sigaction_handler.sa_handler = { _ in
      // Only async-signal-safe calls.
      var byte: UInt8 = 1
      _ = write(Interrupts.pipeEnd.load(ordering: .acquiring), &byte, 1)
    }
    handler.sa_flags = Int32(bitPattern: UInt32(SA_RESETHAND))
    sigaction(SIGINT, &handler, nil)
    Task { if case .bytes = await device.next() { action() } }
  }

  func end() {
    signal(SIGINT, SIG_DFL)
    Self.pipeEnd.store(-1, ordering: .releasing)
    device.stop()
    close(ends.write)
  }
}
