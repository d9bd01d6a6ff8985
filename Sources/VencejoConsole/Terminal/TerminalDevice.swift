import CTerminal
import Glibc
import Synchronization

/// A terminal: its size, its bytes in and out. Reading happens on a thread of its own, one read for
/// each `next()`, so nothing piles up here.
final class TerminalDevice: Sendable {
  enum Event: Sendable, Hashable {
    case bytes([UInt8])
    /// Nothing came within the time asked for.
    case silence
    case resized
    case ended
  }

  private struct State {
    var waiter: CheckedContinuation<Event, Never>?
    var timeout: Int32 = -1
    var isStopped = false
  }

  private let input: Int32
  private let output: Int32
  private let wakeRead: Int32
  private let wakeWrite: Int32
  private let requests: Requests
  private let state = Mutex(State())

  /// A counting semaphore. Its memory is never moved and freed only with the device, after the
  /// thread has left.
  private final class Requests: @unchecked Sendable {
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    init() { sem_init(semaphore, 0, 0) }
    deinit {
      sem_destroy(semaphore)
      semaphore.deallocate()
    }
    func post() { sem_post(semaphore) }
    func wait() { while sem_wait(semaphore) != 0, errno == EINTR {} }
  }

  init(input: Int32 = STDIN_FILENO, output: Int32 = STDOUT_FILENO) {
    self.input = input
    self.output = output
    var ends: [Int32] = [-1, -1]
    _ = pipe2(&ends, O_CLOEXEC | O_NONBLOCK)
    (wakeRead, wakeWrite) = (ends[0], ends[1])
    requests = Requests()
    startThread()
  }

  deinit {
    close(wakeRead)
    close(wakeWrite)
  }

  static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

  /// False when the terminal refuses.
  func enterRaw(brackets: Bool) -> Bool {
    TerminalModes.enterRaw(input: input, output: output, wake: wakeWrite, brackets: brackets)
  }

  func leaveRaw() { TerminalModes.restore() }

  /// Columns and lines; 80 by 24 where nobody knows.
  var size: (columns: Int, lines: Int) {
    var window = winsize()
    guard ioctl(output, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0 else { return (80, 24) }
    return (Int(window.ws_col), window.ws_row > 0 ? Int(window.ws_row) : 24)
  }

  /// Writes all of it. A terminal takes what it gets at once, so this may run anywhere.
  func write(_ text: String) {
    var text = text
    text.withUTF8 { buffer in
      var rest = UnsafeRawBufferPointer(buffer)
      while let base = rest.baseAddress, rest.count > 0 {
        let written = Glibc.write(output, base, rest.count)
        if written > 0 {
          rest = UnsafeRawBufferPointer(rebasing: rest[written...])
        } else if written < 0, errno == EAGAIN {
          var entry = pollfd(fd: output, events: Int16(POLLOUT), revents: 0)
          _ = poll(&entry, 1, 1000)
        } else if written < 0, errno != EINTR {
          return
        }
      }
    }
  }

  /// The next event; one caller at a time. `milliseconds` bounds the wait.
  func next(within milliseconds: Int32? = nil) async -> Event {
    await withCheckedContinuation { continuation in
      let stopped = state.withLock { state in
        if state.isStopped { return true }
        state.waiter = continuation
        state.timeout = milliseconds ?? -1
        return false
      }
      if stopped { continuation.resume(returning: .ended) } else { requests.post() }
    }
  }

  /// Ends the thread; a waiting `next()` answers `.ended`.
  func stop() {
    let first = state.withLock { state in
      defer { state.isStopped = true }
      return !state.isStopped
    }
    guard first else { return }
    var byte: UInt8 = 0
    _ = Glibc.write(wakeWrite, &byte, 1)
    requests.post()
  }

  private func startThread() {
    let context = Unmanaged.passRetained(self)
    var thread = pthread_t()
    let failure = pthread_create(
      &thread, nil,
      { context in
        if let context { Unmanaged<TerminalDevice>.fromOpaque(context).takeRetainedValue().run() }
        return nil
      }, context.toOpaque())
    if failure == 0 {
      pthread_detach(thread)
    } else {
      context.release()
      state.withLock { $0.isStopped = true }
    }
  }

  private func run() {
    while true {
      requests.wait()
      let (stopped, timeout) = state.withLock { ($0.isStopped, $0.timeout) }
      let event = stopped ? .ended : wait(timeout)
      let waiter = state.withLock { state in
        defer { state.waiter = nil }
        return state.waiter
      }
      waiter?.resume(returning: event)
      if stopped { return }
    }
  }

  private func wait(_ timeout: Int32) -> Event {
    var entries = [
      pollfd(fd: input, events: Int16(POLLIN), revents: 0),
      pollfd(fd: wakeRead, events: Int16(POLLIN), revents: 0),
    ]
    while true {
      let ready = poll(&entries, 2, timeout)
      if ready < 0, errno == EINTR { continue }
      if ready == 0 { return .silence }
      if ready < 0 { return .ended }
      if entries[1].revents != 0 {
        var drain = [UInt8](repeating: 0, count: 64)
        while read(wakeRead, &drain, drain.count) > 0 {}
        return state.withLock { $0.isStopped } ? .ended : .resized
      }
      var bytes = [UInt8](repeating: 0, count: 4096)
      let count = read(input, &bytes, bytes.count)
      if count < 0, errno == EINTR || errno == EAGAIN { continue }
      // A terminal that hung up answers EIO.
      return count > 0 ? .bytes(Array(bytes[..<count])) : .ended
    }
  }
}

extension TerminalDevice {
  /// Ctrl-Z: back to the shell until it continues us.
  func suspend(brackets: Bool) {
    leaveRaw()
    raise(SIGSTOP)
    _ = enterRaw(brackets: brackets)
  }
}
