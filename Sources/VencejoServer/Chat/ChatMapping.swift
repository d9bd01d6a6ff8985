import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoStore

extension Chat.Profile {
  init(_ profile: VencejoStore.Profile) {
    self.init()
    name = "users/\(profile.user)/profile"
    user = "users/\(profile.user)"
    handle = profile.handle
    displayName = profile.displayName
    updateTime = Google.Timestamp(microseconds: profile.updateTime)
    etag = String(profile.version)
  }
}

extension Chat.UnreadState {
  init(_ state: VencejoStore.UnreadState) {
    self.init()
    unreadCount = Int32(clamping: state.count)
    capped = state.isCapped
    firstUnreadSequence = state.firstSequence
  }
}

extension Chat.Chat {
  init(_ chat: ChatView, for reader: Principal) {
    self.init()
    name = "chats/\(chat.id)"
    kind = Chat.ChatKind(rawValue: Int32(clamping: chat.kind.rawValue))
    title = chat.title
    if let peer = chat.peer { self.peer = "users/\(peer)" }
    memberCount = Int32(clamping: chat.memberCount)
    createTime = Google.Timestamp(microseconds: chat.createTime)
    updateTime = Google.Timestamp(microseconds: chat.updateTime)
    activityTime = Google.Timestamp(microseconds: chat.activityTime)
    lastSequence = chat.lastSequence
    lastMessage = chat.lastMessage.map { Chat.Message($0, for: reader.user) }
    selfField = Chat.Member(chat.membership, of: reader, in: name)
    unread = Chat.UnreadState(chat.unread)
    etag = String(chat.version)
  }
}

extension Chat.Member {
  init(_ membership: Membership, of user: Principal, in chat: String) {
    self.init()
    name = "\(chat)/members/\(user.userID)"
    self.user = "users/\(user.userID)"
    role = membership.role == .owner ? .owner : .member
    state = membership.visibleTo == nil ? .joined : .unspecified
    joinTime = Google.Timestamp(microseconds: membership.joinTime)
    visibleFromSequence = membership.visibleFrom
    visibleToSequence = membership.visibleTo
    readSequence = membership.readSequence
    etag = String(membership.version)
  }
}

extension Chat.Message {
  /// `reader` is the internal key of who looks; nil for what all readers see alike.
  init(_ message: StoredMessage, for reader: Int64?) {
    self.init()
    let chat = "chats/\(message.chat)"
    name = "\(chat)/messages/\(message.id)"
    sequence = message.sequence
    if let sender = message.sender { self.sender = "users/\(sender)" }
    sendTime = Google.Timestamp(microseconds: message.sendTime)
    content = Chat.MessageContent(message.body)
    if let reader, message.senderKey == reader {
      mine = true
      deliveryState = message.isReadByAll ? .read : .sent
    }
    if let quote = message.quote {
      replyTo = "\(chat)/messages/\(quote.id)"
      var quoted = Chat.QuotedMessage()
      quoted.message = replyTo
      if let sender = quote.sender { quoted.sender = "users/\(sender)" }
      quoted.excerpt = quote.excerpt
      self.quoted = quoted
    }
    etag = String(message.version)
  }
}

extension Chat.MessageContent {
  init(_ body: MessageBody) {
    self.init()
    switch body {
    case .text(let string):
      var text = Chat.TextContent()
      text.text = string
      kind = .text(text)
    case .chatCreated(let actor, let subjects):
      var system = Chat.SystemContent()
      system.action = .chatCreated
      system.actor = "users/\(actor)"
      system.subjects = subjects.map { "users/\($0)" }
      kind = .system(system)
    }
  }
}

extension Chat.SubscribeResponse {
  /// A frame; all but the last of a transaction go without a token.
  init(
    _ event: ChatEvent, commitTime: Int64, token: String, historical: Bool, for reader: Principal
  ) {
    self.init()
    resumeToken = token
    self.commitTime = Google.Timestamp(microseconds: commitTime)
    self.historical = historical
    switch event {
    case .messageCreated(let message):
      self.event = .messageCreated(.init(message: Chat.Message(message, for: reader.user)))
    case .chatUpserted(let chat):
      self.event = .chatUpserted(.init(chat: Chat.Chat(chat, for: reader)))
    case .receiptMoved(let marker):
      self.event = .receiptMoved(Chat.ReceiptMovedEvent(marker))
    case .unreadChanged(let chat, let unread, let total):
      self.event = .unreadChanged(
        .init(
          chat: "chats/\(chat)", unread: Chat.UnreadState(unread),
          totalUnreadCount: Int32(clamping: total)))
    }
  }
}

extension Chat.ReceiptMovedEvent {
  init(_ marker: ReadMarker) {
    self.init(
      chat: "chats/\(marker.chat)", user: "users/\(marker.user)", readSequence: marker.sequence)
  }
}
