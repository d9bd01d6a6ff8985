import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoStore

/// What the messenger posts.
struct PushRenderer: HookRenderer {
  let store: Store

  func payload(of delivery: HookDelivery) async throws -> HookPayload? {
    var payload = Chat.PushPayload()
    payload.eventId = delivery.id.description
    payload.eventTime = Google.Timestamp(microseconds: delivery.eventTime)
    payload.user = "users/\(delivery.hook.userID)"
    switch delivery.kind {
    case .notification:
      guard try await show(delivery, in: &payload) else { return nil }
    case .passwordReset:
      guard let request = try await store.read({ try $0.passwordReset(of: delivery) }) else {
        return nil
      }
      var event = Chat.PasswordResetRequested()
      event.user = "users/\(request.account.id)"
      event.handle = request.account.handle
      event.email = request.account.email
      event.resetCode = request.code
      event.expireTime = Google.Timestamp(microseconds: request.expireTime)
      payload.event = .passwordResetRequested(event)
    case .report:
      guard let report = try await store.read({ try $0.report(of: delivery) }) else { return nil }
      payload.event = .reportCreated(.init(report: Chat.Report(report)))
    default: return nil
    }
    return try HookPayload(payload, delivery.hook.format)
  }

  private func show(_ delivery: HookDelivery, in payload: inout Chat.PushPayload) async throws
    -> Bool
  {
    let user = delivery.hook.user
    let found = try await store.read { transaction -> (UserNotification, Int, String, String)? in
      guard let notification = try transaction.notification(of: delivery) else { return nil }
      let names = try transaction.names(of: notification)
      return (
        notification, try transaction.totalUnread(of: user), names.chatTitle, names.actorName
      )
    }
    guard let (notification, unread, title, actor) = found else { return false }
    var shown = Chat.Notification(notification)
    if delivery.hook.flags.contains(.redacted) {
      shown.excerpt = ""
    } else {
      payload.message = notification.message.map { Chat.Message($0, for: user) }
    }
    payload.event = .notification(shown)
    payload.totalUnreadCount = Int32(clamping: unread)
    payload.chatTitle = title
    payload.actorDisplayName = actor
    return true
  }
}

extension Chat.Notification {
  init(_ notification: UserNotification) {
    self.init()
    if notification.key > 0 { name = "users/\(notification.user)/notifications/\(notification.id)" }
    kind = Chat.NotificationKind(rawValue: Int32(clamping: notification.kind.rawValue))
    chat = "chats/\(notification.chat)"
    if let message = notification.message { self.message = "\(chat)/messages/\(message.id)" }
    if let actor = notification.actor { self.actor = "users/\(actor)" }
    excerpt = notification.excerpt
    createTime = Google.Timestamp(microseconds: notification.createTime)
    readTime = notification.readTime.map { Google.Timestamp(microseconds: $0) }
  }
}
