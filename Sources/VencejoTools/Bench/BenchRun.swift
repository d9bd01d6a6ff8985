import Synchronization
import VencejoRPC

/// What is to be measured.
struct BenchPlan: Sendable {
  var method: DescribedMethod?
  var requests: [EncodedMessage] = []
  var options = CallOptions()
  var calls: Int?
  var duration: Duration?
  var concurrency = 50
  var connections = 1
  /// Calls begun a second; nil begins one when another ends.
  var rate: Double?
  var warmUp = 0
}

/// The workers of a measurement and what they share.
final class BenchRun: Sendable {
  struct Tally: Sendable {
    var latencies = LatencyHistogram()
    var statuses: [StatusCode: UInt64] = [:]
    /// A message of each status that is not OK.
    var messages: [StatusCode: String] = [:]
    var sentBytes: UInt64 = 0
    var receivedBytes: UInt64 = 0
    var receivedMessages: UInt64 = 0
  }

  private static let shardCount = 8

  private let plan: BenchPlan
  private let method: DescribedMethod
  private let channels: [Channel]
  private let limit: Int?
  private let start: ContinuousClock.Instant
  private let end: ContinuousClock.Instant?
  private let next = Atomic<Int>(0)
  /// Of several: workers that end at the same time would wait for one another.
  private let shards: [Shard]

  private final class Shard: Sendable {
    let tally = Mutex(Tally())
  }

  private init(
    _ plan: BenchPlan, _ method: DescribedMethod, _ channels: [Channel], calls: Int?,
    duration: Duration?
  ) {
    self.plan = plan
    self.method = method
    self.channels = channels
    limit = calls
    let now = ContinuousClock.now
    start = now
    end = duration.map { now + $0 }
    shards = (0..<Self.shardCount).map { _ in Shard() }
  }

  static func run(
    _ plan: BenchPlan, channel: () throws -> Channel
  ) async throws -> BenchReport {
    guard let method = plan.method else { throw ArgumentList.Fault("no method") }
    let channels = try (0..<plan.connections).map { _ in try channel() }
    defer { for channel in channels { channel.close() } }
    if plan.warmUp > 0 {
      var unhurried = plan
      unhurried.rate = nil
      let run = BenchRun(unhurried, method, channels, calls: plan.warmUp, duration: nil)
      await run.work()
    }
    // Interrupted this early there is a report too, of no calls: scripts read it the same way.
    let run = BenchRun(plan, method, channels, calls: plan.calls, duration: plan.duration)
    if !Interrupt.hasCome { await run.work() }
    let took = ContinuousClock.now - run.start
    var total = Tally()
    for shard in run.shards { shard.tally.withLock { total.merge($0) } }
    return BenchReport(
      plan: plan, tally: total, duration: took, wasInterrupted: Interrupt.hasCome)
  }

  private func work() async {
    await withTaskGroup(of: Bool.self) { group in
      for worker in 0..<plan.concurrency {
        group.addTask {
          await self.work(worker)
          return true
        }
      }
      group.addTask {
        await Interrupt.wait()
        return false
      }
      var left = plan.concurrency
      while left > 0, let isWorker = await group.next() {
        if isWorker { left -= 1 } else { group.cancelAll() }
      }
      group.cancelAll()
    }
  }

  private func work(_ worker: Int) async {
    let channel = channels[worker % channels.count]
    let shard = shards[worker % Self.shardCount]
    while !Task.isCancelled {
      let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
      if let limit, number >= limit { return }
      if let end, .now >= end { return }
      var due = ContinuousClock.now
      if let rate = plan.rate {
        due = start + .seconds(Double(number) / rate)
        if let end, due >= end { return }
        if due > .now { try? await Task.sleep(until: due, tolerance: .zero) }
      }
      await call(number, channel, shard, due)
    }
  }

  private func call(
    _ number: Int, _ channel: Channel, _ shard: Shard, _ due: ContinuousClock.Instant
  ) async {
    var status = StatusCode.ok
    var message = ""
    var received: (messages: UInt64, bytes: UInt64) = (0, 0)
    let requests: ArraySlice<EncodedMessage>
    if method.takesStream {
      requests = plan.requests[...]
    } else {
      let turn = number % max(plan.requests.count, 1)
      requests = plan.requests[turn..<min(turn + 1, plan.requests.count)]
    }
    let call = channel.bytes(method.path, plan.options)
    do {
      if method.takesStream, method.answersStream {
        // One task for both would wait for ever once both windows are full.
        async let sending: Void = Self.send(requests, on: call)
        received = try await Self.receive(call)
        try? await sending
      } else {
        try? await Self.send(requests, on: call)
        received = try await Self.receive(call)
      }
    } catch {
      let error = error as? RPCError ?? RPCError(.unknown, "\(error)")
      status = error.code
      message = error.message
    }
    // What was cut off tells nothing of the server.
    if Task.isCancelled { return }
    let took = ContinuousClock.now - due
    let nanoseconds = UInt64(clamping: Int64((took / .nanoseconds(1)).rounded()))
    shard.tally.withLock { tally in
      tally.latencies.record(nanoseconds)
      tally.statuses[status, default: 0] += 1
      if status != .ok, tally.messages[status] == nil { tally.messages[status] = message }
      for request in requests { tally.sentBytes += UInt64(request.count) }
      tally.receivedBytes += received.bytes
      tally.receivedMessages += received.messages
    }
  }

  private static func send(
    _ requests: ArraySlice<EncodedMessage>, on call: BytesCall
  ) async throws {
    for request in requests { try await call.send(request) }
    call.finish()
  }

  private static func receive(_ call: BytesCall) async throws -> (UInt64, UInt64) {
    var messages: UInt64 = 0
    var bytes: UInt64 = 0
    while let message = try await call.next() {
      messages += 1
      bytes += UInt64(message.count)
    }
    return (messages, bytes)
  }
}

extension BenchRun.Tally {
  mutating func merge(_ other: Self) {
    latencies.merge(other.latencies)
    statuses.merge(other.statuses) { $0 + $1 }
    messages.merge(other.messages) { mine, _ in mine }
    sentBytes += other.sentBytes
    receivedBytes += other.receivedBytes
    receivedMessages += other.receivedMessages
  }
}
