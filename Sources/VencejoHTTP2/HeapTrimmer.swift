import CLinux
import Glibc
import Synchronization

/// Gives back to the system what the allocator keeps after a burst of streams and connections.
///
/// glibc gives up the end of a heap only, and something small always lives near it: after 50,000
/// calls at once nine tenths of their memory stay with the process. malloc_trim(3) gives back the
/// free pages in between. It takes tens of milliseconds for such a heap, and so runs on a thread
/// of its own, not often, and less often the less it finds.
final class HeapTrimmer: Sendable {
  static let shared = HeapTrimmer()

  /// What is not worth the effort, in bytes.
  private static let slack = 16 << 20
  /// Between two trims, in nanoseconds.
  private static let shortest: UInt64 = 2_000_000_000
  private static let longest: UInt64 = 60_000_000_000

  private struct State {
    /// Memory in use that nothing more is to be expected of.
    var floor: Int
    /// What was open when that was found out.
    var load = 0
    var last: UInt64 = 0
    var pause = HeapTrimmer.shortest
    var isAtWork = false
  }

  private let state: Locked<State>
  /// Streams and connections open on all loops, in the streams' measure.
  private let load = Atomic<Int>(0)

  private init() { state = Locked(State(floor: Self.resident())) }

  func add(_ count: Int) { load.add(count, ordering: .relaxed) }

  /// Trims if that promises something. In how many nanoseconds to ask again; nil for not before
  /// the next burst.
  func look(at now: UInt64) -> UInt64? {
    let (memory, open) = (Self.resident(), load.load(ordering: .relaxed))
    let (again, begins) = state.withLock { state -> (UInt64?, Bool) in
      if state.isAtWork { return (Self.shortest, false) }
      // What many streams needed is too much for few.
      if open &+ EventLoop.many < state.load / 2 { state.floor = 0 }
      if memory < state.floor { state.floor = memory }
      guard memory > state.floor &+ Self.slack else { return (nil, false) }
      let due = state.last &+ state.pause
      guard state.last == 0 || now >= due else { return (due &- now, false) }
      state.isAtWork = true
      return (Self.shortest, true)
    }
    if begins { detachThread { self.trim() } }
    return again
  }

  private func trim() {
    let open = load.load(ordering: .relaxed)
    let before = Self.resident()
    malloc_trim(0)
    let after = Self.resident()
    state.withLock { state in
      state.isAtWork = false
      state.last = Syscalls.monotonicNow()
      state.floor = after
      state.load = open
      let isFruitful = before &- after > before / 10
      state.pause = isFruitful ? Self.shortest : min(state.pause &* 2, Self.longest)
    }
  }

  /// The process's memory, in bytes; 0 where the system does not tell.
  static func resident() -> Int {
    let file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return 0 }
    defer { close(file) }
    return withUnsafeTemporaryAllocation(byteCount: 128, alignment: 1) { buffer in
      let count = read(file, buffer.baseAddress, buffer.count)
      guard count > 0 else { return 0 }
      let fields = buffer[..<count].split(separator: 0x20)
      guard fields.count > 1, let pages = Int(String(decoding: fields[1], as: UTF8.self)) else {
        return 0
      }
      return pages &* Int(sysconf(Int32(_SC_PAGESIZE)))
    }
  }
}

/// How a loop asks for it: a while after many streams have ended on it.
extension EventLoop {
  /// What makes a look worth while, in streams.
  fileprivate static let many = 1_000
  /// What a connection takes, in streams.
  private static let connectionWeight = 16

  /// Lets the process give back what bursts on this loop needed. Before its first connection.
  package func returnMemory() {
    // Learns what is in use by now.
    _ = HeapTrimmer.shared
    execute { self.returnsMemory = true }
  }

  func opened(connection isConnection: Bool) {
    guard returnsMemory else { return }
    HeapTrimmer.shared.add(isConnection ? Self.connectionWeight : 1)
  }

  func ended(connection isConnection: Bool) {
    guard returnsMemory else { return }
    let weight = isConnection ? Self.connectionWeight : 1
    HeapTrimmer.shared.add(-weight)
    endedSinceLook &+= weight
    if endedSinceLook >= Self.many, memoryTimer == nil { lookAtMemory(in: 1_000_000_000) }
  }

  private func lookAtMemory(in nanoseconds: UInt64) {
    // Not weak: an object that ever was referenced so counts its references more slowly from then
    // on, and each call counts the loop's. Not strong: the loop holds its timers. It is there when
    // one fires, since it is the loop that fires them.
    memoryTimer = schedule(afterNanoseconds: nanoseconds) { [unowned(unsafe) self] in
      memoryTimer = nil
      endedSinceLook = 0
      sessionMemory.empty()
      if let again = HeapTrimmer.shared.look(at: now) { lookAtMemory(in: again) }
    }
  }
}
