import VencejoAPI
import VencejoProtobuf
import VencejoRPC
import VencejoStore

// A chat taken along, and one brought.
extension ChatServer {
  func exportChat(
    _ request: Chat.ExportChatRequest, _ out: ResponseWriter<Chat.ExportChatResponse>,
    _ context: ServerContext
  ) async throws {
    try await respond(context) { caller in
      let chat = try ResourceName.chat(request.name, field: "name")
      guard request.format == .ndjson || request.format == .text else {
        throw StoreError.invalid("format", "BAD_FORMAT", "choose NDJSON or TEXT")
      }
      let exporter = ChatExporter(
        store: store, chat: chat, format: request.format,
        includesAttachments: request.includeAttachments, user: caller.user)
      try await exporter.run(after: max(0, request.afterSequence)) { bytes, last in
        try await out.send(Chat.ExportChatResponse(chunk: bytes, lastSequence: last))
      }
    }
  }

  func importChat(
    _ requests: RequestStream<Chat.ImportChatRequest>, _ context: ServerContext
  ) async throws -> Chat.ImportChatResponse {
    try await respond(context) { caller in
      guard caller.role == .administrator else {
        throw StoreError(
          .permissionDenied, "NOT_AN_ADMINISTRATOR", "only administrators of the server may do this"
        )
      }
      var importer: ChatImporter?
      for try await request in requests {
        switch request.payload {
        case .header(let header)?:
          guard importer == nil else {
            throw StoreError.invalid("header", "BAD_IMPORT", "the header comes once, and first")
          }
          importer = try ChatImporter(store, header, by: caller)
        case .chunk(let bytes)?:
          guard importer != nil else {
            throw StoreError.invalid("header", "BAD_IMPORT", "the header comes first")
          }
          try await importer?.take(bytes)
        case nil: break
        }
      }
      guard let outcome = try await importer?.finish() else {
        throw StoreError.invalid("header", "BAD_IMPORT", "the header is missing")
      }
      let view = try? await store.read { try $0.chat(outcome.chat, for: caller.user) }
      return Chat.ImportChatResponse(
        chat: view.map { Chat.Chat($0, for: caller.user) },
        importedCount: Int64(outcome.imported), skippedCount: Int64(outcome.skipped),
        warnings: outcome.warnings)
    }
  }
}

/// `[2026-11-30 08:15] Ana: hola`, in UTC.
enum ExportText {
  static func line(_ message: StoredMessage, _ name: String) -> String {
    "[\(time(message.sendTime))] " + (name.isEmpty ? "" : "\(name): ") + text(message) + "\n"
  }

  private static func text(_ message: StoredMessage) -> String {
    switch message.body {
    case .text(let text, _): text
    case .media(let media):
      "(\(media.attachments.count) attachments)"
        + (media.caption.isEmpty ? "" : " \(media.caption)")
    case .location(let location):
      "(place) \(location.label) \(location.latitude), \(location.longitude)"
    case .contact(let contact): "(contact) \(contact.displayName)"
    case .poll(let poll):
      "(poll) \(poll.question) "
        + poll.options.map { "\($0.text): \($0.votes)" }.joined(separator: ", ")
    case .custom(let custom): custom.fallback
    case .system(let note): "(\(note.action))" + (note.text.isEmpty ? "" : " \(note.text)")
    case .deleted: "(deleted)"
    }
  }

  /// The Gregorian day of a time, by years that begin in March.
  static func time(_ microseconds: Int64) -> String {
    let minutes = microseconds / 60_000_000
    let days = Int(minutes / 1440) + 719_468
    let era = days / 146_097
    let ofEra = days - era * 146_097
    let yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
    let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shifted = (5 * ofYear + 2) / 153
    let day = ofYear - (153 * shifted + 2) / 5 + 1
    let month = shifted < 10 ? shifted + 3 : shifted - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    func two(_ number: Int) -> String { (number < 10 ? "0" : "") + String(number) }
    let ofDay = Int(minutes % 1440)
    return "\(year)-\(two(month))-\(two(day)) \(two(ofDay / 60)):\(two(ofDay % 60))"
  }
}
