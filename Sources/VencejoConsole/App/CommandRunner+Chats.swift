import VencejoAPI
import VencejoClient
import VencejoProtobuf
import VencejoRPC
import VencejoTools

extension CommandRunner {
  // MARK: Names

  /// What a chat is called: its title, or the name of the other person.
  func title(of chat: Chat.Chat) -> String {
    if !chat.title.isEmpty { return chat.title }
    switch chat.kind {
    case .selfValue: return "Note to self"
    case .direct: return name(of: chat.peer)
    default: return chat.name
    }
  }

  /// Display name, else handle, else the id.
  func name(of user: String) -> String {
    guard let profile = client.knownProfiles(of: [user])[user] else { return user }
    return profile.displayName.isEmpty ? profile.handle : profile.displayName
  }

  /// Fetches the profiles that rows of chats and messages need; without them ids are shown.
  func learnNames(_ chats: [Chat.Chat] = [], _ messages: [Chat.Message] = []) async {
    let me = await client.session?.user ?? ""
    let users =
      chats.flatMap { [$0.peer, $0.lastMessage?.sender ?? ""] + Self.people(in: $0.lastMessage) }
      + messages.flatMap { [$0.sender] + Self.people(in: $0) } + [me]
    _ = try? await client.profiles(of: users.filter { !$0.isEmpty })
    completer.chats = listed.map(title)
    completer.handles = Array(
      Set(completer.handles).union(client.knownProfiles(of: users).values.map(\.handle)))
  }

  private static func people(in message: Chat.Message?) -> [String] {
    guard case .system(let system)? = message?.content?.kind else { return [] }
    return [system.actor] + system.subjects
  }

  /// The chat a person means: its number in the last list, its title, the peer's handle, its name.
  func chat(_ reference: String) async throws -> Chat.Chat {
    if reference.hasPrefix("chats/") { return try await client.getChat(reference) }
    if let number = Int(reference), listed.indices.contains(number - 1) {
      return listed[number - 1]
    }
    let chats = try await chatList(quiet: true)
    if listed.isEmpty { listed = chats }
    await learnNames(chats)
    let wanted = reference.lowercased()
    func names(_ chat: Chat.Chat) -> [String] {
      let handle = client.knownProfiles(of: [chat.peer])[chat.peer]?.handle
      return [title(of: chat).lowercased()] + (handle.map { [$0] } ?? [])
    }
    let exact = chats.filter { names($0).contains(wanted) }
    let found = exact.isEmpty ? chats.filter { names($0).contains { $0.hasPrefix(wanted) } } : exact
    if found.count == 1 { return found[0] }
    if found.isEmpty {
      throw Failure(
        "no chat is called \(reference)",
        hint: "your chats: chats; a new one: chat new \(reference)", exitCode: ExitCode.usage)
    }
    throw Failure(
      "\(found.count) chats are called \(reference)",
      hint: "say which: \(found.map { "\"\(title(of: $0))\"" }.joined(separator: ", "))",
      exitCode: ExitCode.usage)
  }

  // MARK: Lists

  func chats(onlyUnread: Bool) async throws {
    var chats = try await chatList()
    listed = chats
    await learnNames(chats)
    if onlyUnread { chats = chats.filter { ($0.unread?.unreadCount ?? 0) > 0 } }
    if json {
      for chat in chats { await display.json(JSONLine.text(chat)) }
      return
    }
    if onlyUnread, chats.isEmpty { return await display.show([StyledText("all is read", .faint)]) }
    let rows = chats.map(row)
    await display.show(ChatListView.lines(rows, time: .local, width: await display.width))
  }

  /// From the server; when it does not answer, what this device knows.
  private func chatList(quiet: Bool = false) async throws(RPCError) -> [Chat.Chat] {
    do throws(RPCError) {
      return try await client.listChats()
    } catch {
      let known = client.cache.chats
      if error.code != .unavailable || mode == .script || known.isEmpty { throw error }
      if !quiet { await note("offline: as of the last connection") }
      return known
    }
  }

  /// As `chatList()`: the newest messages of a chat.
  private func newest(of chat: Chat.Chat, _ limit: Int) async throws(RPCError) -> [Chat.Message] {
    do throws(RPCError) {
      return try await client.messages(of: chat.name, limit: limit)
    } catch {
      if error.code != .unavailable || mode == .script || client.cache.chat(chat.name) == nil {
        throw error
      }
      await note("offline: as of the last connection")
      return client.cache.messages(of: chat.name).suffix(limit)
    }
  }

  private func row(_ chat: Chat.Chat) -> ChatListView.Row {
    let last = chat.lastMessage
    let isGroup = chat.kind == .group
    let sender = last.flatMap { message -> String? in
      if message.sender.isEmpty { return nil }
      return message.mine ? "you" : isGroup ? name(of: message.sender) : nil
    }
    return ChatListView.Row(
      title: title(of: chat), lastSender: sender, lastMessage: last.map(text) ?? "",
      time: (last?.sendTime ?? chat.activityTime)?.seconds,
      unread: Int(chat.unread?.unreadCount ?? 0), isCapped: chat.unread?.capped ?? false)
  }

  func findUsers(_ text: String) async throws {
    let profiles = try await client.findProfiles(text)
    if json {
      for profile in profiles { await display.json(JSONLine.text(profile)) }
      return
    }
    if profiles.isEmpty { return await display.show([StyledText("nobody found", .faint)]) }
    completer.handles = Array(Set(completer.handles).union(profiles.map(\.handle)))
    var table = Table(columns: [
      .init(title: "Handle", style: .strong), .init(title: "Name", shrinks: true),
      .init(title: "User", style: .faint),
    ])
    table.rows = profiles.map { [$0.handle, $0.displayName, $0.user] }
    await display.show(table.lines(width: await display.width))
  }

  func newChat(_ handles: [String], _ title: String?) async throws {
    var users: [String] = []
    for handle in handles {
      if handle.hasPrefix("users/") {
        users.append(handle)
        continue
      }
      let found = try await client.findProfiles(handle).first { $0.handle == handle.lowercased() }
      guard let found else {
        throw Failure(
          "nobody has the handle \(handle)", hint: "look for people: users find \(handle)",
          exitCode: ExitCode.usage)
      }
      users.append(found.user)
    }
    let response = try await client.createChat(with: users, title: title)
    let chat = response.chat ?? Chat.Chat()
    listed.removeAll { $0.name == chat.name }
    listed.insert(chat, at: 0)
    await learnNames([chat])
    let what = response.created ? "new chat" : "the chat exists already"
    await show(chat, [StyledText("\(what): \(VisibleText.clean(self.title(of: chat)))", .faint)])
    if mode == .interactive { try await show(opened: chat) }
  }

  // MARK: The open chat

  func open(_ reference: String) async throws {
    try await show(opened: try await chat(reference))
  }

  private func show(opened chat: Chat.Chat) async throws {
    let messages = try await newest(of: chat, 20)
    await learnNames([chat], messages)
    open = chat
    completer.chatIsOpen = true
    conversation.restart()
    if !json, mode == .interactive {
      await display.show([StyledText("— \(VisibleText.clean(title(of: chat))) —", .strong)])
    }
    await show(messages, of: chat)
    await showWaiting(in: chat)
    if let last = messages.last {
      do throws(RPCError) {
        try await markRead(chat, upTo: last.sequence)
      } catch {
        // Told again when the next message is shown.
        if error.code != .unavailable { throw error }
      }
    }
    await promptChanged()
  }

  func close() {
    open = nil
    completer.chatIsOpen = false
  }

  func messages(_ reference: String?, _ count: Int?) async throws {
    let chat = try await reference == nil ? requireOpen() : self.chat(reference ?? "")
    let messages = try await newest(of: chat, min(count ?? 20, 1000))
    await learnNames([chat], messages)
    conversation.restart()
    await show(messages, of: chat)
    conversation.restart()
  }

  private func requireOpen() throws -> Chat.Chat {
    guard let open else {
      throw Failure(
        "no chat is open", hint: "open one: open CHAT; or name it in the command",
        exitCode: ExitCode.usage)
    }
    return open
  }

  /// Messages in a row; one that this console sent counts as shown.
  func show(_ messages: [Chat.Message], of chat: Chat.Chat) async {
    if json {
      for message in messages { await display.json(JSONLine.text(message)) }
      return
    }
    var lines: [StyledText] = []
    let width = await display.width
    let unread = chat.unread ?? .init()
    for message in messages {
      if let width, unread.unreadCount > 0, message.sequence == unread.firstUnreadSequence {
        lines.append(ConversationView.newMark(Int(unread.unreadCount), width: width))
      }
      lines += await self.lines(message, chat: nil)
    }
    if lines.isEmpty { lines = [StyledText("no messages yet", .faint)] }
    await display.show(lines)
  }

  /// A message as the display wants it: bubbles on a screen, plain lines elsewhere.
  func lines(
    _ message: Chat.Message, chat: String?, state: ConversationView.Message.State? = nil
  ) async -> [StyledText] {
    let view = await view(message, state)
    guard let width = await display.width else {
      return ConversationView.plain(view, chat: chat, time: .local)
    }
    return conversation.lines(view, time: .local, width: width)
  }

  func view(
    _ message: Chat.Message, _ state: ConversationView.Message.State? = nil
  ) async -> ConversationView.Message {
    let me = await client.session?.user
    let isMine = message.mine || message.sender == me
    return ConversationView.Message(
      sender: name(of: message.sender), isMine: isMine, text: text(message),
      time: message.sendTime?.seconds ?? TimeText.local.now,
      state: state ?? (message.deliveryState == .read ? .read : isMine ? .sent : .received),
      isSystem: message.sender.isEmpty)
  }

  /// What a message says, in words.
  func text(_ message: Chat.Message) -> String {
    if message.deleteTime != nil { return "(deleted)" }
    switch message.content?.kind {
    case .text(let content)?: return content.text
    case .system(let system)?: return text(system)
    case .media(let media)?:
      let count = media.attachments.count
      return "(\(count) file\(count == 1 ? "" : "s")) \(media.caption)"
    case .location(let location)?:
      return
        "(a place: \(location.label) \(location.latitudeDegrees), \(location.longitudeDegrees))"
    case .contact(let contact)?: return "(a contact: \(contact.displayName))"
    case .poll(let poll)?:
      let options = poll.options.map { "\($0.optionId) \($0.text) (\($0.voteCount))" }
      return "(a poll) \(poll.question): \(options.joined(separator: ", "))"
    case .custom(let custom)? where !custom.fallbackText.isEmpty: return custom.fallbackText
    case .custom?, nil: return "(a message of a kind that this console does not know)"
    }
  }

  private func text(_ system: Chat.SystemContent) -> String {
    let actor = name(of: system.actor)
    let subjects = system.subjects.map { name(of: $0) }.joined(separator: ", ")
    switch system.action {
    case .chatCreated: return "\(actor) began the chat"
    case .membersAdded: return "\(actor) added \(subjects)"
    case .memberLeft: return "\(actor) left"
    case .memberRemoved: return "\(actor) removed \(subjects)"
    case .roleChanged: return "\(actor) made \(subjects) \(system.text.lowercased())"
    case .titleChanged: return "\(actor) named the chat \(system.text)"
    case .ttlChanged:
      return system.text.isEmpty
        ? "\(actor) lets messages stay" : "\(actor) lets messages disappear after \(system.text)"
    case .messagePinned: return "\(actor) pinned a message"
    default:
      return system.text.isEmpty
        ? "(something happened that this console does not know)" : system.text
    }
  }

  // MARK: Sending and reading

  func send(_ text: String) async throws {
    let chat = try requireOpen()
    try await deliver(text, to: chat)
    if mode == .interactive, CommandTable.names.contains(text.lowercased()) {
      await note("(sent as a message; the command is /\(text.lowercased()))")
    }
  }

  func say(_ reference: String, _ text: String) async throws {
    try await deliver(text, to: try await chat(reference))
  }

  /// A script waits for the server. A person does not: a message that is not stored within a
  /// moment is shown as queued, and sent when the server is back.
  private func deliver(_ text: String, to chat: Chat.Chat) async throws {
    if mode == .script {
      let id = MessageID.make()
      ownMessages.insert(id)
      let message = try await client.sendOnce(text, to: chat.name, id: id)
      await learnNames([chat], [message])
      let lines = await lines(message, chat: title(of: chat))
      return await show(message, lines)
    }
    let id = client.outbox.enqueue(text, to: chat.name)
    ownMessages.insert(id)
    let isStored = await waitForAnswer(id)
    if !isStored, !client.outbox.pending.contains(where: { $0.id == id }) { return }
    if !isStored { late[id] = text }
    var message = Chat.Message()
    message.name = "\(chat.name)/messages/\(id)"
    message.mine = true
    message.sender = await client.session?.user ?? ""
    message.sendTime = .init(seconds: TimeText.local.now)
    message.content = .init(kind: .text(.init(text: text)))
    if json { return await display.json(JSONLine.text(message)) }
    if open?.name != chat.name { conversation.restart() }
    await display.show(
      await lines(message, chat: title(of: chat), state: isStored ? .sent : .queued))
    if open?.name != chat.name { conversation.restart() }
    await promptChanged()
  }

  /// True when the server stored the message within a moment.
  private func waitForAnswer(_ id: String) async -> Bool {
    let timer = Task { [weak self] in
      try? await Task.sleep(for: .milliseconds(400))
      await self?.answer(id, false)
    }
    defer { timer.cancel() }
    return await withCheckedContinuation { sendWaiters[id] = $0 }
  }

  func answer(_ id: String, _ isStored: Bool) {
    sendWaiters.removeValue(forKey: id)?.resume(returning: isStored)
  }

  func read(_ reference: String?) async throws {
    let chat = try await reference == nil ? requireOpen() : self.chat(reference ?? "")
    let current = try await client.getChat(chat.name)
    let unread = try await client.markRead(chat.name, upTo: current.lastSequence)
    await show(unread, [StyledText("read", .faint)])
    await promptChanged()
  }

  func markRead(_ chat: Chat.Chat, upTo sequence: Int64) async throws(RPCError) {
    if (chat.selfField?.readSequence ?? 0) >= sequence { return }
    try await client.markRead(chat.name, upTo: sequence)
  }
}
