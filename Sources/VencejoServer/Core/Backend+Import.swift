import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoStore

/// Chats brought and taken along by who holds the data folder, while no server uses it.
extension Backend {
  public enum ImportFormat: Sendable {
    /// What `ExportChat` writes as NDJSON.
    case lines
    /// What WhatsApp writes.
    case text
  }

  /// What an import came to.
  public struct ImportOutcome: Sendable, Hashable {
    /// The chat's id.
    public let chat: String
    public let imported: Int
    /// Were there already.
    public let skipped: Int
    public let warnings: [String]
  }

  /// Takes in a chat. `senders` says which handle a name in the file has here, or none where a
  /// text only looks as if somebody said it; `utcOffset` how far the clock that wrote a text was
  /// ahead of UTC, in microseconds.
  ///
  /// - Throws: ``StoreError`` with `UNKNOWN_SENDER`, `BAD_IMPORT`, `DATA_FOLDER_IN_USE`, ….
  public static func importChat(
    _ bytes: [UInt8], _ format: ImportFormat, owner: String, senders: [String: String],
    title: String, utcOffset: Int64, inDataFolder directory: String
  ) async throws -> ImportOutcome {
    try await importChat(
      bytes, nil, format, owner: owner, senders: senders, title: title, utcOffset: utcOffset,
      inDataFolder: directory)
  }

  /// The same for what WhatsApp exported, with the files that are there.
  public static func importChat(
    _ source: WhatsAppSource, owner: String, senders: [String: String], title: String,
    utcOffset: Int64, inDataFolder directory: String
  ) async throws -> ImportOutcome {
    try await importChat(
      source.text, source, .text, owner: owner, senders: senders, title: title,
      utcOffset: utcOffset, inDataFolder: directory)
  }

  private static func importChat(
    _ bytes: [UInt8], _ files: WhatsAppSource?, _ format: ImportFormat, owner: String,
    senders: [String: String], title: String, utcOffset: Int64, inDataFolder directory: String
  ) async throws -> ImportOutcome {
    let store = try Store.open(directory: directory)
    defer { store.close() }
    var header = Chat.ImportHeader()
    header.format = format == .lines ? .ndjson : .text
    header.title = title
    header.utcOffset = Google.Duration(microseconds: utcOffset)
    let principal = try await store.read { try $0.principal(ofHandle: owner) }
    for (name, handle) in senders {
      guard !handle.isEmpty else {
        header.senders[name] = ""
        continue
      }
      let account = try await store.read { try $0.account(named: handle) }
      header.senders[name] = "users/\(account.id)"
    }
    var importer = try ChatImporter(store, header, by: principal)
    importer.files = files
    try await importer.take(bytes)
    let outcome = try await importer.finish()
    return ImportOutcome(
      chat: "\(outcome.chat)", imported: outcome.imported, skipped: outcome.skipped,
      warnings: outcome.warnings)
  }

  /// Writes a chat, named by its id, as a member sees it, with its attachments; `write` takes the
  /// pieces.
  ///
  /// - Throws: ``StoreError`` with `CHAT_NOT_FOUND`, `USER_NOT_FOUND`, `DATA_FOLDER_IN_USE`, ….
  public static func exportChat(
    _ chat: String, as handle: String, inDataFolder directory: String,
    _ write: ([UInt8]) throws -> Void
  ) async throws {
    guard let id = UUID(parsing: chat.hasPrefix("chats/") ? String(chat.dropFirst(6)) : chat) else {
      throw StoreError.invalid("chat", "BAD_NAME", "a chat is chats/{chat}")
    }
    let store = try Store.open(directory: directory)
    defer { store.close() }
    let user = try await store.read { try $0.account(named: handle).key }
    let exporter = ChatExporter(
      store: store, chat: id, format: .ndjson, includesAttachments: true, user: user)
    try await exporter.run(after: 0) { bytes, _ in try write(bytes) }
  }
}
