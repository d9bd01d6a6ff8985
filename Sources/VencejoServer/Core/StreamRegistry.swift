import Synchronization

/// All live streams by session: a session has a few at most, and takes them with it.
final class StreamRegistry: Sendable {
  static let streamsPerSession = 8

  private struct State {
    var bySession: [Int64: [LiveStream]] = [:]
    var isDraining = false
  }
  private let state = Mutex(State())

  /// Adds a stream; the oldest of its session gives way when there are too many.
  func add(_ stream: LiveStream) {
    let (ending, isDraining) = state.withLock { state -> (LiveStream?, Bool) in
      var streams = state.bySession[stream.session] ?? []
      streams.append(stream)
      let oldest = streams.count > Self.streamsPerSession ? streams.removeFirst() : nil
      state.bySession[stream.session] = streams
      return (oldest, state.isDraining)
    }
    ending?.end(.replaced)
    if isDraining { stream.end(.draining) }
  }

  func remove(_ stream: LiveStream) {
    state.withLock { state in
      guard var streams = state.bySession[stream.session] else { return }
      streams.removeAll { $0 === stream }
      state.bySession[stream.session] = streams.isEmpty ? nil : streams
    }
  }

  /// Of all sessions.
  var count: Int { state.withLock { $0.bySession.values.reduce(0) { $0 + $1.count } } }

  /// Ends the streams of revoked sessions at once.
  func revoke(sessions: [Int64]) {
    let streams = state.withLock { state in sessions.flatMap { state.bySession[$0] ?? [] } }
    for stream in streams { stream.end(.revoked) }
  }

  /// Ends all streams and those to come.
  func drain() {
    let streams = state.withLock { state in
      state.isDraining = true
      return Array(state.bySession.values.joined())
    }
    for stream in streams { stream.end(.draining) }
  }
}
