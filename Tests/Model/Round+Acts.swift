import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC

/// What people do, what the model says must come of it.
extension Round {
  private func expect(_ reason: String?, _ expected: String?, _ what: String) -> Bool {
    if reason != expected {
      fault("\(what): \(reason ?? "done"), should \(expected ?? "be done")")
      return false
    }
    return reason == nil
  }

  func act(_ channel: Chat.ChatClient) async throws {
    let user = pick(0..<people.count)
    if pick(0..<4) == 0, !model.chats.isEmpty { return try await actMore(user) }
    switch pick(0..<100) {
    case 0..<8 where model.chats.count < 12: try await create(user)
    case 0..<40: try await send(user)
    case 40..<48: try await read(user)
    case 48..<54: try await react(user)
    case 54..<60: try await edit(user)
    case 60..<66: try await delete(user)
    case 66..<72: try await addMember(user)
    case 72..<75: try await leave(user)
    case 75..<79: try await remove(user)
    case 79..<82: try await promote(user)
    case 82..<85: try await rename(user)
    case 85..<88: try await settle(user)
    case 88..<91: try await star(user)
    case 91..<94: try await pin(user)
    case 94..<97: try await block(user)
    case 97..<98: try await deleteChat(user)
    default: try await clear(user)
    }
  }

  private var someChat: String? { model.chats.keys.sorted().randomElement(using: &random) }

  /// A chat, mostly one the user is in.
  private func chat(of user: Int) -> String? {
    if pick(0..<8) == 0 { return someChat }
    return model.chats(of: user).sorted().randomElement(using: &random)
  }

  private func memberFailure(_ user: Int, _ chat: String) -> String? {
    model.knows(user, chat) ? model.isIn(user, chat) ? nil : "NOT_A_MEMBER" : "CHAT_NOT_FOUND"
  }

  private func role(_ user: Int, _ chat: String) -> ChatModel.Role {
    model.chats[chat]?.members[user]?.role ?? .reader
  }

  private func isShared(_ chat: String) -> Bool {
    model.chats[chat]?.kind == .group || model.chats[chat]?.kind == .channel
  }

  // MARK: Chats

  private func create(_ user: Int) async throws {
    let kinds: [(ChatModel.Kind, Chat.ChatKind)] = [
      (.direct, .direct), (.group, .group), (.group, .group), (.channel, .channel),
    ]
    guard let kind = kinds.randomElement(using: &random) else { return }
    var others = people.indices.filter { $0 != user }.shuffled(using: &random)
    others = Array(others.prefix(kind.0 == .direct ? 1 : pick(1..<people.count)))
    // Who blocks the creator is not added by them.
    if kind.0 != .direct { others.removeAll { model.blocks[$0]?.contains(user) ?? false } }
    let title = kind.0 == .direct ? "" : unique("title")
    let request = unique("request")
    var response = Chat.CreateChatResponse()
    let reason = try await attempt("\(user) creates a \(kind.0) with \(others)") { client in
      response = try await client.createChat(
        .with {
          $0.requestId = request
          $0.chat = .with {
            $0.kind = kind.1
            $0.title = title
          }
          $0.members = others.map { self.people[$0].name }
        }, self.options(user))
    }
    guard expect(reason, nil, "creating"), let name = response.chat?.name,
      model.chats[name] == nil
    else { return }
    model.create(name, kind.0, title: title, by: user, with: others)
  }

  private func rename(_ user: Int) async throws {
    guard let chat = chat(of: user) else { return }
    let (title, request) = (unique("title"), unique("request"))
    let expected =
      memberFailure(user, chat)
      ?? (isShared(chat) ? role(user, chat) < .member ? "ROLE_TOO_LOW" : nil : "WRONG_CHAT_KIND")
    let reason = try await attempt("\(user) renames \(chat)") { client in
      _ = try await client.updateChat(
        .with {
          $0.chat = .with {
            $0.name = chat
            $0.title = title
          }
          $0.updateMask = Google.FieldMask("title")
          $0.requestId = request
        }, self.options(user))
    }
    guard expect(reason, expected, "renaming \(chat)") else { return }
    model.chats[chat]?.title = title
    if model.chats[chat]?.kind == .group { model.note(chat) }
  }

  private func deleteChat(_ user: Int) async throws {
    guard let chat = chat(of: user) else { return }
    let request = unique("request")
    let expected =
      !model.knows(user, chat)
      ? "CHAT_NOT_FOUND"
      : !isShared(chat)
        ? "WRONG_CHAT_KIND"
        : memberFailure(user, chat) ?? (role(user, chat) < .owner ? "ROLE_TOO_LOW" : nil)
    let reason = try await attempt("\(user) deletes \(chat)") { client in
      _ = try await client.deleteChat(
        .with {
          $0.name = chat
          $0.requestId = request
        }, self.options(user))
    }
    if expect(reason, expected, "deleting \(chat)") { model.chats[chat] = nil }
  }

  private func settle(_ user: Int) async throws {
    guard let chat = chat(of: user) else { return }
    let rank = pick(0..<3)
    let (archived, unread) = (pick(0..<2) == 0, pick(0..<2) == 0)
    let reason = try await attempt("\(user) changes settings of \(chat)") { client in
      _ = try await client.updateChatSettings(
        .with {
          $0.settings = .with {
            $0.name = "\(chat)/settings"
            $0.archived = archived
            $0.pinRank = Int32(rank)
            $0.markedUnread = unread
          }
          $0.updateMask = Google.FieldMask("archived", "pin_rank", "marked_unread")
        }, self.options(user))
    }
    guard expect(reason, model.knows(user, chat) ? nil : "CHAT_NOT_FOUND", "settings of \(chat)")
    else { return }
    model.chats[chat]?.settings[user] = ChatModel.Settings(
      isArchived: archived, pinRank: rank, isMarkedUnread: unread)
  }

  // MARK: Members

  private func addMember(_ user: Int) async throws {
    guard let chat = chat(of: user) else { return }
    let other = pick(0..<people.count)
    let request = unique("request")
    let expected =
      !model.knows(user, chat)
      ? "CHAT_NOT_FOUND"
      : !isShared(chat)
        ? "WRONG_CHAT_KIND"
        : memberFailure(user, chat) ?? (role(user, chat) < .member ? "ROLE_TOO_LOW" : nil)
    var response = Chat.AddMembersResponse()
    let reason = try await attempt("\(user) adds \(other) to \(chat)") { client in
      response = try await client.addMembers(
        .with {
          $0.parent = chat
          $0.users = [self.people[other].name]
          $0.requestId = request
        }, self.options(user))
    }
    guard expect(reason, expected, "adding to \(chat)") else { return }
    guard !model.isIn(other, chat) else { return }
    let isRefused = model.blocks[other]?.contains(user) ?? false
    guard response.failures.isEmpty == !isRefused else {
      fault("adding \(other) to \(chat): \(response)")
      return
    }
    if !isRefused { model.add(other, to: chat) }
  }

  private func leave(_ user: Int) async throws {
    guard let chat = chat(of: user) else { return }
    let heir = model.chats[chat]?.members.keys.filter { $0 != user && model.isIn($0, chat) }
      .sorted().randomElement(using: &random)
    let request = unique("request")
    let expected =
      !model.knows(user, chat)
      ? "CHAT_NOT_FOUND" : !isShared(chat) ? "WRONG_CHAT_KIND" : memberFailure(user, chat)
    let isOwner = role(user, chat) == .owner
    let reason = try await attempt("\(user) leaves \(chat)") { client in
      _ = try await client.leaveChat(
        .with {
          $0.name = chat
          if isOwner, let heir { $0.newOwner = self.people[heir].name }
          $0.requestId = request
        }, self.options(user))
    }
    guard expect(reason, expected, "leaving \(chat)") else { return }
    if isOwner, let heir { model.chats[chat]?.members[heir]?.role = .owner }
    model.end(user, chat)
  }

  private func remove(_ user: Int) async throws {
    guard let chat = chat(of: user) else { return }
    let other = pick(0..<people.count)
    let request = unique("request")
    var expected: String?
    if !model.knows(user, chat) {
      expected = "CHAT_NOT_FOUND"
    } else if !isShared(chat) {
      expected = "WRONG_CHAT_KIND"
    } else if let failure = memberFailure(user, chat) {
      expected = failure
    } else if role(user, chat) < .admin {
      expected = "ROLE_TOO_LOW"
    } else if !model.isIn(other, chat) {
      expected = "MEMBER_NOT_FOUND"
    } else if other == user {
      expected = "BAD_MEMBERS"
    } else if role(other, chat) >= role(user, chat), role(user, chat) != .owner {
      expected = "ROLE_TOO_LOW"
    }
    let reason = try await attempt("\(user) removes \(other) from \(chat)") { client in
      _ = try await client.removeMember(
        .with {
          $0.name = "\(chat)/members/\(self.people[other].name.dropFirst("users/".count))"
          $0.requestId = request
        }, self.options(user))
    }
    if expect(reason, expected, "removing from \(chat)") { model.end(other, chat) }
  }

  private func promote(_ user: Int) async throws {
    guard let chat = chat(of: user), isShared(chat) else { return }
    let other = pick(0..<people.count)
    let new: ChatModel.Role = pick(0..<2) == 0 ? .admin : .member
    let request = unique("request")
    var expected: String?
    if !model.knows(user, chat) {
      expected = "CHAT_NOT_FOUND"
    } else if !model.isIn(other, chat) {
      expected = "MEMBER_NOT_FOUND"
    } else if role(other, chat) == new {
      expected = nil
    } else if let failure = memberFailure(user, chat) {
      expected = failure
    } else if role(user, chat) < .admin {
      expected = "ROLE_TOO_LOW"
    } else if role(user, chat) == .admin {
      if new > .admin || (role(other, chat) >= .admin && other != user) {
        expected = "ROLE_TOO_LOW"
      }
    } else if other == user,
      !(model.chats[chat]?.members.contains {
        $0.key != user && $0.value.isIn && $0.value.role == .owner
      } ?? false)
    {
      expected = "LAST_OWNER"
    }
    let changes = role(other, chat) != new
    let reason = try await attempt("\(user) makes \(other) \(new) of \(chat)") { client in
      _ = try await client.updateMember(
        .with {
          $0.member = .with {
            $0.name = "\(chat)/members/\(self.people[other].name.dropFirst("users/".count))"
            $0.role = Chat.MemberRole(rawValue: Int32(new.rawValue))
          }
          $0.updateMask = Google.FieldMask("role")
          $0.requestId = request
        }, self.options(user))
    }
    guard expect(reason, expected, "promoting in \(chat)"), changes else { return }
    model.chats[chat]?.members[other]?.role = new
    if model.chats[chat]?.kind == .group { model.note(chat) }
  }

  private func block(_ user: Int) async throws {
    let other = pick(0..<people.count)
    let isBlocked = model.blocks[user]?.contains(other) ?? false
    let reason = try await attempt("\(user) \(isBlocked ? "un" : "")blocks \(other)") { client in
      if isBlocked {
        _ = try await client.unblockUser(
          .with { $0.user = self.people[other].name }, self.options(user))
      } else {
        _ = try await client.blockUser(
          .with { $0.user = self.people[other].name }, self.options(user))
      }
    }
    guard expect(reason, user == other ? "BAD_USER" : nil, "blocking") else { return }
    if isBlocked {
      model.blocks[user]?.remove(other)
    } else {
      model.blocks[user, default: []].insert(other)
    }
  }
}
