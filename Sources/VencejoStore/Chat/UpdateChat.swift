public import VencejoCrypto
import VencejoSQLite

/// What is to change in a chat; nil leaves it.
public struct ChatChanges: Sendable {
  public var title: String?
  public var description: String?
  /// Microseconds; 0 for messages that stay.
  public var messageTTL: Int64?
  public var policy: ChatPolicy?

  public init() {}
}

extension WriteTransaction {
  /// Changes a chat for all its members.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `NOT_A_MEMBER`, `ROLE_TOO_LOW`, `WRONG_CHAT_KIND`, `BAD_TITLE`,
  ///   `BAD_DESCRIPTION`, `BAD_TTL`, `BAD_POLICY`, `ETAG_MISMATCH`, `REQUEST_ID_REUSED`.
  public func updateChat(
    _ chat: UUID, _ changes: ChatChanges, etag: String = "", requestID: String = "",
    by user: Int64
  ) throws(StoreError) -> ChatView {
    let place = try place(chat, of: user)
    guard try isNew("UpdateChat", requestID, Self.request(chat, changes), by: user) else {
      return try self.chat(key: place.chat, chat, for: user, asOf: nil)
    }
    try place.requireMember()
    let old = try self.chat(key: place.chat, chat, for: user, asOf: nil)
    try check(etag, old.version)
    var notes: [SystemNote] = []
    let actor = try userID(user) ?? chat
    if changes.title != nil || changes.description != nil {
      try place.requireShared()
      try place.require(place.policy.editInfo)
    }
    var isChanged = false
    if let title = changes.title.map(AccountRules.trimmed), title != old.title {
      try Self.checkTitle(title)
      try run("UPDATE chat SET title = ? WHERE chat_id = ?", title, place.chat)
      notes.append(SystemNote(.titleChanged, actor: actor, text: title))
      isChanged = true
    }
    if let description = changes.description, description != old.description {
      guard description.utf8.count <= ChatLimits.descriptionBytes else {
        throw .invalid(
          "chat.description", "BAD_DESCRIPTION",
          "a description has at most \(ChatLimits.descriptionBytes) bytes")
      }
      try run("UPDATE chat SET description = ? WHERE chat_id = ?", description, place.chat)
      isChanged = true
    }
    if let ttl = changes.messageTTL, ttl != old.messageTTL ?? 0 {
      if place.kind.isShared { try place.require(.admin) }
      guard ttl == 0 || ChatLimits.ttl.contains(ttl) else {
        throw .invalid(
          "chat.message_ttl", "BAD_TTL", "messages disappear after a second to a year, or never")
      }
      try run(
        "UPDATE chat SET ttl_us = ? WHERE chat_id = ?", ttl == 0 ? nil : ttl, place.chat)
      notes.append(
        SystemNote(.ttlChanged, actor: actor, text: ttl == 0 ? "" : "\(ttl / 1_000_000)s"))
      isChanged = true
    }
    if let policy = changes.policy, policy != old.policy {
      try place.requireShared()
      try place.require(.admin)
      try setPolicy(policy, place.chat)
      isChanged = true
    }
    guard isChanged else { return old }
    try run(
      "UPDATE chat SET version = version + 1, update_us = ? WHERE chat_id = ?", now, place.chat)
    var keys = KeysetWriter()
    keys.int(place.lastSequence)
    try appendShared(.chatUpserted, chat: place.chat, keys, nil)
    if place.kind != .own, place.kind != .channel {
      for note in notes { try self.note(note, chat: place.chat, chatID: chat) }
    }
    return try self.chat(key: place.chat, chat, for: user, asOf: nil)
  }

  private static func request(_ chat: UUID, _ changes: ChatChanges) -> KeysetWriter {
    var request = KeysetWriter()
    request.raw(chat.bytes)
    request.text(changes.title ?? "\u{0}")
    request.text(changes.description ?? "\u{0}")
    request.int(changes.messageTTL ?? -1)
    if let policy = changes.policy {
      for role in [policy.sendMessages, policy.addMembers, policy.editInfo, policy.pinMessages] {
        request.int(role.rawValue)
      }
      request.int(policy.showsHistory ? 1 : 0)
      request.int(policy.editWindow ?? -1)
      request.int(policy.deleteWindow ?? -1)
      request.int(policy.slowMode)
    }
    return request
  }

  static func checkTitle(_ title: String) throws(StoreError) {
    guard !AccountRules.isBlank(title), title.count <= ChatLimits.titleCharacters,
      title.utf8.count <= 1024, AccountRules.isOneLine(title)
    else {
      throw .invalid(
        "chat.title", "BAD_TITLE",
        "a group needs a title of at most \(ChatLimits.titleCharacters) characters, on one line, without control characters"
      )
    }
  }

  /// - Throws: `BAD_POLICY`.
  func setPolicy(_ policy: ChatPolicy, _ chat: Int64) throws(StoreError) {
    let windows = [policy.editWindow ?? 0, policy.deleteWindow ?? 0]
    guard windows.allSatisfy({ (0...ChatLimits.ttl.upperBound).contains($0) }),
      (0...ChatLimits.slowModeMaximum).contains(policy.slowMode)
    else {
      throw .invalid(
        "chat.policy", "BAD_POLICY", "windows last up to a year, slow mode up to a day")
    }
    try run(
      """
      UPDATE chat SET send_role = ?, add_role = ?, edit_role = ?, pin_role = ?,
        shows_history = ?, edit_window_us = ?, delete_window_us = ?, slow_us = ?
      WHERE chat_id = ?
      """, policy.sendMessages.rawValue, policy.addMembers.rawValue, policy.editInfo.rawValue,
      policy.pinMessages.rawValue, policy.showsHistory, policy.editWindow, policy.deleteWindow,
      policy.slowMode, chat)
  }

  /// Deletes a chat for everybody.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `NOT_A_MEMBER`, `ROLE_TOO_LOW`, `WRONG_CHAT_KIND`,
  ///   `ETAG_MISMATCH`, `REQUEST_ID_REUSED`.
  public func deleteChat(
    _ chat: UUID, etag: String = "", requestID: String = "", by user: Int64
  ) throws(StoreError) {
    var request = KeysetWriter()
    request.raw(chat.bytes)
    guard try isNew("DeleteChat", requestID, request, by: user) else { return }
    let place = try place(chat, of: user)
    try place.requireShared()
    try place.require(.owner)
    try check(etag, place.version)
    try deleteChat(key: place.chat)
  }

  func deleteChat(key: Int64) throws(StoreError) {
    try run(
      "UPDATE chat SET delete_us = ?, title = '', description = '' WHERE chat_id = ?", now, key)
    try run("UPDATE invite SET revoke_us = ? WHERE chat_id = ? AND revoke_us IS NULL", now, key)
    try run("DELETE FROM join_request WHERE chat_id = ?", key)
    var keys = KeysetWriter()
    keys.int(RemovalReason.deleted.rawValue)
    try appendShared(.chatRemoved, chat: key, keys, nil)
  }
}
