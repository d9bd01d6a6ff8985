import Glibc
import VencejoDescriptors
import VencejoRPC

/// `vencejo bench`: loads a server with calls and measures how long they take.
public enum BenchCommand {
  static let help = """
    usage: vencejo bench ADDRESS SERVICE/METHOD [options]

    Makes the same call over and over and tells how long it took: rate, latencies, statuses.
    All kinds of methods: of a stream, one call with all its messages is measured.

      -n, --calls N        make so many calls (default: 200, unless --duration is given)
      -z, --duration S     make calls for so many seconds
      -c, --concurrency N  calls under way at a time (default: 50)
      --connections N      deal them to so many connections (default: 1)
      --rps RATE           begin so many calls a second, whatever the server does; latencies
                           count from when a call was due, so that waiting is not left out
      --warm-up N          calls before those that are measured (default: 0)
      -d, --data MESSAGE   the request in JSON or text; several take turns, or are one stream's;
                           '@' reads them from standard input
      --data-file FILE     or from a file
      --format FORM        of the requests: json or text (default: json)
      --rpc-header K:V     metadata of the calls, not of reflection; may be repeated
      --compression NAME   compress requests: gzip or deflate
      --output FORM        of the report: text or json (default: text)
      --svg FILE           also draw the latencies
      -q, --quiet          only the exit code, and what --svg draws
    \(TypeSource.help)
    \(Connecting.help)

    The timeout is each call's (default: 20). Ctrl-C ends it early and reports what there is. Exit
    codes: 0 when all calls ended with OK, 1 for wrong usage, 64 + the most frequent other status,
    130 when interrupted.

      vencejo bench 127.0.0.1:7447 grpc.health.v1.Health/Check -n 10000 -c 100
      vencejo bench 127.0.0.1:7447 grpc.health.v1.Health/Check --rps 2000 -z 10 --svg plot.svg
    """

  private static let options: [ArgumentList.Option] =
    [
      .init("calls", short: "n", aliases: ["total"], value: true),
      .init("duration", short: "z", value: true), .init("concurrency", short: "c", value: true),
      .init("connections", value: true), .init("rps", value: true),
      .init("warm-up", aliases: ["warmup"], value: true),
      .init("data", short: "d", value: true), .init("data-file", value: true),
      .init("format", value: true), .init("rpc-header", value: true),
      .init("compression", value: true), .init("output", short: "O", value: true),
      .init("svg", value: true), .init("quiet", short: "q"), .init("allow-unknown-fields"),
      .init("max-msg-sz", value: true), .init("help", short: "h"),
    ] + TypeSource.options + Connecting.options

  public static func run(_ words: some Sequence<String>, _ output: Output) async -> Int32 {
    do {
      let arguments = try ArgumentList(words, options: options)
      if arguments.has("help") {
        output.line(help)
        return ExitCode.ok
      }
      guard arguments.words.count == 2, let target = DescribedMethod.split(arguments.words[1])
      else {
        throw ArgumentList.Fault("needs an address and a method, as in 127.0.0.1:7447 p.S/M")
      }
      let form = arguments["output"] ?? "text"
      guard ["text", "json"].contains(form) else {
        throw ArgumentList.Fault("--output is text or json, not '\(form)'")
      }
      var plan = try plan(arguments)
      let (source, reflecting) = try Connecting.types(arguments.words[0], arguments)
      let method = try await DescribedMethod.find(target.service, target.name, in: source)
      defer { reflecting?.close() }
      plan.method = method
      plan.requests = try await requests(
        arguments, method, PackedTypes(source, method.input.pool))
      reflecting?.close()
      Interrupt.arm()
      let report = try await BenchRun.run(plan) {
        try Connecting.channel(arguments.words[0], arguments)
      }
      if let path = arguments["svg"] {
        try ProtoFiles.write(Array(BenchPlot.svg(report).utf8), to: path)
      }
      if !arguments.has("quiet") { output.out(form == "json" ? report.json : report.text) }
      return report.exitCode
    } catch let fault as ArgumentList.Fault {
      output.complain(
        "vencejo bench: \(VisibleText.clean("\(fault)"))\nTry 'vencejo bench --help'.")
      return ExitCode.usage
    } catch let error as RPCError {
      ErrorPrinter(output: output, types: nil).print(error)
      return ExitCode.status(error.code)
    } catch {
      output.complain("vencejo bench: \(VisibleText.clean("\(error)"))")
      return ExitCode.failure
    }
  }

  private static func plan(_ arguments: ArgumentList) throws(ArgumentList.Fault) -> BenchPlan {
    var plan = BenchPlan()
    plan.options = try CallCommand.callOptions(arguments)
    plan.options.timeout = plan.options.timeout ?? .seconds(20)
    plan.duration = try Connecting.seconds(arguments, "duration")
    plan.calls = try number(arguments, "calls", 1...1_000_000_000)
    if plan.calls == nil, plan.duration == nil { plan.calls = 200 }
    plan.concurrency = try number(arguments, "concurrency", 1...100_000) ?? 50
    if let calls = plan.calls { plan.concurrency = min(plan.concurrency, calls) }
    plan.connections = min(
      try number(arguments, "connections", 1...10_000) ?? 1, plan.concurrency)
    plan.warmUp = try number(arguments, "warm-up", 0...1_000_000_000) ?? 0
    if let text = arguments["rps"] {
      guard let rate = Double(text), rate > 0, rate <= 1e7 else {
        throw ArgumentList.Fault("'\(text)' is no number of calls a second")
      }
      plan.rate = rate
    }
    return plan
  }

  private static func number(
    _ arguments: ArgumentList, _ name: String, _ range: ClosedRange<Int>
  ) throws(ArgumentList.Fault) -> Int? {
    guard let text = arguments[name] else { return nil }
    guard let value = Int(text), range.contains(value) else {
      throw ArgumentList.Fault(
        "--\(name) is a number from \(range.lowerBound) to \(range.upperBound), not '\(text)'")
    }
    return value
  }

  private static func requests(
    _ arguments: ArgumentList, _ method: DescribedMethod, _ types: PackedTypes
  ) async throws -> [EncodedMessage] {
    var text = arguments["data"]
    if let path = arguments["data-file"] {
      text = String(decoding: try ProtoFiles.read(path), as: UTF8.self)
    } else if text == "@" || text == "-" {
      text = String(decoding: StandardInput.readAll(), as: UTF8.self)
    }
    // A method that takes one may be given several, which take turns.
    var reader = try await Requests(
      text, for: method, form: CallCommand.form(arguments), types: types,
      ignoresUnknown: arguments.has("allow-unknown-fields"), takesTurns: true)
    var requests: [EncodedMessage] = []
    while let bytes = try await reader.next() { requests.append(EncodedMessage(serialized: bytes)) }
    return requests
  }
}
