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
    state.withLock { state in
      state.next += 1
      state.readers[state.next] = Reader(continuation: continuation)
    }
    return stream
  }

  /// One element for any number of values since the last: for readers who look for themselves.
  func pulses() -> AsyncStream<Void> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    state.withLock { state in
      state.next += 1
      state.pulses[state.next] = continuation
    }
    return stream
  }

  /// In the same order for every reader.
  ///
  /// A reader that has gone is noticed here, and not when it goes: its end is told under a lock of
  /// its task, which a yield takes too, so that the two would wait for each other.
  func send(_ value: Value) {
    state.withLock { state in
      var gone: [Int] = []
      for (id, pulse) in state.pulses {
        if case .terminated = pulse.yield() { gone.append(id) }
      }
      for (id, reader) in state.readers {
        var reader = reader
        var result = reader.continuation.yield(reader.hasMissed ? missed : value)
        if reader.hasMissed, case .enqueued = result {
          result = reader.continuation.yield(value)
        }
        switch result {
        case .dropped: reader.hasMissed = true
        case .terminated: gone.append(id)
        default: reader.hasMissed = false
        }
        state.readers[id] = reader
      }
      for id in gone { (state.readers[id], state.pulses[id]) = (nil, nil) }
    }
  }

  /// Readers that have not been found gone.
  var readerCount: Int { state.withLock { $0.readers.count + $0.pulses.count } }
}
