import CLinux
import Glibc
import Synchronization

/// One thread that waits for sockets, runs the jobs of its tasks and tells the
/// time to its timers.
///
/// A tick runs the jobs that were queued when it began and the timers that are due,
/// flushes every connection with something to say in one write each, and then looks
/// at the sockets: without waiting while jobs remain, so that a task which yields
/// for ever starves nobody.
///
/// `@unchecked Sendable`: other threads reach only `inbox`, `state` and the immutable
/// fields; everything else belongs to the loop's own thread.
public final class EventLoop: TaskExecutor, @unchecked Sendable {
  enum Job {
    case task(UnownedJob)
    case work(@Sendable () -> Void)
  }

  struct Inbox {
    var jobs: [Job] = []
    /// The loop waits, or is about to, in the kernel: the next job must wake it.
    var asleep = false
    var stopped = false
    /// Work brought after the end, and whether somebody is at it.
    var late: [@Sendable () -> Void] = []
    var lateIsRunning = false
  }

  /// Bytes one read takes, and one round of writing gathers.
  static let readSize = 64 << 10
  static let writeSize = 256 << 10
  /// Beyond `writeSize`: what a frame begun below the mark may add to it.
  static let writeSlack = 64 << 10

  /// The name of its thread.
  public let name: String
  let epoll: Int32
  private let wakeup: Int32
  private let inbox = Locked(Inbox())
  private let inboxHasJobs = Atomic<Bool>(false)
  private let stopping = Atomic<Bool>(false)
  // Written by `init` alone, before anyone else has the loop.
  private nonisolated(unsafe) var thread = pthread_t()

  /// Set by the loop's thread as its last act, read by whoever stands in for it later.
  @exclusivity(unchecked) private var hasEnded = false
  @exclusivity(unchecked) private var jobs: [Job] = []
  @exclusivity(unchecked) private var running: [Job] = []
  @exclusivity(unchecked) private var dirty: [HTTP2Connection] = []
  @exclusivity(unchecked) private var flushing: [HTTP2Connection] = []
  @exclusivity(unchecked) var sources: [ObjectIdentifier: LoopSource] = [:]
  @exclusivity(unchecked) var retired: [LoopSource] = []
  private let wheel: TimerWheel
  /// Shared by the loop's connections, as only one of them reads or writes at a time.
  let readBuffer: UnsafeMutablePointer<UInt8>
  let writeBuffer: UnsafeMutablePointer<UInt8>
  let sessionMemory = SessionMemory()
  private var tlsBuffers: TLSBuffers?

  // See HeapTrimmer.
  @exclusivity(unchecked) var returnsMemory = false
  @exclusivity(unchecked) var endedSinceLook = 0
  @exclusivity(unchecked) var memoryTimer: LoopTimer?

  /// Nanoseconds on a clock that never goes back, as they were when the tick began.
  @exclusivity(unchecked) public private(set) var now: UInt64

  /// Starts the thread. Throws `.system` when the machine has no descriptors or
  /// threads left.
  public init(name: String) throws(HTTP2Error) {
    self.name = name
    now = Syscalls.monotonicNow()
    wheel = TimerWheel(now: now / 1_000_000)
    readBuffer = .allocate(capacity: Self.readSize)
    writeBuffer = .allocate(capacity: Self.writeSize + Self.writeSlack)
    epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard epoll >= 0 else { throw Syscalls.failure("epoll_create1") }
    wakeup = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
    guard wakeup >= 0 else {
      let failure = Syscalls.failure("eventfd")
      close(epoll)
      throw failure
    }
    var event = epoll_event()
    event.events = EPOLLIN.rawValue
    event.data.ptr = nil
    guard epoll_ctl(epoll, EPOLL_CTL_ADD, wakeup, &event) == 0 else {
      throw Syscalls.failure("epoll_ctl")
    }
    let this = Unmanaged.passRetained(self)
    // The lock holds the new thread back until `thread` is set.
    let failure = inbox.withLock { _ in
      pthread_create(&thread, nil, loopThreadEntry, this.toOpaque())
    }
    guard failure == 0 else {
      this.release()
      throw Syscalls.failure("pthread_create", code: failure)
    }
  }

  /// Made for the first connection with TLS.
  func sharedTLSBuffers() -> TLSBuffers {
    if let tlsBuffers { return tlsBuffers }
    let made = TLSBuffers()
    tlsBuffers = made
    return made
  }

  deinit {
    close(epoll)
    close(wakeup)
    readBuffer.deallocate()
    writeBuffer.deallocate()
    sessionMemory.destroy()
  }

  /// The loop whose thread this is.
  public static var current: EventLoop? {
    guard let pointer = pthread_getspecific(currentLoopKey) else { return nil }
    return Unmanaged<EventLoop>.fromOpaque(pointer).takeUnretainedValue()
  }

  /// Whether the caller is on the loop's thread. Threads are not compared: one that comes
  /// later may have the number of a loop's that has ended, and what it gave that loop to do
  /// would never be done.
  public var isCurrent: Bool {
    pthread_getspecific(currentLoopKey) == Unmanaged.passUnretained(self).toOpaque()
  }

  /// Runs `work` in a tick, in the order of the calls. From any thread.
  ///
  /// A loop that has ended runs it all the same, on the caller's thread: whoever waits for
  /// what it does must not wait for ever.
  public func execute(_ work: @escaping @Sendable () -> Void) {
    if !submit(.work(work)) { runLate(work) }
  }

  /// The same; false when the loop has ended and will not run it.
  public func tryExecute(_ work: @escaping @Sendable () -> Void) -> Bool { submit(.work(work)) }

  /// Runs a task's next job in a tick. From any thread.
  public func enqueue(_ job: consuming ExecutorJob) { _ = submit(.task(UnownedJob(job))) }

  private func submit(_ job: Job) -> Bool {
    if isCurrent && !hasEnded {
      jobs.append(job)
      return true
    }
    let (wake, refused) = inbox.withLock { box in
      if box.stopped { return (false, true) }
      box.jobs.append(job)
      let wake = box.asleep
      box.asleep = false
      return (wake, false)
    }
    // A loop that has ended runs nothing, but a task must not hang: the pool has it.
    if refused {
      switch job {
      case .task(let job): globalConcurrentExecutor.enqueue(job)
      case .work: break
      }
      return false
    }
    inboxHasJobs.store(true, ordering: .releasing)
    if wake { ring() }
    return true
  }

  /// Does what the ended loop was to do, one thing at a time as on its thread: what belongs to
  /// the loop then belongs to the thread that does this.
  private func runLate(_ work: @escaping @Sendable () -> Void) {
    let isFirst = inbox.withLock { box in
      box.late.append(work)
      defer { box.lateIsRunning = true }
      return !box.lateIsRunning
    }
    guard isFirst else { return }
    let before = pthread_getspecific(currentLoopKey)
    pthread_setspecific(currentLoopKey, Unmanaged.passUnretained(self).toOpaque())
    while let next = inbox.withLock({ box -> (@Sendable () -> Void)? in
      guard box.late.isEmpty else { return box.late.removeFirst() }
      box.lateIsRunning = false
      return nil
    }) { next() }
    pthread_setspecific(currentLoopKey, before)
  }

  private func ring() {
    var one: UInt64 = 1
    _ = write(wakeup, &one, 8)
  }

  /// Runs `work` after at least `delay` from the tick's `now`, to the millisecond.
  /// On the loop only.
  public func schedule(after delay: Duration, _ work: @escaping () -> Void) -> LoopTimer {
    schedule(afterNanoseconds: delay.clampedNanoseconds, work)
  }

  /// The same in nanoseconds, without a `Duration`'s arithmetic.
  public func schedule(
    afterNanoseconds delay: UInt64, _ work: @escaping () -> Void
  ) -> LoopTimer {
    assertCurrent()
    let (due, overflow) = now.addingReportingOverflow(delay)
    let deadline = (overflow ? UInt64.max : due) / 1_000_000 &+ 1
    let timer = LoopTimer(deadline: deadline, work: work)
    wheel.add(timer)
    return timer
  }

  /// Ends the thread after closing what is on the loop; waits for it unless called
  /// on the loop itself. Idempotent.
  public func shutdown() {
    let first = !stopping.exchange(true, ordering: .acquiringAndReleasing)
    if isCurrent { return }
    ring()
    if first {
      pthread_join(thread, nil)
    }
  }

  @inline(__always)
  func assertCurrent() { assert(isCurrent, "off the loop \(name)") }

  /// Flushes the connection at the end of this tick.
  func markDirty(_ connection: HTTP2Connection) { dirty.append(connection) }

  // MARK: The thread

  fileprivate func run() {
    inbox.withLock { _ in }
    pthread_setspecific(currentLoopKey, Unmanaged.passUnretained(self).toOpaque())
    _ = linux_set_thread_name(String(name.prefix(15)))
    let capacity = 256
    let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: capacity)
    defer { events.deallocate() }
    let executor = asUnownedTaskExecutor()
    while true {
      takeInbox()
      if stopping.load(ordering: .acquiring) { break }
      runJobs(executor)
      wheel.advance(to: now / 1_000_000)
      flush()
      let count = epoll_wait(epoll, events, Int32(capacity), sleepTime())
      now = Syscalls.monotonicNow()
      if count > 0 {
        for i in 0..<Int(count) { dispatch(events[i]) }
      }
      if !retired.isEmpty { retired.removeAll() }
    }
    stop(executor, events, Int32(capacity))
  }

  private func takeInbox() {
    guard inboxHasJobs.load(ordering: .acquiring) else { return }
    inbox.withLock { box in
      inboxHasJobs.store(false, ordering: .relaxed)
      box.asleep = false
      if jobs.isEmpty {
        swap(&jobs, &box.jobs)
      } else {
        jobs.append(contentsOf: box.jobs)
        box.jobs.removeAll(keepingCapacity: true)
      }
    }
  }

  private func runJobs(_ executor: UnownedTaskExecutor) {
    if jobs.isEmpty { return }
    swap(&jobs, &running)
    for i in running.indices {
      switch running[i] {
      case .task(let job): job.runSynchronously(on: executor)
      case .work(let work): work()
      }
    }
    running.removeAll(keepingCapacity: true)
  }

  private func flush() {
    if dirty.isEmpty { return }
    swap(&dirty, &flushing)
    for i in flushing.indices { flushing[i].flush() }
    flushing.removeAll(keepingCapacity: true)
  }

  /// How long the kernel may keep us, in milliseconds: -1 until something happens.
  private func sleepTime() -> Int32 {
    if !jobs.isEmpty || !dirty.isEmpty { return 0 }
    var time: Int32 = -1
    if let look = wheel.nextLook {
      let (due, overflow) = look.multipliedReportingOverflow(by: 1_000_000)
      if !overflow {
        // The clock of the tick may be old by now.
        let clock = Syscalls.monotonicNow()
        if due <= clock { return 0 }
        time = Int32(clamping: (due &- clock &+ 999_999) / 1_000_000)
      }
    }
    return inbox.withLock { box in
      if !box.jobs.isEmpty { return 0 }
      box.asleep = true
      return time
    }
  }

  private func dispatch(_ event: epoll_event) {
    guard let pointer = event.data.ptr else {
      var count: UInt64 = 0
      _ = read(wakeup, &count, 8)
      return
    }
    Unmanaged<LoopSource>.fromOpaque(pointer)._withUnsafeGuaranteedRef { $0.ready(event.events) }
  }

  private func stop(
    _ executor: UnownedTaskExecutor, _ events: UnsafeMutablePointer<epoll_event>, _ room: Int32
  ) {
    // What was asked for before the end, a channel's farewell for one.
    takeInbox()
    runJobs(executor)
    flush()
    for source in sources.values { source.loopWillStop() }
    // Tasks that wait for what just closed get a few turns to end here.
    for _ in 0..<1_000 {
      takeInbox()
      flush()
      if jobs.isEmpty { break }
      runJobs(executor)
    }
    linger(events, room)
    retired.removeAll()
    hasEnded = true
    let left = inbox.withLock { box in
      box.stopped = true
      let left = box.jobs
      box.jobs = []
      return left
    }
    let last = jobs + left
    jobs = []
    for job in last {
      switch job {
      case .task(let job): globalConcurrentExecutor.enqueue(job)
      case .work(let work): runLate(work)
      }
    }
    pthread_setspecific(currentLoopKey, nil)
  }
}

extension EventLoop {
  /// How long the end of a loop waits for peers that still write, in nanoseconds.
  private static let lingering: UInt64 = 100_000_000

  /// Half-closed sockets read on until their peers have closed too, for a moment: what the
  /// kernel finds unread when it closes one makes it take back what was sent last.
  private func linger(_ events: UnsafeMutablePointer<epoll_event>, _ room: Int32) {
    let end = Syscalls.monotonicNow() &+ Self.lingering
    while !sources.isEmpty {
      let clock = Syscalls.monotonicNow()
      guard clock < end else { break }
      let count = epoll_wait(epoll, events, room, Int32((end &- clock) / 1_000_000 &+ 1))
      if count > 0 {
        for i in 0..<Int(count) { dispatch(events[i]) }
      }
    }
    for source in sources.values { source.closeDescriptor() }
  }
}

/// The slot in which a thread remembers its loop.
private let currentLoopKey: pthread_key_t = {
  var key = pthread_key_t()
  pthread_key_create(&key, nil)
  return key
}()

private nonisolated func loopThreadEntry(
  _ argument: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
  guard let argument else { return nil }
  Unmanaged<EventLoop>.fromOpaque(argument).takeRetainedValue().run()
  return nil
}
