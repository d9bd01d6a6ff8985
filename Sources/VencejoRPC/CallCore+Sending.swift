import Synchronization
import VencejoHTTP2

// Messages that go.

extension CallCore {
  struct Outbound {
    /// Sealed frames handed over by other threads.
    var pending: [[UInt8]] = []
    var pendingBytes = 0
    /// Set once nothing more can be sent.
    var closed: Boxed?
    var waiters: [(id: UInt32, continuation: UnsafeContinuation<RPCError?, Never>)] = []
    var lastWaiter: UInt32 = 0
    var flushScheduled = false
    /// The stream holds more than the high-water mark.
    var blocked = false
    var finishRequested = false

    indirect enum Boxed {
      case error(RPCError)

      var error: RPCError {
        switch self {
        case .error(let error): error
        }
      }
    }

    var isFull: Bool { blocked || pendingBytes > CallCore.highWaterMark }
  }

  /// Any thread. Sends a sealed frame and waits while too much is under way.
  final func send(frame: [UInt8]) async throws(RPCError) {
    guard let buffers else { throw Self.noStream }
    let full: Bool
    if loop.isCurrent {
      if let closed = buffers.outbound.withLock({ $0.closed }) { throw closed.error }
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
      if let closed = state.closed { return (closed.error, false, false) }
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
      state.closed = .error(error)
      state.pending.removeAll()
      state.pendingBytes = 0
      return state.takeWaiters()
    }
    for waiter in waiters { waiter.resume(returning: error) }
  }

  private final func waitUntilWritable() async throws(RPCError) {
    guard let buffers else { throw Self.noStream }
    let id = buffers.outbound.withLock { state in
      state.lastWaiter &+= 1
      return state.lastWaiter
    }
    let error = await withTaskCancellationHandler {
      await withUnsafeContinuation { (continuation: UnsafeContinuation<RPCError?, Never>) in
        let answer = buffers.outbound.withLock { state -> RPCError?? in
          if let closed = state.closed { return .some(closed.error) }
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

  static var noStream: RPCError {
    RPCError(.internalError, "the method has no stream of messages")
  }

  private static var writerCancelled: RPCError {
    RPCError(.cancelled, "the writing task was cancelled")
  }
}

extension CallCore.Outbound {
  mutating func takeWaiters() -> [UnsafeContinuation<RPCError?, Never>] {
    guard !waiters.isEmpty else { return [] }
    defer { waiters.removeAll() }
    return waiters.map(\.continuation)
  }
}
