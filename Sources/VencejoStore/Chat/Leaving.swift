public import VencejoCrypto
import VencejoSQLite

/// How a membership ends.
extension WriteTransaction {
  /// Ends the caller's membership; what was sent so far stays theirs to read.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `NOT_A_MEMBER`, `WRONG_CHAT_KIND`, `LAST_OWNER`,
  ///   `MEMBER_NOT_FOUND` for the new owner, `REQUEST_ID_REUSED`.
  public func leaveChat(
    _ chat: UUID, newOwner: UUID? = nil, requestID: String = "", by user: Int64
  ) throws(StoreError) {
    let place = try place(chat, of: user)
    var request = KeysetWriter()
    request.raw(chat.bytes)
    request.raw(newOwner?.bytes ?? [])
    guard try isNew("LeaveChat", requestID, request, by: user) else { return }
    try place.requireShared()
    try place.requireMember()
    if place.role == .owner, place.memberCount > 1 {
      if let newOwner {
        let (key, _) = try joined(newOwner, place)
        guard key != user else {
          throw .invalid("new_owner", "BAD_MEMBERS", "name another member")
        }
        try setRole(.owner, key, place)
        try appendMember(key, place.chat, chat, place.kind)
      } else {
        try keepAnOwner(place)
      }
    }
    try end(user, .left, place, note: .memberLeft)
  }

  /// Ends another's membership, for good when banned.
  ///
  /// - Throws: `CHAT_NOT_FOUND`, `MEMBER_NOT_FOUND`, `NOT_A_MEMBER`, `ROLE_TOO_LOW`,
  ///   `WRONG_CHAT_KIND`, `REQUEST_ID_REUSED`.
  public func removeMember(
    _ member: UUID, from chat: UUID, ban: Bool, requestID: String = "", by user: Int64
  ) throws(StoreError) {
    let place = try place(chat, of: user)
    var request = KeysetWriter()
    request.raw(chat.bytes)
    request.raw(member.bytes)
    request.int(ban ? 1 : 0)
    guard try isNew("RemoveMember", requestID, request, by: user) else { return }
    try place.requireShared()
    try place.require(.admin)
    let (key, old) = try joined(member, place)
    guard key != user else {
      throw .invalid("name", "BAD_MEMBERS", "to go yourself, leave the chat")
    }
    guard old.role < place.role || place.role == .owner else {
      try place.require(.owner)
      return
    }
    try end(key, ban ? .banned : .removed, place, note: .memberRemoved)
  }

  /// The last message a member may see is the one that says they go.
  func end(_ user: Int64, _ state: MemberState, _ place: Place, note action: SystemAction)
    throws(StoreError)
  {
    let actor = try userID(place.user)
    let subject = try userID(user)
    if place.kind == .group, let actor, let subject {
      try note(
        SystemNote(action, actor: actor, subjects: [subject]), chat: place.chat,
        chatID: place.chatID)
    }
    try run(
      """
      UPDATE member SET state = ?1, version = version + 1, role = CASE role WHEN 4 THEN 2 ELSE role END,
        visible_to = (SELECT last_seq FROM chat WHERE chat_id = ?2)
      WHERE chat_id = ?2 AND user_id = ?3
      """, state.rawValue, place.chat, user)
    try run(
      "UPDATE chat SET member_count = member_count - 1, version = version + 1 WHERE chat_id = ?",
      place.chat)
    try appendMember(user, place.chat, place.chatID, place.kind)
    var keys = KeysetWriter()
    keys.int(place.chat)
    keys.int((state == .left ? RemovalReason.left : .removed).rawValue)
    let position = append(.chatRemoved, user: user, keys: keys.bytes)
    try run(
      "UPDATE member SET to_pos = ? WHERE chat_id = ? AND user_id = ?", position, place.chat, user)
  }
}
