import VencejoServer
import VencejoStore
import VencejoTools

/// `vencejo admin`: what only who holds the data folder may do.
enum AdminCommand {
  static let help = """
    usage: vencejo admin COMMAND [--data FOLDER]

      grant HANDLE           make an account administrator of the server; a running server
                             notices within half a minute
      invite                 print a code with which strangers make accounts
                             (--uses N, default 1; --days N, default 7)
      reset-password HANDLE  print a code that sets a new password, once, within a day
      users                  list the accounts, with a tab between columns
      sessions HANDLE        list the devices of an account
      keys HANDLE            list its API keys
      suspend HANDLE         let an account in no more; 'reinstate HANDLE' does again
      delete-user HANDLE     begin the end of an account: its data goes in 30 days
      sign-out HANDLE        end every session of an account
      revoke-key ID          make an API key worthless
      retain --days N        take away what was sent more than N days ago and nobody starred
      stats                  count what is in the folder
      doctor                 look for damage; exit code 1 when there is some
      backup FOLDER          copy the database and the files of attachments, as they are at one
                             moment; the server may run
      restore FOLDER         make a new data folder from a backup
      compact                give unused room back; no server may use the folder
      export CHAT FILE       write a chat and its files, as JSON Lines, as --owner HANDLE sees
                             it; no server may use the folder
      import-lines FILE      take such a file in, with the original times, while no server uses
                             the folder (--sender 'HANDLE-THERE=HANDLE' for each of them,
                             --owner HANDLE, --title TEXT)
      import-whatsapp FILE   show what a chat exported by WhatsApp holds: its text, a folder with
                             text and files, or the zip file that phones send; with --yes make a
                             chat of it, with the original times, while no server uses the folder
                             (--sender 'NAME=HANDLE' for each name, 'NAME=' for a notice with a
                             colon that looks like one, --owner HANDLE, --title TEXT, --zone
                             +02:00 of the phone)
      export-records FILE    write records and their files as JSON Lines (--container NAME,
                             --database HANDLE or public, --records ZONE for one of its zones,
                             --no-files), while no server uses the folder
      import-records FILE    show what a CSV or JSON file holds, with the types of its columns;
                             with --yes make records of its rows, while no server uses the folder
                             (--container NAME, --type RECORDTYPE, --database HANDLE or public,
                             --records ZONE, --id COLUMN for their names, --column NAME=TYPE or
                             NAME=skip, --null WORD for no value, --dates dmy or mdy,
                             --separator ';', --skip-faults). Of a file of export-records:
                             count what it holds; with --yes bring records there to what the file
                             has (--container NAME, --database HANDLE or public, --records ZONE
                             for one that all go to, --owner HANDLE for files in a public one)
      index-records          finish the index of an import now; otherwise the server does it when
                             it starts

      --data FOLDER          the server's data (default: ./data)

      vencejo admin grant ana --data /var/lib/vencejo
      vencejo admin backup /var/backups/vencejo --data /var/lib/vencejo
    """

  static func run(_ arguments: some Sequence<String>, _ output: Output) async -> Int32 {
    do {
      let arguments = try ArgumentList(
        arguments,
        options: [
          .init("data", short: "d", value: true), .init("uses", value: true),
          .init("days", value: true), .init("help", short: "h"),
        ] + ImportCommand.options + RecordCommand.options)
      if arguments.has("help") {
        output.line(help)
        return ExitCode.ok
      }
      let words = Array(arguments.words)
      let data = arguments["data"] ?? "data"
      if words.first == "import-whatsapp", words.count == 2 {
        return try await ImportCommand.run(arguments, words[1], data, output)
      }
      if words.first == "import-records", words.count == 2 {
        return try await RecordCommand.run(arguments, words[1], data, output)
      }
      if words.first == "export-records", words.count == 2 {
        return try await RecordCommand.export(arguments, words[1], data, output)
      }
      if words == ["index-records"] {
        return try await RecordCommand.index(data, output)
      }
      if words.first == "import-lines", words.count == 2 {
        return try await ImportCommand.runLines(arguments, words[1], data, output)
      }
      if words.first == "export", words.count == 3 {
        return try await ImportCommand.export(arguments, words[1], words[2], data, output)
      }
      if let task = try task(arguments) {
        try await Backend.perform(task, inDataFolder: data)
        output.line("done")
        return ExitCode.ok
      }
      return try run(arguments, data, output)
    } catch let fault as ArgumentList.Fault {
      output.complain("vencejo admin: \(fault)\nTry 'vencejo admin --help'.")
      return ExitCode.usage
    } catch {
      output.complain("vencejo admin: \(error)")
      return ExitCode.failure
    }
  }

  /// What the server has to do itself, so that those whom it concerns hear it.
  private static func task(_ arguments: ArgumentList) throws -> AdminTask? {
    let words = Array(arguments.words)
    switch (words.first, words.count) {
    case ("suspend", 2): return .suspend(handle: words[1])
    case ("reinstate", 2): return .reinstate(handle: words[1])
    case ("delete-user", 2): return .deleteUser(handle: words[1])
    case ("sign-out", 2): return .revokeSessions(handle: words[1])
    case ("revoke-key", 2): return .revokeKey(words[1])
    case ("retain", 1):
      guard let days = arguments["days"] else { throw ArgumentList.Fault("retain needs --days N") }
      return .retain(days: try number(days, 1...36_500))
    default: return nil
    }
  }

  private static func run(_ arguments: ArgumentList, _ data: String, _ output: Output) throws
    -> Int32
  {
    let words = Array(arguments.words)
    switch (words.first, words.count) {
    case ("grant", 2):
      try Backend.grantAdministrator(to: words[1], inDataFolder: data)
      output.line("\(words[1]) is administrator")
    case ("invite", 1):
      output.line(
        try Backend.inviteToSignUp(
          uses: try number(arguments["uses"] ?? "1", 1...1_000_000),
          days: try number(arguments["days"] ?? "7", 1...3650), inDataFolder: data))
    case ("reset-password", 2):
      output.line(try Backend.resetPassword(of: words[1], inDataFolder: data))
    case ("users", 1), ("sessions", 2), ("keys", 2):
      for line in try Backend.list(words[0], of: words.dropFirst().first, inDataFolder: data) {
        output.line(line)
      }
    case ("compact", 1):
      try Store.compact(directory: data)
      output.line("compacted")
    case ("stats", 1):
      let statistics = try Store.statistics(directory: data)
      for (name, count) in [
        ("users", statistics.users), ("sessions", statistics.sessions),
        ("chats", statistics.chats), ("messages", statistics.messages),
        ("records", statistics.records), ("events", statistics.events),
        ("bytes", statistics.bytes),
      ] {
        output.line("\(name)\t\(count)")
      }
    case ("doctor", 1):
      let faults = try Store.examine(directory: data)
      for fault in faults { output.line(fault) }
      guard faults.isEmpty else { return ExitCode.failure }
      output.line("all is well")
    case ("backup", 2):
      try Store.backUp(directory: data, to: words[1])
      output.line("backed up to \(words[1])")
    case ("restore", 2):
      try Store.restore(words[1], to: data)
      output.line("restored to \(data)")
    default:
      throw ArgumentList.Fault("needs a command, and what it needs")
    }
    return ExitCode.ok
  }

  private static func number(_ text: String, _ range: ClosedRange<Int64>) throws -> Int64 {
    guard let number = Int64(text), range.contains(number) else {
      throw ArgumentList.Fault(
        "'\(text)' is no number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }
}
