import Synchronization
import VencejoObservability
import VencejoTools

/// What an operator reads, on standard error.
final class Log: Sendable {
  private let current: Mutex<LogLine.Level>
  private let format: LogFormat
  private let output: Output

  static let options: [ArgumentList.Option] = [
    .init("log-level", value: true), .init("log-format", value: true), .init("quiet", short: "q"),
  ]

  init(_ arguments: ArgumentList, _ output: Output) throws(ArgumentList.Fault) {
    current = Mutex(try Self.level(arguments))
    let form = arguments["log-format"] ?? "text"
    guard let format = LogFormat(rawValue: form) else {
      throw ArgumentList.Fault("'\(form)' is no format of logs: text, logfmt or json")
    }
    self.format = format
    self.output = output
  }

  static func level(_ arguments: ArgumentList) throws(ArgumentList.Fault) -> LogLine.Level {
    let name = arguments["log-level"] ?? (arguments.has("quiet") ? "error" : "info")
    guard let level = LogLine.Level(rawValue: name) else {
      throw ArgumentList.Fault("'\(name)' is no log level: error, info or debug")
    }
    return level
  }

  /// May change while the server runs.
  var level: LogLine.Level {
    get { current.withLock { $0 } }
    set { current.withLock { $0 = newValue } }
  }

  func write(_ line: LogLine) {
    if line.level >= level { output.complain(VisibleText.clean(format.encode(line))) }
  }

  func error(_ text: @autoclosure () -> String) { write(LogLine(.error, text())) }
  func info(_ text: @autoclosure () -> String) {
    if level <= .info { write(LogLine(.info, text())) }
  }
  func debug(_ text: @autoclosure () -> String) {
    if level <= .debug { write(LogLine(.debug, text())) }
  }
}
