import VencejoClient
import VencejoTools

/// Commands from somewhere else than a person, one per line.
enum Script {
  /// Runs the lines. Stops at the first that fails unless told otherwise; answers the exit status
  /// of the first that failed.
  static func run(
    _ lines: some AsyncSequence<String, Never>, client: VencejoClient, profile: Profile,
    display: any Display, options: ConsoleOptions
  ) async -> Int32 {
    let runner = CommandRunner(
      client: client, display: display, mode: .script, json: options.json || options.quiet,
      profile: profile)
    await runner.restore()
    let status = await run(lines, with: runner, keepGoing: options.keepGoing)
    await runner.shutDown()
    return status
  }

  private static func run(
    _ lines: some AsyncSequence<String, Never>, with runner: CommandRunner, keepGoing: Bool
  ) async -> Int32 {
    var result = ExitCode.ok
    for await line in lines {
      if Task.isCancelled { return ExitCode.interrupted }
      let status = await runner.execute(line)
      if status != ExitCode.ok, result == ExitCode.ok { result = status }
      if status != ExitCode.ok, !keepGoing { break }
      if await runner.isFinished { break }
    }
    return Task.isCancelled ? ExitCode.interrupted : result
  }

  /// The lines of `-c` arguments.
  static func lines(of commands: [String]) -> AsyncStream<String> {
    AsyncStream { continuation in
      for command in commands {
        for line in command.split(separator: "\n") { continuation.yield(String(line)) }
      }
      continuation.finish()
    }
  }

  /// The lines of a file or pipe, read as they come, by a thread of their own.
  static func lines(of descriptor: Int32) -> AsyncStream<String> {
    let reader = LineReader(TerminalDevice(input: descriptor, output: -1))
    return AsyncStream { await reader.next() }
  }

  private actor LineReader {
    private let device: TerminalDevice
    private var bytes: [UInt8] = []
    private var hasEnded = false

    init(_ device: TerminalDevice) { self.device = device }

    func next() async -> String? {
      while true {
        if let end = bytes.firstIndex(of: 0x0A) {
          defer { bytes.removeFirst(end + 1) }
          return text(bytes[..<end])
        }
        if hasEnded {
          defer { bytes.removeAll() }
          return bytes.isEmpty ? nil : text(bytes[...])
        }
        switch await device.next() {
        case .bytes(let new): bytes += new
        case .ended:
          hasEnded = true
          device.stop()
        case .silence, .resized: break
        }
      }
    }

    private func text(_ line: ArraySlice<UInt8>) -> String {
      String(decoding: line.last == 0x0D ? line.dropLast() : line, as: UTF8.self)
    }
  }
}
