import VencejoHTTP2
import VencejoTools

/// The options of `vencejo console`.
struct ConsoleOptions: Sendable {
  var server = "127.0.0.1:7447"
  /// Each `-c`.
  var commands: [String] = []
  /// `-f`; `-` is standard input.
  var file: String?
  var json = false
  /// Only the names of results.
  var quiet = false
  var keepGoing = false
  var noColour = false
  var profile = "default"
  var help = false
  /// nil: plain text.
  var tls: ClientTLS?

  init() {}

  init(_ arguments: [String]) throws(ArgumentList.Fault) {
    let list = try ArgumentList(
      arguments,
      options: [
        .init("server", short: "s", value: true), .init("command", short: "c", value: true),
        .init("file", short: "f", value: true), .init("json"), .init("quiet", short: "q"),
        .init("keep-going"),
        .init("no-color"), .init("profile", short: "p", value: true), .init("help", short: "h"),
      ] + TLSOptions.client)
    if let word = list.words.first {
      throw ArgumentList.Fault("'\(word)' is no option; a command goes behind -c: -c '\(word)'")
    }
    server = list["server"] ?? server
    commands = list.all("command")
    file = list["file"]
    json = list.has("json")
    quiet = list.has("quiet")
    keepGoing = list.has("keep-going")
    noColour = list.has("no-color")
    profile = list["profile"] ?? profile
    help = list.has("help")
    tls = try TLSOptions.client(list)
    if json, quiet { throw ArgumentList.Fault("--json and --quiet exclude each other") }
    if !commands.isEmpty, file != nil { throw ArgumentList.Fault("-c and -f exclude each other") }
  }

  static let usage = """
    usage: vencejo console [OPTION]…

    A messenger and a record store at the prompt. Without -c and -f, commands are read from the
    terminal, or from standard input when that is no terminal.

      --server, -s ADDR   HOST:PORT or unix:/PATH (127.0.0.1:7447)
      -c COMMAND          run this and leave; may be given several times
      -f FILE             run the commands of a file, one per line (-: standard input)
      --json              results as JSON, one object per line (protobuf's JSON names)
      --quiet, -q         only the names of what was found or made, one per line
      --keep-going        do not stop at the first error
      --no-color          no colours; so does the variable NO_COLOR
      --profile, -p NAME  keep sessions apart under another name (default)
      --help, -h          this
    \(TLSOptions.help)

    Sessions, the history, and what the prompt knew last of your chats are kept, for you alone, in
    ~/.config/vencejo ($XDG_CONFIG_HOME/vencejo; VENCEJO_PROFILES names another folder).

    Exit status: 0 ok; 1 wrong usage; 64 and the gRPC code for an error of the server; 124 when a
    wait ran out of time; 130 when interrupted.

    Examples:
      vencejo console
      vencejo console -c 'sign-in ana SECRET' -c chats

    """
}
