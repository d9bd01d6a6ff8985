import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC

/// What people do to messages.
extension Round {
  private func expect(_ reason: String?, _ expected: String?, _ what: String) -> Bool {
    if reason != expected {
      fault("\(what): \(reason ?? "done"), should \(expected ?? "be done")")
      return false
    }
    return reason == nil
  }

  private func chat(of user: Int) -> String? {
    let all = pick(0..<10) == 0 ? Set(model.chats.keys) : model.chats(of: user)
    return all.sorted().randomElement(using: &random)
  }

  private func memberFailure(_ user: Int, _ chat: String) -> String? {
    model.knows(user, chat) ? model.isIn(user, chat) ? nil : "NOT_A_MEMBER" : "CHAT_NOT_FOUND"
  }

  private func isShared(_ chat: String) -> Bool {
    model.chats[chat]?.kind == .group || model.chats[chat]?.kind == .channel
  }

  func send(_ user: Int) async throws {
    guard let chat = chat(of: user) else { return }
    let (id, text) = ("\(UUID.v7())", unique("text"))
    var expected = memberFailure(user, chat)
    if expected == nil, isShared(chat), model.chats[chat]?.members[user]?.role == .reader {
      expected = "ROLE_TOO_LOW"
    }
    if expected == nil, model.chats[chat]?.kind == .direct,
      let peer = model.chats[chat]?.members.keys.first(where: { $0 != user }),
      model.blocks[user]?.contains(peer) ?? false
    {
      expected = "BLOCKED"
    }
    let reason = try await attempt("\(user) sends \(text) to \(chat)") { client in
      _ = try await client.sendMessage(
        .with {
          $0.parent = chat
          $0.messageId = id
          $0.content = .with { $0.kind = .text(.with { $0.text = text }) }
        }, self.options(user))
    }
    guard expect(reason, expected, "sending to \(chat)") else { return }
    model.send(ChatModel.Message(id: id, sender: user, text: text), to: chat, by: user)
  }

  func read(_ user: Int) async throws {
    guard let chat = chat(of: user) else { return }
    let target = pick(0..<(model.chats[chat]?.messages.count ?? 0) + 3)
    let isPrivate = pick(0..<4) == 0
    let reason = try await attempt("\(user) reads \(chat) to \(target)") { client in
      _ = try await client.markRead(
        .with {
          $0.chat = chat
          $0.upToSequence = Int64(target)
          $0.`private` = isPrivate
        }, self.options(user))
    }
    guard expect(reason, model.knows(user, chat) ? nil : "CHAT_NOT_FOUND", "reading \(chat)")
    else { return }
    model.read(user, chat, upTo: target)
  }

  /// A message with an id, mostly one the user may see.
  private func message(_ user: Int) -> (chat: String, index: Int)? {
    guard let chat = chat(of: user), let messages = model.chats[chat]?.messages else { return nil }
    let indices = messages.indices.filter { !messages[$0].id.isEmpty }
    return indices.suffix(12).randomElement(using: &random).map { (chat, $0) }
  }

  private func lookFailure(_ user: Int, _ chat: String, _ index: Int) -> String? {
    guard model.knows(user, chat) else { return "CHAT_NOT_FOUND" }
    return model.chats[chat]?.messages[index].isVisible(to: user) == true
      ? nil : "MESSAGE_NOT_FOUND"
  }

  private func name(_ chat: String, _ index: Int) -> String {
    "\(chat)/messages/\(model.chats[chat]?.messages[index].id ?? "")"
  }

  func react(_ user: Int) async throws {
    guard let (chat, index) = message(user), let message = model.chats[chat]?.messages[index]
    else { return }
    let emoji = ["", "👍", "❤️"].randomElement(using: &random) ?? ""
    let expected =
      lookFailure(user, chat, index) ?? memberFailure(user, chat)
      ?? (message.isDeleted ? "MESSAGE_DELETED" : nil)
    let target = name(chat, index)
    let reason = try await attempt("\(user) reacts \(emoji) to \(index + 1) of \(chat)") { client in
      _ = try await client.setReaction(
        .with {
          $0.message = target
          $0.emoji = emoji
        }, self.options(user))
    }
    guard expect(reason, expected, "reacting in \(chat)") else { return }
    model.chats[chat]?.messages[index].reactions[user] = emoji.isEmpty ? nil : emoji
  }

  func edit(_ user: Int) async throws {
    guard let (chat, index) = message(user), let message = model.chats[chat]?.messages[index]
    else { return }
    let (text, request) = (unique("edited"), unique("request"))
    let expected =
      lookFailure(user, chat, index) ?? memberFailure(user, chat)
      ?? (message.sender != user
        ? "NOT_THE_SENDER"
        : message.isDeleted
          ? "MESSAGE_DELETED"
          : message.poll != nil || message.attachment != nil
            ? "BAD_CONTENT" : model.isOver(15 * 60, message) ? "EDIT_WINDOW_CLOSED" : nil)
    let target = name(chat, index)
    let reason = try await attempt("\(user) edits \(index + 1) of \(chat)") { client in
      _ = try await client.editMessage(
        .with {
          $0.name = target
          $0.content = .with { $0.kind = .text(.with { $0.text = text }) }
          $0.requestId = request
        }, self.options(user))
    }
    guard expect(reason, expected, "editing in \(chat)") else { return }
    model.chats[chat]?.messages[index].text = text
    model.chats[chat]?.messages[index].mentions = []
    model.chats[chat]?.messages[index].edits += 1
  }

  func delete(_ user: Int) async throws {
    guard let chat = chat(of: user), let messages = model.chats[chat]?.messages,
      !messages.isEmpty
    else { return }
    let first = pick(max(0, messages.count - 10)..<messages.count)
    let last = min(messages.count - 1, first + pick(0..<3))
    let forMe = pick(0..<2) == 0
    var expected: String?
    let seen = (first...last).filter { messages[$0].isVisible(to: user) }
    let role = model.chats[chat]?.members[user]?.role ?? .reader
    if !model.knows(user, chat) {
      expected = "CHAT_NOT_FOUND"
    } else if !forMe {
      expected = memberFailure(user, chat)
      for index in seen where expected == nil && !messages[index].isDeleted {
        let message = messages[index]
        if message.sender != nil, isShared(chat), role >= .admin { continue }
        expected =
          message.sender != user
          ? "NOT_THE_SENDER" : model.isOver(48 * 3600, message) ? "DELETE_WINDOW_CLOSED" : nil
      }
    }
    let reason = try await attempt(
      "\(user) deletes \(first + 1)...\(last + 1) of \(chat) \(forMe ? "for me" : "for all")"
    ) { client in
      _ = try await client.deleteMessages(
        .with {
          $0.parent = chat
          $0.ranges = [
            .with {
              $0.firstSequence = Int64(first + 1)
              $0.lastSequence = Int64(last + 1)
            }
          ]
          $0.scope = forMe ? .forMe : .forEveryone
        }, self.options(user))
    }
    guard expect(reason, expected, "deleting in \(chat)") else { return }
    for index in seen {
      if forMe {
        model.chats[chat]?.messages[index].hiddenFor.insert(user)
      } else if !messages[index].isDeleted {
        model.chats[chat]?.messages[index].isDeleted = true
        model.chats[chat]?.messages[index].reactions = [:]
        model.chats[chat]?.messages[index].mentions = []
        model.chats[chat]?.messages[index].poll?.votes = [:]
        model.chats[chat]?.messages[index].isPinned = false
      }
    }
  }

  func star(_ user: Int) async throws {
    guard let (chat, index) = message(user) else { return }
    let starred = pick(0..<2) == 0
    let target = name(chat, index)
    let reason = try await attempt("\(user) stars \(index + 1) of \(chat)") { client in
      _ = try await client.setMessageStarred(
        .with {
          $0.name = target
          $0.starred = starred
        }, self.options(user))
    }
    guard expect(reason, lookFailure(user, chat, index), "starring in \(chat)") else { return }
    if starred {
      model.chats[chat]?.messages[index].starredBy.insert(user)
    } else {
      model.chats[chat]?.messages[index].starredBy.remove(user)
    }
  }

  func pin(_ user: Int) async throws {
    guard let (chat, index) = message(user), let message = model.chats[chat]?.messages[index]
    else { return }
    let pinned = pick(0..<3) > 0
    var expected = lookFailure(user, chat, index) ?? memberFailure(user, chat)
    if expected == nil, isShared(chat), model.chats[chat]?.members[user]?.role == .reader {
      expected = "ROLE_TOO_LOW"
    }
    if expected == nil, message.isDeleted { expected = "MESSAGE_DELETED" }
    let target = name(chat, index)
    let reason = try await attempt("\(user) pins \(index + 1) of \(chat): \(pinned)") { client in
      _ = try await client.setMessagePinned(
        .with {
          $0.name = target
          $0.pinned = pinned
        }, self.options(user))
    }
    guard expect(reason, expected, "pinning in \(chat)"), message.isPinned != pinned else {
      return
    }
    model.chats[chat]?.messages[index].isPinned = pinned
    if pinned, isShared(chat) { model.note(chat) }
  }

  func clear(_ user: Int) async throws {
    guard let chat = chat(of: user) else { return }
    let last = pick(0..<(model.chats[chat]?.messages.count ?? 0) + 1)
    let request = unique("request")
    let end = model.isIn(user, chat) ? model.chats[chat]?.messages.count ?? 0 : nil
    let reason = try await attempt("\(user) clears \(chat) to \(last)") { client in
      _ = try await client.clearChat(
        .with {
          $0.name = chat
          $0.upToSequence = Int64(last)
          $0.requestId = request
        }, self.options(user))
    }
    guard expect(reason, model.knows(user, chat) ? nil : "CHAT_NOT_FOUND", "clearing \(chat)")
    else { return }
    for index in model.chats[chat]?.messages.indices ?? 0..<0
    where index < (last == 0 ? end ?? .max : last) {
      if model.chats[chat]?.messages[index].audience.contains(user) == true {
        model.chats[chat]?.messages[index].hiddenFor.insert(user)
      }
    }
  }
}
