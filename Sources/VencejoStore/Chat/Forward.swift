public import VencejoCrypto
import VencejoSQLite

extension WriteTransaction {
  /// Sends messages again, elsewhere; `ids` has one for each message and target, message by
  /// message.
  ///
  /// - Throws: `LIMIT_EXCEEDED`, `BAD_MESSAGE_ID`, `FORWARDED_MANY_TIMES`, `BAD_CONTENT`, and what
  ///   ``sendMessage(_:by:)`` throws.
  public func forwardMessages(
    _ names: [(chat: UUID, id: UUID)], to targets: [UUID], ids: [UUID], by user: Int64
  ) throws(StoreError) -> [StoredMessage] {
    guard !names.isEmpty, names.count <= ChatLimits.forwardedAtOnce else {
      throw ChatLimits.exceeded("messages", Int64(ChatLimits.forwardedAtOnce))
    }
    guard !targets.isEmpty, targets.count <= ChatLimits.forwardTargets else {
      throw ChatLimits.exceeded("target_chats", Int64(ChatLimits.forwardTargets))
    }
    guard ids.count == names.count * targets.count, Set(ids).count == ids.count else {
      throw .invalid(
        "message_ids", "BAD_MESSAGE_ID", "one for each message and target, all different")
    }
    var result: [StoredMessage] = []
    for (row, name) in names.enumerated() {
      let original = try message(name.id, in: name.chat, for: user)
      try refuseDeleted(original)
      guard original.forwardHops < ChatLimits.manyHops || targets.count == 1 else {
        throw StoreError(
          .failedPrecondition, "FORWARDED_MANY_TIMES",
          "a message that was forwarded often goes to one chat at a time")
      }
      for (column, target) in targets.enumerated() {
        var outgoing = OutgoingMessage(
          chat: target, id: ids[row * targets.count + column], body: try forwarded(original))
        outgoing.forwardHops = original.forwardHops + 1
        result.append(try sendMessage(outgoing, by: user).message)
      }
    }
    return result
  }

  /// Without what belongs to the place it comes from.
  private func forwarded(_ message: StoredMessage) throws(StoreError) -> MessageBody {
    switch message.body {
    case .text(let text, _): return .text(text)
    case .poll(var poll):
      for index in poll.options.indices {
        poll.options[index].votes = 0
        poll.options[index].isVoted = false
      }
      return .poll(poll)
    case .system, .deleted:
      throw .invalid("names", "BAD_CONTENT", "system messages cannot be forwarded")
    default: return message.body
    }
  }
}
