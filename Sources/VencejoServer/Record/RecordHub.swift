import Synchronization
import VencejoHTTP2
import VencejoStore

/// Wakes the streams that listen to a database when something was committed there; they read it
/// from the log.
final class RecordHub: Sendable {
  private let streams = Mutex<[Int64: [ObjectIdentifier: RecordStream]]>([:])

  /// `database` is the internal key.
  func add(_ stream: RecordStream, database: Int64) {
    streams.withLock { $0[database, default: [:]][ObjectIdentifier(stream)] = stream }
  }

  func remove(_ stream: RecordStream, database: Int64) {
    streams.withLock { streams in
      streams[database]?[ObjectIdentifier(stream)] = nil
      if streams[database]?.isEmpty == true { streams[database] = nil }
    }
  }

  /// On the writer's thread, in the order of commits.
  func publish(_ batch: CommittedBatch) {
    var touched: Set<Int64> = []
    for event in batch.transactions.joined() {
      if let mark = event.payload as? RecordsTouched { touched.insert(mark.database) }
    }
    guard !touched.isEmpty else { return }
    let listeners = streams.withLock { streams in
      touched.flatMap { streams[$0].map { Array($0.values) } ?? [] }
    }
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
