import VencejoAPI
import VencejoClient
import VencejoProtobuf
import VencejoTools

/// Messages that wait for the server, or that it refused.
extension CommandRunner {
  /// Oldest first; the numbers of `retry` and `discard`.
  private var waiting: [Outbox.Pending] {
    (client.outbox.pending + client.outbox.failed).sorted {
      ($0.queueTime, $0.id) < ($1.queueTime, $1.id)
    }
  }

  func outbox() async {
    let waiting = waiting
    if json {
      for pending in waiting { await display.json(JSONLine.text(message(pending))) }
      return
    }
    if waiting.isEmpty { return await display.show([StyledText("all is sent", .faint)]) }
    await learnNames(waiting.compactMap { client.cache.chat($0.chat) })
    var table = Table(columns: [
      .init(title: "", style: .faint), .init(title: "Chat", style: .strong),
      .init(title: "Message", shrinks: true), .init(title: "State", shrinks: true),
    ])
    table.rows = waiting.enumerated().map { index, pending in
      let chat = client.cache.chat(pending.chat) ?? Chat.Chat(name: pending.chat)
      return ["\(index + 1)", title(of: chat), text(message(pending)), Self.words(pending.state)]
    }
    await display.show(table.lines(width: await display.width))
  }

  func retry(_ number: Int?) async throws {
    let chosen = try number.map { [try pending($0)] } ?? client.outbox.failed
    let ids = chosen.map(\.id).filter { client.outbox.retry($0) }
    for pending in chosen where ids.contains(pending.id) {
      late[pending.id] = text(message(pending))
      ownMessages.insert(pending.id)
    }
    if ids.isEmpty {
      throw Failure(
        number == nil ? "no message was refused" : "that message was not refused",
        hint: "see: outbox", exitCode: ExitCode.usage)
    }
    await note(ids.count == 1 ? "trying again" : "trying \(ids.count) messages again")
  }

  func discard(_ number: Int) async throws {
    let pending = try pending(number)
    guard client.outbox.discard(pending.id) else {
      throw Failure(
        "the message may have reached the server already",
        hint: "it can be discarded if the server refuses it; see: outbox",
        exitCode: ExitCode.usage)
    }
    late.removeValue(forKey: pending.id)
    await note("discarded")
  }

  /// What waits in a chat, below its messages.
  func showWaiting(in chat: Chat.Chat) async {
    if json { return }
    for pending in waiting where pending.chat == chat.name {
      let isFailed = if case .failed = pending.state { true } else { false }
      await display.show(
        await lines(message(pending), chat: nil, state: isFailed ? .failed : .queued))
    }
  }

  private func pending(_ number: Int) throws -> Outbox.Pending {
    let waiting = waiting
    guard waiting.indices.contains(number - 1) else {
      throw Failure(
        "there is no message \(number) in the outbox", hint: "see: outbox",
        exitCode: ExitCode.usage)
    }
    return waiting[number - 1]
  }

  private func message(_ pending: Outbox.Pending) -> Chat.Message {
    var message = Chat.Message(name: "\(pending.chat)/messages/\(pending.id)")
    message.mine = true
    message.sender = place.user
    message.content = pending.content
    message.sendTime = .init(seconds: pending.queueTime)
    return message
  }

  private static func words(_ state: Outbox.Pending.State) -> String {
    switch state {
    case .queued: "queued"
    case .sending: "being sent"
    case .failed(let error): "refused: \(VisibleText.clean(error.message))"
    }
  }
}
