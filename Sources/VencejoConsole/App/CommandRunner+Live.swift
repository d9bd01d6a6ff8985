import VencejoAPI
import VencejoClient
import VencejoProtobuf
import VencejoRPC
import VencejoTools

extension CommandRunner {
  /// One change of the user's chats.
  func handle(_ change: ChatChange) async {
    switch change {
    case .message(let message, let isHistorical):
      if !isHistorical { await live(message) }
    case .sent(let message):
      let id = String(message.name.split(separator: "/").last ?? "")
      answer(id, true)
      if let text = late.removeValue(forKey: id) {
        await note("✓ now sent: \(VisibleText.clean(text))")
        await promptChanged()
      }
    case .sendFailed(let id, _, let error):
      answer(id, false)
      let text = late.removeValue(forKey: id)
      let what = text.map { " “\(VisibleText.clean($0))”" } ?? ""
      await display.complain(
        Failure("the message\(what) was refused: \(error.message)").report.lines(
          width: await display.width))
      await promptChanged()
    case .connection(let state): await note(state)
    case .unread, .chat, .chatRemoved, .reset, .caughtUp, .outboxChanged: await promptChanged()
    // What scrolled away is not drawn again.
    case .messageChanged, .messagesRemoved, .earlierMessages: break
    case .missed: await note("— some events were missed; see: chats —")
    case .receipt: break
    }
  }

  private func live(_ message: Chat.Message) async {
    let id = String(message.name.split(separator: "/").last ?? "")
    if ownMessages.contains(id) { return }
    let name = message.name.split(separator: "/").prefix(2).joined(separator: "/")
    let chat = client.cache.chat(name) ?? Chat.Chat(name: name)
    await learnNames([chat], [message])
    if mode == .script {
      let view = await view(message)
      if view.isMine { return }
      var frame = Chat.SubscribeResponse()
      frame.event = .messageCreated(.init(message: message))
      await inbox.add(
        .init(
          lines: ConversationView.plain(view, chat: title(of: chat), time: .local),
          json: JSONLine.text(frame)))
      return
    }
    if message.sender != (await client.session?.user) { await countEvent() }
    if json { return await display.json(JSONLine.text(message)) }
    if let open, open.name == name {
      await display.show(await lines(message, chat: nil))
      noteDisplayed(name, upTo: message.sequence)
    } else {
      let width = await display.width ?? 80
      await display.show([
        ConversationView.notice(
          await view(message), chat: title(of: chat), time: .local, width: width)
      ])
    }
    await promptChanged()
  }

  /// Shown is read. One call at a time, so that a flood of messages is no flood of receipts; a
  /// lost one is made good by the next.
  private func noteDisplayed(_ chat: String, upTo sequence: Int64) {
    displayed[chat] = max(displayed[chat] ?? 0, sequence)
    if reading != nil { return }
    reading = Task {
      while let (chat, sequence) = displayed.popFirst() {
        _ = try? await client.markRead(chat, upTo: sequence)
      }
      reading = nil
    }
  }

  /// Shows the next live events; times out with the status of `timeout(1)`.
  func wait(_ limit: Command.Limit) async throws {
    let deadline = limit.timeout.map {
      ContinuousClock.now.advanced(by: .milliseconds(Int($0 * 1000)))
    }
    let count = limit.count ?? 1
    isCounting = true
    defer { isCounting = false }
    for seen in 0..<count {
      guard let event = await inbox.next(deadline: deadline) else {
        if Task.isCancelled { return }
        throw Failure(
          "\(seen) of \(count) events came in time", exitCode: ExitCode.timeout)
      }
      if mode == .interactive { continue }
      if json { await display.json(event.json) } else { await display.show(event.lines) }
    }
  }

  /// A person sees events as they come; `wait` then only needs to know that one came.
  private func countEvent() async {
    if isCounting { await inbox.add(.init(lines: [], json: "")) }
  }

  /// A live event of a watch.
  func arrived(_ event: LiveInbox.Event, blocking: Bool) async {
    if mode == .script, !blocking { return await inbox.add(event) }
    if mode == .interactive { await countEvent() }
    if json { await display.json(event.json) } else { await display.show(event.lines) }
  }
}
