import Synchronization
import VencejoHTTP2
import VencejoStore

/// Wakes the streams that a commit concerns; they read it from the log. What concerns a stream is
/// looked up by the changed record's values, so a commit costs the same whoever else listens.
final class RecordHub: Sendable {
  private struct Listener: Sendable {
    var stream: RecordStream
    /// Where the oldest commit begins that concerns the stream and that it has not read; nil when
    /// there is none.
    var unread: Int64?
  }

  private struct Listeners {
    var byStream: [ObjectIdentifier: Listener] = [:]
    var index = FeedIndex<ObjectIdentifier>()
  }

  private struct State {
    var databases: [Int64: Listeners] = [:]
    /// Position of the last commit that was published.
    var head: Int64 = 0

    /// Notes that there is something to read.
    mutating func wake(
      _ ids: Set<ObjectIdentifier>, database: Int64, base: Int64,
      _ woken: inout [ObjectIdentifier: RecordStream]
    ) {
      for id in ids {
        guard let listener = databases[database]?.byStream[id] else { continue }
        if listener.unread == nil { databases[database]?.byStream[id]?.unread = base }
        woken[id] = listener.stream
      }
    }
  }

  private let state = Mutex(State())

  /// `database` is the internal key.
  func add(_ stream: RecordStream, _ feed: RecordFeed, database: Int64) {
    state.withLock { state in
      let id = ObjectIdentifier(stream)
      // What was committed before is not known here: all of it is unread.
      state.databases[database, default: Listeners()].byStream[id] =
        Listener(stream: stream, unread: 0)
      state.databases[database]?.index.add(id, feed)
    }
  }

  func remove(_ stream: RecordStream, database: Int64) {
    state.withLock { state in
      let id = ObjectIdentifier(stream)
      state.databases[database]?.byStream[id] = nil
      state.databases[database]?.index.remove(id)
      if state.databases[database]?.byStream.isEmpty == true { state.databases[database] = nil }
    }
  }

  /// Where a stream that has read up to `position` goes on, and whether there is something to
  /// read: it asks before each reading, which then counts as done.
  func next(
    _ stream: RecordStream, database: Int64, position: Int64
  ) -> (position: Int64, isBehind: Bool) {
    state.withLock { state in
      let id = ObjectIdentifier(stream)
      guard let unread = state.databases[database]?.byStream[id]?.unread else {
        // Nothing up to here concerned it.
        return (max(position, state.head), false)
      }
      state.databases[database]?.byStream[id]?.unread = nil
      return (max(position, unread), true)
    }
  }

  /// On the writer's thread, in the order of commits.
  func publish(_ batch: CommittedBatch) {
    let listeners = state.withLock { state -> [RecordStream] in
      state.head = batch.head
      var woken: [ObjectIdentifier: RecordStream] = [:]
      for event in batch.transactions.joined() {
        guard let touched = event.payload as? RecordsTouched else { continue }
        let own = state.databases[touched.database]?.index.concerned(by: touched) ?? []
        state.wake(own, database: touched.database, base: batch.base, &woken)
        for database in touched.otherDatabases {
          let others =
            state.databases[database]?.index.concerned(byFiringsOf: touched, in: database) ?? []
          state.wake(others, database: database, base: batch.base, &woken)
        }
      }
      return Array(woken.values)
    }
    guard !listeners.isEmpty else { return }
    // One enqueue per loop.
    for (_, group) in Dictionary(grouping: listeners, by: { ObjectIdentifier($0.loop) }) {
      group.first?.loop.execute { for stream in group { stream.fallBehind() } }
    }
  }
}

/// A Subscribe call of RecordService: woken by the hub, and by its own timer for heartbeats.
///
/// `@unchecked Sendable`: what is its own and not constant is touched on the loop only.
final class RecordStream: LiveStream, @unchecked Sendable {
  let interval: Duration
  private let age: UInt64
  // Loop.
  private var timer: LoopTimer?
  private var ageLimit: UInt64 = .max

  init(loop: EventLoop, session: Int64, interval: Duration, age: Duration) {
    self.interval = interval
    // A tenth either way, so that clients that came together do not go together.
    self.age = (age * Double.random(in: 0.9...1.1)).nanoseconds
    super.init(loop: loop, session: session)
  }

  /// Loop.
  func startTimer() {
    ageLimit = loop.now &+ age
    schedule()
  }

  /// Loop.
  func stop() {
    timer?.cancel()
    timer = nil
  }

  private func schedule() {
    timer = loop.schedule(after: interval) { [weak self] in
      guard let self else { return }
      guard self.loop.now < self.ageLimit else { return self.end(.aged) }
      self.fallBehind()
      self.schedule()
    }
  }
}
