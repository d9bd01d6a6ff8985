import Testing
import VencejoCrypto
import VencejoSQLite

@testable import VencejoStore

@Suite struct PrivacyTests {
  let world: Conversation
  init() throws { world = try Conversation() }

  @Test("Rule 13: a blocked sender's messages never arrive, anywhere")
  func blocking() async throws {
    let people = try await world.users("ana", "ben", "cleo")
    let (ana, ben, cleo) = (people[0], people[1], people[2])
    let direct = try await world.chat(.direct, ana, [ben])
    let group = try await world.chat(.group, cleo, [ana, ben])
    try await world.send("before", to: direct, by: ben)
    let start = try await world.head()
    try await world.write { try $0.block(ben.id, by: ana.key) }
    try await world.write { try $0.block(ben.id, by: ana.key) }
    let hidden = try await world.send("needle", to: direct, by: ben)
    try await world.send("needle", to: group, by: ben)
    try await world.send("from cleo", to: group, by: cleo)

    #expect(try await world.sequences(direct, ana) == [1])
    #expect(try await world.page(direct, ana).deletedRanges == [SequenceRange(2, 2)])
    #expect(try await world.view(direct, ana).unread.count == 1)
    #expect(try await world.view(direct, ana).lastMessage?.sequence == 1)
    #expect(try await world.sequences(group, ana) == [1, 3])
    #expect(try await world.view(group, ana).unread.count == 1)
    #expect(
      await reason {
        _ = try await world.store.read { try $0.message(hidden.id, in: direct.id, for: ana.key) }
      } == "MESSAGE_NOT_FOUND")
    #expect(
      try await world.store.read { try $0.searchMessages("needle", for: ana.key).hits.isEmpty })
    #expect(try await world.store.read { try $0.totalUnread(of: ana.key) } == 2)
    let heard = try await world.events(of: ana, after: start)
    #expect(heard.count == 1)
    // Ben notices nothing; Cleo sees all.
    #expect(try await world.sequences(direct, ben) == [1, 2])
    #expect(try await world.sequences(group, cleo) == [1, 2, 3])
    #expect(await reason { try await world.send("x", to: direct, by: ana) } == "BLOCKED")

    let listed = try await world.store.read { try $0.listBlocked(by: ana.key).profiles }
    #expect(listed.map(\.user) == [ben.id])
    try await world.write { try $0.unblock(ben.id, by: ana.key) }
    try await world.write { try $0.unblock(ben.id, by: ana.key) }
    try await world.send("after", to: direct, by: ben)
    // What was sent meanwhile does not come later either.
    #expect(try await world.sequences(direct, ana) == [1, 3])
    try await world.write { try $0.block(ben.id, by: ana.key) }
    try await world.send("again", to: direct, by: ben)
    #expect(try await world.sequences(direct, ana) == [1, 3])
    #expect(await world.refused { try $0.block(ana.id, by: ana.key) } == "BAD_USER")
  }

  @Test func receiptsAreHiddenBothWays() async throws {
    let people = try await world.users("ana", "ben")
    let (ana, ben) = (people[0], people[1])
    let chat = try await world.chat(.direct, ana, [ben])
    let one = try await world.send("1", to: chat, by: ana)
    let two = try await world.send("2", to: chat, by: ben)
    func hide(_ hides: Bool) async throws {
      try await world.write {
        var changes = ProfileChanges()
        changes.hidesReceipts = hides
        _ = try $0.updateProfile(changes, by: ben.key)
      }
    }
    func delivery(_ message: StoredMessage, _ user: Account) async throws
      -> StoredMessage.Delivery
    {
      try await world.store.read { try $0.message(message.id, in: chat.id, for: user.key).delivery }
    }
    // Ben has sent 2, and so read 1.
    #expect(try await delivery(one, ana) == .read)
    try await hide(true)
    #expect(try await delivery(one, ana) == .delivered)
    let start = try await world.head()
    _ = try await world.write { try $0.markRead(chat.id, upTo: 2, isPrivate: false, by: ana.key) }
    #expect(try await delivery(two, ben) == .delivered)
    let heard = try await world.events(of: ben, after: start)
    #expect(
      heard == [
        .receiptMoved(ReceiptMarker(chat: chat.id, user: ana.id, read: 0, delivered: 2))
      ])
    let three = try await world.send("3", to: chat, by: ana)
    _ = try await world.write { try $0.markRead(chat.id, upTo: 3, isPrivate: false, by: ben.key) }
    #expect(try await delivery(three, ana) == .delivered)
    let members = try await world.store.read { try $0.listMembers(chat.id, for: ana.key).members }
    #expect(members.map(\.readSequence) == [3, 0] && members.map(\.deliveredSequence) == [3, 3])
    let receipts = try await world.store.read {
      try $0.listReceipts(three.id, in: chat.id, for: ana.key).receipts
    }
    #expect(receipts.map(\.user) == [ben.id])
    #expect(receipts[0].deliverTime != nil && receipts[0].readTime == nil)
    try await hide(false)
    #expect(try await delivery(two, ben) == .read)
  }

  @Test("Rule 17: both ticks stand for the slowest member")
  func ticks() async throws {
    let people = try await world.users("ana", "ben", "cleo")
    let (ana, ben, cleo) = (people[0], people[1], people[2])
    let chat = try await world.chat(.group, ana, [ben, cleo])
    let message = try await world.send("2", to: chat, by: ana)
    func delivery() async throws -> StoredMessage.Delivery {
      try await world.store.read { try $0.message(message.id, in: chat.id, for: ana.key).delivery }
    }
    func deliver(_ user: Account, _ sequence: Int64) async throws {
      try await world.write { try $0.markDelivered([(chat.id, sequence)], by: user.key) }
    }
    #expect(try await delivery() == .sent)
    try await deliver(ben, 2)
    #expect(try await delivery() == .sent)
    world.clock.advance(seconds: 5)
    let start = try await world.head()
    try await deliver(cleo, .max)
    try await deliver(cleo, 1)
    #expect(try await delivery() == .delivered)
    #expect(
      try await world.events(of: ben, after: start) == [
        .receiptMoved(ReceiptMarker(chat: chat.id, user: cleo.id, read: 0, delivered: 2))
      ])
    world.clock.advance(seconds: 5)
    _ = try await world.write { try $0.markRead(chat.id, upTo: 2, isPrivate: false, by: ben.key) }
    #expect(try await delivery() == .delivered)
    _ = try await world.write { try $0.markRead(chat.id, upTo: 2, isPrivate: false, by: cleo.key) }
    #expect(try await delivery() == .read)
    let receipts = try await world.store.read {
      try $0.listReceipts(message.id, in: chat.id, for: ana.key).receipts
    }
    let sent = world.clock.now - 10_000_000
    #expect(
      receipts == [
        Receipt(user: ben.id, deliverTime: sent, readTime: sent + 10_000_000),
        Receipt(user: cleo.id, deliverTime: sent + 5_000_000, readTime: sent + 10_000_000),
      ])
    #expect(
      await reason {
        _ = try await world.store.read {
          try $0.listReceipts(message.id, in: chat.id, for: ben.key)
        }
      } == "NOT_THE_SENDER")
  }

  @Test func profilesTellWhatTheirOwnersAllow() async throws {
    let people = try await world.users("ana", "ben", "eve")
    let (ana, ben, eve) = (people[0], people[1], people[2])
    _ = try await world.chat(.direct, ana, [ben])
    try await world.write { try $0.setLastSeen(ana.key) }
    func profile(_ reader: Account) async throws -> Profile {
      try await world.store.read { try $0.profile(ana.id, for: reader.key) }
    }
    #expect(try await profile(ben).lastSeenTime == world.clock.now)
    #expect(try await profile(ben).privacy == nil)
    #expect(try await profile(ana).privacy == PrivacySettings())
    let start = try await world.head()
    try await world.write {
      var changes = ProfileChanges()
      changes.displayName = "Ana Ruiz"
      changes.statusText = "here"
      changes.hidesLastSeen = true
      _ = try $0.updateProfile(changes, by: ana.key)
    }
    #expect(try await profile(ben).lastSeenTime == nil)
    #expect(try await !profile(ben).showsPresence)
    #expect(try await profile(ana).lastSeenTime != nil)
    #expect(try await profile(ben).statusText == "here")
    // Peers of direct chats hear of it, strangers do not.
    for (user, count) in [(ana, 1), (ben, 1), (eve, 0)] {
      #expect(try await world.events(of: user, after: start).count == count)
    }
    try await world.write { try $0.block(eve.id, by: ana.key) }
    #expect(try await profile(eve).statusText == "")
    #expect(try await !profile(eve).showsPresence)
    #expect(
      await world.refused {
        var changes = ProfileChanges()
        changes.statusText = String(repeating: "x", count: 141)
        _ = try $0.updateProfile(changes, by: ana.key)
      } == "BAD_STATUS_TEXT")
  }

  @Test func settingsAreTheOwnersOnAllDevices() async throws {
    let people = try await world.users("ana", "ben")
    let (ana, ben) = (people[0], people[1])
    let chat = try await world.chat(.direct, ana, [ben])
    let other = try await world.chat(.own, ana)
    try await world.send("1", to: other, by: ana)
    let start = try await world.head()
    func update(
      _ fields: SettingFields, etag: String = "", _ change: @Sendable (inout ChatSettings) -> Void
    ) async throws -> ChatSettings {
      var settings = ChatSettings()
      change(&settings)
      return try await world.write { [settings] in
        try $0.updateSettings(chat.id, settings, fields, etag: etag, by: ana.key)
      }
    }
    _ = try await update(.pinRank) { $0.pinRank = 2 }
    _ = try await update([.mute, .mentionsOnly]) {
      $0.muteUntil = 1
      $0.mentionsOnly = true
    }
    _ = try await update(.markedUnread) { $0.isMarkedUnread = true }
    let draft = try await update(.draft) { $0.draft = Draft(body: .text("begun")) }
    #expect(
      draft.pinRank == 2 && draft.mentionsOnly && draft.isMarkedUnread && draft.muteUntil == 1)
    #expect(draft.draft?.body == .text("begun") && draft.draft?.updateTime == world.clock.now)
    #expect(draft.version == 4)
    // What changes nothing is no change.
    #expect(try await update(.draft) { $0.draft = Draft(body: .text("begun")) } == draft)
    #expect(await reason { _ = try await update(.pinRank, etag: "1") { _ in } } == "ETAG_MISMATCH")
    #expect(
      await reason { _ = try await update(.pinRank) { $0.pinRank = 1001 } } == "BAD_PIN_RANK")
    let listed = try await world.store.read { try $0.listChats(for: ana.key).chats }
    #expect(listed.map(\.id) == [chat.id, other.id])
    #expect(listed[0].settings == draft)
    #expect(try await world.view(chat, ben).settings == ChatSettings())
    let heard = try await world.events(of: ana, after: start)
    #expect(heard.count == 4 && heard.last == .settingsChanged(chat: chat.id, draft))
    #expect(try await world.events(of: ben, after: start).isEmpty)
    // Reading takes the mark away.
    _ = try await world.write { try $0.markRead(chat.id, upTo: 0, isPrivate: false, by: ana.key) }
    #expect(try await world.view(chat, ana).settings.isMarkedUnread == false)
    // A blank draft is none.
    #expect(try await update(.draft) { $0.draft = Draft(body: .text(" ")) }.draft == nil)
  }

  @Test("Rule 27: expired messages vanish at their time, and from the disk with an event")
  func expiry() async throws {
    let people = try await world.users("ana", "ben")
    let (ana, ben) = (people[0], people[1])
    let chat = try await world.chat(.group, ana, [ben])
    let stays = try await world.send("stays", to: chat, by: ana)
    try await world.write {
      var changes = ChatChanges()
      changes.messageTTL = 60_000_000
      _ = try $0.updateChat(chat.id, changes, by: ana.key)
    }
    let goes = try await world.send("xyzzy", to: chat, by: ana)
    let reply = try await world.send("why?", to: chat, by: ben, reply: goes.id)
    #expect(goes.expireTime == world.clock.now + 60_000_000 && stays.expireTime == nil)
    let start = try await world.head()
    world.clock.advance(seconds: 59)
    #expect(try await world.sequences(chat, ben) == [1, 2, 3, 4, 5])
    world.clock.advance(seconds: 1)
    // Before any sweep.
    #expect(try await world.sequences(chat, ben) == [1, 2, 3])
    #expect(try await world.view(chat, ben).unread == .none)
    #expect(try await world.view(chat, ana).lastMessage?.sequence == 3)
    #expect(
      try await world.store.read { try $0.searchMessages("xyzzy", for: ben.key).hits.isEmpty })
    #expect(try await world.write { try $0.sweepExpired() } == false)
    #expect(try await world.write { try $0.sweepExpired() } == false)
    #expect(
      try await world.events(of: ben, after: start) == [
        .messagesDeleted(
          Deletion(chat: chat.id, ranges: [SequenceRange(4, 5)], scope: .expired, actor: nil)),
        // Who missed the reply hears how far it moved the marker.
        .unreadChanged(chat: chat.id, .none, total: 0, read: 5),
      ])
    #expect(reply.sequence == 5)
    var steps = 1
    while try await world.write({ [steps] in
      try $0.optimizeSearch(isFirst: steps == 1, pages: 1)
    }) { steps += 1 }
    world.store.close()
    let files = try world.scratch.read("vencejo.sqlite")
    let (isKept, isGone) = (contains(files, "stays"), !contains(files, "xyzzy"))
    #expect(isKept && isGone)
  }

  private func contains(_ bytes: [UInt8], _ text: String) -> Bool {
    let needle = Array(text.utf8)
    return bytes.indices.contains { bytes[$0...].starts(with: needle) }
  }
}
