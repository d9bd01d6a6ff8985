/// A timer on a loop. Keep it to cancel it; letting it go changes nothing.
///
/// `@unchecked Sendable`: only the thread of its loop touches it.
public final class LoopTimer: @unchecked Sendable {
  @exclusivity(unchecked) var work: (() -> Void)?
  @exclusivity(unchecked) var deadline: UInt64
  /// The wheel's slot it hangs in, -1 when in none.
  @exclusivity(unchecked) var slot = -1
  @exclusivity(unchecked) var previous: Unmanaged<LoopTimer>?
  @exclusivity(unchecked) var next: Unmanaged<LoopTimer>?
  /// The wheel outlives the timers in it: `LoopTimer` reads this only while it
  /// hangs in a slot.
  @exclusivity(unchecked) unowned(unsafe) var wheel: TimerWheel?

  init(deadline: UInt64, work: @escaping () -> Void) {
    self.deadline = deadline
    self.work = work
  }

  /// Whether it has neither fired nor been cancelled.
  public var isPending: Bool { work != nil }

  /// Forgets the work. On the loop only; a second time, or after it fired, nothing.
  public func cancel() {
    work = nil
    guard slot >= 0, let wheel else { return }
    wheel.remove(self)
  }
}

/// Timers in five rings of 64 slots, of 1 ms, 64 ms, 4 s, 4 min and 5 h a slot: to
/// set or cancel one costs the same however many there are. A timer moves to a
/// finer ring when the clock reaches its slot.
final class TimerWheel {
  private static let levels = 5
  private static let farthest: UInt64 = 1 << 30
  private static let expiredSlot = levels * 64

  private let slots: UnsafeMutablePointer<Unmanaged<LoopTimer>?>
  private let occupied: UnsafeMutablePointer<UInt64>
  /// Milliseconds up to which everything has fired.
  @exclusivity(unchecked) private(set) var current: UInt64
  @exclusivity(unchecked) private(set) var count = 0

  init(now: UInt64) {
    current = now
    slots = .allocate(capacity: Self.expiredSlot + 1)
    slots.initialize(repeating: nil, count: Self.expiredSlot + 1)
    occupied = .allocate(capacity: Self.levels)
    occupied.initialize(repeating: 0, count: Self.levels)
  }

  deinit {
    for slot in 0...Self.expiredSlot {
      while let timer = slots[slot] { remove(timer.takeUnretainedValue()) }
    }
    slots.deallocate()
    occupied.deallocate()
  }

  func add(_ timer: LoopTimer) {
    timer.wheel = self
    count += 1
    _ = Unmanaged.passRetained(timer)
    place(timer)
  }

  func remove(_ timer: LoopTimer) {
    unlink(timer)
    count -= 1
    Unmanaged.passUnretained(timer).release()
  }

  private func place(_ timer: LoopTimer) {
    var when = max(timer.deadline, current &+ 1)
    if when &- current >= Self.farthest { when = current &+ Self.farthest &- 1 }
    // The highest bit in which it differs from the clock tells the ring.
    let difference = (when ^ current) | 63
    let level = min((63 - difference.leadingZeroBitCount) / 6, Self.levels - 1)
    let index = Int(truncatingIfNeeded: when >> UInt64(level * 6)) & 63
    occupied[level] |= 1 << UInt64(index)
    link(timer, level * 64 + index)
  }

  private func link(_ timer: LoopTimer, _ slot: Int) {
    let this = Unmanaged.passUnretained(timer)
    timer.slot = slot
    timer.previous = nil
    timer.next = slots[slot]
    timer.next?._withUnsafeGuaranteedRef { $0.previous = this }
    slots[slot] = this
  }

  private func unlink(_ timer: LoopTimer) {
    let slot = timer.slot
    let next = timer.next
    next?._withUnsafeGuaranteedRef { $0.previous = timer.previous }
    if let previous = timer.previous {
      previous._withUnsafeGuaranteedRef { $0.next = next }
    } else {
      slots[slot] = next
      if next == nil, slot < Self.expiredSlot {
        occupied[slot >> 6] &= ~(1 << UInt64(slot & 63))
      }
    }
    timer.slot = -1
    timer.previous = nil
    timer.next = nil
  }

  /// The slot due first and when the clock reaches it.
  private func firstDue() -> (slot: Int, at: UInt64)? {
    var best: (slot: Int, at: UInt64)?
    for level in 0..<Self.levels where occupied[level] != 0 {
      let shift = UInt64(level * 6)
      let position = current >> shift
      let turn = Int(truncatingIfNeeded: position) & 63
      let bits = occupied[level]
      let rotated = bits >> UInt64(turn) | bits << UInt64((64 - turn) & 63)
      let ahead = UInt64(rotated.trailingZeroBitCount)
      var at = (position &+ ahead) << shift
      // The slot the clock stands in, full once more: that is a turn later.
      if at <= current { at = (position &+ 64) << shift }
      if best.map({ at < $0.at }) ?? true {
        best = (level * 64 + (turn + Int(ahead)) & 63, at)
      }
    }
    return best
  }

  /// The millisecond at which to look again, nil without timers.
  var nextLook: UInt64? { firstDue()?.at }

  /// Moves the clock and runs what is due, the earliest first within a millisecond
  /// or so.
  func advance(to now: UInt64) {
    while let (slot, at) = firstDue(), at <= now {
      current = at
      while let first = slots[slot] {
        let timer = first.takeUnretainedValue()
        unlink(timer)
        if timer.deadline <= current { link(timer, Self.expiredSlot) } else { place(timer) }
      }
      // One at a time from the list: the work may cancel others in it.
      while let first = slots[Self.expiredSlot] {
        let timer = first.takeUnretainedValue()
        let work = timer.work
        timer.work = nil
        remove(timer)
        work?()
      }
    }
    if now > current { current = now }
  }
}
