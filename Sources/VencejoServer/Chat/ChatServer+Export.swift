import VencejoAPI
import VencejoJSON
import VencejoProtobuf
import VencejoRPC
import VencejoStore

// A chat as its member may take it along: what they may see, no more.
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
      var after = max(0, request.afterSequence)
      var names: [String: String] = [:]
      while true {
        let page = try await store.read { [after] in
          try $0.listMessages(
            chat, pageSize: ChatLimits.exportPage, anchor: .after(after), for: caller.user)
        }
        guard let last = page.messages.last else { return }
        var text = ""
        for message in page.messages {
          let rendered = Chat.Message(message, for: caller.user)
          if request.format == .ndjson {
            text += ((try? rendered.jsonString()) ?? "{}") + "\n"
          } else {
            if let sender = message.sender, names[rendered.sender] == nil {
              names[rendered.sender] = try await store.read {
                try $0.profile(sender, for: caller.user).displayName
              }
            }
            text += ExportText.line(message, names[rendered.sender] ?? "")
          }
        }
        try await out.send(
          Chat.ExportChatResponse(chunk: Array(text.utf8), lastSequence: last.sequence))
        after = last.sequence
        if page.newerToken.isEmpty { return }
      }
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
