import VencejoAPI
import VencejoProtobuf

/// How changes of what is held already are merged into it.
extension ChatContents {
  mutating func merge(_ updated: Chat.MessageUpdatedEvent, _ changes: inout [ChatChange]) {
    guard let new = updated.message else { return }
    change(new.sequence, Self.chatName(of: new.name), &changes) { message in
      for path in updated.changedFields?.paths ?? [] {
        switch path {
        case "content": message.content = Self.voted(new.content, as: message.content, new.mine)
        case "edit_count": message.editCount = new.editCount
        case "edit_time": message.editTime = new.editTime
        case "pinned": message.pinned = new.pinned
        case "starred": message.starred = new.starred
        case "etag": message.etag = new.etag
        default: break
        }
      }
    }
    guard updated.changedFields?.paths.contains("pinned") == true else { return }
    let chat = Self.chatName(of: new.name)
    var pinned = chats[chat]?.chat.pinnedSequences ?? []
    pinned.removeAll { $0 == new.sequence }
    if new.pinned { pinned.insert(new.sequence, at: 0) }
    chats[chat]?.chat.pinnedSequences = pinned
  }

  /// Shared events do not tell what the reader voted for: that stays as it was, unless the event
  /// tells some vote.
  private static func voted(
    _ new: Chat.MessageContent?, as old: Chat.MessageContent?, _ isOwn: Bool
  ) -> Chat.MessageContent? {
    guard case .poll(var poll)? = new?.kind, case .poll(let before)? = old?.kind,
      !poll.options.contains(where: \.voted)
    else { return new }
    for index in poll.options.indices {
      poll.options[index].voted = before.options.contains {
        $0.optionId == poll.options[index].optionId && $0.voted
      }
    }
    var content = Chat.MessageContent()
    content.kind = .poll(poll)
    return content
  }

  mutating func merge(
    _ changed: Chat.ReactionChangedEvent, user: String, _ changes: inout [ChatChange]
  ) {
    change(changed.sequence, Self.chatName(of: changed.message), &changes) { message in
      let mine =
        changed.user == user
        ? changed.emoji : message.reactions.first(where: \.mine)?.emoji ?? ""
      message.reactions = changed.reactions.map {
        var summary = $0
        summary.mine = $0.emoji == mine
        return summary
      }
    }
  }

  mutating func remove(
    _ deleted: Chat.MessagesDeletedEvent, commitTime: Google.Timestamp?,
    _ changes: inout [ChatChange]
  ) {
    let ranges = deleted.ranges.filter { $0.firstSequence <= $0.lastSequence }
      .map { $0.firstSequence...$0.lastSequence }
    guard deleted.scope == .forEveryone else {
      chats[deleted.chat]?.messages.removeAll { message in
        ranges.contains { $0.contains(message.sequence) }
      }
      if let last = chats[deleted.chat]?.chat.lastMessage,
        ranges.contains(where: { $0.contains(last.sequence) })
      {
        let newest = chats[deleted.chat]?.messages.last
        chats[deleted.chat]?.chat.lastMessage = newest
      }
      changes.append(.messagesRemoved(chat: deleted.chat, sequences: ranges))
      return
    }
    let held = chats[deleted.chat]?.messages.map(\.sequence) ?? []
    let last = chats[deleted.chat]?.chat.lastMessage.map { [$0.sequence] } ?? []
    for sequence in Set(held + last) where ranges.contains(where: { $0.contains(sequence) }) {
      change(sequence, deleted.chat, &changes) { message in
        message.content = nil
        message.replyTo = ""
        message.quoted = nil
        message.forward = nil
        message.reactions = []
        message.pinned = false
        message.deleteTime = commitTime
      }
      chats[deleted.chat]?.chat.pinnedSequences.removeAll { $0 == sequence }
    }
  }

  mutating func merge(
    _ changed: Chat.MemberChangedEvent, user: String, _ changes: inout [ChatChange]
  ) {
    guard let member = changed.member, chats[changed.chat] != nil else { return }
    chats[changed.chat]?.chat.memberCount = changed.memberCount
    if member.user == user, var own = chats[changed.chat]?.chat.selfField {
      own.role = member.role
      own.state = member.state
      own.visibleToSequence = member.visibleToSequence
      own.etag = member.etag
      chats[changed.chat]?.chat.selfField = own
    }
    if let chat = chats[changed.chat]?.chat { changes.append(.chat(chat)) }
  }

  /// Changes a message where it is held, as one of a chat's and as its newest.
  private mutating func change(
    _ sequence: Int64, _ chat: String, _ changes: inout [ChatChange],
    _ body: (inout Chat.Message) -> Void
  ) {
    if let index = chats[chat]?.messages.firstIndex(where: { $0.sequence == sequence }),
      var message = chats[chat]?.messages[index]
    {
      body(&message)
      chats[chat]?.messages[index] = message
      changes.append(.messageChanged(message))
    }
    if var last = chats[chat]?.chat.lastMessage, last.sequence == sequence {
      body(&last)
      chats[chat]?.chat.lastMessage = last
    }
  }
}
