import Glibc
import Synchronization
import Testing

@testable import VencejoHTTP2

/// Atomics that tasks may share.
private final class Shared: Sendable {
  let strays = Atomic<Int>(0)
  let done = Atomic<Int>(0)
  let stop = Atomic<Bool>(false)
}

@Suite struct LoopTests {
  actor Elsewhere { func touch() -> Int { 1 } }

  @Test func tasksComeBackToTheirLoop() async throws {
    let loop = try EventLoop(name: "loop")
    defer { loop.shutdown() }
    let shared = Shared()
    let elsewhere = Elsewhere()
    await withCheckedContinuation { (all: CheckedContinuation<Void, Never>) in
      loop.execute {
        for i in 0..<2_000 {
          Task.immediate(executorPreference: loop) {
            if i < 1_000 {
              for _ in 0..<100 {
                await Task.yield()
                if !loop.isCurrent { shared.strays.add(1, ordering: .relaxed) }
              }
            } else {
              // Waking up is what is tested here.
              try? await Task.sleep(for: .milliseconds(1))
              if !loop.isCurrent { shared.strays.add(1, ordering: .relaxed) }
              _ = await elsewhere.touch()
              if !loop.isCurrent { shared.strays.add(1, ordering: .relaxed) }
              _ = await Task.detached { 1 }.value
              if !loop.isCurrent { shared.strays.add(1, ordering: .relaxed) }
            }
            if shared.done.add(1, ordering: .relaxed).newValue == 2_000 { all.resume() }
          }
        }
      }
    }
    #expect(shared.strays.load(ordering: .relaxed) == 0)
  }

  @Test func workRunsInOrder() throws {
    let loop = try EventLoop(name: "order")
    defer { loop.shutdown() }
    let log = EventLog<Int>()
    for i in 0..<1_000 { loop.execute { log.push(i) } }
    _ = log.wait { $0 == 999 ? true : nil }
    #expect(log.all == Array(0..<1_000))
  }

  /// A task that yields for ever starves neither timers nor other threads' work.
  @Test func aSpinningTaskStarvesNobody() throws {
    let loop = try EventLoop(name: "spin")
    defer { loop.shutdown() }
    let log = EventLog<String>()
    let shared = Shared()
    loop.execute {
      Task.immediate(executorPreference: loop) {
        while !shared.stop.load(ordering: .relaxed) { await Task.yield() }
        log.push("stopped")
      }
      _ = loop.schedule(after: .milliseconds(5)) { log.push("timer") }
    }
    #expect(log.wait { $0 == "timer" ? true : nil } == true)
    loop.execute { log.push("work") }
    #expect(log.wait { $0 == "work" ? true : nil } == true)
    shared.stop.store(true, ordering: .relaxed)
    #expect(log.wait { $0 == "stopped" ? true : nil } == true)
  }

  @Test func timersAreNeverEarlyAndCancel() throws {
    let loop = try EventLoop(name: "timers")
    defer { loop.shutdown() }
    let log = EventLog<UInt64>()
    loop.execute {
      let start = loop.now
      let cancelled = loop.schedule(after: .milliseconds(10)) { log.push(0) }
      for ms in [20, 1, 7] as [UInt64] {
        _ = loop.schedule(after: .milliseconds(Int64(ms))) {
          log.push(ms)
          #expect(Syscalls.monotonicNow() - start >= ms * 1_000_000)
        }
      }
      cancelled.cancel()
      cancelled.cancel()
      #expect(!cancelled.isPending)
    }
    #expect(log.wait { $0 == 20 ? true : nil } == true)
    #expect(log.all == [1, 7, 20])
  }

  @Test func aTaskOutlivesItsLoop() async throws {
    let loop = try EventLoop(name: "ended")
    let task = Task(executorPreference: loop) {
      // Wakes up after its loop has ended: that is what is tested here.
      try? await Task.sleep(for: .milliseconds(30))
      return 7
    }
    loop.shutdown()
    loop.shutdown()
    #expect(await task.value == 7)
    #expect(!loop.tryExecute {})
  }

  @Test func groupsDealInTurn() throws {
    let group = try EventLoopGroup(count: 3)
    defer { group.shutdown() }
    let first = (0..<6).map { _ in ObjectIdentifier(group.next()) }
    #expect(Array(first[0..<3]) == Array(first[3..<6]) && Set(first).count == 3)
    let log = EventLog<Bool>()
    let loop = group.loops[1]
    loop.execute { log.push(EventLoop.current === loop && loop.isCurrent) }
    #expect(log.wait { $0 } == true)
    #expect(EventLoop.current == nil && EventLoopGroup.usableCores >= 1)
  }
}

@Suite struct TimerWheelTests {
  /// Against a sorted list: each fires in its millisecond, when the clock is stepped
  /// and when it jumps.
  @Test(arguments: [1, 3, 64, 1_000, 100_000] as [UInt64])
  func firesWhenDue(step: UInt64) {
    var seed: UInt64 = 42
    func random(_ bound: UInt64) -> UInt64 {
      seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return (seed >> 33) % bound
    }
    let start: UInt64 = 1_234_567
    let wheel = TimerWheel(now: start)
    var fired: [(UInt64, UInt64)] = []
    var clock = start
    var expected: [UInt64] = []
    let edges: [UInt64] = [1, 63, 64, 65, 4_095, 4_096, 4_097, 262_143, 262_144, 262_145]
    for delay in edges + (0..<500).map({ _ in 1 + random(step * 600) }) {
      let due = start + delay
      expected.append(due)
      wheel.add(LoopTimer(deadline: due) { fired.append((due, clock)) })
    }
    while wheel.count > 0 {
      clock += step
      wheel.advance(to: clock)
    }
    #expect(fired.map(\.0).sorted() == expected.sorted())
    #expect(fired.allSatisfy { $0.0 <= $0.1 && $0.1 - $0.0 < step })
    #expect(wheel.nextLook == nil)
  }

  @Test func farTimersWait() {
    let wheel = TimerWheel(now: 0)
    var fired = false
    let due: UInt64 = (1 << 30) * 3 + 5
    wheel.add(LoopTimer(deadline: due) { fired = true })
    while let look = wheel.nextLook, look < due { wheel.advance(to: look) }
    #expect(!fired)
    wheel.advance(to: due)
    #expect(fired && wheel.count == 0)
  }

  @Test func workMayCancelAndAdd() {
    let wheel = TimerWheel(now: 0)
    var fired: [String] = []
    var timers: [LoopTimer] = []
    for name in ["a", "b", "c"] {
      let timer = LoopTimer(deadline: 5) {
        fired.append(name)
        for other in timers { other.cancel() }
        wheel.add(LoopTimer(deadline: 6) { fired.append("next") })
      }
      timers.append(timer)
      wheel.add(timer)
    }
    wheel.advance(to: 5)
    #expect(fired.count == 1)
    wheel.advance(to: 6)
    #expect(fired.count == 2 && fired.last == "next")
  }

  @Test func aBucketEarnsItsRate() {
    var bucket = TokenBucket(burst: 2, rate: 10, now: 0)
    let times: [UInt64] = [
      0, 0, 0, 99_999_999, 100_000_000, 100_000_000, .max, .max, .max,
    ]
    let taken = times.map { bucket.take(now: $0) }
    #expect(taken == [true, true, false, false, true, false, true, true, false])
    bucket.refill()
    let refilled = bucket.take(now: .max)
    #expect(refilled)
  }
}
