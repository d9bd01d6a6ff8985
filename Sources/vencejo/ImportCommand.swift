import Glibc
import VencejoServer
import VencejoStore
import VencejoTools

/// `vencejo admin import-whatsapp`: shows what a file holds, then takes it in.
enum ImportCommand {
  static let options: [ArgumentList.Option] = [
    .init("sender", value: true), .init("owner", value: true), .init("title", value: true),
    .init("zone", value: true), .init("yes"),
  ]

  static func run(_ arguments: ArgumentList, _ file: String, _ data: String, _ output: Output)
    async throws -> Int32
  {
    let source = try WhatsAppSource(path: file)
    let export = source.export
    guard let first = export.entries.first, let last = export.entries.last else {
      output.complain("vencejo admin: \(file) holds no messages that are understood")
      return ExitCode.failure
    }
    let named = export.entries.compactMap(\.attachment)
    let found = named.filter(source.has).count
    let notices = export.entries.filter { $0.sender == nil }.count
    output.line("messages\t\(export.entries.count - notices)")
    output.line("notices\t\(notices)")
    output.line("attachments\t\(named.count), \(found) of them here")
    output.line("dates\t\(export.dateOrder.rawValue), \(day(first)) to \(day(last))")
    if export.strayLines > 0 { output.line("stray lines\t\(export.strayLines)") }
    let handles = try handles(arguments)
    for sender in export.senders {
      let count = export.entries.filter { $0.sender == sender }.count
      output.line("from\t\(sender)\t\(count)\t\(shown(handles[sender]))")
    }
    guard arguments.has("yes") else {
      output.line("nothing was imported; --yes imports")
      return ExitCode.ok
    }
    if let missing = export.senders.first(where: { handles[$0] == nil }) {
      throw ArgumentList.Fault("say who '\(missing)' is: --sender '\(missing)=HANDLE'")
    }
    guard
      let owner = arguments["owner"]
        ?? export.senders.compactMap({ handles[$0] }).first(where: { !$0.isEmpty })
    else {
      throw ArgumentList.Fault("say whose chat it becomes: --owner HANDLE")
    }
    let zone = try zone(arguments["zone"] ?? "+00:00")
    return report(
      try await Backend.importChat(
        source, owner: owner, senders: handles, title: arguments["title"] ?? "WhatsApp",
        utcOffset: zone, inDataFolder: data), output)
  }

  /// `vencejo admin import`: what an export of ours holds, into a folder that no server uses.
  static func runLines(_ arguments: ArgumentList, _ file: String, _ data: String, _ output: Output)
    async throws -> Int32
  {
    guard let owner = arguments["owner"] else {
      throw ArgumentList.Fault("say whose chat it becomes: --owner HANDLE")
    }
    return report(
      try await Backend.importChat(
        try read(file), .lines, owner: owner, senders: try handles(arguments),
        title: arguments["title"] ?? "", utcOffset: 0, inDataFolder: data), output)
  }

  private static func report(_ outcome: Backend.ImportOutcome, _ output: Output) -> Int32 {
    output.line("imported\t\(outcome.imported)")
    output.line("skipped\t\(outcome.skipped)")
    for warning in outcome.warnings { output.line("warning\t\(warning)") }
    output.line("chat\tchats/\(outcome.chat)")
    return ExitCode.ok
  }

  /// `vencejo admin export`.
  static func export(
    _ arguments: ArgumentList, _ chat: String, _ path: String, _ data: String, _ output: Output
  ) async throws -> Int32 {
    guard let owner = arguments["owner"] else {
      throw ArgumentList.Fault("say who takes it along: --owner HANDLE")
    }
    try await writing(path) { write in
      try await Backend.exportChat(chat, as: owner, inDataFolder: data, write)
    }
    output.line("exported to \(path)")
    return ExitCode.ok
  }

  /// Makes a new file of what `body` writes.
  static func writing<R>(
    _ path: String, _ body: (_ write: ([UInt8]) throws -> Void) async throws -> R
  ) async throws -> R {
    guard let file = fopen(path, "wx") else {
      throw StoreError(
        .failedPrecondition, "FILE_UNWRITABLE",
        "cannot make \(path): \(String(cString: strerror(errno)))")
    }
    // Its end is looked at below; what a failure leaves is for the user to see. Only this task has
    // it: `body` is waited for, and may not keep what it writes with.
    nonisolated(unsafe) let handle = file
    defer { fclose(handle) }
    let result = try await body { bytes in
      guard fwrite(bytes, 1, bytes.count, handle) == bytes.count else {
        throw StoreError(.resourceExhausted, "DISK_FULL", "cannot write \(path)")
      }
    }
    guard fflush(handle) == 0 else {
      throw StoreError(.resourceExhausted, "DISK_FULL", "cannot write \(path)")
    }
    return result
  }

  private static func shown(_ handle: String?) -> String {
    guard let handle else { return "(nobody: --sender)" }
    return handle.isEmpty ? "(a notice)" : handle
  }

  private static func handles(_ arguments: ArgumentList) throws -> [String: String] {
    var handles: [String: String] = [:]
    for pair in arguments.all("sender") {
      guard let mark = pair.lastIndex(of: "=") else {
        throw ArgumentList.Fault("--sender needs NAME=HANDLE")
      }
      handles[String(pair[..<mark])] = String(pair[pair.index(after: mark)...])
    }
    return handles
  }

  private static func day(_ entry: WhatsAppExport.Entry) -> String {
    var seconds = time_t(entry.localTime / 1_000_000)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    let (month, day) = (Int(parts.tm_mon) + 1, Int(parts.tm_mday))
    return
      "\(Int(parts.tm_year) + 1900)-\(month < 10 ? "0" : "")\(month)-\(day < 10 ? "0" : "")\(day)"
  }

  /// `+02:00` as microseconds.
  private static func zone(_ text: String) throws -> Int64 {
    let parts = text.dropFirst().split(separator: ":").map { Int64($0) }
    guard let sign = text.first, sign == "+" || sign == "-", parts.count == 2,
      let hours = parts[0], let minutes = parts[1], (0...14).contains(hours),
      (0...59).contains(minutes)
    else { throw ArgumentList.Fault("'\(text)' is no zone like +02:00") }
    return (hours * 60 + minutes) * 60_000_000 * (sign == "-" ? -1 : 1)
  }

  static func read(_ path: String) throws -> [UInt8] {
    guard let file = fopen(path, "r") else {
      throw StoreError(
        .notFound, "FILE_UNREADABLE", "cannot read \(path): \(String(cString: strerror(errno)))")
    }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = fread(&chunk, 1, chunk.count, file)
      guard count > 0 else { return bytes }
      bytes += chunk.prefix(count)
    }
  }
}
