import VencejoAPI
import VencejoProtobuf
import VencejoRPC
import VencejoStore

extension Chat.SubscribeResponse {
  /// A frame; all but the last of a transaction go without a token. `reader` is nil for what all
  /// readers see alike.
  init(_ event: ChatEvent, commitTime: Int64, token: String, historical: Bool, for reader: Int64?) {
    self.init()
    resumeToken = token
    self.commitTime = Google.Timestamp(microseconds: commitTime)
    self.historical = historical
    self.event = Self.event(event, for: reader)
  }

  private static func event(_ event: ChatEvent, for reader: Int64?) -> Event {
    switch event {
    case .messageCreated(let message):
      .messageCreated(.init(message: Chat.Message(message, for: reader)))
    case .messageUpdated(let message, let fields):
      .messageUpdated(
        .init(
          message: Chat.Message(message, for: reader),
          changedFields: Google.FieldMask(paths: fields.paths)))
    case .messagesDeleted(let deletion): .messagesDeleted(Chat.MessagesDeletedEvent(deletion))
    case .reactionChanged(let change):
      .reactionChanged(
        .init(
          message: "chats/\(change.chat)/messages/\(change.message)", sequence: change.sequence,
          user: "users/\(change.user)", emoji: change.emoji,
          reactions: change.reactions.map { Chat.ReactionSummary($0, for: reader) }))
    case .chatUpserted(let chat): .chatUpserted(.init(chat: Chat.Chat(chat, for: reader ?? 0)))
    case .chatRemoved(let chat, let reason):
      .chatRemoved(
        .init(
          chat: "chats/\(chat)",
          reason: Chat.ChatRemovalReason(rawValue: Int32(clamping: reason.rawValue))))
    case .memberChanged(let chat, let member, let count):
      .memberChanged(
        .init(
          chat: "chats/\(chat)", member: Chat.Member(member, in: "chats/\(chat)"),
          memberCount: Int32(clamping: count)))
    case .settingsChanged(let chat, let settings):
      .settingsChanged(.init(settings: Chat.ChatSettings(settings, in: "chats/\(chat)")))
    case .receiptMoved(let marker):
      .receiptMoved(
        .init(
          chat: "chats/\(marker.chat)", user: "users/\(marker.user)",
          readSequence: marker.read, deliveredSequence: marker.delivered))
    case .unreadChanged(let chat, let unread, let total, let read):
      .unreadChanged(
        .init(
          chat: "chats/\(chat)", unread: Chat.UnreadState(unread),
          totalUnreadCount: Int32(clamping: total), readSequence: read))
    case .profileChanged(let profile):
      .profileChanged(.init(profile: Chat.Profile(profile)))
    case .notificationCreated(let notification):
      .notificationCreated(.init(notification: Chat.Notification(notification)))
    case .notificationsRead(let user, let read, let unread):
      .notificationsRead(
        .init(
          names: read.map { "users/\(user)/notifications/\($0)" },
          unreadCount: Int32(clamping: unread)))
    }
  }

  /// The frames of one transaction; only the last has the token.
  static func frames(
    of entry: LogEntry, token: String, historical: Bool, for reader: Int64
  ) -> [Chat.SubscribeResponse] {
    entry.events.enumerated().map { index, event in
      Chat.SubscribeResponse(
        event, commitTime: entry.commitTime,
        token: index == entry.events.count - 1 ? token : "", historical: historical, for: reader)
    }
  }

  /// The same, encoded; what others are told alike once for all of them.
  static func encoded(
    of entry: LogEntry, historical: Bool, for reader: Int64, token: () -> String
  ) -> [EncodedMessage] {
    guard let shared = entry.shared, let event = entry.events.first else {
      return frames(of: entry, token: token(), historical: historical, for: reader).map {
        EncodedMessage($0)
      }
    }
    let frame = shared.made(historical) {
      EncodedMessage(
        Chat.SubscribeResponse(
          event, commitTime: entry.commitTime, token: token(), historical: historical, for: nil))
    }
    return [frame]
  }
}

extension Chat.MessagesDeletedEvent {
  init(_ deletion: Deletion) {
    self.init(
      chat: "chats/\(deletion.chat)", ranges: deletion.ranges.map { Chat.SequenceRange($0) },
      scope: Chat.DeleteScope(rawValue: Int32(clamping: deletion.scope.rawValue)),
      actor: deletion.actor.map { "users/\($0)" } ?? "")
  }
}

extension Chat.SequenceRange {
  init(_ range: VencejoStore.SequenceRange) {
    self.init(firstSequence: range.first, lastSequence: range.last)
  }
}
