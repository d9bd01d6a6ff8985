import Glibc
import VencejoAPI
import VencejoCrypto
import VencejoJSON
import VencejoProtobuf
import VencejoStore

/// Takes in what ``ChatExporter`` wrote, or the text of another messenger, piece by piece.
struct ChatImporter {
  /// Of the form of an export.
  static let version: Int32 = 1
  /// Longest line of an NDJSON, and longest text, in bytes.
  static let lineLimit = 2 << 20
  static let textLimit = 64 << 20
  private static let batch = 500
  private static let warningLimit = 100

  struct Outcome: Sendable {
    var chat: UUID
    var imported = 0
    var skipped = 0
    var warnings: [String] = []
  }

  private let store: Store
  private let header: Chat.ImportHeader
  private let caller: Principal
  private let target: UUID?
  private var senders: [String: UUID]
  /// What a text has before a colon and is nobody's name: what the system said.
  private var notices: Set<String> = []
  private var source: [UInt8]

  private var rest: [UInt8] = []
  private var chat: UUID?
  private var title = ""
  private var waiting: [ImportedMessage] = []
  private var attachments: [String: UUID] = [:]
  private var upload: (name: String, upload: Upload, offset: Int64)?
  private var imported = 0
  private var skipped = 0
  private var warnings: [String] = []
  private var lineNumber = 0
  /// Of the message that comes next.
  private var pending = Chat.ExportedReactions()
  /// Where the files are that a text names.
  var files: WhatsAppSource?

  /// - Throws: `BAD_FORMAT`, `BAD_NAME`.
  init(_ store: Store, _ header: Chat.ImportHeader, by caller: Principal) throws(StoreError) {
    guard header.format == .ndjson || header.format == .text else {
      throw .invalid("header.format", "BAD_FORMAT", "choose NDJSON or TEXT")
    }
    self.store = store
    self.header = header
    self.caller = caller
    target = header.chat.isEmpty ? nil : try ResourceName.chat(header.chat, field: "header.chat")
    senders = [:]
    for (name, user) in header.senders {
      guard !user.isEmpty else {
        notices.insert(name)
        continue
      }
      senders[name] = try ResourceName.user(user, field: "header.senders", caller: caller)
    }
    source = header.requestId.isEmpty ? [] : SHA256.digest("id " + header.requestId)
  }

  /// Takes a stretch of the file.
  mutating func take(_ bytes: [UInt8]) async throws {
    rest += bytes
    guard header.format == .ndjson else {
      guard rest.count <= Self.textLimit else {
        throw Self.bad("a text has at most \(Self.textLimit) bytes")
      }
      return
    }
    var start = 0
    while let end = rest[start...].firstIndex(of: UInt8(ascii: "\n")) {
      try await line(String(decoding: rest[start..<end], as: UTF8.self))
      start = end + 1
    }
    rest.removeFirst(start)
    guard rest.count <= Self.lineLimit else {
      throw Self.bad("line \(lineNumber + 1) has more than \(Self.lineLimit) bytes")
    }
  }

  /// Takes what is left and tells the members.
  mutating func finish() async throws -> Outcome {
    if header.format == .text {
      try await text()
    } else if !rest.isEmpty {
      let last = rest
      rest = []
      try await line(String(decoding: last, as: UTF8.self))
    }
    try await flush()
    guard let chat else { throw Self.bad("there is nothing to import") }
    // Also when all were there: whoever brought them may have died before this.
    try await store.write { try $0.announceImport(chat) }
    return Outcome(chat: chat, imported: imported, skipped: skipped, warnings: warnings)
  }

  // MARK: Lines

  private mutating func line(_ text: String) async throws {
    lineNumber += 1
    guard !text.allSatisfy(\.isWhitespace) else { return }
    var options = JSONOptions()
    options.ignoreUnknown = true
    let line: Chat.ExportLine
    do {
      line = try Chat.ExportLine(jsonString: text, options)
    } catch {
      throw Self.bad("line \(lineNumber): \(error)")
    }
    switch line.line {
    case .header(let header)?: try await begin(header)
    case .message(let message)?: try await add(message)
    case .attachment(let stretch)?: try await add(stretch)
    case .reactions(let reactions)?: pending = reactions
    case nil: break
    }
  }

  private mutating func begin(_ export: Chat.ExportHeader) async throws {
    guard export.version <= Self.version else {
      throw Self.bad("the export was written by a newer server")
    }
    if source.isEmpty { source = SHA256.digest("export " + (export.chat?.name ?? "")) }
    title = export.chat?.title ?? ""
    for profile in export.profiles where senders[profile.user] == nil {
      // By the handle that was named, or the same account where the export came from here.
      if let user = senders[profile.handle] {
        senders[profile.user] = user
      } else if let id = UUID(parsing: String(profile.user.dropFirst("users/".count))),
        try await isKnown(id)
      {
        senders[profile.user] = id
      }
    }
    let missing = export.profiles.filter { senders[$0.user] == nil }
    guard missing.isEmpty else { throw Self.unknown(missing.map(\.handle)) }
    try await makeChat(
      description: export.chat?.description ?? "", members: export.profiles.map(\.user))
  }

  private func isKnown(_ user: UUID) async throws -> Bool {
    do {
      _ = try await store.read { try $0.account(id: user) }
      return true
    } catch { return false }
  }

  private mutating func makeChat(description: String, members: [String]) async throws {
    if let target {
      chat = target
      return
    }
    var new = ImportedChat(
      title: !header.title.isEmpty ? header.title : title.isEmpty ? "Imported" : title,
      owner: caller.userID, members: members.compactMap { senders[$0] }, source: source)
    new.description = description
    chat = try await store.write { [new] in try $0.chat(of: new) }
  }

  private mutating func add(_ message: Chat.Message) async throws {
    guard chat != nil else { throw Self.bad("the header is missing in line 1") }
    guard let id = message.name.split(separator: "/").last else {
      throw Self.bad("line \(lineNumber): a message without a name")
    }
    guard let body = try body(of: message) else { return }
    var sender: UUID?
    if !message.sender.isEmpty {
      guard let user = senders[message.sender] else { throw Self.unknown([message.sender]) }
      sender = user
    }
    var new = ImportedMessage(
      key: Array(id.utf8), sender: sender, body: body,
      time: message.sendTime?.microseconds ?? 0)
    if !message.replyTo.isEmpty {
      new.replyTo = message.replyTo.split(separator: "/").last.map { Array($0.utf8) }
    }
    new.editCount = Int64(message.editCount)
    new.editTime = message.editTime?.microseconds
    new.deleteTime = message.deleteTime?.microseconds
    new.expireTime = message.expireTime?.microseconds
    new.forwardHops = Int64(message.forward?.hopCount ?? 0)
    new.reactions = reactions(to: message)
    if let end = new.expireTime, end <= store.now {
      skipped += 1
      return
    }
    waiting.append(new)
    if waiting.count >= Self.batch { try await flush() }
  }

  /// What the line before the message says of it, by those who are known here.
  private mutating func reactions(to message: Chat.Message) -> [Reaction] {
    let told = pending.message == message.name ? pending.reactions : []
    pending = Chat.ExportedReactions()
    let known = told.compactMap { reaction in
      senders[reaction.user].map {
        Reaction(
          user: $0, emoji: reaction.emoji, time: reaction.reactTime?.microseconds ?? 0)
      }
    }
    if known.count < message.reactions.reduce(0, { $0 + Int($1.count) }) {
      warn("reactions of people who are not known here are not kept")
    }
    return known
  }

  /// What a message says, with the names it has here; nil for what cannot be kept.
  private mutating func body(of message: Chat.Message) throws -> MessageBody? {
    guard message.deleteTime == nil else { return .deleted }
    if case .system(let system)? = message.content?.kind {
      guard let action = SystemAction(rawValue: Int64(system.action.rawValue)),
        let actor = senders[system.actor]
      else { return .text(system.text) }
      return .system(
        SystemNote(
          action, actor: actor, subjects: system.subjects.compactMap { senders[$0] },
          text: system.text))
    }
    var content = message.content ?? Chat.MessageContent()
    switch content.kind {
    case .text(var text)?:
      text.mentions = mapped(text.mentions)
      content.kind = .text(text)
    case .media(var media)?:
      media.mentions = mapped(media.mentions)
      let known = media.attachments.compactMap { attachments[$0] }
      if known.count < media.attachments.count { warn("files that the export lacks are left out") }
      guard !known.isEmpty else { return .text(media.caption) }
      media.attachments = known.map { "attachments/\($0)" }
      content.kind = .media(media)
    case .contact(var contact)?:
      contact.user = senders[contact.user].map { "users/\($0)" } ?? ""
      content.kind = .contact(contact)
    case .poll(let poll)?:
      if poll.options.contains(where: { $0.voteCount > 0 }) {
        warn("votes are not kept: an export does not say whose")
      }
    default: break
    }
    return try MessageBody(content, caller: caller)
  }

  private func mapped(_ mentions: [Chat.Mention]) -> [Chat.Mention] {
    mentions.compactMap { mention in
      guard !mention.everyone else { return mention }
      guard let user = senders[mention.user] else { return nil }
      var mention = mention
      mention.user = "users/\(user)"
      return mention
    }
  }

  // MARK: Files

  private mutating func add(_ stretch: Chat.ExportedAttachment) async throws {
    guard let attachment = stretch.attachment else { return }
    if stretch.offset == 0 {
      let new = NewUpload(
        id: WriteTransaction.uploadID(source, attachment.name), sha256: attachment.sha256,
        size: attachment.sizeBytes, fileName: attachment.fileName,
        contentType: attachment.contentType)
      let begun = try await store.write { [caller] in try $0.beginUpload(new, by: caller.user) }
      upload = (attachment.name, begun, 0)
    }
    guard let open = upload, open.name == attachment.name, open.offset == stretch.offset else {
      throw Self.bad("line \(lineNumber): a stretch of a file is missing before this one")
    }
    if let known = open.upload.attachment {
      attachments[attachment.name] = known.id
    } else {
      try await store.files.write(stretch.data, toUpload: open.upload.key, at: stretch.offset)
    }
    let end = stretch.offset + Int64(stretch.data.count)
    upload = (open.name, open.upload, end)
    guard end >= attachment.sizeBytes else { return }
    upload = nil
    if open.upload.attachment == nil {
      attachments[attachment.name] = try await store.finish(open.upload).id
    }
  }

  // MARK: Text

  private mutating func text() async throws {
    let bytes = rest
    rest = []
    if source.isEmpty { source = SHA256.digest(bytes) }
    let export = WhatsAppExport(String(decoding: bytes, as: UTF8.self))
    let missing = export.senders.filter { senders[$0] == nil && !notices.contains($0) }
    guard missing.isEmpty else { throw Self.unknown(missing) }
    if export.strayLines > 0 { warn("\(export.strayLines) lines before the first message") }
    try await makeChat(description: "", members: export.senders)
    let offset = header.utcOffset?.microseconds ?? 0
    for (index, entry) in export.entries.enumerated() {
      let (time, isBeyond) = entry.localTime.subtractingReportingOverflow(offset)
      for (part, body) in try await bodies(of: entry).enumerated() {
        let key = part == 0 ? "line \(index)" : "line \(index) part \(part)"
        var message = ImportedMessage(
          key: Array(key.utf8), sender: entry.sender.flatMap { senders[$0] }, body: body,
          time: isBeyond ? entry.localTime : time)
        if entry.isDeleted {
          message.body = .deleted
          message.deleteTime = message.time
        }
        if entry.isEdited { (message.editCount, message.editTime) = (1, message.time) }
        waiting.append(message)
      }
      if waiting.count >= Self.batch { try await flush() }
    }
  }

  /// With its file, where there is one to be had. Usually one: a text that is longer than a message
  /// may be here goes on in the next.
  private mutating func bodies(of entry: WhatsAppExport.Entry) async throws -> [MessageBody] {
    if let sender = entry.sender, notices.contains(sender) {
      return Self.pieces("\(sender): \(entry.shownText)").map { .text($0) }
    }
    guard let file = try await file(of: entry) else {
      return Self.pieces(entry.shownText).map { .text($0) }
    }
    let texts = Self.pieces(entry.text)
    return [.media(Media(attachments: [file], caption: texts.first ?? ""))]
      + texts.dropFirst().map { .text($0) }
  }

  /// WhatsApp counts 65,536 characters, we 64 KiB. Cut at the end of a line where there is one, and
  /// within no scalar.
  static func pieces(_ text: String, of limit: Int = ChatLimits.textBytes) -> [String] {
    var pieces: [String] = []
    var rest = text[...]
    while rest.utf8.count > limit {
      var end = rest.utf8.index(rest.startIndex, offsetBy: limit)
      while end > rest.startIndex, rest.utf8[end] & 0xC0 == 0x80 {
        end = rest.utf8.index(before: end)
      }
      let head = rest.unicodeScalars[..<end]
      if let line = head.lastIndex(of: "\n"), line > rest.startIndex {
        pieces.append(String(head[..<line]))
        rest = Substring(rest.unicodeScalars[rest.unicodeScalars.index(after: line)...])
      } else {
        pieces.append(String(head))
        rest = Substring(rest.unicodeScalars[end...])
      }
    }
    return pieces + [String(rest)]
  }

  private mutating func file(of entry: WhatsAppExport.Entry) async throws -> UUID? {
    guard let name = entry.attachment, let files, files.has(name) else { return nil }
    if let known = attachments[name] { return known }
    let temporary = "\(store.directory)/import.part"
    defer { unlink(temporary) }
    do {
      guard let path = try files.path(of: name, unpackedTo: temporary) else { return nil }
      let file = try ImportedFile(path: path)
      let id = try await file.upload(
        WriteTransaction.uploadID(source, name), name: name, to: store, by: caller.user)
      attachments[name] = id
      return id
    } catch let error as StoreError {
      // One file too many is not worth the chat.
      warn("\(name) is left out: \(error.message)")
      return nil
    }
  }

  private mutating func flush() async throws {
    guard let chat, !waiting.isEmpty else { return }
    let (messages, source, importer) = (waiting, source, caller.user)
    waiting = []
    let count = try await store.write {
      try $0.importMessages(messages, to: chat, source: source, by: importer)
    }
    imported += count.imported
    skipped += count.skipped
  }

  private mutating func warn(_ text: String) {
    if !warnings.contains(text), warnings.count < Self.warningLimit { warnings.append(text) }
  }

  private static func bad(_ text: String) -> StoreError { .invalid("chunk", "BAD_IMPORT", text) }

  private static func unknown(_ names: [String]) -> StoreError {
    StoreError(
      .failedPrecondition, "UNKNOWN_SENDER",
      "say who these are here: \(names.prefix(20).joined(separator: ", "))",
      metadata: ["senders": names.prefix(20).joined(separator: ",")])
  }
}

extension WhatsAppExport.Entry {
  /// With the name of a file that is not taken along.
  public var shownText: String {
    guard let attachment else { return text }
    let name = attachment.isEmpty ? "(attachment)" : "(attachment: \(attachment))"
    return text.isEmpty ? name : "\(name)\n\(text)"
  }
}
