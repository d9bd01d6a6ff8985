import Testing
import VencejoCrypto

@testable import VencejoStore

/// A store with a clock of its own, and short words for what people do in it.
final class Conversation: Sendable {
  let scratch: Scratch
  let clock = ManualClock()
  let store: Store

  init() throws {
    let clock = self.clock
    scratch = try Scratch()
    store = try scratch.open { $0.clock = { clock.now } }
  }

  func user(_ handle: String) async throws -> Account {
    try await store.signUp(NewAccount(handle: handle, password: "password")).account
  }

  func users(_ handles: String...) async throws -> [Account] {
    var result: [Account] = []
    for handle in handles { result.append(try await user(handle)) }
    return result
  }

  func chat(
    _ kind: ChatKind, _ creator: Account, _ members: [Account] = [],
    _ change: @Sendable (inout NewChat) -> Void = { _ in }
  ) async throws -> ChatView {
    var new = NewChat(
      kind: kind, title: kind == .group || kind == .channel ? "Chat" : "",
      members: members.map(\.id))
    change(&new)
    return try await store.write { [new] in try $0.createChat(new, by: creator.key).chat }
  }

  @discardableResult
  func send(
    _ text: String, to chat: ChatView, by user: Account, id: UUID = .v7(), reply: UUID? = nil,
    mentions: [Mention] = []
  ) async throws -> StoredMessage {
    try await store.write {
      try $0.sendMessage(
        OutgoingMessage(
          chat: chat.id, id: id, body: .text(text, mentions: mentions), replyTo: reply),
        by: user.key
      ).message
    }
  }

  func view(_ chat: ChatView, _ user: Account) async throws -> ChatView {
    try await store.read { try $0.chat(chat.id, for: user.key) }
  }

  func page(_ chat: ChatView, _ user: Account) async throws -> MessagePage {
    try await store.read { try $0.listMessages(chat.id, pageSize: 200, for: user.key) }
  }

  func sequences(_ chat: ChatView, _ user: Account) async throws -> [Int64] {
    try await page(chat, user).messages.map(\.sequence)
  }

  func head() async throws -> Int64 { try await store.read { try $0.head() } }

  /// What a user hears that happened after a position.
  func events(of user: Account, after position: Int64) async throws -> [ChatEvent] {
    var result: [ChatEvent] = []
    var position = position
    while true {
      let page = try await store.read { [position] in
        try $0.chatLog(for: user.key, after: position, limit: 100)
      }
      result += page.entries.flatMap(\.events)
      position = page.position
      if page.isAtHead { return result }
    }
  }

  func write<R: Sendable>(_ body: @Sendable @escaping (WriteTransaction) throws -> R) async throws
    -> R
  {
    try await store.write(body)
  }

  func refused(_ body: @Sendable @escaping (WriteTransaction) throws -> Void) async -> String? {
    await reason { try await store.write(body) }
  }
}
