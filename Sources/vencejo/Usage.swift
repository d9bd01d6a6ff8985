import VencejoTools

/// What `vencejo --help` says.
enum Usage {
  static let text = """
    usage: vencejo COMMAND …

      serve     run the server: chat and record services, data in one folder
      console   talk to a server, at a terminal or from a script
      call      call any method of any gRPC server
      list      list the services and methods of any gRPC server
      describe  what the services, messages and enums of any gRPC server are
      bench     load any gRPC server with calls and measure them
      proto     messages between binary, JSON and text; what their types are
      admin     manage a server's data folder
      version   print the version

    'vencejo COMMAND --help' tells more.
    """

  private static let commands = [
    "serve", "console", "call", "list", "describe", "bench", "proto", "admin", "version", "help",
  ]

  static func suggestion(for word: String) -> String {
    guard let close = commands.min(by: { editDistance(word, $0) < editDistance(word, $1) }),
      editDistance(word, close) <= 2
    else { return "" }
    return " (did you mean '\(close)'?)"
  }
}
