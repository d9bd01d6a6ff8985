import Synchronization
public import VencejoAPI
import VencejoProtobuf
public import VencejoRPC

/// What an error says, as a value that can be compared.
public struct RPCErrorSummary: Sendable, Hashable {
  public var code: Int
  public var message: String

  init(code: Int, message: String) {
    self.code = code
    self.message = message
  }

  init(_ error: RPCError) { self.init(code: error.code.rawValue, message: error.message) }
}

/// Messages on their way: each is sent with the same id until the server has stored it or refused
/// it for good, so that a lost answer never makes two messages. One at a time and in order within
/// a chat; chats do not wait for each other.
///
/// With a folder for data (``VencejoClient/Configuration/dataFolder``) what waits survives the
/// process.
public final class Outbox: Sendable {
  /// A message that the server has not stored yet.
  public struct Pending: Sendable, Hashable {
    public enum State: Sendable, Hashable {
      /// Waits: for those before it, for the server, for the next attempt.
      case queued
      case sending
      /// Refused for good; here until ``Outbox/retry(_:)`` or ``Outbox/discard(_:)``.
      case failed(RPCErrorSummary)
    }

    /// The last segment of the message's name.
    public let id: String
    /// Format: `chats/{chat}`.
    public let chat: String
    public let content: Chat.MessageContent
    /// When it was written, in seconds since 1970 by this device's clock.
    public let queueTime: Int64
    /// Times it was tried since the process began.
    public internal(set) var attempts = 0
    public internal(set) var state = State.queued

    init(
      id: String, chat: String, content: Chat.MessageContent, queueTime: Int64,
      state: State = .queued
    ) {
      self.id = id
      self.chat = chat
      self.content = content
      self.queueTime = queueTime
      self.state = state
    }

    var isFailed: Bool { if case .failed = state { true } else { false } }
  }

  private typealias Waiter = CheckedContinuation<Result<Chat.Message, RPCError>, Never>

  private struct State {
    var queue: [Pending] = []
    var waiters: [String: Waiter] = [:]
    /// One for each chat that has something to send.
    var workers: [String: Task<Void, Never>] = [:]
    /// The pauses of workers between two attempts.
    var pauses: [String: Task<Void, Never>] = [:]
    var store: DeviceStore?
    /// What the server has and the stream of changes may not have brought yet.
    var stored: [Chat.Message] = []
    /// Counts users, so that a worker knows that its own has gone.
    var generation = 0
  }

  /// Messages remembered until the stream has brought them.
  private static let longestStored = 100

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
  public var pending: [Pending] { state.withLock { $0.queue.filter { !$0.isFailed } } }

  /// What was refused for good and is neither discarded nor tried again, oldest first.
  public var failed: [Pending] { state.withLock { $0.queue.filter(\.isFailed) } }

  /// Of one chat: what the server stored of late, and what it does not have yet, oldest first.
  func contents(of chat: String) -> (stored: [Chat.Message], queue: [Pending]) {
    let prefix = "\(chat)/messages/"
    return state.withLock { state in
      (
        state.stored.filter { $0.name.hasPrefix(prefix) },
        state.queue.filter { $0.chat == chat }
      )
    }
  }

  /// Puts a text into the outbox and answers with the message's id. `.sent` or `.sendFailed`
  /// among the client's changes tells how it ended.
  @discardableResult
  public func enqueue(_ text: String, to chat: String) -> String {
    enqueue(.init(kind: .text(.init(text: text))), to: chat)
  }

  /// Puts a message of any kind into the outbox and answers with its id.
  @discardableResult
  public func enqueue(_ content: Chat.MessageContent, to chat: String) -> String {
    let message = Pending(
      id: MessageID.make(), chat: chat, content: content, queueTime: WallClock.seconds)
    add(message, waiter: nil)
    return message.id
  }

  /// Sends a text and waits until it is stored. When the task is cancelled the message stays in
  /// the outbox.
  public func send(_ text: String, to chat: String) async throws(RPCError) -> Chat.Message {
    let message = Pending(
      id: MessageID.make(), chat: chat, content: .init(kind: .text(.init(text: text))),
      queueTime: WallClock.seconds)
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { add(message, waiter: $0) }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: message.id) }?
        .resume(returning: .failure(RPCError(.cancelled, "the message is still being sent")))
    }
    return try result.get()
  }

  /// Tries a refused message again, at its old place in the order. False when there is none of
  /// that id.
  @discardableResult
  public func retry(_ id: String) -> Bool {
    let isFound = state.withLock { state in
      guard let index = state.queue.firstIndex(where: { $0.id == id && $0.isFailed }) else {
        return false
      }
      state.queue[index].state = .queued
      sync.keep(.outbox) { () throws(RPCError) in try state.store?.set(nil, of: id) }
      start(state.queue[index].chat, &state)
      return true
    }
    if isFound { sync.broadcast.send(.outboxChanged) }
    return isFound
  }

  /// Drops a message that is not on its way at the moment. False when there is none of that id, or
  /// when it may have reached the server already.
  @discardableResult
  public func discard(_ id: String) -> Bool {
    let (isFound, waiter) = state.withLock { state in
      guard
        let index = state.queue.firstIndex(where: { message in
          message.id == id && (message.isFailed || message.attempts == 0)
        })
      else { return (false, Waiter?.none) }
      state.queue.remove(at: index)
      sync.keep(.outbox) { () throws(RPCError) in try state.store?.remove(id) }
      return (true, state.waiters.removeValue(forKey: id))
    }
    waiter?.resume(returning: .failure(RPCError(.cancelled, "the message was discarded")))
    if isFound { sync.broadcast.send(.outboxChanged) }
    return isFound
  }

  // MARK: Users

  /// Goes on with what an earlier process left.
  func attach(_ store: DeviceStore, _ queue: [Pending]) {
    state.withLock { state in
      state.store = store
      state.queue = queue
    }
  }

  /// Sends what waits, at once: the server is there.
  func wake() {
    state.withLock { state in
      for pause in state.pauses.values { pause.cancel() }
      for message in state.queue where !message.isFailed { start(message.chat, &state) }
    }
  }

  /// Forgets everything here; what is kept on disk stays.
  func clear() {
    let (tasks, waiters) = state.withLock { state in
      defer {
        let generation = state.generation + 1
        state = State()
        state.generation = generation
      }
      return (Array(state.workers.values) + Array(state.pauses.values), state.waiters)
    }
    for task in tasks { task.cancel() }
    for waiter in waiters.values {
      waiter.resume(returning: .failure(RPCError(.cancelled, "the outbox was cleared")))
    }
  }

  // MARK: Sending

  private func add(_ message: Pending, waiter: Waiter?) {
    if Task.isCancelled, let waiter {
      waiter.resume(returning: .failure(RPCError(.cancelled, "the message was not sent")))
      return
    }
    state.withLock { state in
      sync.keep(.outbox) { () throws(RPCError) in try state.store?.add(message) }
      state.queue.append(message)
      state.waiters[message.id] = waiter
      start(message.chat, &state)
    }
    sync.broadcast.send(.outboxChanged)
  }

  private func start(_ chat: String, _ state: inout State) {
    if state.workers[chat] != nil { return }
    let generation = state.generation
    state.workers[chat] = Task { await self.work(chat, generation) }
  }

  private func work(_ chat: String, _ generation: Int) async {
    var delay = ReconnectDelay()
    while let message = head(of: chat, generation) {
      do throws(RPCError) {
        let stored = try await send(message)
        delay.reset()
        finish(message, .success(stored), generation)
      } catch {
        if Task.isCancelled { return }
        guard Self.mayPass(error) else {
          finish(message, .failure(error), generation)
          if error.code == .unauthenticated { return }
          continue
        }
        await pause(chat, message.id, seconds: delay.next(), generation)
      }
    }
  }

  /// The oldest message of a chat; nil, and the worker's end, when there is none.
  private func head(of chat: String, _ generation: Int) -> Pending? {
    state.withLock { state in
      guard state.generation == generation else { return nil }
      guard let index = state.queue.firstIndex(where: { $0.chat == chat && !$0.isFailed }) else {
        state.workers[chat] = nil
        return nil
      }
      state.queue[index].attempts += 1
      state.queue[index].state = .sending
      return state.queue[index]
    }
  }

  private func pause(_ chat: String, _ id: String, seconds: Double, _ generation: Int) async {
    let pause = state.withLock { state -> Task<Void, Never>? in
      guard state.generation == generation else { return nil }
      if let index = state.queue.firstIndex(where: { $0.id == id }) {
        state.queue[index].state = .queued
      }
      let pause = Task {
        _ = try? await Task.sleep(for: .milliseconds(Int(seconds * 1000)))
      }
      state.pauses[chat] = pause
      return pause
    }
    await pause?.value
    state.withLock { if $0.generation == generation { $0.pauses[chat] = nil } }
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
      guard state.generation == generation,
        let index = state.queue.firstIndex(where: { $0.id == message.id })
      else { return (false, Waiter?.none) }
      let waiter = state.waiters.removeValue(forKey: message.id)
      if case .failure(let error) = result, error.code == .unauthenticated, waiter == nil {
        // Nobody is signed in any more; it waits until somebody is.
        state.queue[index].state = .queued
        state.workers[message.chat] = nil
        return (false, nil)
      }
      if case .failure(let error) = result, waiter == nil {
        // Nobody waits for the answer: it is kept where it can be seen.
        state.queue[index].state = .failed(RPCErrorSummary(error))
        sync.keep(.outbox) { () throws(RPCError) in
          try state.store?.set(RPCErrorSummary(error), of: message.id)
        }
      } else {
        state.queue.remove(at: index)
        if case .success(let stored) = result {
          state.stored.append(stored)
          if state.stored.count > Self.longestStored { state.stored.removeFirst() }
        }
        sync.keep(.outbox) { () throws(RPCError) in try state.store?.remove(message.id) }
      }
      return (true, waiter)
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
