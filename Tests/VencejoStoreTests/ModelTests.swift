import TestSupport
import Testing
import VencejoCrypto

@testable import VencejoStore

/// What a client keeps by applying events only.
private struct ClientCache: Equatable {
  struct ChatState: Equatable {
    var last: Int64 = 0
    var unread = 0
    var texts: [Int64: String] = [:]
    var senders: [Int64: UUID] = [:]
    var peersRead: [UUID: Int64] = [:]
  }
  let me: UUID
  var position: Int64 = 0
  var chats: [UUID: ChatState] = [:]

  mutating func apply(_ event: ChatEvent) {
    switch event {
    case .chatUpserted(let chat):
      #expect(chats[chat.id] == nil)
      #expect(chat.lastSequence == 0 && chat.unread == .none && chat.lastMessage == nil)
      chats[chat.id] = ChatState()
    case .messageCreated(let message):
      #expect(chats[message.chat]?.last == message.sequence - 1)
      chats[message.chat]?.last = message.sequence
      chats[message.chat]?.texts[message.sequence] = "\(message.body)"
      guard let sender = message.sender else { return }
      chats[message.chat]?.senders[message.sequence] = sender
      if sender == me {
        chats[message.chat]?.unread = 0
      } else {
        chats[message.chat]?.unread += 1
        chats[message.chat]?.peersRead[sender] = message.sequence
      }
    case .receiptMoved(let marker):
      if marker.user != me, marker.read > 0 {
        chats[marker.chat]?.peersRead[marker.user] = marker.read
      }
    case .unreadChanged(let chat, let unread, _, _):
      chats[chat]?.unread = unread.count
    case .notificationCreated: break
    default: Issue.record("\(event)")
    }
  }
}

@Suite struct ModelTests {
  /// Random acts of four people, random crashes; each of them must end with the same state by
  /// applying events as by asking afresh, and both must agree with a model in memory.
  @Test(arguments: [1, 2, 3, 4, 5, 6])
  func eventsLeadToTheFreshState(_ seed: UInt64) async throws {
    var random = SeededGenerator(state: seed)
    var scratch = try Scratch()
    var store = try scratch.open()
    var users: [Account] = []
    for name in ["ana", "ben", "cleo", "dan"] {
      let new = NewAccount(handle: name, password: "password")
      users.append(try await store.signUp(new).account)
    }
    var caches = users.map { ClientCache(me: $0.id) }
    var chats: [ChatView] = []
    // The model: who wrote what, and how far each member has read.
    var messages: [UUID: [(id: UUID, sender: UUID?, text: String)]] = [:]
    var members: [UUID: [UUID: Int64]] = [:]

    for _ in 0..<150 {
      let actor = users[Int.random(in: 0..<4, using: &random)]
      let choice = Int.random(in: 0..<20, using: &random)
      switch choice {
      case 0 where chats.count < 8:
        let others = users.filter { $0.key != actor.key }.shuffled(using: &random)
        let count = Int.random(in: 1...3, using: &random)
        let new = NewChat(
          kind: count == 1 ? .direct : .group, title: count == 1 ? "" : "G",
          members: others.prefix(count).map(\.id))
        let made = try await store.write { try $0.createChat(new, by: actor.key) }
        if made.isNew {
          chats.append(made.chat)
          messages[made.chat.id] = count == 1 ? [] : [(UUID.v7(), nil, "")]
          members[made.chat.id] = [actor.id: 0]
          for other in others.prefix(count) { members[made.chat.id]?[other.id] = 0 }
        }
      case 1..<11:
        guard let chat = chats.randomElement(using: &random) else { continue }
        let isMember = members[chat.id]?[actor.id] != nil
        let own = messages[chat.id]?.last { $0.sender == actor.id }
        let repeated = choice == 1 ? own : nil
        let text = "\(random.next())"
        let outgoing = OutgoingMessage(
          chat: chat.id, id: repeated?.id ?? .v7(), text: text)
        let failure = await reason {
          let sent = try await store.write { try $0.sendMessage(outgoing, by: actor.key) }
          #expect(sent.isDuplicate == (repeated != nil))
        }
        #expect(failure == (isMember ? nil : "CHAT_NOT_FOUND"))
        guard isMember, repeated == nil else { continue }
        messages[chat.id]?.append((outgoing.id, actor.id, text))
        members[chat.id]?[actor.id] = Int64(messages[chat.id]?.count ?? 0)
      case 11..<15:
        guard let chat = chats.randomElement(using: &random),
          let marker = members[chat.id]?[actor.id]
        else { continue }
        let count = Int64(messages[chat.id]?.count ?? 0)
        let target = Int64.random(in: 0...(count + 2), using: &random)
        let isPrivate = Bool.random(using: &random)
        _ = try await store.write {
          try $0.markRead(chat.id, upTo: target, isPrivate: isPrivate, by: actor.key)
        }
        members[chat.id]?[actor.id] = max(marker, min(target, count))
      case 15:
        // A crash inside a transaction: nothing of it may be seen again, all before it must.
        let image = try await store.write { [scratch, chats] transaction -> Scratch in
          if let chat = chats.first {
            try transaction.run("UPDATE chat SET last_seq = 1000 WHERE chat_id = ?", chat.key)
          }
          return try scratch.crashImage()
        }
        if let chat = chats.first {
          let last = Int64(messages[chat.id]?.count ?? 0)
          try await store.write {
            try $0.run("UPDATE chat SET last_seq = ? WHERE chat_id = ?", last, chat.key)
          }
        }
        store.close()
        scratch = image
        store = try scratch.open()
      default:
        let index = Int.random(in: 0..<4, using: &random)
        let limit = Int.random(in: 1...5, using: &random)
        try await catchUp(&caches[index], users[index], store, limit, toHead: false)
      }
    }

    for (index, user) in users.enumerated() {
      try await catchUp(&caches[index], user, store, 3, toHead: true)
      var fresh = ClientCache(me: user.id, position: caches[index].position)
      let listed = try await store.read { try $0.listChats(for: user.key).chats }
      for chat in listed {
        let page = try await store.read {
          try $0.listMessages(chat.id, pageSize: 200, for: user.key).messages
        }
        #expect(page.map(\.sequence) == Array(0..<chat.lastSequence).map { $0 + 1 })
        var state = ClientCache.ChatState(last: chat.lastSequence, unread: chat.unread.count)
        for message in page {
          state.texts[message.sequence] = "\(message.body)"
          state.senders[message.sequence] = message.sender
        }
        // Others' markers have no list of their own yet: they are compared through the ticks.
        state.peersRead = caches[index].chats[chat.id]?.peersRead ?? [:]
        for message in page where message.sender == user.id {
          let others = (members[chat.id] ?? [:]).keys.filter { $0 != user.id }
          let least = others.map { state.peersRead[$0] ?? 0 }.min() ?? 0
          #expect((message.delivery == .read) == (message.sequence <= least))
        }
        fresh.chats[chat.id] = state

        let model = messages[chat.id] ?? []
        #expect(
          page.map(\.body) == zip(model, page).map { $0.sender == nil ? $1.body : .text($0.text) })
        let marker = members[chat.id]?[user.id] ?? 0
        let unread = model.enumerated().filter {
          Int64($0.offset) + 1 > marker && $0.element.sender != nil && $0.element.sender != user.id
        }
        #expect(chat.unread.count == unread.count)
        #expect(chat.unread.firstSequence == unread.first.map { Int64($0.offset) + 1 } ?? 0)
        #expect(chat.membership.readSequence == marker)
      }
      #expect(caches[index] == fresh)
      #expect(Set(listed.map(\.id)) == Set(members.filter { $0.value[user.id] != nil }.keys))
      let total = try await store.read { try $0.totalUnread(of: user.key) }
      #expect(total == listed.map(\.unread.count).reduce(0, +))
    }
    store.close()
  }

  private func catchUp(
    _ cache: inout ClientCache, _ user: Account, _ store: Store, _ limit: Int, toHead: Bool
  ) async throws {
    while true {
      let page = try await store.read { [position = cache.position] in
        try $0.chatLog(for: user.key, after: position, limit: limit)
      }
      for entry in page.entries {
        for event in entry.events { cache.apply(event) }
        // A client may stop after any transaction and go on from there.
        cache.position = entry.position
      }
      cache.position = page.position
      if page.isAtHead || !toHead { return }
    }
  }
}
