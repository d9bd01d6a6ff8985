import Testing
import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoServer

@Suite struct ImportTests {
  private func export(_ chat: Chat.Chat, by who: Person) async throws -> [UInt8] {
    var bytes: [UInt8] = []
    let call = who.chat.exportChat(
      .with {
        $0.name = chat.name
        $0.format = .ndjson
        $0.includeAttachments = true
      }, who.options)
    for try await response in call { bytes += response.chunk }
    return bytes
  }

  private func bring(
    _ bytes: [UInt8], by who: Person, pieces: Int = 1000,
    _ change: (inout Chat.ImportHeader) -> Void = { _ in }
  ) async throws -> Chat.ImportChatResponse {
    let call = who.chat.importChat(who.options)
    var header = Chat.ImportHeader()
    header.format = .ndjson
    change(&header)
    // The server may have had enough before all is sent: its answer says why.
    do {
      try await call.send(.with { $0.payload = .header(header) })
      for start in stride(from: 0, to: bytes.count, by: pieces) {
        try await call.send(
          .with { $0.payload = .chunk(Array(bytes[start..<min(start + pieces, bytes.count)])) })
      }
      call.finish()
    } catch {}
    return try await call.response
  }

  private func upload(_ bytes: [UInt8], by who: Person) async throws -> Chat.Attachment {
    let call = who.chat.uploadAttachment(who.options)
    try await call.send(
      .with {
        $0.payload = .header(
          .with {
            $0.uploadId = "\(UUID.v7())"
            $0.fileName = "a.bin"
            $0.sizeBytes = Int64(bytes.count)
            $0.sha256 = SHA256.digest(bytes)
          })
      })
    try await call.send(.with { $0.payload = .chunk(bytes) })
    call.finish()
    return try #require(try await call.response.attachment)
  }

  private func say(
    _ content: Chat.MessageContent.Kind, in chat: Chat.Chat, by who: Person, reply: String = ""
  ) async throws -> Chat.Message {
    try #require(
      try await who.chat.sendMessage(
        .with {
          $0.parent = chat.name
          $0.messageId = "\(UUID.v7())"
          $0.replyTo = reply
          $0.content = .with { $0.kind = content }
        }, who.options
      ).message)
  }

  /// What two chats have in common when one is a copy of the other.
  private func shown(_ messages: [Chat.Message]) -> [String] {
    messages.map { message in
      var content = message.content
      if case .media(var media)? = content?.kind {
        media.attachments = media.attachments.map { _ in "file" }
        content?.kind = .media(media)
      }
      if case .poll(var poll)? = content?.kind {
        for index in poll.options.indices { poll.options[index].voteCount = 0 }
        content?.kind = .poll(poll)
      }
      return "\(message.sender) \(String(describing: content)) \(message.quoted?.excerpt ?? "-") "
        + "\(message.reactions.map { "\($0.emoji)\($0.count)\($0.mine)" }) "
        + "\(message.editCount) \(message.deleteTime != nil) \(message.sendTime?.seconds ?? 0)"
    }
  }

  private func messages(_ chat: Chat.Chat, _ who: Person) async throws -> [Chat.Message] {
    try await who.chat.listMessages(
      .with {
        $0.parent = chat.name
        $0.pageSize = 200
      }, who.options
    ).messages
  }

  @Test func aChatGoesAndComesBack() async throws {
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.group, [ben], title: "G")
      let file = (0..<500_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
      let attachment = try await upload(file, by: ben)
      let first = try await ana.send("hola, ñ \n second line", to: chat)
      _ = try await say(
        .text(
          .with {
            $0.text = "@ana"
            $0.mentions = [
              .with {
                $0.user = ana.name
                $0.length = 4
              }
            ]
          }), in: chat, by: ben, reply: first.name)
      _ = try await say(
        .media(
          .with {
            $0.attachments = [attachment.name]
            $0.caption = "look"
          }), in: chat, by: ben)
      _ = try await say(
        .location(
          .with {
            $0.latitudeDegrees = 41.5
            $0.label = "here"
          }), in: chat, by: ana)
      let poll = try await say(
        .poll(
          .with {
            $0.question = "When?"
            $0.options = [Int32(1), 2].map { id in
              .with {
                $0.optionId = id
                $0.text = "\(id)"
              }
            }
          }), in: chat, by: ana)
      _ = try await ben.chat.votePoll(
        .with {
          $0.name = poll.name
          $0.optionIds = [1]
        }, ben.options)
      for (who, emoji) in [(ana, "👍"), (ben, "❤️")] {
        _ = try await who.chat.setReaction(
          .with {
            $0.message = first.name
            $0.emoji = emoji
          }, who.options)
      }
      _ = try await ana.chat.editMessage(
        .with {
          $0.name = first.name
          $0.content = .with { $0.kind = .text(.with { $0.text = "hello" }) }
        }, ana.options)
      let gone = try await ben.send("oops", to: chat)
      _ = try await ben.chat.deleteMessages(
        .with {
          $0.parent = chat.name
          $0.ranges = [
            .with {
              $0.firstSequence = gone.sequence
              $0.lastSequence = gone.sequence
            }
          ]
          $0.scope = .forEveryone
        }, ben.options)
      let bytes = try await export(chat, by: ana)
      let answer = try await bring(bytes, by: ana)
      let copy = try #require(answer.chat)
      #expect(answer.importedCount == 7 && answer.skippedCount == 0)
      #expect(answer.warnings == ["votes are not kept: an export does not say whose"])
      #expect(copy.title == "G" && copy.name != chat.name && copy.unread?.unreadCount == 0)
      let (old, new) = (try await messages(chat, ana), try await messages(copy, ana))
      #expect(shown(new) == shown(old))
      #expect(new.filter(\.imported).count == new.count)
      // The file is there, for its new readers too.
      guard new.count == 7, case .media(let media)? = new[3].content?.kind else {
        Issue.record("no media")
        return
      }
      var read: [UInt8] = []
      for try await part in ben.chat.downloadAttachment(
        .with { $0.name = media.attachments[0] }, ben.options)
      {
        if case .chunk(let chunk)? = part.payload { read += chunk }
      }
      #expect(read == file)
      // The same again adds nothing; more of it adds what is new.
      let again = try await bring(bytes, by: ana, pieces: 65_536)
      #expect(again.chat?.name == copy.name && again.importedCount == 0 && again.skippedCount == 7)
      try await ana.send("later", to: chat)
      let more = try await bring(try await export(chat, by: ana), by: ana)
      #expect(more.importedCount == 1 && more.chat?.name == copy.name)
      // Nobody's words are put between others'.
      await expect(.failedPrecondition, "CHAT_NOT_EMPTY") {
        _ = try await bring(bytes, by: ana) { $0.chat = chat.name }
      }
    }
  }

  @Test func sendersMayHaveOtherNamesHere() async throws {
    var bytes: [UInt8] = []
    try await withWorld { world in
      let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
      let chat = try await ana.createChat(.direct, [ben])
      try await ana.send("one", to: chat)
      try await ben.send("two", to: chat)
      bytes = try await export(chat, by: ben)
    }
    try await withWorld { [bytes] world in
      let (root, bea) = (try await world.person("root"), try await world.person("bea"))
      await expect(.failedPrecondition, "UNKNOWN_SENDER") { _ = try await bring(bytes, by: root) }
      await expect(.permissionDenied, "NOT_AN_ADMINISTRATOR") {
        _ = try await bring(bytes, by: bea)
      }
      let answer = try await bring(bytes, by: root) {
        $0.senders = ["ana": root.name, "ben": bea.name]
        $0.title = "Old times"
      }
      let copy = try #require(answer.chat)
      #expect(copy.title == "Old times" && copy.memberCount == 2)
      #expect(try await messages(copy, bea).map(\.sender) == [root.name, bea.name])
    }
  }

  @Test func whatIsNoExportIsRefused() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      for text in [
        "", "nonsense", "{\"message\": {}}", "{\"header\": {\"version\": 99}}", "[1]\n",
        "{\"attachment\": {\"attachment\": {\"name\": \"a\"}, \"offset\": \"5\"}}",
      ] {
        await expect(.invalidArgument, "BAD_IMPORT") {
          _ = try await bring(Array(text.utf8), by: ana)
        }
      }
      await expect(.invalidArgument, "BAD_FORMAT") {
        _ = try await bring([], by: ana) { $0.format = .unspecified }
      }
    }
  }

  @Test func aTextComesByTheCall() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let text = "31/12/23, 21:41 - Ana: hola\n31/12/23, 21:42 - Ana: This message was deleted\n"
      let answer = try await bring(Array(text.utf8), by: ana) {
        $0.format = .text
        $0.title = "From the phone"
        $0.senders = ["Ana": ana.name]
        $0.utcOffset = .init(seconds: 3600)
      }
      let found = try await messages(try #require(answer.chat), ana)
      // 2023-12-31 20:41 UTC.
      #expect(found.first?.sendTime?.seconds == 1_704_055_260)
      #expect(found.map { $0.deleteTime != nil } == [false, true])
    }
  }

  /// Lines written by hand from the proto, not by our exporter.
  /// WhatsApp lets people write 65,536 characters; and what the system says may have a colon.
  @Test func aTextThatIsTooLongAndANameThatIsNone() async throws {
    let world = try World()
    let ana = try await world.person("ana")
    let long = String(repeating: "ж", count: 40_000)
    let lines = (0..<9000).map { "line \($0) 🐦" }
    let text = """
      31/12/2023, 21:40 - Ana: \(long)
      31/12/2023, 21:41 - Ana: \(lines.joined(separator: "\n"))
      31/12/2023, 21:42 - The rules of this group: be kind
      31/12/2023, 21:43 - Ana: ok
      """
    for round in 0..<2 {
      let response = try await bring(Array(text.utf8), by: ana, pieces: 10_000) {
        $0.format = .text
        $0.title = "T"
        $0.senders = ["Ana": ana.name, "The rules of this group": ""]
      }
      let messages = try await ana.chat.listMessages(
        .with { $0.parent = response.chat?.name ?? "" }, ana.options
      ).messages
      let texts = messages.map { message -> String in
        switch message.content?.kind {
        case .text(let text)?: text.text
        case .system(let system)?: system.text
        default: "?"
        }
      }
      #expect(texts.allSatisfy { $0.utf8.count <= 65_536 })
      #expect(texts.prefix(2).joined() == long)
      #expect(
        texts.dropFirst(2).dropLast(2).joined(separator: "\n") == lines.joined(separator: "\n"))
      #expect(texts.suffix(2) == ["The rules of this group: be kind", "ok"])
      #expect(messages.dropLast(2).allSatisfy { $0.sender == ana.name })
      #expect(messages.suffix(2).map(\.sender) == ["", ana.name])
      #expect(Int(response.importedCount) == (round == 0 ? messages.count : 0))
    }
    await world.end()
  }

  @Test func fieldsThatAreNotKnownArePassedOver() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let lines = """
        {"header":{"version":1,"chat":{"name":"chats/x","title":"T","novelty":1},"profiles":[{"user":"users/x","handle":"x"}]}}
        {"novelty":{"a":1}}
        {"message":{"name":"chats/x/messages/018c0000-0000-7000-8000-000000000001","sequence":"4","sender":"users/x","sendTime":"2020-02-29T12:00:00Z","content":{"text":{"text":"leap"}},"novelty":[1]}}
        """
      let answer = try await bring(Array(lines.utf8), by: ana, pieces: 7) {
        $0.senders = ["users/x": ana.name]
      }
      let found = try await messages(try #require(answer.chat), ana)
      #expect(found.map { $0.sendTime?.seconds } == [1_582_977_600])
    }
  }
}
