import Testing
import VencejoCrypto
import VencejoSQLite

@testable import VencejoStore

@Suite struct MemberTests {
  let world: Conversation
  init() throws { world = try Conversation() }

  @Test("Rule 12: who left sees up to the moment of leaving, and hears nothing after it")
  func whoLeftSeesUpToThatMoment() async throws {
    let people = try await world.users("ana", "ben", "cleo")
    let (ana, ben, cleo) = (people[0], people[1], people[2])
    let chat = try await world.chat(.group, ana, [ben, cleo])
    try await world.send("before", to: chat, by: ana)
    let start = try await world.head()
    try await world.write { try $0.leaveChat(chat.id, by: ben.key) }
    let after = try await world.send("after", to: chat, by: ana)
    let edited = try await world.write {
      try $0.editMessage(after.id, in: chat.id, body: .text("secret"), by: ana.key)
    }
    #expect(edited.editCount == 1)

    // 1 created, 2 before, 3 the note that Ben left.
    #expect(try await world.sequences(chat, ben) == [1, 2, 3])
    let view = try await world.view(chat, ben)
    #expect(view.lastSequence == 3 && view.membership.state == .left)
    #expect(view.membership.visibleTo == 3)
    #expect(view.unread.count == 0 || view.unread.firstSequence <= 3)
    #expect(
      await reason {
        _ = try await world.store.read { try $0.message(after.id, in: chat.id, for: ben.key) }
      } == "MESSAGE_NOT_FOUND")
    #expect(await world.refused { _ = try $0.leaveChat(chat.id, by: ben.key) } == "NOT_A_MEMBER")
    #expect(
      await reason { try await world.send("x", to: chat, by: ben) } == "NOT_A_MEMBER")
    let found = try await world.store.read { try $0.searchMessages("secret", for: ben.key).hits }
    #expect(found.isEmpty)
    #expect(try await world.store.read { try $0.listChats(for: ben.key).chats.isEmpty })

    let heard = try await world.events(of: ben, after: start)
    #expect(heard.count == 3)
    guard heard.count == 3, case .messageCreated(let note) = heard[0],
      case .memberChanged(_, let member, let count) = heard[1],
      case .chatRemoved(_, let reason) = heard[2]
    else {
      Issue.record("\(heard)")
      return
    }
    #expect(note.body == .system(SystemNote(.memberLeft, actor: ben.id, subjects: [ben.id])))
    #expect(member.user == ben.id && member.state == .left && count == 2)
    #expect(reason == .left)
    #expect(try await world.events(of: cleo, after: start).count == 4)
  }

  @Test func newMembersBeginAtTheirNoteUnlessHistoryIsShown() async throws {
    let people = try await world.users("ana", "ben", "cleo")
    let (ana, ben, cleo) = (people[0], people[1], people[2])
    for shows in [false, true] {
      let chat = try await world.chat(.group, ana) {
        $0.policy = ChatPolicy()
        $0.policy?.showsHistory = shows
      }
      let old = try await world.send("old", to: chat, by: ana)
      let start = try await world.head()
      let added = try await world.write {
        try $0.addMembers(
          [ben.id, cleo.id, UUID.v7(), ben.id], role: nil, to: chat.id, by: ana.key)
      }
      #expect(added.members.map(\.user) == [ben.id, cleo.id])
      #expect(added.failures.map(\.error.reason) == ["USER_NOT_FOUND"])
      #expect(try await world.sequences(chat, ben) == (shows ? [1, 2, 3] : [3]))
      #expect(try await world.view(chat, ben).unread == .none)
      let failure = await reason {
        _ = try await world.store.read { try $0.message(old.id, in: chat.id, for: ben.key) }
      }
      #expect(failure == (shows ? nil : "MESSAGE_NOT_FOUND"))
      let heard = try await world.events(of: ben, after: start)
      guard case .chatUpserted(let first) = heard.first else {
        Issue.record("\(heard)")
        return
      }
      #expect(first.id == chat.id && first.lastSequence == 2)
      #expect(heard.count == 5)
      guard case .notificationCreated(let notification)? = heard.last else {
        Issue.record("\(heard)")
        return
      }
      #expect(notification.kind == .addedToChat && notification.actor == ana.id)
      // A repeat changes nothing.
      let again = try await world.write {
        try $0.addMembers([ben.id], role: nil, to: chat.id, by: ana.key)
      }
      #expect(again.members.map(\.user) == [ben.id] && again.failures.isEmpty)
      #expect(try await world.view(chat, ana).memberCount == 3)
    }
  }

  @Test func whoComesBackDoesNotSeeWhatWasBetween() async throws {
    let people = try await world.users("ana", "ben")
    let (ana, ben) = (people[0], people[1])
    let chat = try await world.chat(.group, ana, [ben])
    try await world.send("2", to: chat, by: ana)
    try await world.write { try $0.removeMember(ben.id, from: chat.id, ban: false, by: ana.key) }
    try await world.send("4", to: chat, by: ana)
    try await world.write {
      _ = try $0.addMembers([ben.id], role: nil, to: chat.id, by: ana.key)
    }
    try await world.send("6", to: chat, by: ana)
    let page = try await world.page(chat, ben)
    #expect(page.messages.map(\.sequence) == [1, 2, 3, 5, 6])
    #expect(page.deletedRanges == [SequenceRange(4, 4)])
    #expect(try await world.view(chat, ben).unread.count == 1)
    #expect(
      try await world.store.read { try $0.searchMessages("4", for: ben.key).hits.isEmpty })
  }

  @Test func rolesDecide() async throws {
    let people = try await world.users("ana", "ben", "cleo", "dan")
    let (ana, ben, cleo, dan) = (people[0], people[1], people[2], people[3])
    let chat = try await world.chat(.group, ana, [ben, cleo, dan])
    func role(_ user: Account, _ role: MemberRole, by actor: Account) async -> String? {
      await world.refused {
        _ = try $0.updateMember(user.id, role: role, in: chat.id, by: actor.key)
      }
    }
    func remove(_ user: Account, by actor: Account) async -> String? {
      await world.refused {
        try $0.removeMember(user.id, from: chat.id, ban: false, by: actor.key)
      }
    }
    #expect(await role(cleo, .admin, by: ben) == "ROLE_TOO_LOW")
    #expect(await remove(cleo, by: ben) == "ROLE_TOO_LOW")
    #expect(await role(ben, .admin, by: ana) == nil)
    #expect(await role(cleo, .admin, by: ben) == nil)
    // Admins are equals: only the owner parts them.
    #expect(await remove(cleo, by: ben) == "ROLE_TOO_LOW")
    #expect(await role(cleo, .member, by: ben) == "ROLE_TOO_LOW")
    #expect(await role(ana, .member, by: ben) == "ROLE_TOO_LOW")
    #expect(await role(dan, .owner, by: ben) == "ROLE_TOO_LOW")
    #expect(await role(dan, .reader, by: ana) == "BAD_ROLE")
    #expect(await role(ana, .member, by: ana) == "LAST_OWNER")
    #expect(await remove(dan, by: ben) == nil)
    #expect(await remove(dan, by: ben) == "MEMBER_NOT_FOUND")
    #expect(await world.refused { try $0.leaveChat(chat.id, by: ana.key) } == "LAST_OWNER")
    #expect(
      await world.refused { try $0.deleteChat(chat.id, by: ben.key) } == "ROLE_TOO_LOW")
    try await world.write { try $0.leaveChat(chat.id, newOwner: cleo.id, by: ana.key) }
    #expect(try await world.view(chat, cleo).membership.role == .owner)
    #expect(try await world.view(chat, ana).membership.state == .left)
    let listed = try await world.store.read { try $0.listMembers(chat.id, for: ben.key) }
    #expect(listed.members.map(\.user) == [ben.id, cleo.id] && listed.total == 2)
    #expect(
      await reason {
        _ = try await world.store.read { try $0.listMembers(chat.id, for: ana.key) }
      } == "NOT_A_MEMBER")
  }

  @Test func aPolicyDecides() async throws {
    let people = try await world.users("ana", "ben", "cleo")
    let (ana, ben, cleo) = (people[0], people[1], people[2])
    let chat = try await world.chat(.group, ana, [ben])
    func change(_ by: Account, _ body: @Sendable (inout ChatChanges) -> Void) async -> String? {
      var changes = ChatChanges()
      body(&changes)
      return await world.refused { [changes] in
        _ = try $0.updateChat(chat.id, changes, by: by.key)
      }
    }
    #expect(await change(ben) { $0.title = "Ben's" } == nil)
    #expect(await change(ben) { $0.policy = ChatPolicy() } == nil)  // nothing changes
    #expect(await change(ben) { $0.messageTTL = 60_000_000 } == "ROLE_TOO_LOW")
    #expect(await change(ana) { $0.title = "a\nb" } == "BAD_TITLE")
    #expect(
      await change(ana) {
        $0.policy = ChatPolicy()
        $0.policy?.sendMessages = .admin
        $0.policy?.addMembers = .admin
        $0.policy?.editInfo = .admin
        $0.policy?.pinMessages = .admin
      } == nil)
    #expect(await change(ben) { $0.title = "again" } == "ROLE_TOO_LOW")
    #expect(await reason { try await world.send("x", to: chat, by: ben) } == "ROLE_TOO_LOW")
    #expect(
      await world.refused {
        _ = try $0.addMembers([cleo.id], role: nil, to: chat.id, by: ben.key)
      } == "ROLE_TOO_LOW")
    let message = try await world.send("x", to: chat, by: ana)
    #expect(
      await world.refused { _ = try $0.setPinned(message.id, in: chat.id, true, by: ben.key) }
        == "ROLE_TOO_LOW")
    let view = try await world.view(chat, ben)
    #expect(view.title == "Ben's" && view.policy.sendMessages == .admin)
    let stale = String(view.version - 1)
    #expect(
      await world.refused {
        var changes = ChatChanges()
        changes.title = "new"
        _ = try $0.updateChat(chat.id, changes, etag: stale, by: ana.key)
      } == "ETAG_MISMATCH")
  }

  @Test func slowModeWaits() async throws {
    let people = try await world.users("ana", "ben")
    let (ana, ben) = (people[0], people[1])
    let chat = try await world.chat(.group, ana, [ben]) {
      $0.policy = ChatPolicy()
      $0.policy?.slowMode = 30_000_000
    }
    try await world.send("1", to: chat, by: ben)
    world.clock.advance(seconds: 29)
    do {
      try await world.send("2", to: chat, by: ben)
      Issue.record("sent")
    } catch let error as StoreError {
      #expect(error.reason == "SLOW_MODE")
      #expect(error.details == [.retry(afterMilliseconds: 1001)])
    }
    try await world.send("admins do not wait", to: chat, by: ana)
    try await world.send("admins do not wait", to: chat, by: ana)
    world.clock.advance(seconds: 1)
    try await world.send("2", to: chat, by: ben)
  }

  @Test func channelsHaveReadersWhoDoNotSeeEachOther() async throws {
    let people = try await world.users("ana", "ben", "cleo")
    let (ana, ben, cleo) = (people[0], people[1], people[2])
    let chat = try await world.chat(.channel, ana, [ben])
    try await world.send("news", to: chat, by: ana)
    #expect(try await world.view(chat, ben).membership.role == .reader)
    #expect(try await world.view(chat, ben).unread.count == 1)
    #expect(await reason { try await world.send("x", to: chat, by: ben) } == "ROLE_TOO_LOW")
    #expect(
      await reason {
        _ = try await world.store.read { try $0.listMembers(chat.id, for: ben.key) }
      } == "ROLE_TOO_LOW")
    let start = try await world.head()
    try await world.write {
      _ = try $0.addMembers([cleo.id], role: nil, to: chat.id, by: ana.key)
    }
    #expect(try await world.events(of: ben, after: start).isEmpty)
    #expect(try await world.sequences(chat, cleo) == [1])
    // Receipts of readers are nobody's business.
    _ = try await world.write {
      try $0.markRead(chat.id, upTo: 1, isPrivate: false, by: ben.key)
    }
    #expect(
      try await world.events(of: ana, after: start).allSatisfy {
        if case .receiptMoved = $0 { false } else { true }
      })
  }

  @Test func invitesLetIn() async throws {
    let people = try await world.users("ana", "ben", "cleo", "dan")
    let (ana, ben, cleo, dan) = (people[0], people[1], people[2], people[3])
    let chat = try await world.chat(.group, ana)
    let once = try await world.write {
      try $0.createInvite(
        to: chat.id, expireTime: $0.now + 60_000_000, maxUses: 1, needsApproval: false,
        requestID: "1", by: ana.key)
    }
    let same = try await world.write {
      try $0.createInvite(
        to: chat.id, expireTime: once.expireTime, maxUses: 1, needsApproval: false,
        requestID: "1", by: ana.key)
    }
    #expect(same == once)
    func join(_ code: String, _ user: Account) async -> String? {
      await world.refused { _ = try $0.joinChat(code: code, by: user.key) }
    }
    #expect(await join("nonsense", ben) == "INVITE_NOT_FOUND")
    #expect(await join(once.code, ben) == nil)
    #expect(await join(once.code, ben) == nil)  // inside already
    #expect(await join(once.code, cleo) == "INVITE_NOT_FOUND")
    #expect(
      await world.refused {
        _ = try $0.createInvite(
          to: chat.id, expireTime: nil, maxUses: 0, needsApproval: false, by: ben.key)
      } == "ROLE_TOO_LOW")

    let asking = try await world.write {
      try $0.createInvite(
        to: chat.id, expireTime: $0.now + 60_000_000, maxUses: 0, needsApproval: true, by: ana.key)
    }
    #expect(await join(asking.code, cleo) == nil)
    #expect(await join(asking.code, dan) == nil)
    #expect(await reason { _ = try await world.view(chat, cleo) } == "CHAT_NOT_FOUND")
    let waiting = try await world.store.read { try $0.listJoinRequests(chat.id, for: ana.key) }
    #expect(waiting.requests.map(\.user) == [cleo.id, dan.id])
    let member = try await world.write {
      try $0.answerJoinRequest(of: cleo.id, in: chat.id, approve: true, by: ana.key)
    }
    #expect(member?.state == .joined)
    _ = try await world.write {
      try $0.answerJoinRequest(of: dan.id, in: chat.id, approve: false, by: ana.key)
    }
    #expect(await reason { _ = try await world.view(chat, dan) } == "CHAT_NOT_FOUND")
    #expect(
      await world.refused {
        _ = try $0.answerJoinRequest(of: dan.id, in: chat.id, approve: true, by: ana.key)
      } == "JOIN_REQUEST_NOT_FOUND")

    // At its time an invite is over.
    world.clock.advance(seconds: 60)
    #expect(await join(asking.code, dan) == "INVITE_NOT_FOUND")
    #expect(
      try await world.store.read { try $0.listInvites(chat.id, for: ana.key).invites.isEmpty })
    let open = try await world.write {
      try $0.createInvite(
        to: chat.id, expireTime: nil, maxUses: 0, needsApproval: false, by: ana.key)
    }
    try await world.write { try $0.removeMember(ben.id, from: chat.id, ban: true, by: ana.key) }
    #expect(await join(open.code, ben) == "USER_BANNED")
    try await world.write { try $0.revokeInvite(open.id, in: chat.id, by: ana.key) }
    #expect(await join(open.code, dan) == "INVITE_NOT_FOUND")
  }

  @Test(arguments: [false, true])
  func anInviteOfThoseWhoLeftLeadsNowhere(needsApproval: Bool) async throws {
    let people = try await world.users("ana", "ben")
    let (ana, ben) = (people[0], people[1])
    let chat = try await world.chat(.group, ana)
    let invite = try await world.write {
      try $0.createInvite(
        to: chat.id, expireTime: nil, maxUses: 0, needsApproval: needsApproval, by: ana.key)
    }
    try await world.write { _ = try $0.leaveChat(chat.id, by: ana.key) }
    for user in [ana, ben] {
      #expect(
        await world.refused { _ = try $0.joinChat(code: invite.code, by: user.key) }
          == "INVITE_NOT_FOUND")
    }
  }

  @Test func aDeletedChatIsGoneForEverybody() async throws {
    let people = try await world.users("ana", "ben")
    let (ana, ben) = (people[0], people[1])
    let chat = try await world.chat(.group, ana, [ben])
    try await world.send("needle", to: chat, by: ana)
    let start = try await world.head()
    try await world.write { try $0.deleteChat(chat.id, requestID: "r", by: ana.key) }
    try await world.write { try $0.deleteChat(chat.id, requestID: "r", by: ana.key) }
    #expect(
      try await world.events(of: ben, after: start) == [.chatRemoved(chat: chat.id, .deleted)])
    for user in [ana, ben] {
      #expect(await reason { _ = try await world.view(chat, user) } == "CHAT_NOT_FOUND")
      #expect(try await world.store.read { try $0.listChats(for: user.key).chats.isEmpty })
      #expect(
        try await world.store.read { try $0.searchMessages("needle", for: user.key).hits.isEmpty })
      // Everything before it is gone from the log too.
      #expect(
        try await world.events(of: user, after: 0) == [.chatRemoved(chat: chat.id, .deleted)])
    }
    let own = try await world.chat(.own, ana)
    try await world.send("newest", to: own, by: ana)
    #expect(try await world.write { try $0.purgeDeletedChats() } == false)
    #expect(
      try await world.store.read {
        try $0.first("SELECT count(*) FROM message WHERE chat_id = ?", chat.key) { $0.int(0) }
      } == 0)
  }

  @Test func someJoinByInvitesOnly() async throws {
    let people = try await world.users("ana", "ben", "cleo")
    let (ana, ben, cleo) = (people[0], people[1], people[2])
    try await world.write {
      var changes = ProfileChanges()
      changes.refusesGroupAdds = true
      _ = try $0.updateProfile(changes, by: ben.key)
      try $0.block(ana.id, by: cleo.key)
    }
    let made = try await world.write {
      try $0.createChat(
        NewChat(kind: .group, title: "G", members: [ben.id, cleo.id]), by: ana.key)
    }
    // A block is not told apart from a refusal.
    #expect(
      made.failures.mapValues(\.reason) == [ben.id: "REFUSES_GROUPS", cleo.id: "REFUSES_GROUPS"])
    let added = try await world.write {
      try $0.addMembers([ben.id, cleo.id], role: nil, to: made.chat.id, by: ana.key)
    }
    #expect(added.failures.map(\.error.reason) == ["REFUSES_GROUPS", "REFUSES_GROUPS"])
    #expect(added.members.isEmpty)
  }
}
