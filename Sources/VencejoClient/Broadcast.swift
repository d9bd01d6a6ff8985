import Synchronization

/// One value to many readers, each with a bounded buffer. A reader that is too slow loses values
/// and is told so by one `missed` value: everything can be read from the cache again.
final class Broadcast<Value: Sendable>: Sendable {
  private struct Reader {
    var continuation: AsyncStream<Value>.Continuation
    var hasMissed = false
  }

  private struct State {
    var readers: [Int: Reader] = [:]
    var pulses: [Int: AsyncStream<Void>.Continuation] = [:]
    var next = 0
  }

  private let state = Mutex(State())
  private let missed: Value
  private let limit: Int

  init(missed: Value, limit: Int = 4096) {
    self.missed = missed
    self.limit = limit
  }

  func subscribe() -> AsyncStream<Value> {
    // One place more than the limit, kept for `missed`.
    let (stream, continuation) = AsyncStream.makeStream(
      of: Value.self, bufferingPolicy: .bufferingOldest(limit + 1))
    let id = state.withLock { state in
      state.next += 1
      state.readers[state.next] = Reader(continuation: continuation)
      return state.next
    }
    continuation.onTermination = { [weak self] _ in
      self?.state.withLock { _ = $0.readers.removeValue(forKey: id) }
    }
    return stream
  }

  /// One element for any number of values since the last: for readers who look for themselves.
  func pulses() -> AsyncStream<Void> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let id = state.withLock { state in
      state.next += 1
      state.pulses[state.next] = continuation
      return state.next
    }
    continuation.onTermination = { [weak self] _ in
      self?.state.withLock { _ = $0.pulses.removeValue(forKey: id) }
    }
    return stream
  }

  func send(_ value: Value) {
    state.withLock { state in
      for pulse in state.pulses.values { pulse.yield() }
      for (id, reader) in state.readers {
        var reader = reader
        if reader.hasMissed {
          if case .enqueued = reader.continuation.yield(missed) { reader.hasMissed = false }
        }
        if !reader.hasMissed, case .dropped = reader.continuation.yield(value) {
          reader.hasMissed = true
        }
        state.readers[id] = reader
      }
    }
  }
}
