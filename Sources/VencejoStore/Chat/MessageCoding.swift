import VencejoCrypto
import VencejoSQLite

/// How a message's body lies in its row: a kind, the words to be found by a search, and what
/// else there is in a form of the kind.
struct BodyColumns {
  var kind: Int64
  var words: String
  var content: [UInt8]?

  static let text: Int64 = 1
  static let media: Int64 = 2
  static let location: Int64 = 3
  static let contact: Int64 = 4
  static let poll: Int64 = 5
  /// Of the first schema: a chat was made. Raw users only.
  static let chatCreated: Int64 = 6
  static let custom: Int64 = 7
  static let system: Int64 = 106

  init(kind: Int64, words: String, content: [UInt8]?) {
    self.kind = kind
    self.words = words
    self.content = content
  }

  init(_ body: MessageBody) {
    var writer = KeysetWriter()
    switch body {
    case .text(let text, let mentions):
      kind = Self.text
      words = text
      for mention in mentions {
        writer.raw(mention.user?.bytes ?? [])
        writer.int(mention.start)
        writer.int(mention.length)
      }
    case .media(let media):
      kind = Self.media
      words = media.caption
      writer.int(media.isVoiceNote ? 1 : 0)
      writer.int(Int64(media.attachments.count))
      for attachment in media.attachments { writer.raw(attachment.bytes) }
      for mention in media.mentions {
        writer.raw(mention.user?.bytes ?? [])
        writer.int(mention.start)
        writer.int(mention.length)
      }
    case .location(let location):
      kind = Self.location
      words = location.label
      writer.int(Int64(bitPattern: location.latitude.bitPattern))
      writer.int(Int64(bitPattern: location.longitude.bitPattern))
    case .contact(let contact):
      kind = Self.contact
      words = contact.displayName
      writer.raw(contact.user?.bytes ?? [])
      writer.raw(contact.vcard)
    case .poll(let poll):
      kind = Self.poll
      words = ([poll.question] + poll.options.map(\.text)).joined(separator: "\n")
      writer.int(poll.allowsSeveral ? 1 : 0)
      writer.text(poll.question)
      for option in poll.options {
        writer.int(option.id)
        writer.text(option.text)
      }
    case .custom(let custom):
      kind = Self.custom
      // Not searchable: whoever seals their content would not want parts of it in an index.
      words = ""
      writer.text(custom.typeURL)
      writer.raw(custom.data)
      writer.text(custom.fallback)
    case .system(let note):
      kind = Self.system
      words = ""
      writer.int(note.action.rawValue)
      writer.raw(note.actor.bytes)
      writer.text(note.text)
      for subject in note.subjects { writer.raw(subject.bytes) }
    case .deleted:
      kind = Self.text
      words = ""
    }
    content = writer.bytes.isEmpty ? nil : writer.bytes
  }

  /// Nil where the row does not hold what it says.
  var body: MessageBody? {
    var reader = KeysetReader(content ?? [])
    switch kind {
    case Self.text:
      return Self.mentions(&reader).map { .text(words, mentions: $0) }
    case Self.media:
      guard let voice = reader.int(), let count = reader.int(), count >= 0, count <= 64 else {
        return nil
      }
      var attachments: [UUID] = []
      for _ in 0..<count {
        guard let id = reader.raw().flatMap(UUID.init(bytes:)) else { return nil }
        attachments.append(id)
      }
      return Self.mentions(&reader).map {
        .media(
          Media(
            attachments: attachments, caption: words, mentions: $0, isVoiceNote: voice == 1))
      }
    case Self.location:
      guard let latitude = reader.int(), let longitude = reader.int() else { return nil }
      return .location(
        SharedLocation(
          latitude: Double(bitPattern: UInt64(bitPattern: latitude)),
          longitude: Double(bitPattern: UInt64(bitPattern: longitude)), label: words))
    case Self.contact:
      guard let user = reader.raw(), let vcard = reader.raw() else { return nil }
      return .contact(
        SharedContact(displayName: words, user: UUID(bytes: user), vcard: vcard))
    case Self.poll:
      guard let several = reader.int(), let question = reader.text() else { return nil }
      var options: [Poll.Option] = []
      while !reader.isAtEnd {
        guard let id = reader.int(), let text = reader.text() else { return nil }
        options.append(Poll.Option(id: id, text: text))
      }
      return .poll(Poll(question: question, options: options, allowsSeveral: several == 1))
    case Self.custom:
      guard let type = reader.text(), let data = reader.raw(), let fallback = reader.text() else {
        return nil
      }
      return .custom(CustomBody(typeURL: type, data: data, fallback: fallback))
    case Self.chatCreated:
      guard let actor = reader.raw().flatMap(UUID.init(bytes:)) else { return nil }
      return .system(SystemNote(.chatCreated, actor: actor, subjects: Self.users(&reader)))
    case Self.system:
      guard let action = reader.int().flatMap(SystemAction.init(rawValue:)),
        let actor = reader.raw().flatMap(UUID.init(bytes:)), let text = reader.text()
      else { return nil }
      return .system(
        SystemNote(action, actor: actor, subjects: Self.users(&reader), text: text))
    default: return nil
    }
  }

  private static func mentions(_ reader: inout KeysetReader) -> [Mention]? {
    var mentions: [Mention] = []
    while !reader.isAtEnd {
      guard let user = reader.raw(), let start = reader.int(), let length = reader.int() else {
        return nil
      }
      mentions.append(Mention(user: UUID(bytes: user), start: start, length: length))
    }
    return mentions
  }

  private static func users(_ reader: inout KeysetReader) -> [UUID] {
    var users: [UUID] = []
    while let bytes = reader.raw() {
      if let user = UUID(bytes: bytes) { users.append(user) }
    }
    return users
  }
}

extension MessageBody {
  /// What people read of it in a quote or a list.
  var excerpt: String {
    switch self {
    case .text(let text, _): String(text.unicodeScalars.prefix(100))
    case .media(let media): String(media.caption.unicodeScalars.prefix(100))
    case .location(let location): String(location.label.unicodeScalars.prefix(100))
    case .contact(let contact): String(contact.displayName.unicodeScalars.prefix(100))
    case .poll(let poll): String(poll.question.unicodeScalars.prefix(100))
    case .custom(let custom): String(custom.fallback.unicodeScalars.prefix(100))
    case .system, .deleted: ""
    }
  }

  var mentions: [Mention] {
    switch self {
    case .text(_, let mentions): mentions
    case .media(let media): media.mentions
    default: []
    }
  }

  /// Refuses what no message may say.
  ///
  /// - Throws: `EMPTY_MESSAGE`, `MESSAGE_TOO_LONG`, `BAD_MENTION`, `BAD_LOCATION`, `BAD_CONTACT`,
  ///   `BAD_POLL`, `BAD_CONTENT`.
  func validate() throws(StoreError) {
    switch self {
    case .text(let text, let mentions):
      try Self.check(text, "content.text.text")
      guard !AccountRules.isBlank(text) else {
        throw .invalid("content.text.text", "EMPTY_MESSAGE", "a message needs some text")
      }
      try Self.check(mentions, in: text, "content.text.mentions")
    case .media(let media):
      try Self.check(media.caption, "content.media.caption")
      try Self.check(media.mentions, in: media.caption, "content.media.mentions")
      guard (1...AttachmentLimits.perMessage).contains(media.attachments.count),
        Set(media.attachments).count == media.attachments.count
      else {
        throw .invalid(
          "content.media.attachments", "BAD_ATTACHMENTS",
          "1 to \(AttachmentLimits.perMessage) attachments, all different")
      }
    case .location(let location):
      try Self.check(location.label, "content.location.label")
      guard (-90...90).contains(location.latitude), (-180...180).contains(location.longitude)
      else {
        throw .invalid(
          "content.location", "BAD_LOCATION",
          "latitude is from -90 to 90 degrees, longitude from -180 to 180")
      }
    case .contact(let contact):
      guard !AccountRules.isBlank(contact.displayName), contact.displayName.utf8.count <= 1024,
        contact.vcard.count <= ChatLimits.textBytes
      else {
        throw .invalid(
          "content.contact", "BAD_CONTACT",
          "a contact needs a name of at most 1024 bytes; its card has at most 64 KiB")
      }
    case .poll(let poll):
      let texts = [poll.question] + poll.options.map(\.text)
      guard ChatLimits.pollOptions.contains(poll.options.count),
        texts.allSatisfy({ !AccountRules.isBlank($0) && $0.utf8.count <= 1024 }),
        Set(poll.options.map(\.id)).count == poll.options.count,
        poll.options.allSatisfy({ (0...1_000_000).contains($0.id) })
      else {
        throw .invalid(
          "content.poll", "BAD_POLL",
          "a poll has 2 to 20 options with different ids from 0 to 1000000; its texts have 1 to 1024 bytes"
        )
      }
    case .custom(let custom):
      guard !custom.typeURL.isEmpty, custom.typeURL.utf8.count <= 1024,
        custom.data.count <= ChatLimits.textBytes, custom.fallback.utf8.count <= 4096
      else {
        throw .invalid(
          "content.custom", "BAD_CONTENT",
          "custom content needs a type_url of at most 1024 bytes, data of at most 64 KiB and a fallback of at most 4 KiB"
        )
      }
    case .system, .deleted:
      throw .invalid("content", "BAD_CONTENT", "only the server writes system messages")
    }
  }

  private static func check(_ mentions: [Mention], in text: String, _ field: String)
    throws(StoreError)
  {
    let length = Int64(text.unicodeScalars.count)
    guard mentions.count <= ChatLimits.mentions,
      mentions.allSatisfy({
        $0.start >= 0 && $0.length > 0 && $0.start < length && $0.length <= length - $0.start
      })
    else {
      throw .invalid(
        field, "BAD_MENTION", "at most \(ChatLimits.mentions) mentions, each inside the text")
    }
  }

  private static func check(_ text: String, _ field: String) throws(StoreError) {
    guard text.utf8.count <= ChatLimits.textBytes else {
      throw StoreError(
        .invalidArgument, "MESSAGE_TOO_LONG",
        "a message has at most \(ChatLimits.textBytes) bytes",
        metadata: ["limit_bytes": String(ChatLimits.textBytes)],
        details: [.field(field, description: "too long")])
    }
  }
}
