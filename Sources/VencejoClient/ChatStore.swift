public import VencejoAPI
import VencejoProtobuf
public import VencejoRPC

/// A user's chats as an application shows them: each part as a value for now and as a sequence of
/// values, one for now and one after each change. All of it comes from what the device knows, so it
/// is there before any network is; messages that wait to be sent are among the others.
///
/// ```swift
/// let store = ChatStore(client)
/// for await conversation in store.conversations(of: chat.name) {
///   show(conversation.items)
/// }
/// ```
public struct ChatStore: Sendable {
  private let client: VencejoClient

  /// - Parameter client: signed in, or to be; its ``VencejoClient/startSync()`` keeps this current.
  public init(_ client: VencejoClient) { self.client = client }

  // MARK: What is shown

  /// Pinned chats first, then latest activity first; without those archived.
  public var chatList: [Chat.Chat] { Self.chatList(client) }
  public var chatLists: Values<[Chat.Chat]> { values(Self.chatList) }

  /// Unread messages of all chats that are not archived.
  public var unreadTotal: Int { Self.unreadTotal(client) }
  public var unreadTotals: Values<Int> { values(Self.unreadTotal) }

  public var connection: ConnectionState { client.connection }
  public var connections: Values<ConnectionState> { values(\.connection) }

  /// The newest messages of a chat (`chats/{chat}`), those that wait at the end.
  public func conversation(_ chat: String) -> Conversation { Conversation(client, chat) }
  public func conversations(of chat: String) -> Values<Conversation> {
    values { Conversation($0, chat) }
  }

  private static func chatList(_ client: VencejoClient) -> [Chat.Chat] {
    let shown = client.cache.chats.filter { !($0.settings?.archived ?? false) }
    func rank(_ chat: Chat.Chat) -> Int32 { chat.settings?.pinRank ?? 0 }
    let pinned = shown.filter { rank($0) > 0 }
    return pinned.sorted { rank($0) < rank($1) } + shown.filter { rank($0) <= 0 }
  }

  private static func unreadTotal(_ client: VencejoClient) -> Int {
    chatList(client).reduce(0) { $0 + Int($1.unread?.unreadCount ?? 0) }
  }

  private func values<Value: Sendable & Equatable>(
    _ read: @escaping @Sendable (VencejoClient) -> Value
  ) -> Values<Value> {
    Values(client: client, read: read)
  }

  // MARK: What is done

  /// Sends a text, now or when the server is there. Answers the id of the message, which is in the
  /// conversation at once.
  @discardableResult
  public func send(_ text: String, to chat: String) -> String {
    client.outbox.enqueue(text, to: chat)
  }

  /// Tries a message again that failed.
  @discardableResult
  public func retry(_ id: String) -> Bool { client.outbox.retry(id) }

  /// Drops a message that failed, or that was never tried.
  @discardableResult
  public func discard(_ id: String) -> Bool { client.outbox.discard(id) }

  /// Brings older messages of a chat into the conversation. False when there are no older ones.
  @discardableResult
  public func loadEarlier(of chat: String, limit: Int = 50) async throws(RPCError) -> Bool {
    let first = client.cache.messages(of: chat).first?.sequence
    let older = try await client.messages(of: chat, limit: limit, before: first)
    client.cache.prepend(older, to: chat)
    client.sync.broadcast.send(.earlierMessages(chat: chat))
    return !older.isEmpty
  }
}

/// A chat and what was said in it.
public struct Conversation: Sendable, Equatable {
  /// What became of a message.
  public enum State: Sendable, Hashable {
    /// Somebody else's.
    case received
    /// Waits for the server.
    case queued
    /// Refused for good; see ``ChatStore/retry(_:)``.
    case failed(RPCErrorSummary)
    /// The server has it.
    case sent
    /// A device of every other member has it.
    case delivered
    /// Every other member who shows receipts has read it.
    case read
  }

  public struct Item: Sendable, Equatable, Identifiable {
    /// The last segment of the message's name.
    public let id: String
    /// Without a sequence and a sender as long as the server does not have it; `mine` is set.
    public let message: Chat.Message
    public let state: State
  }

  /// Nil while nothing is known of it.
  public let chat: Chat.Chat?
  /// Oldest first.
  public let items: [Item]

  init(_ client: VencejoClient, _ chat: String) {
    self.chat = client.cache.chat(chat)
    let (stored, waiting) = client.outbox.contents(of: chat)
    // After the outbox: what has left it by now is here.
    var messages = client.cache.messages(of: chat)
    // The answer to a sender may come before the stream does; where the stream is already, the
    // cache knows better, also of what is gone again.
    let newest = messages.last?.sequence ?? 0
    messages += stored.filter { $0.sequence > newest }.sorted { $0.sequence < $1.sequence }
    var items = messages.map { message in
      Item(id: Self.id(of: message), message: message, state: Self.state(of: message))
    }
    // One whose answer was lost may have come by the stream.
    let there = Set(items.suffix(2 * waiting.count + 100).map(\.id))
    for pending in waiting where !there.contains(pending.id) {
      var message = Chat.Message(name: "\(chat)/messages/\(pending.id)")
      message.mine = true
      message.content = pending.content
      message.sendTime = .init(seconds: pending.queueTime)
      items.append(Item(id: pending.id, message: message, state: Self.state(of: pending)))
    }
    self.items = items
  }

  private static func id(of message: Chat.Message) -> String {
    String(message.name.split(separator: "/").last ?? "")
  }

  private static func state(of message: Chat.Message) -> State {
    guard message.mine else { return .received }
    switch message.deliveryState {
    case .read: return .read
    case .delivered: return .delivered
    default: return .sent
    }
  }

  private static func state(of pending: Outbox.Pending) -> State {
    switch pending.state {
    case .queued, .sending: .queued
    case .failed(let error): .failed(error)
    }
  }
}

/// A value as it is now, and again whenever it has become another. A reader that is slow misses
/// what was in between and never what is last. Ends with its reader's task.
public struct Values<Element: Sendable & Equatable>: AsyncSequence, Sendable {
  public typealias Failure = Never

  let client: VencejoClient
  let read: @Sendable (VencejoClient) -> Element

  public struct AsyncIterator: AsyncIteratorProtocol {
    private let client: VencejoClient
    private let read: @Sendable (VencejoClient) -> Element
    private var pulses: AsyncStream<Void>.Iterator
    private var last: Element?

    init(_ values: Values) {
      client = values.client
      read = values.read
      // Before the first look, so that nothing falls between the two.
      pulses = client.sync.broadcast.pulses().makeAsyncIterator()
    }

    public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
      while !Task.isCancelled {
        let value = read(client)
        if value != last {
          last = value
          return value
        }
        guard await pulses.next(isolation: actor) != nil else { return nil }
      }
      return nil
    }

    public mutating func next() async -> Element? { await next(isolation: nil) }
  }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}
