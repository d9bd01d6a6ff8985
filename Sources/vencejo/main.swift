// The program: arguments and exit codes only.

import Glibc
import VencejoConsole
import VencejoRPC
import VencejoTools

// A reader that goes away must not end a server, nor a command in a pipe without a word.
signal(SIGPIPE, SIG_IGN)
setlocale(LC_CTYPE, "")

let arguments = Array(CommandLine.arguments.dropFirst())
let rest = arguments.dropFirst()
let output = Output.standard

switch arguments.first {
case "serve": exit(await ServeCommand.run(rest, output))
case "console": exit(await Console.run(arguments: Array(rest)))
case "call": exit(await CallCommand.run(rest, output))
case "list": exit(await ListCommand.run(rest, output))
case "admin": exit(AdminCommand.run(rest, output))
case "--version", "-V", "version":
  output.line("vencejo \(VencejoRPC.version)")
  exit(ExitCode.ok)
case "--help", "-h", "help":
  output.line(Usage.text)
  exit(ExitCode.ok)
case nil:
  output.complain(Usage.text)
  exit(ExitCode.usage)
case let command?:
  output.complain("vencejo: unknown command '\(command)'" + Usage.suggestion(for: command))
  output.complain("Try 'vencejo --help'.")
  exit(ExitCode.usage)
}
