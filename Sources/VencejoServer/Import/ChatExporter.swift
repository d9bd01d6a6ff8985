import VencejoAPI
import VencejoCrypto
import VencejoJSON
import VencejoProtobuf
import VencejoStore

/// Writes a chat as one of its members may take it along: what they may see, no more.
struct ChatExporter {
  let store: Store
  let chat: UUID
  let format: Chat.ExportFormat
  let includesAttachments: Bool
  /// Internal key of who takes it along.
  let user: Int64

  /// Bytes of a file in one line.
  private static let stretch = 192 << 10

  /// Calls `send` with stretches of the export and the last sequence they hold, from behind
  /// `after` on.
  func run(
    after start: Int64, _ send: (_ bytes: [UInt8], _ last: Int64) async throws -> Void
  ) async throws {
    var after = start
    if format == .ndjson, start == 0 { try await send(try await header(), 0) }
    var names: [UUID: String] = [:]
    var written: Set<UUID> = []
    while true {
      let page = try await store.read { [after] in
        try $0.listMessages(
          chat, pageSize: ChatLimits.exportPage, anchor: .after(after), for: user)
      }
      guard let last = page.messages.last else { return }
      var text = ""
      for message in page.messages {
        if format == .ndjson {
          if includesAttachments, case .media(let media) = message.body {
            for id in media.attachments where written.insert(id).inserted {
              try await attachment(id, send, after: after)
            }
          }
          if !message.reactions.isEmpty { text += try await reactions(to: message) }
          var line = Chat.ExportLine()
          line.line = .message(Chat.Message(message, for: user))
          text += try line.jsonString() + "\n"
        } else {
          if let sender = message.sender, names[sender] == nil {
            names[sender] = try await store.read {
              try $0.profile(sender, for: user).displayName
            }
          }
          text += ExportText.line(message, message.sender.flatMap { names[$0] } ?? "")
        }
      }
      try await send(Array(text.utf8), last.sequence)
      after = last.sequence
      if page.newerToken.isEmpty { return }
    }
  }

  /// A line of who thinks what of a message.
  private func reactions(to message: StoredMessage) async throws -> String {
    var exported = Chat.ExportedReactions()
    exported.message = "chats/\(chat)/messages/\(message.id)"
    var token = ""
    repeat {
      let page = try await store.read { [token] in
        try $0.listReactions(message.id, in: chat, pageSize: 200, pageToken: token, for: user)
      }
      exported.reactions += page.reactions.map {
        Chat.Reaction(
          user: "users/\($0.user)", emoji: $0.emoji,
          reactTime: Google.Timestamp(microseconds: $0.time))
      }
      token = page.nextPageToken
    } while !token.isEmpty
    var line = Chat.ExportLine()
    line.line = .reactions(exported)
    return try line.jsonString() + "\n"
  }

  private func header() async throws -> [UInt8] {
    let (view, people) = try await store.read {
      (try $0.chat(chat, for: user), try $0.people(of: chat, for: user))
    }
    var shown = Chat.Chat(view, for: user)
    // What is the reader's own stays with them.
    shown.selfField = nil
    shown.settings = nil
    shown.unread = nil
    shown.lastMessage = nil
    var header = Chat.ExportHeader()
    header.version = ChatImporter.version
    header.chat = shown
    header.profiles = people.map { profile in
      var shown = Chat.Profile(profile)
      shown.privacy = nil
      return shown
    }
    header.exportTime = Google.Timestamp(microseconds: store.now)
    var line = Chat.ExportLine()
    line.line = .header(header)
    return Array((try line.jsonString() + "\n").utf8)
  }

  private func attachment(
    _ id: UUID, _ send: (_ bytes: [UInt8], _ last: Int64) async throws -> Void, after: Int64
  ) async throws {
    let attachment = try await store.read { try $0.attachment(id, for: user) }
    var offset: Int64 = 0
    while offset < attachment.size {
      var stretch = Chat.ExportedAttachment()
      stretch.attachment = Chat.Attachment(attachment)
      stretch.offset = offset
      stretch.data = try await store.files.read(
        attachment.sha256, at: offset, count: Self.stretch)
      guard !stretch.data.isEmpty else { return }
      offset += Int64(stretch.data.count)
      var line = Chat.ExportLine()
      line.line = .attachment(stretch)
      // A broken stream goes on behind the messages before: the file comes again.
      try await send(Array((try line.jsonString() + "\n").utf8), after)
    }
  }
}
