import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoStore

extension Chat.Message {
  /// `reader` is the internal key of who looks; nil for what all readers see alike.
  init(_ message: StoredMessage, for reader: Int64?) {
    self.init()
    let chat = "chats/\(message.chat)"
    name = "\(chat)/messages/\(message.id)"
    sequence = message.sequence
    if let sender = message.sender { self.sender = "users/\(sender)" }
    sendTime = Google.Timestamp(microseconds: message.sendTime)
    if message.deleteTime == nil { content = Chat.MessageContent(message.body, for: reader) }
    if let reader {
      if message.senderKey == reader {
        mine = true
        deliveryState = Chat.DeliveryState(rawValue: Int32(clamping: message.delivery.rawValue))
      }
      starred = message.isStarred
    }
    if let quote = message.quote {
      replyTo = "\(chat)/messages/\(quote.id)"
      var quoted = Chat.QuotedMessage()
      quoted.message = replyTo
      if let sender = quote.sender { quoted.sender = "users/\(sender)" }
      quoted.excerpt = quote.excerpt
      quoted.deleted = quote.isDeleted
      self.quoted = quoted
    }
    if message.forwardHops > 0 {
      forward = Chat.ForwardInfo(hopCount: Int32(clamping: message.forwardHops))
    }
    reactions = message.reactions.map { Chat.ReactionSummary($0, for: reader) }
    editCount = Int32(clamping: message.editCount)
    editTime = message.editTime.map { Google.Timestamp(microseconds: $0) }
    deleteTime = message.deleteTime.map { Google.Timestamp(microseconds: $0) }
    expireTime = message.expireTime.map { Google.Timestamp(microseconds: $0) }
    pinned = message.isPinned
    imported = message.isImported
    etag = String(message.version)
  }
}

extension Chat.ReactionSummary {
  init(_ summary: VencejoStore.ReactionSummary, for reader: Int64?) {
    self.init(
      emoji: summary.emoji, count: Int32(clamping: summary.count),
      mine: reader != nil && summary.isMine)
  }
}

extension Chat.MessageContent {
  /// `reader` as for a message: who voted for what is theirs to see alone.
  init?(_ body: MessageBody, for reader: Int64?) {
    self.init()
    switch body {
    case .text(let string, let mentions):
      var text = Chat.TextContent()
      text.text = string
      text.mentions = mentions.map { Chat.Mention($0) }
      kind = .text(text)
    case .media(let media):
      var content = Chat.MediaContent()
      content.attachments = media.attachments.map { "attachments/\($0)" }
      content.caption = media.caption
      content.mentions = media.mentions.map { Chat.Mention($0) }
      content.voiceNote = media.isVoiceNote
      kind = .media(content)
    case .location(let location):
      kind = .location(
        Chat.LocationContent(
          latitudeDegrees: location.latitude, longitudeDegrees: location.longitude,
          label: location.label))
    case .contact(let contact):
      kind = .contact(
        Chat.ContactContent(
          displayName: contact.displayName, user: contact.user.map { "users/\($0)" } ?? "",
          vcard: contact.vcard))
    case .poll(let poll):
      var content = Chat.PollContent()
      content.question = poll.question
      content.multipleChoice = poll.allowsSeveral
      content.options = poll.options.map {
        Chat.PollOption(
          optionId: Int32(clamping: $0.id), text: $0.text,
          voteCount: Int32(clamping: $0.votes), voted: reader != nil && $0.isVoted)
      }
      kind = .poll(content)
    case .custom(let custom):
      kind = .custom(
        Chat.CustomContent(
          typeUrl: custom.typeURL, data: custom.data, fallbackText: custom.fallback))
    case .system(let note):
      var system = Chat.SystemContent()
      system.action = Chat.SystemAction(rawValue: Int32(clamping: note.action.rawValue))
      system.actor = "users/\(note.actor)"
      system.subjects = note.subjects.map { "users/\($0)" }
      system.text = note.text
      kind = .system(system)
    case .deleted: return nil
    }
  }
}

extension MessageBody {
  /// - Throws: `BAD_CONTENT` for system messages, `BAD_NAME`.
  init(_ content: Chat.MessageContent?, caller: Principal) throws(StoreError) {
    switch content?.kind {
    case .text(let text)?:
      self = .text(text.text, mentions: try Self.mentions(text.mentions, caller))
    case .media(let media)?:
      var attachments: [UUID] = []
      for name in media.attachments {
        attachments.append(
          try ResourceName.single(name, "attachments", field: "content.media.attachments"))
      }
      self = .media(
        Media(
          attachments: attachments, caption: media.caption,
          mentions: try Self.mentions(media.mentions, caller), isVoiceNote: media.voiceNote))
    case .location(let location)?:
      self = .location(
        SharedLocation(
          latitude: location.latitudeDegrees, longitude: location.longitudeDegrees,
          label: location.label))
    case .contact(let contact)?:
      self = .contact(
        SharedContact(
          displayName: contact.displayName,
          user: contact.user.isEmpty
            ? nil
            : try ResourceName.user(contact.user, field: "content.contact.user", caller: caller),
          vcard: contact.vcard))
    case .poll(let poll)?:
      self = .poll(
        Poll(
          question: poll.question,
          options: poll.options.map { Poll.Option(id: Int64($0.optionId), text: $0.text) },
          allowsSeveral: poll.multipleChoice))
    case .custom(let custom)?:
      self = .custom(
        CustomBody(
          typeURL: custom.typeUrl, data: custom.data, fallback: custom.fallbackText))
    case .system?:
      throw .invalid("content", "BAD_CONTENT", "only the server writes system messages")
    case nil: self = .text("")
    }
  }

  private static func mentions(_ mentions: [Chat.Mention], _ caller: Principal)
    throws(StoreError) -> [Mention]
  {
    var result: [Mention] = []
    for mention in mentions {
      result.append(
        Mention(
          user: mention.everyone
            ? nil
            : try ResourceName.user(mention.user, field: "mentions.user", caller: caller),
          start: Int64(mention.start), length: Int64(mention.length)))
    }
    return result
  }
}

extension Chat.Mention {
  init(_ mention: VencejoStore.Mention) {
    self.init(
      user: mention.user.map { "users/\($0)" } ?? "", everyone: mention.user == nil,
      start: Int32(clamping: mention.start), length: Int32(clamping: mention.length))
  }
}
