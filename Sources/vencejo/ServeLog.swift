import VencejoObservability
import VencejoTools

/// What an operator reads, on standard error.
struct Log: Sendable {
  let level: LogLine.Level
  private let format: LogFormat
  private let output: Output

  static let options: [ArgumentList.Option] = [
    .init("log-level", value: true), .init("log-format", value: true), .init("quiet", short: "q"),
  ]

  init(_ arguments: ArgumentList, _ output: Output) throws(ArgumentList.Fault) {
    let name = arguments["log-level"] ?? (arguments.has("quiet") ? "error" : "info")
    guard let level = LogLine.Level(rawValue: name) else {
      throw ArgumentList.Fault("'\(name)' is no log level: error, info or debug")
    }
    let form = arguments["log-format"] ?? "text"
    guard let format = LogFormat(rawValue: form) else {
      throw ArgumentList.Fault("'\(form)' is no format of logs: text, logfmt or json")
    }
    self.level = level
    self.format = format
    self.output = output
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
