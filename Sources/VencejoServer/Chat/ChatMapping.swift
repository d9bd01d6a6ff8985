import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoStore

extension Google.Duration {
  /// From microseconds.
  init(microseconds: Int64) { self.init(Swift.Duration.microseconds(microseconds)) }

  /// Microseconds, or the nearest number there is: it may come from a stranger.
  var microseconds: Int64 {
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
    if overflow { return seconds < 0 ? .min : .max }
    let (sum, carry) = product.addingReportingOverflow(Int64(nanos) / 1000)
    return carry ? (seconds < 0 ? .min : .max) : sum
  }
}

extension Chat.Profile {
  /// `state` is the presence now, where it is known.
  init(_ profile: VencejoStore.Profile, state: Chat.PresenceState? = nil) {
    self.init()
    name = "users/\(profile.user)/profile"
    user = "users/\(profile.user)"
    handle = profile.handle
    displayName = profile.displayName
    statusText = profile.statusText
    serviceAccount = profile.isServiceAccount
    updateTime = Google.Timestamp(microseconds: profile.updateTime)
    etag = String(profile.version)
    if let state, profile.showsPresence {
      presence = Chat.Presence(state, lastSeen: profile.lastSeenTime)
    }
    if let privacy = profile.privacy {
      self.privacy = Chat.PrivacySettings(
        hideLastSeen: privacy.hidesLastSeen, hideReadReceipts: privacy.hidesReceipts,
        refuseGroupAdds: privacy.refusesGroupAdds)
    }
  }
}

extension Chat.Presence {
  init(_ state: Chat.PresenceState, lastSeen: Int64?) {
    self.init()
    self.state = state
    if state != .online { lastSeenTime = lastSeen.map { Google.Timestamp(microseconds: $0) } }
  }
}

extension Chat.UnreadState {
  init(_ state: VencejoStore.UnreadState) {
    self.init()
    unreadCount = Int32(clamping: state.count)
    capped = state.isCapped
    mentionCount = Int32(clamping: state.mentions)
    firstUnreadSequence = state.firstSequence
  }
}

extension Chat.Chat {
  init(_ chat: ChatView, for reader: Int64) {
    self.init()
    name = "chats/\(chat.id)"
    kind = Chat.ChatKind(rawValue: Int32(clamping: chat.kind.rawValue))
    title = chat.title
    description = chat.description
    if let peer = chat.peer { self.peer = "users/\(peer)" }
    memberCount = Int32(clamping: chat.memberCount)
    createTime = Google.Timestamp(microseconds: chat.createTime)
    updateTime = Google.Timestamp(microseconds: chat.updateTime)
    activityTime = Google.Timestamp(microseconds: chat.activityTime)
    lastSequence = chat.lastSequence
    lastMessage = chat.lastMessage.map { Chat.Message($0, for: reader) }
    messageTtl = chat.messageTTL.map { Google.Duration(microseconds: $0) }
    if chat.kind == .group || chat.kind == .channel { policy = Chat.ChatPolicy(chat.policy) }
    selfField = Chat.Member(chat.membership, in: name)
    settings = Chat.ChatSettings(chat.settings, in: name)
    unread = Chat.UnreadState(chat.unread)
    pinnedSequences = chat.pinned
    etag = String(chat.version)
  }
}

extension Chat.ChatPolicy {
  init(_ policy: VencejoStore.ChatPolicy) {
    self.init()
    sendMessages = Chat.MemberRole(policy.sendMessages)
    addMembers = Chat.MemberRole(policy.addMembers)
    editInfo = Chat.MemberRole(policy.editInfo)
    pinMessages = Chat.MemberRole(policy.pinMessages)
    historyVisibleToNewMembers = policy.showsHistory
    editWindow = policy.editWindow.map { Google.Duration(microseconds: $0) }
    deleteForEveryoneWindow = policy.deleteWindow.map { Google.Duration(microseconds: $0) }
    if policy.slowMode > 0 { slowMode = Google.Duration(microseconds: policy.slowMode) }
  }
}

extension VencejoStore.ChatPolicy {
  init(_ policy: Chat.ChatPolicy) throws(StoreError) {
    self.init()
    sendMessages = try Self.role(policy.sendMessages)
    addMembers = try Self.role(policy.addMembers)
    editInfo = try Self.role(policy.editInfo)
    pinMessages = try Self.role(policy.pinMessages)
    showsHistory = policy.historyVisibleToNewMembers
    // Zero is the server's own, as unset.
    editWindow = policy.editWindow.map(\.microseconds).flatMap { $0 == 0 ? nil : $0 }
    deleteWindow = policy.deleteForEveryoneWindow.map(\.microseconds).flatMap {
      $0 == 0 ? nil : $0
    }
    slowMode = policy.slowMode?.microseconds ?? 0
  }

  private static func role(_ role: Chat.MemberRole) throws(StoreError) -> MemberRole {
    if role == .unspecified { return .member }
    return try MemberRole(role, field: "chat.policy")
  }
}

extension Chat.MemberRole {
  init(_ role: MemberRole) { self.init(rawValue: Int32(clamping: role.rawValue)) }
}

extension MemberRole {
  init(_ role: Chat.MemberRole, field: String) throws(StoreError) {
    guard let known = MemberRole(rawValue: Int64(role.rawValue)) else {
      throw .invalid(field, "BAD_ROLE", "choose READER, MEMBER, ADMIN or OWNER")
    }
    self = known
  }
}

extension Chat.Member {
  init(_ membership: Membership, in chat: String) {
    self.init()
    name = "\(chat)/members/\(membership.user)"
    user = "users/\(membership.user)"
    role = Chat.MemberRole(membership.role)
    state = Chat.MemberState(rawValue: Int32(clamping: membership.state.rawValue))
    joinTime = Google.Timestamp(microseconds: membership.joinTime)
    visibleFromSequence = membership.visibleFrom
    visibleToSequence = membership.visibleTo
    readSequence = membership.readSequence
    deliveredSequence = membership.deliveredSequence
    etag = String(membership.version)
  }
}

extension Chat.ChatSettings {
  init(_ settings: VencejoStore.ChatSettings, in chat: String) {
    self.init()
    name = "\(chat)/settings"
    muteUntilTime = settings.muteUntil.map { Google.Timestamp(microseconds: $0) }
    archived = settings.isArchived
    pinRank = Int32(clamping: settings.pinRank)
    markedUnread = settings.isMarkedUnread
    mentionsOnly = settings.mentionsOnly
    if let draft = settings.draft {
      var content = Chat.Draft()
      content.content = Chat.MessageContent(draft.body, for: nil)
      if let reply = draft.replyTo { content.replyTo = "\(chat)/messages/\(reply)" }
      content.updateTime = Google.Timestamp(microseconds: draft.updateTime)
      self.draft = content
    }
    etag = String(settings.version)
  }
}

extension Chat.Invite {
  init(_ invite: VencejoStore.Invite) {
    self.init()
    name = "chats/\(invite.chat)/invites/\(invite.id)"
    code = invite.code
    createTime = Google.Timestamp(microseconds: invite.createTime)
    expireTime = invite.expireTime.map { Google.Timestamp(microseconds: $0) }
    maxUses = Int32(clamping: invite.maxUses)
    useCount = Int32(clamping: invite.useCount)
    requiresApproval = invite.needsApproval
  }
}
