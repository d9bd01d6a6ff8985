import Synchronization
public import VencejoAPI
import VencejoProtobuf
public import VencejoRPC

/// What an error says, as a value that can be compared.
public struct RPCErrorSummary: Sendable, Hashable {
  public var code: Int
  public var message: String

  init(_ error: RPCError) {
    code = error.code.rawValue
    message = error.message
  }
}

/// Messages on their way: each is sent with the same id until the server has stored it or refused
/// it for good, so that a lost answer never makes two messages. In order, one at a time.
public final class Outbox: Sendable {
  /// A message that the server has not answered yet.
  public struct Pending: Sendable, Hashable {
    /// The last segment of the message's name.
    public let id: String
    /// Format: `chats/{chat}`.
    public let chat: String
    public let content: Chat.MessageContent
    /// Times it was tried.
    public internal(set) var attempts = 0
  }

  private struct State {
    var queue: [Pending] = []
    var waiters: [String: CheckedContinuation<Result<Chat.Message, RPCError>, Never>] = [:]
    var worker: Task<Void, Never>?
    /// Outcomes nobody waited for yet.
    var generation = 0
  }

  private let chat: Chat.ChatClient
  private let authenticator: Authenticator
  private let sync: ChatSync
  private let timeout: Duration
  private let state = Mutex(State())

  init(
    _ chat: Chat.ChatClient, authenticator: Authenticator, sync: ChatSync, timeout: Duration
  ) {
    self.chat = chat
    self.authenticator = authenticator
    self.sync = sync
    self.timeout = timeout
  }

  /// What waits, oldest first.
  public var pending: [Pending] { state.withLock { $0.queue } }

  /// Puts a text into the outbox and answers with the message's id. `.sent` or `.sendFailed`
  /// among the client's changes tells how it ended.
  @discardableResult
  public func enqueue(_ text: String, to chat: String) -> String {
    let message = Pending(
      id: MessageID.make(), chat: chat, content: .init(kind: .text(.init(text: text))))
    add(message, waiter: nil)
    return message.id
  }

  /// Sends a text and waits until it is stored. When the task is cancelled the message stays in
  /// the outbox.
  public func send(_ text: String, to chat: String) async throws(RPCError) -> Chat.Message {
    let message = Pending(
      id: MessageID.make(), chat: chat, content: .init(kind: .text(.init(text: text))))
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { add(message, waiter: $0) }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: message.id) }?
        .resume(returning: .failure(RPCError(.cancelled, "the message is still being sent")))
    }
    return try result.get()
  }

  func clear() {
    let (worker, waiters) = state.withLock { state in
      defer {
        state.queue.removeAll()
        state.waiters.removeAll()
        state.worker = nil
        state.generation += 1
      }
      return (state.worker, state.waiters)
    }
    worker?.cancel()
    for waiter in waiters.values {
      waiter.resume(returning: .failure(RPCError(.cancelled, "the outbox was cleared")))
    }
  }

  func stop() { clear() }

  private func add(
    _ message: Pending, waiter: CheckedContinuation<Result<Chat.Message, RPCError>, Never>?
  ) {
    if Task.isCancelled, let waiter {
      waiter.resume(returning: .failure(RPCError(.cancelled, "the message was not sent")))
      return
    }
    state.withLock { state in
      state.queue.append(message)
      state.waiters[message.id] = waiter
      if state.worker == nil {
        let generation = state.generation
        state.worker = Task { await self.work(generation) }
      }
    }
  }

  private func work(_ generation: Int) async {
    var delay = ReconnectDelay()
    while let message = head(generation) {
      do throws(RPCError) {
        let stored = try await send(message)
        delay.reset()
        finish(message, .success(stored), generation)
      } catch {
        if Task.isCancelled { return }
        guard Self.mayPass(error) else {
          finish(message, .failure(error), generation)
          continue
        }
        try? await Task.sleep(for: .milliseconds(Int(delay.next() * 1000)))
      }
    }
  }

  /// The oldest message; nil, and the worker's end, when there is none.
  private func head(_ generation: Int) -> Pending? {
    state.withLock { state in
      guard state.generation == generation else { return nil }
      guard !state.queue.isEmpty else {
        state.worker = nil
        return nil
      }
      state.queue[0].attempts += 1
      return state.queue[0]
    }
  }

  private func send(_ message: Pending) async throws(RPCError) -> Chat.Message {
    try await authenticator.authorized(timeout: timeout) { (options) async throws(RPCError) in
      var request = Chat.SendMessageRequest()
      request.parent = message.chat
      request.messageId = message.id
      request.content = message.content
      let response = try await self.chat.sendMessage(request, options)
      return response.message ?? .init()
    }
  }

  private func finish(
    _ message: Pending, _ result: Result<Chat.Message, RPCError>, _ generation: Int
  ) {
    let (isCurrent, waiter) = state.withLock { state in
      guard state.generation == generation else {
        return (false, CheckedContinuation<Result<Chat.Message, RPCError>, Never>?.none)
      }
      if state.queue.first?.id == message.id { state.queue.removeFirst() }
      return (true, state.waiters.removeValue(forKey: message.id))
    }
    guard isCurrent else { return }
    switch result {
    case .success(let stored): sync.broadcast.send(.sent(stored))
    case .failure(let error):
      sync.broadcast.send(
        .sendFailed(id: message.id, chat: message.chat, RPCErrorSummary(error)))
    }
    waiter?.resume(returning: result)
  }

  /// Errors that a later attempt may be spared.
  private static func mayPass(_ error: RPCError) -> Bool {
    switch error.code {
    case .unavailable, .deadlineExceeded, .aborted, .resourceExhausted, .cancelled, .unknown,
      .internalError:
      true
    default: false
    }
  }
}
