// The program: arguments and exit codes only.

import Glibc
import VencejoConsole
import VencejoRPC
import VencejoTools

// A reader that goes away must not end a server, nor a command in a pipe without a word.
signal(SIGPIPE, SIG_IGN)
// A limit on the size of files is answered as a full disk is.
signal(SIGXFSZ, SIG_IGN)
setlocale(LC_CTYPE, "")

let arguments = Array(CommandLine.arguments.dropFirst())
let rest = arguments.dropFirst()
let output = Output.standard

/// Ends the program; one whose results did not reach their reader has not succeeded.
func end(_ status: Int32) -> Never {
  let lost = Output.lostResults
  guard status == ExitCode.ok, lost != 0 else { exit(status) }
  output.complain("vencejo: writing the results: \(String(cString: strerror(lost)))")
  exit(ExitCode.failure)
}

switch arguments.first {
case "serve": end(await ServeCommand.run(rest, output))
case "console": end(await Console.run(arguments: Array(rest)))
case "call": end(await CallCommand.run(rest, output))
case "list": end(await ListCommand.run(rest, output))
case "describe": end(await DescribeCommand.run(rest, output))
case "bench": end(await BenchCommand.run(rest, output))
case "proto": end(ProtoCommand.run(rest, output))
case "admin": end(await AdminCommand.run(rest, output))
case "--version", "-V", "version":
  output.line("vencejo \(VencejoRPC.version)")
  end(ExitCode.ok)
case "--help", "-h", "help":
  output.line(Usage.text)
  end(ExitCode.ok)
case nil:
  output.complain(Usage.text)
  end(ExitCode.usage)
case let command?:
  output.complain("vencejo: unknown command '\(command)'" + Usage.suggestion(for: command))
  output.complain("Try 'vencejo --help'.")
  end(ExitCode.usage)
}
