public import VencejoCrypto
import VencejoSQLite

/// What a new chat is made from.
public struct NewChat: Sendable {
  public var kind: ChatKind
  public var title: String
  public var description = ""
  public var policy: ChatPolicy?
  /// Microseconds; nil for messages that stay.
  public var messageTTL: Int64?
  /// Exactly one for a direct chat, none for a chat with oneself.
  public var members: [UUID]
  public var requestID: String

  public init(kind: ChatKind, title: String = "", members: [UUID] = [], requestID: String = "") {
    self.kind = kind
    self.title = title
    self.members = members
    self.requestID = requestID
  }
}

/// What making a chat came to.
public struct CreatedChat: Sendable {
  public let chat: ChatView
  /// False when the chat was there already.
  public let isNew: Bool
  /// Users of a group who could not be added.
  public let failures: [UUID: StoreError]
}

extension WriteTransaction {
  /// Makes a chat, or answers the one direct chat a pair of users has.
  ///
  /// - Throws: `BAD_MEMBERS`, `BAD_TITLE`, `USER_NOT_FOUND`, `REQUEST_ID_REUSED`.
  public func createChat(_ new: NewChat, by user: Int64) throws(StoreError) -> CreatedChat {
    guard let creator = try account(key: user) else { throw Store.badCredential }
    let title = AccountRules.trimmed(new.title)
    try validate(new, title, creator)

    var body = KeysetWriter()
    body.int(new.kind.rawValue)
    body.text(title)
    body.text(new.description)
    for member in new.members { body.raw(member.bytes) }
    let bodyHash = SHA256.digest(body.bytes)
    let known = try rememberedAnswer(
      user: user, rpc: "CreateChat", requestID: new.requestID, bodyHash: bodyHash)
    if let known, let id = UUID(bytes: Array(known.dropLast())) {
      return CreatedChat(chat: try chat(id, for: user), isNew: known.last == 1, failures: [:])
    }
    let result =
      switch new.kind {
      case .direct: try createPair(creator, with: new.members)
      case .own: try createOwn(creator)
      case .group, .channel: try createGroup(creator, title, new)
      }
    try rememberAnswer(
      user: user, rpc: "CreateChat", requestID: new.requestID, bodyHash: bodyHash,
      answer: result.chat.id.bytes + [result.isNew ? 1 : 0])
    return result
  }

  private func validate(_ new: NewChat, _ title: String, _ creator: Account) throws(StoreError) {
    switch new.kind {
    case .direct:
      guard new.members.count == 1, new.members.first != creator.id else {
        throw .invalid("members", "BAD_MEMBERS", "a direct chat has exactly one other member")
      }
    case .own:
      guard new.members.isEmpty || new.members == [creator.id] else {
        throw .invalid("members", "BAD_MEMBERS", "a chat with yourself has no other members")
      }
    case .group, .channel:
      guard new.members.count < ChatLimits.members else {
        throw StoreError(
          .invalidArgument, "LIMIT_EXCEEDED",
          "a chat is made with at most \(ChatLimits.members) members",
          metadata: ["limit": String(ChatLimits.members)],
          details: [.quota(subject: "members", description: "at most \(ChatLimits.members)")])
      }
      try Self.checkTitle(title)
      guard new.description.utf8.count <= ChatLimits.descriptionBytes else {
        throw .invalid(
          "chat.description", "BAD_DESCRIPTION",
          "a description has at most \(ChatLimits.descriptionBytes) bytes")
      }
      if let ttl = new.messageTTL, !ChatLimits.ttl.contains(ttl) {
        throw .invalid(
          "chat.message_ttl", "BAD_TTL", "messages disappear after a second to a year, or never")
      }
    }
  }

  private func createPair(_ creator: Account, with members: [UUID]) throws(StoreError)
    -> CreatedChat
  {
    guard let other = members.first else {
      throw .invalid("members", "BAD_MEMBERS", "a direct chat has exactly one other member")
    }
    let peer = try reachable(other)
    let key = "\(min(creator.key, peer.key)):\(max(creator.key, peer.key))"
    return try create(.direct, "", pairKey: key, creator, [peer], failures: [:])
  }

  private func createOwn(_ creator: Account) throws(StoreError) -> CreatedChat {
    try create(.own, "", pairKey: "\(creator.key)", creator, [], failures: [:])
  }

  private func createGroup(_ creator: Account, _ title: String, _ new: NewChat)
    throws(StoreError) -> CreatedChat
  {
    var others: [Account] = []
    var failures: [UUID: StoreError] = [:]
    var seen: Set<UUID> = [creator.id]
    for id in new.members where seen.insert(id).inserted {
      do throws(StoreError) {
        let account = try reachable(id)
        try mayAdd(account, by: creator.key)
        others.append(account)
      } catch { failures[id] = error }
    }
    let made = try create(new.kind, title, pairKey: nil, creator, others, failures: failures)
    var policy = new.policy ?? ChatPolicy()
    // A channel is there to be read from its beginning.
    if new.kind == .channel, new.policy == nil { policy.showsHistory = true }
    try setPolicy(policy, made.chat.key)
    try run(
      "UPDATE chat SET description = ?, ttl_us = ? WHERE chat_id = ?", new.description,
      new.messageTTL, made.chat.key)
    return CreatedChat(
      chat: try chat(made.chat.id, for: creator.key), isNew: true, failures: failures)
  }

  private func create(
    _ kind: ChatKind, _ title: String, pairKey: String?, _ creator: Account, _ others: [Account],
    failures: [UUID: StoreError]
  ) throws(StoreError) -> CreatedChat {
    if let pairKey,
      let existing = try first(
        "SELECT uuid FROM chat WHERE pair_key = ?", pairKey, read: { $0.uuid(0) }),
      let id = existing
    {
      return CreatedChat(chat: try chat(id, for: creator.key), isNew: false, failures: [:])
    }
    let id = UUID.v7(milliseconds: now / 1000)
    let position = try head() + 1
    try run(
      """
      INSERT INTO chat(uuid, kind, title, pair_key, member_count, last_seq, last_pos, create_us,
        update_us, activity_us, version)
      VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?, ?, 1)
      """, id, kind.rawValue, title, pairKey, others.count + 1, position, now, now, now)
    let key = lastInsertRowID
    for member in [creator] + others {
      let role: MemberRole =
        !kind.isShared
        ? .member : member.key == creator.key ? .owner : kind == .channel ? .reader : .member
      try run(
        """
        INSERT INTO member(chat_id, user_id, role, state, join_us, read_seq, shown_seq,
          visible_from, visible_to, from_pos, to_pos, version)
        VALUES (?, ?, ?, 1, ?, 0, 0, 1, NULL, ?, NULL, 1)
        """, key, member.key, role.rawValue, now, position)
    }
    var keys = KeysetWriter()
    keys.int(0)
    append(
      .chatUpserted, chat: key, keys: keys.bytes,
      payload: ChatMembers(users: [creator.key] + others.map(\.key)))
    if kind == .group {
      try note(
        SystemNote(.chatCreated, actor: creator.id, subjects: others.map(\.id)), chat: key,
        chatID: id)
    }
    if kind.isShared, others.count < ChatLimits.notifiedAtOnce {
      for user in others { try notify(user.key, .addedToChat, key, 0, by: creator.key) }
    }
    return CreatedChat(
      chat: try chat(id, for: creator.key), isNew: true, failures: failures)
  }
}
