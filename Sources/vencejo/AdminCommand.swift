import VencejoServer
import VencejoTools

/// `vencejo admin`: what only who holds the data folder may do.
enum AdminCommand {
  static let help = """
    usage: vencejo admin grant HANDLE [--data FOLDER]

    Makes an account administrator of the server. A running server notices within half a
    minute.

      --data FOLDER   the server's data (default: ./data)

      vencejo admin grant ana --data /var/lib/vencejo
    """

  static func run(_ arguments: some Sequence<String>, _ output: Output) -> Int32 {
    do {
      let arguments = try ArgumentList(
        arguments, options: [.init("data", short: "d", value: true), .init("help", short: "h")])
      if arguments.has("help") {
        output.line(help)
        return ExitCode.ok
      }
      guard arguments.words.count == 2, arguments.words[0] == "grant" else {
        throw ArgumentList.Fault("needs 'grant' and a handle")
      }
      let handle = arguments.words[1]
      try Backend.grantAdministrator(
        to: handle, inDataFolder: arguments["data"] ?? "data")
      output.line("\(handle) is administrator")
      return ExitCode.ok
    } catch let fault as ArgumentList.Fault {
      output.complain("vencejo admin: \(fault)\nTry 'vencejo admin --help'.")
      return ExitCode.usage
    } catch {
      output.complain("vencejo admin: \(error)")
      return ExitCode.failure
    }
  }
}
