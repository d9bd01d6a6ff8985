import Synchronization
import VencejoHTTP2

/// What both ends of a call share: messages that came and wait for their reader, messages
/// that go and wait for the window, and the flow control between them.
///
/// `@unchecked Sendable`: the members marked *loop* are touched by the loop's thread only;
/// everything that readers and writers on other threads need lies behind the two mutexes.
class CallCore: @unchecked Sendable {
  /// A writer waits above this many bytes not yet taken by the connection.
  static let highWaterMark = 64 * 1024
  /// Bytes given back to the window from another thread are gathered up to this many:
  /// each return costs a hop to the loop.
  private static let creditBatch = 32 * 1024

  let loop: EventLoop
  /// Loop. Nil before a client's stream is open and after the stream closed.
  final var stream: HTTP2Stream?
  /// Loop.
  final var deframer: Deframer
  /// Loop. Nil when nobody observes.
  final var tally: CallTally?

  /// What readers and writers on other threads need. Nil for one message each way, which
  /// neither waits for the other; set before anybody else knows of the call.
  private var buffers: Buffers?

  init(loop: EventLoop, receiveLimit: Int) {
    self.loop = loop
    deframer = Deframer(limit: receiveLimit)
  }

  /// Loop. Sends a sealed frame of a stream of messages.
  func transmit(_ frame: [UInt8], on stream: HTTP2Stream) { put(frame, on: stream) }

  /// Loop. Ends our side.
  func transmitEnd(on stream: HTTP2Stream) { stream.finish() }

  /// Loop. Hands a sealed frame to the stream.
  final func put(_ frame: [UInt8], on stream: HTTP2Stream) {
    stream.send(data: frame)
    if let tally { tally.sent(frame.count) }
  }

  /// Makes ready for streams of messages.
  final func openBuffers() { buffers = Buffers() }

  /// Loop. The stream when it can take messages now, after whatever must go before them.
  func streamForMessages() -> HTTP2Stream? { stream }
}

private final class Buffers: Sendable {
  let inbound = Mutex(CallCore.Inbound())
  let outbound = Mutex(CallCore.Outbound())
}

// MARK: - Messages that came

extension CallCore {
  /// A message as it came, decompressed.
  struct Received {
    var bytes: [UInt8] = []
    var wasCompressed = false
  }

  fileprivate typealias Delivery = Result<Received?, RPCError>

  fileprivate struct Inbound {
    var messages: [Received] = []
    var head = 0
    /// Bytes of queued messages with their prefixes.
    var held = 0
    /// Bytes of a message that has only begun.
    var partial = 0
    /// Bytes received and not yet returned to the window.
    var uncredited = 0
    /// Set once nothing more will come; nil inside means a regular end.
    var end: RPCError??
    var waiter: UnsafeContinuation<Delivery, Never>?

    var isEmpty: Bool { head == messages.count }

    /// While something is queued, its reader is behind and the window stays shut by that
    /// much; a message larger than the window can still arrive once the queue is empty.
    var creditable: Int { isEmpty ? uncredited : max(0, uncredited - held - partial) }

    mutating func takeCredit(atLeast least: Int) -> Int {
      let credit = creditable
      guard credit > 0, credit >= least || isEmpty else { return 0 }
      uncredited -= credit
      return credit
    }

    mutating func pop() -> Received? {
      guard head < messages.count else { return nil }
      let message = messages[head]
      messages[head] = Received()
      head += 1
      if head == messages.count || head >= 64 {
        messages.removeFirst(head)
        head = 0
      }
      held -= message.bytes.count + Deframer.prefixLength
      return message
    }
  }

  /// Loop. Hands over a whole message.
  final func deliver(_ message: [UInt8]) {
    guard let buffers else { return }
    let received = Received(bytes: message, wasCompressed: deframer.isCompressed)
    let waiter = buffers.inbound.withLock { state -> UnsafeContinuation<Delivery, Never>? in
      guard state.end == nil else { return nil }
      if let waiter = state.waiter {
        state.waiter = nil
        return waiter
      }
      state.messages.append(received)
      state.held += message.count + Deframer.prefixLength
      return nil
    }
    waiter?.resume(returning: .success(received))
  }

  /// Loop. Accounts for the bytes of a DATA frame after its messages were delivered, and
  /// opens the window as far as the reader has come.
  final func received(_ count: Int) {
    guard let buffers else { return }
    let partial = deframer.bufferedBytes
    let credit = buffers.inbound.withLock { state in
      state.partial = partial
      state.uncredited += count
      if state.end != nil {
        state.messages.removeAll()
        state.head = 0
        state.held = 0
      }
      return state.takeCredit(atLeast: 0)
    }
    if credit > 0 { stream?.consume(credit) }
  }

  /// Loop. Ends the messages: after those that came, or at once with `dropping`.
  final func endMessages(_ error: RPCError?, dropping: Bool) {
    guard let buffers else { return }
    let waiter = buffers.inbound.withLock { state -> UnsafeContinuation<Delivery, Never>? in
      guard state.end == nil else { return nil }
      state.end = .some(error)
      if dropping {
        state.messages.removeAll()
        state.head = 0
        state.held = 0
      }
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume(returning: error.map { .failure($0) } ?? .success(nil))
  }

  /// Any thread. The next message, or nil after the last.
  ///
  /// Single consumer: a second one that waits at the same time is refused.
  final func nextMessage() async throws(RPCError) -> Received? {
    guard let buffers else { throw Self.noStream }
    if let delivery = takeMessage(buffers, or: nil) { return try delivery.get() }
    // What stays in this frame while it waits is a part of each idle stream.
    return try await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        if let delivery = takeMessage(buffers, or: continuation) {
          continuation.resume(returning: delivery)
        }
      }
    } onCancel: {
      let waiter = buffers.inbound.withLock { state in
        defer { state.waiter = nil }
        return state.waiter
      }
      waiter?.resume(returning: .failure(Self.readerCancelled))
    }.get()
  }

  /// What there is for a reader now; nil when it has to wait, as `waiter`.
  private final func takeMessage(
    _ buffers: Buffers, or waiter: UnsafeContinuation<Delivery, Never>?
  ) -> Delivery? {
    let (delivery, credit) = buffers.inbound.withLock { state -> (Delivery?, Int) in
      if let message = state.pop() {
        return (.success(message), state.takeCredit(atLeast: Self.creditBatch))
      }
      if let end = state.end { return (end.map { .failure($0) } ?? .success(nil), 0) }
      guard let waiter else { return (nil, 0) }
      if state.waiter != nil {
        return (.failure(RPCError(.internalError, "two tasks read the same stream")), 0)
      }
      if Task.isCancelled { return (.failure(Self.readerCancelled), 0) }
      state.waiter = waiter
      return (nil, 0)
    }
    giveBack(credit)
    return delivery
  }

  private static var readerCancelled: RPCError {
    RPCError(.cancelled, "the reading task was cancelled")
  }

  private final func giveBack(_ credit: Int) {
    guard credit > 0 else { return }
    if loop.isCurrent {
      stream?.consume(credit)
    } else {
      loop.execute { self.stream?.consume(credit) }
    }
  }
}

// MARK: - Messages that go

extension CallCore {
  fileprivate struct Outbound {
    /// Sealed frames handed over by other threads.
    var pending: [[UInt8]] = []
    var pendingBytes = 0
    var flushScheduled = false
    /// The stream holds more than the high-water mark.
    var blocked = false
    var finishRequested = false
    /// Set once nothing more can be sent.
    var closed: RPCError?
    var waiters: [(id: UInt64, continuation: UnsafeContinuation<RPCError?, Never>)] = []
    var lastWaiter: UInt64 = 0

    var isFull: Bool { blocked || pendingBytes > CallCore.highWaterMark }
  }

  /// Any thread. Sends a sealed frame and waits while too much is under way.
  final func send(frame: [UInt8]) async throws(RPCError) {
    guard let buffers else { throw Self.noStream }
    let full: Bool
    if loop.isCurrent {
      if let closed = buffers.outbound.withLock({ $0.closed }) { throw closed }
      flush()
      if let stream = streamForMessages() {
        transmit(frame, on: stream)
        full = stream.queuedBytes > Self.highWaterMark
        if full { buffers.outbound.withLock { $0.blocked = true } }
      } else {
        full = try enqueue(frame)
      }
    } else {
      full = try enqueue(frame)
    }
    if full { try await waitUntilWritable() }
  }

  /// Loop. Sends a sealed frame unless the stream is behind or closed: never waits.
  final func trySend(frame: [UInt8]) -> Bool {
    guard let buffers else { return false }
    let (isOpen, hasPending) = buffers.outbound.withLock {
      ($0.closed == nil && !$0.isFull, !$0.pending.isEmpty || $0.finishRequested)
    }
    guard isOpen else { return false }
    if hasPending { flush() }
    guard let stream = streamForMessages(), stream.queuedBytes <= Self.highWaterMark else {
      return false
    }
    transmit(frame, on: stream)
    if stream.queuedBytes > Self.highWaterMark { buffers.outbound.withLock { $0.blocked = true } }
    return true
  }

  /// Any thread. Half-closes after everything sent so far.
  final func finishSending() {
    guard let buffers else { return }
    buffers.outbound.withLock { $0.finishRequested = true }
    if loop.isCurrent { flush() } else { loop.execute { self.flush() } }
  }

  private final func enqueue(_ frame: [UInt8]) throws(RPCError) -> Bool {
    guard let buffers else { throw Self.noStream }
    let (closed, schedule, full) = buffers.outbound.withLock { state -> (RPCError?, Bool, Bool) in
      if let closed = state.closed { return (closed, false, false) }
      state.pending.append(frame)
      state.pendingBytes += frame.count
      let schedule = !state.flushScheduled
      state.flushScheduled = true
      return (nil, schedule, state.isFull)
    }
    if let closed { throw closed }
    if schedule { loop.execute { self.flush() } }
    return full
  }

  /// Loop. Moves what other threads handed over into the stream.
  final func flush() {
    guard let buffers else { return }
    let (frames, finish) = buffers.outbound.withLock { state -> ([[UInt8]], Bool) in
      state.flushScheduled = false
      return (state.pending, state.finishRequested)
    }
    guard !frames.isEmpty || finish, let stream = streamForMessages() else { return }
    for frame in frames { transmit(frame, on: stream) }
    if finish { transmitEnd(on: stream) }
    let blocked = stream.queuedBytes > Self.highWaterMark
    let waiters = buffers.outbound.withLock { state -> [UnsafeContinuation<RPCError?, Never>] in
      // A frame may have ended the call.
      guard state.closed == nil else { return [] }
      state.pending.removeFirst(frames.count)
      for frame in frames { state.pendingBytes -= frame.count }
      if finish { state.finishRequested = false }
      state.blocked = blocked
      return state.isFull ? [] : state.takeWaiters()
    }
    for waiter in waiters { waiter.resume(returning: nil) }
  }

  /// Loop. The stream has room again.
  final func drained() {
    guard let buffers else { return }
    let waiters = buffers.outbound.withLock { state in
      state.blocked = false
      return state.isFull ? [] : state.takeWaiters()
    }
    for waiter in waiters { waiter.resume(returning: nil) }
  }

  /// Loop. Nothing more can be sent: writers that wait, and later ones, get the error.
  final func closeSending(_ error: RPCError) {
    guard let buffers else { return }
    let waiters = buffers.outbound.withLock { state -> [UnsafeContinuation<RPCError?, Never>] in
      guard state.closed == nil else { return [] }
      state.closed = error
      state.pending.removeAll()
      state.pendingBytes = 0
      return state.takeWaiters()
    }
    for waiter in waiters { waiter.resume(returning: error) }
  }

  private final func waitUntilWritable() async throws(RPCError) {
    guard let buffers else { throw Self.noStream }
    let id = buffers.outbound.withLock { state in
      state.lastWaiter += 1
      return state.lastWaiter
    }
    let error = await withTaskCancellationHandler {
      await withUnsafeContinuation { (continuation: UnsafeContinuation<RPCError?, Never>) in
        let answer = buffers.outbound.withLock { state -> RPCError?? in
          if let closed = state.closed { return .some(closed) }
          if !state.isFull { return .some(nil) }
          if Task.isCancelled { return .some(Self.writerCancelled) }
          state.waiters.append((id, continuation))
          return nil
        }
        if let answer { continuation.resume(returning: answer) }
      }
    } onCancel: {
      let waiter = buffers.outbound.withLock { state -> UnsafeContinuation<RPCError?, Never>? in
        guard let index = state.waiters.firstIndex(where: { $0.id == id }) else { return nil }
        return state.waiters.remove(at: index).continuation
      }
      waiter?.resume(returning: Self.writerCancelled)
    }
    if let error { throw error }
  }

  private static var noStream: RPCError {
    RPCError(.internalError, "the method has no stream of messages")
  }

  private static var writerCancelled: RPCError {
    RPCError(.cancelled, "the writing task was cancelled")
  }
}

extension CallCore.Outbound {
  fileprivate mutating func takeWaiters() -> [UnsafeContinuation<RPCError?, Never>] {
    guard !waiters.isEmpty else { return [] }
    defer { waiters.removeAll() }
    return waiters.map(\.continuation)
  }
}
