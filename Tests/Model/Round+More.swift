import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC

/// What people do beside writing: polls, files, invites, forwarding, privacy, and time that passes.
extension Round {
  func actMore(_ user: Int) async throws {
    switch pick(0..<20) {
    case 0..<3: try await poll(user)
    case 3..<7: try await vote(user)
    case 7..<9: try await share(user)
    case 9..<11: try await mention(user)
    case 11: try await invite(user)
    case 12..<14: try await useInvite(user)
    case 14: try await revokeInvite(user)
    case 15: try await forward(user)
    case 16: try await changePrivacy(user)
    case 17: try await expireMessages(user)
    case 18: try await passTime()
    default: try await makeNoise(user)
    }
  }

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

  private func isShared(_ chat: String) -> Bool {
    model.chats[chat]?.kind == .group || model.chats[chat]?.kind == .channel
  }

  func memberRefusal(_ user: Int, _ chat: String) -> String? {
    model.knows(user, chat) ? model.isIn(user, chat) ? nil : "NOT_A_MEMBER" : "CHAT_NOT_FOUND"
  }

  /// Why a user may not write to a chat.
  func sendRefusal(_ user: Int, _ chat: String) -> String? {
    if let failure = memberRefusal(user, chat) { return failure }
    if isShared(chat), model.chats[chat]?.members[user]?.role == .reader { return "ROLE_TOO_LOW" }
    if model.chats[chat]?.kind == .direct,
      let peer = model.chats[chat]?.members.keys.first(where: { $0 != user }),
      model.blocks[user]?.contains(peer) ?? false
    {
      return "BLOCKED"
    }
    return nil
  }

  private func write(
    _ what: String, _ content: Chat.MessageContent.Kind, to chat: String, by user: Int,
    _ message: ChatModel.Message
  ) async throws {
    let expected = sendRefusal(user, chat)
    let reason = try await attempt("\(user) sends \(what) to \(chat)") { client in
      _ = try await client.sendMessage(
        .with {
          $0.parent = chat
          $0.messageId = message.id
          $0.content = .with { $0.kind = content }
        }, self.options(user))
    }
    guard expect(reason, expected, "sending \(what) to \(chat)") else { return }
    model.send(message, to: chat, by: user)
  }

  // MARK: Polls

  private func poll(_ user: Int) async throws {
    guard let chat = chat(of: user) else { return }
    let several = pick(0..<2) == 0
    var message = ChatModel.Message(id: "\(UUID.v7())", sender: user, text: unique("poll"))
    message.poll = ChatModel.Poll(options: [1, 2, 3], allowsSeveral: several)
    let question = message.text
    try await write(
      "a poll",
      .poll(
        .with {
          $0.question = question
          $0.multipleChoice = several
          $0.options = [Int32(1), 2, 3].map { id in
            .with {
              $0.optionId = id
              $0.text = "option \(id)"
            }
          }
        }), to: chat, by: user, message)
  }

  private func vote(_ user: Int) async throws {
    guard let chat = chat(of: user), let messages = model.chats[chat]?.messages else { return }
    let candidates = messages.indices.filter { messages[$0].poll != nil || pick(0..<30) == 0 }
      .filter { !messages[$0].id.isEmpty }
    guard let index = candidates.randomElement(using: &random) else { return }
    let message = messages[index]
    let chosen = [1, 2, 3].filter { _ in pick(0..<2) == 0 }
    var expected =
      !model.knows(user, chat)
      ? "CHAT_NOT_FOUND" : message.isVisible(to: user) ? nil : "MESSAGE_NOT_FOUND"
    expected = expected ?? memberRefusal(user, chat)
    if expected == nil {
      if message.isDeleted {
        expected = "MESSAGE_DELETED"
      } else if let poll = message.poll {
        if chosen.count > 1, !poll.allowsSeveral { expected = "BAD_VOTE" }
      } else {
        expected = "NOT_A_POLL"
      }
    }
    let reason = try await attempt("\(user) votes \(chosen) on \(index + 1) of \(chat)") { client in
      _ = try await client.votePoll(
        .with {
          $0.name = "\(chat)/messages/\(message.id)"
          $0.optionIds = chosen.map(Int32.init)
        }, self.options(user))
    }
    guard expect(reason, expected, "voting in \(chat)") else { return }
    model.chats[chat]?.messages[index].poll?.votes[user] = chosen.isEmpty ? nil : Set(chosen)
  }

  // MARK: Files and mentions

  private func share(_ user: Int) async throws {
    guard let chat = chat(of: user) else { return }
    let bytes = Array(unique("bytes").utf8)
    let upload = "\(UUID.v7())"
    var name = ""
    let reason = try await attempt("\(user) uploads a file") { client in
      let call = client.uploadAttachment(self.options(user))
      try await call.send(
        .with {
          $0.payload = .header(
            .with {
              $0.uploadId = upload
              $0.sizeBytes = Int64(bytes.count)
              $0.sha256 = SHA256.digest(bytes)
            })
        })
      try await call.send(.with { $0.payload = .chunk(bytes) })
      call.finish()
      name = try await call.response.attachment?.name ?? ""
    }
    // An upload that was complete before is answered at the header; sending on fails then.
    guard reason == nil, !name.isEmpty else { return }
    model.uploads[name] = user
    model.files[name] = bytes
    var message = ChatModel.Message(id: "\(UUID.v7())", sender: user, text: unique("caption"))
    message.attachment = name
    let caption = message.text
    try await write(
      "a file",
      .media(
        .with {
          $0.attachments = [name]
          $0.caption = caption
        }), to: chat, by: user, message)
  }

  private func mention(_ user: Int) async throws {
    guard let chat = chat(of: user) else { return }
    let other = pick(0..<people.count)
    var message = ChatModel.Message(id: "\(UUID.v7())", sender: user, text: unique("@you"))
    message.mentions = [other]
    let text = message.text
    let called = people[other].name
    try await write(
      "a mention of \(other)",
      .text(
        .with {
          $0.text = text
          $0.mentions = [
            .with {
              $0.user = called
              $0.length = 4
            }
          ]
        }), to: chat, by: user, message)
  }

  private func forward(_ user: Int) async throws {
    guard let source = model.chats(of: user).sorted().randomElement(using: &random),
      let target = chat(of: user), let messages = model.chats[source]?.messages
    else { return }
    let index = messages.indices.filter {
      messages[$0].isVisible(to: user) && !messages[$0].isDeleted && !messages[$0].id.isEmpty
        && messages[$0].poll == nil && messages[$0].attachment == nil
    }.suffix(8).randomElement(using: &random)
    guard let index else { return }
    let message = ChatModel.Message(
      id: "\(UUID.v7())", sender: user, text: messages[index].text)
    let expected = sendRefusal(user, target)
    let reason = try await attempt("\(user) forwards \(index + 1) of \(source) to \(target)") {
      client in
      _ = try await client.forwardMessages(
        .with {
          $0.names = ["\(source)/messages/\(messages[index].id)"]
          $0.targetChats = [target]
          $0.messageIds = [message.id]
        }, self.options(user))
    }
    guard expect(reason, expected, "forwarding to \(target)") else { return }
    model.send(message, to: target, by: user)
  }

  // MARK: Invites

  private func invite(_ user: Int) async throws {
    guard
      let chat = model.chats(of: user).filter({ isShared($0) }).sorted()
        .randomElement(using: &random)
    else { return }
    let request = unique("request")
    let isLow = (model.chats[chat]?.members[user]?.role ?? .reader) < .admin
    var invite = Chat.Invite()
    let reason = try await attempt("\(user) makes an invite to \(chat)") { client in
      invite =
        try await client.createInvite(
          .with {
            $0.parent = chat
            $0.requestId = request
          }, self.options(user)
        ).invite ?? Chat.Invite()
    }
    guard expect(reason, isLow ? "ROLE_TOO_LOW" : nil, "inviting to \(chat)") else { return }
    model.invites.append(
      ChatModel.Invite(name: invite.name, code: invite.code, chat: chat, creator: user))
  }

  private func useInvite(_ user: Int) async throws {
    guard let invite = model.invites.randomElement(using: &random) else { return }
    let request = unique("request")
    // Nobody is let in where nobody is left.
    let isGone =
      !model.isIn(user, invite.chat)
      && (invite.isRevoked || !people.indices.contains { model.isIn($0, invite.chat) })
    let reason = try await attempt("\(user) joins \(invite.chat)") { client in
      _ = try await client.joinChat(
        .with {
          $0.inviteCode = invite.code
          $0.requestId = request
        }, self.options(user))
    }
    guard expect(reason, isGone ? "INVITE_NOT_FOUND" : nil, "joining \(invite.chat)") else {
      return
    }
    if !model.isIn(user, invite.chat) { model.add(user, to: invite.chat) }
  }

  private func revokeInvite(_ user: Int) async throws {
    let own = model.invites.indices.filter {
      model.invites[$0].creator == user && model.isIn(user, model.invites[$0].chat)
    }
    guard let index = own.randomElement(using: &random) else { return }
    let invite = model.invites[index]
    let reason = try await attempt("\(user) revokes an invite to \(invite.chat)") { client in
      _ = try await client.revokeInvite(.with { $0.name = invite.name }, self.options(user))
    }
    // Once is enough; who may no longer is refused.
    if reason == nil { model.invites[index].isRevoked = true }
  }

  // MARK: Time and privacy

  private func changePrivacy(_ user: Int) async throws {
    let hides = pick(0..<2) == 0
    let request = unique("request")
    let reason = try await attempt("\(user) \(hides ? "hides" : "shows") receipts") { client in
      _ = try await client.updateProfile(
        .with {
          $0.profile = .with { $0.privacy = .with { $0.hideReadReceipts = hides } }
          $0.updateMask = Google.FieldMask("privacy.hide_read_receipts")
          $0.requestId = request
        }, self.options(user))
    }
    guard expect(reason, nil, "hiding receipts") else { return }
    if hides { model.hidesReceipts.insert(user) } else { model.hidesReceipts.remove(user) }
  }

  /// Messages of a chat go an hour after they are sent, or stay.
  private func expireMessages(_ user: Int) async throws {
    guard let chat = model.chats(of: user).sorted().randomElement(using: &random) else { return }
    let ttl: Int? = pick(0..<3) > 0 ? 3600 : nil
    let request = unique("request")
    let isLow =
      isShared(chat) && model.chats[chat]?.ttl != ttl
      && (model.chats[chat]?.members[user]?.role ?? .reader) < .admin
    let reason = try await attempt("\(user) lets messages of \(chat) stay \(ttl ?? 0) s") {
      client in
      _ = try await client.updateChat(
        .with {
          $0.chat = .with {
            $0.name = chat
            if let ttl { $0.messageTtl = .init(seconds: Int64(ttl)) }
          }
          $0.updateMask = Google.FieldMask("message_ttl")
          $0.requestId = request
        }, self.options(user))
    }
    guard expect(reason, isLow ? "ROLE_TOO_LOW" : nil, "expiring \(chat)") else { return }
    guard model.chats[chat]?.ttl != ttl else { return }
    if let kind = model.chats[chat]?.kind, kind == .group || kind == .direct { model.note(chat) }
    model.chats[chat]?.ttl = ttl
  }

  /// An hour and more: windows close, messages expire, access tokens too.
  private func passTime() async throws {
    guard model.time < 15 * 4000 else { return }
    log("more than an hour passes")
    clock.advance(seconds: 4000)
    model.pass(seconds: 4000)
    let reason = try await attempt("all sign in") { try await self.signInAll($0) }
    _ = expect(reason, nil, "signing in")
  }

  /// What is not kept, and must disturb nothing.
  private func makeNoise(_ user: Int) async throws {
    guard let chat = chat(of: user) else { return }
    _ = try await attempt("\(user) makes noise in \(chat)") { client in
      _ = try await client.setPresence(
        .with { $0.state = self.pick(0..<2) == 0 ? .away : .online }, self.options(user))
      _ = try await client.sendTyping(
        .with {
          $0.chat = chat
          $0.state = .typing
        }, self.options(user))
    }
  }
}
