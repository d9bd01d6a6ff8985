import Testing
import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC

/// What happened in a golden folder, and what its people see of it.
enum GoldenFacts {
  private static let database = "containers/notes/databases/private"

  /// Answers a resume token of the chats and a change token of the records, from the middle of it.
  static func happen(_ world: World, _ clock: TestClock) async throws -> (String, String) {
    let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
    let direct = try await ana.createChat(.direct, [ben])
    let group = try await ana.createChat(.group, [ben], title: "Sunday")
    for text in ["hola, ben", "¿vienes?", "燕子 🐦"] {
      clock.advance(seconds: 1)
      try await ana.send(text, to: direct)
    }
    let slip = try await ben.send("oops", to: direct)
    let zone = try await ana.makeZone("z", in: database)
    _ = try await ana.save("\(zone.name)/records/a", ["n": .init(kind: .int64Value(1))])

    let resume = try await ana.chat.listEvents(.init(), ana.options).resumeToken
    let change = try await ana.records.fetchZoneChanges(
      .init(parent: zone.name), ana.options
    ).changeToken

    clock.advance(seconds: 60)
    let answer = try await ben.send("sí", to: direct)
    _ = try await ana.chat.setReaction(.init(message: answer.name, emoji: "👍"), ana.options)
    _ = try await ben.chat.editMessage(
      .with {
        $0.name = answer.name
        $0.content = .with { $0.kind = .text(.with { $0.text = "sí, claro" }) }
      }, ben.options)
    _ = try await ben.chat.deleteMessages(
      .with {
        $0.parent = direct.name
        $0.ranges = [.init(firstSequence: slip.sequence, lastSequence: slip.sequence)]
        $0.scope = .forEveryone
      }, ben.options)
    try await ben.send("who brings what?", to: group)
    _ = try await ana.chat.markRead(.init(chat: direct.name, upToSequence: 4), ana.options)
    _ = try await ana.save("\(zone.name)/records/b", ["s": .init(kind: .stringValue("new"))])
    return (resume, change)
  }

  /// What Ana sees: chats and messages, what happened after the tokens, records.
  static func tell(
    _ world: World, _ ana: CallOptions, _ resume: String, _ change: String
  ) async throws -> [String] {
    let chats = Chat.ChatClient(try world.channel())
    let records = Record.RecordClient(try world.channel())
    var told: [String] = []
    let listed = try await chats.listChats(.init(), ana).chats.sorted { $0.name < $1.name }
    for chat in listed {
      told.append(
        "chat \(chat.name) \(chat.title) \(chat.memberCount) unread \(chat.unread?.unreadCount ?? 0)"
      )
      let page = try await chats.listMessages(.with { $0.parent = chat.name }, ana)
      told += page.messages.map(line)
    }
    let events = try await chats.listEvents(.with { $0.resumeToken = resume }, ana)
    told += events.events.map(line)
    let zone = "\(database)/zones/z"
    let changes = try await records.fetchZoneChanges(
      .init(parent: zone, changeToken: change), ana)
    for case .changed(let record)? in changes.changes.map(\.change) {
      told.append("changed \(record.name) \(record.fields["s"]?.kind == .stringValue("new"))")
    }
    let found = try await records.queryRecords(
      .init(parent: zone, query: .init(recordType: "Note")), ana)
    told += found.records.map { "record \($0.name) \($0.fields.keys.sorted())" }.sorted()
    return told
  }

  static func export(_ world: World, _ ana: CallOptions) async throws -> [String] {
    let chats = Chat.ChatClient(try world.channel())
    let listed = try await chats.listChats(.init(), ana).chats
    let direct = try #require(listed.first { $0.kind == .direct })
    var bytes: [UInt8] = []
    let call = chats.exportChat(
      .with {
        $0.name = direct.name
        $0.format = .ndjson
      }, ana)
    for try await part in call { bytes += part.chunk }
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  static func line(_ message: Chat.Message) -> String {
    var text = ""
    if case .text(let content)? = message.content?.kind { text = content.text }
    return "message \(message.name) \(message.sequence) by \(message.sender) '\(text)' "
      + "\(message.reactions.map(\.emoji)) edits \(message.editCount) "
      + "deleted \(message.deleteTime != nil) at \(message.sendTime?.seconds ?? 0)"
  }

  private static func line(_ frame: Chat.SubscribeResponse) -> String {
    switch frame.event {
    case .messageCreated(let event)?: "created \(event.message?.name ?? "")"
    case .messageUpdated(let event)?:
      "updated \(event.message?.name ?? "") \(event.changedFields?.paths ?? [])"
    case .messagesDeleted(let event)?:
      "deleted \(event.chat) \(event.ranges.map { "\($0.firstSequence)-\($0.lastSequence)" })"
    case .reactionChanged(let event)?: "reaction \(event.message) \(event.emoji)"
    case .unreadChanged(let event)?: "unread \(event.chat) \(event.unread?.unreadCount ?? 0)"
    case .receiptMoved(let event)?: "receipt \(event.chat) \(event.readSequence)"
    default: "another event"
    }
  }
}
