import VencejoAPI
import VencejoCrypto
import VencejoHTTP2
import VencejoProtobuf
import VencejoRPC
import VencejoStore

/// The life of one Subscribe call: reset and snapshot where needed, the log up to its head,
/// then live; back to the log whenever it falls behind.
///
/// An object, so that functions that wait hold a reference and no copies of it: their frames are a
/// part of each stream at rest.
final class ChatSubscription: Sendable {
  let store: Store
  let shelf: ChatShelf
  let streams: StreamRegistry
  let presence: PresenceBoard
  let caller: Principal
  let out: ResponseWriter<Chat.SubscribeResponse>
  private let request: Chat.SubscribeRequest
  /// The chats that are asked for; nil for all.
  private let only: Set<UUID>?
  private let stream: ChatStream

  /// - Throws: `BAD_NAME`.
  init(
    _ request: Chat.SubscribeRequest, store: Store, shelf: ChatShelf, streams: StreamRegistry,
    presence: PresenceBoard, configuration: Backend.Configuration, caller: Principal,
    out: ResponseWriter<Chat.SubscribeResponse>
  ) throws(StoreError) {
    self.request = request
    only = try ChatServer.chats(request.chats)
    self.store = store
    self.shelf = shelf
    self.streams = streams
    self.presence = presence
    self.caller = caller
    self.out = out
    stream = ChatStream(
      caller, out, shelf, store, marksDelivered: request.autoMarkDelivered,
      wantsEphemeral: request.includeEphemeral,
      interval: configuration.heartbeat(asked: request.heartbeatInterval),
      age: configuration.streamAge(of: caller, now: store.now),
      patience: configuration.streamPatience)
  }

  /// What follows a reset when the client did not say.
  private static let defaultSnapshot = Chat.SnapshotOptions(chatLimit: 100, messagesPerChat: 20)
  private static let chatLimit: Int32 = 1000
  private static let messageLimit: Int32 = 100
  /// Events per page of the log.
  private static let pageSize = 256

  func run() async throws {
    shelf.streamBegins()
    streams.add(stream)
    stream.onLoop { [stream] in stream.startHeartbeat() }
    if request.includeEphemeral { presence.came(caller.user, caller.userID) }
    defer {
      if request.includeEphemeral { presence.went(caller.user, caller.userID) }
      streams.remove(stream)
      stream.onLoop { [stream] in stream.stop() }
      shelf.streamEnds()
    }
    var isFirst = true
    repeat {
      try await walk(isFirst)
      isFirst = false
    } while await stream.sleep() == .behind
    try await finish()
  }

  /// Takes a stream up to the head of the log and makes it live there, unless it ends before.
  ///
  /// In a task of its own: one whose client takes nothing can be ended where it waits, and what a
  /// task once needed of memory it keeps, while a stream is at rest for most of its life.
  private func walk(_ isFirst: Bool) async throws {
    let work = Task(executorPreference: out.loop) { [self] in
      let start =
        isFirst ? try await begin() : await resumePosition()
      try await follow(from: start, isFirst)
    }
    stream.onLoop { [stream] in stream.cancelWork = { work.cancel() } }
    let result = await withTaskCancellationHandler {
      await work.result
    } onCancel: {
      work.cancel()
    }
    stream.onLoop { [stream] in stream.cancelWork = nil }
    if stream.end != .slow { try result.get() }
  }

  // MARK: Start

  /// Sends reset and snapshot, as far as they are due, and answers where the log goes on.
  private func begin() async throws -> Int64 {
    let token = request.resumeToken
    let (start, reset) = try await store.read {
      [caller, only] transaction -> (Int64?, Chat.ResetReason?) in
      try ChatServer.check(only, transaction, caller)
      guard !token.isEmpty else { return (nil, nil) }
      switch try transaction.chatStart(of: token) {
      case .position(let position): return (position, nil)
      case .refused(let refusal):
        guard let reset = refusal.reset else { throw refusal.error }
        return (nil, reset)
      }
    }
    if let start { return start }
    var options = request.snapshot
    if let reset {
      var frame = Chat.SubscribeResponse()
      frame.historical = true
      frame.event = .reset(.init(reason: reset))
      try await send(frame)
      options = options ?? Self.defaultSnapshot
    }
    return try await sendSnapshot(options ?? Chat.SnapshotOptions())
  }

  private func sendSnapshot(_ options: Chat.SnapshotOptions) async throws -> Int64 {
    let chatLimit = Int(min(max(options.chatLimit, 0), Self.chatLimit))
    let messageLimit = Int(min(max(options.messagesPerChat, 0), Self.messageLimit))
    let (chats, head) = try await store.read { [caller, only] transaction in
      (
        try transaction.snapshot(
          chatLimit: chatLimit, messagesPerChat: messageLimit, chats: only, for: caller.user),
        try transaction.head()
      )
    }
    for (index, snapshot) in chats.enumerated() {
      var frame = Chat.SubscribeResponse()
      frame.historical = true
      if index == chats.count - 1 { frame.resumeToken = token(head) }
      var event = Chat.ChatSnapshotEvent()
      event.chat = Chat.Chat(snapshot.chat, for: caller.user)
      event.messages = snapshot.messages.map { Chat.Message($0, for: caller.user) }
      event.hasOlderMessages = snapshot.hasOlderMessages
      frame.event = .chatSnapshot(event)
      try await send(frame)
      if messageLimit > 0 {
        stream.onLoop { [stream] in stream.received(snapshot.chat.id, snapshot.chat.lastSequence) }
      }
    }
    return head
  }

  // MARK: The log and the live part

  /// Until the stream is live or ends.
  private func follow(from start: Int64, _ isFirst: Bool) async throws {
    var position = start
    var replayed: Int64 = 0
    var caughtUp = !isFirst
    while stream.end == nil {
      try Task.checkCancellation()
      let needsTotal = !caughtUp
      let (page, total) = try await store.read { [position, caller, only] transaction in
        let page = try transaction.chatLog(
          for: caller.user, after: position, limit: Self.pageSize, chats: only)
        let total =
          needsTotal && page.isAtHead ? try transaction.totalUnread(of: caller.user) : 0
        return (page, total)
      }
      for entry in page.entries {
        let frames = Chat.SubscribeResponse.encoded(
          of: entry, historical: !caughtUp, for: caller.user
        ) { token(entry.position) }
        for frame in frames {
          // Revoked means not another word, wherever we are.
          guard stream.end == nil else { return }
          try await send(frame)
        }
        replayed += Int64(frames.count)
        for case .messageCreated(let message) in entry.events
        where message.senderKey != caller.user {
          stream.onLoop { [stream] in stream.received(message.chat, message.sequence) }
        }
      }
      position = page.position
      guard page.isAtHead else { continue }
      if !caughtUp {
        caughtUp = true
        var frame = Chat.SubscribeResponse()
        frame.resumeToken = token(position)
        frame.event = .caughtUp(
          .init(replayedEventCount: replayed, totalUnreadCount: Int32(clamping: total)))
        try await send(frame)
      }
      if await goLive(page) { return }
    }
  }

  private func send(_ frame: Chat.SubscribeResponse) async throws {
    try await send(EncodedMessage(frame))
  }

  private func send(_ frame: EncodedMessage) async throws {
    stream.onLoop { [stream] in stream.sendingSince = stream.loop.now }
    defer { stream.onLoop { [stream] in stream.sendingSince = nil } }
    try await out.send(frame)
  }

  private func goLive(_ page: LogPage) async -> Bool {
    await withUnsafeContinuation { continuation in
      stream.onLoop { [shelf, stream] in
        continuation.resume(returning: shelf.goLive(stream, page))
      }
    }
  }

  private func resumePosition() async -> Int64 {
    await withUnsafeContinuation { continuation in
      stream.onLoop { [stream] in continuation.resume(returning: stream.position) }
    }
  }

  // MARK: End

  private func finish() async throws {
    guard let end = stream.end else { throw CancellationError() }
    let closing = Self.closing(end)
    // Without waiting: who is behind learns it from the status.
    await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
      stream.onLoop { [stream, out] in
        stream.stop()
        _ = out.tryWrite(closing)
        continuation.resume()
      }
    }
    if end == .revoked { throw StoreError.sessionRevoked }
    // The frame found no room: the status comes when there is some.
    if end == .slow {
      throw StoreError(
        .resourceExhausted, "SLOW_CONSUMER", "nothing was read for too long: resume",
        details: [.retry(afterMilliseconds: 1000)])
    }
  }

  private static func closing(_ end: StreamEnd) -> EncodedMessage {
    var event = Chat.ClosingEvent()
    event.retryDelay = end.retryDelay
    switch end {
    case .draining: event.reason = .serverDraining
    case .revoked: event.reason = .sessionRevoked
    case .replaced: event.reason = .replacedByNewerStream
    case .aged: event.reason = .maxAge
    case .slow: event.reason = .slowConsumer
    }
    var frame = Chat.SubscribeResponse()
    frame.event = .closing(event)
    return EncodedMessage(frame)
  }

  private func token(_ position: Int64) -> String {
    store.tokens.resumeToken(.chat, position: position, now: store.now)
  }
}
