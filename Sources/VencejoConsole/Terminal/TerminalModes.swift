import CTerminal
import Glibc
import Synchronization

/// The terminal's modes before we changed them, and their return on every way out: a plain return,
/// `exit`, a signal from outside, a trap of our own. A shell left in raw mode is the rudest thing a
/// console can do.
///
/// One terminal per process, as the kernel has it.
enum TerminalModes {
  /// Read by signal handlers, so plain C memory: written before the handlers are set and while
  /// `isRaw` is false, never freed. That order is what makes the unsafety safe.
  private struct Saved {
    var modes = termios()
    var input: Int32 = -1
    var output: Int32 = -1
    var wake: Int32 = -1
  }
  nonisolated(unsafe) private static let saved: UnsafeMutablePointer<Saved> = {
    let memory = UnsafeMutablePointer<Saved>.allocate(capacity: 1)
    memory.initialize(to: Saved())
    return memory
  }()
  private static let isRaw = Atomic<Bool>(false)
  private static let pasteOn: StaticString = "\u{1B}[?2004h"
  private static let pasteOff: StaticString = "\u{1B}[?2004l"

  /// Keys arrive one by one and unechoed; output processing stays on, so that what other code
  /// prints still looks right. `wake` is a descriptor that gets one byte at a change of size.
  static func enterRaw(input: Int32, output: Int32, wake: Int32, brackets: Bool) -> Bool {
    var modes = termios()
    guard !isRaw.load(ordering: .acquiring), tcgetattr(input, &modes) == 0 else { return false }
    saved.pointee = Saved(
      modes: modes, input: input, output: brackets ? output : -1, wake: wake)
    modes.c_iflag &= ~tcflag_t(BRKINT | ICRNL | INLCR | IGNCR | INPCK | ISTRIP | IXON)
    modes.c_lflag &= ~tcflag_t(ECHO | ECHONL | ICANON | IEXTEN | ISIG)
    modes.c_cflag |= tcflag_t(CS8)
    withUnsafeMutableBytes(of: &modes.c_cc) { characters in
      characters[Int(VMIN)] = 1
      characters[Int(VTIME)] = 0
    }
    guard tcsetattr(input, TCSADRAIN, &modes) == 0 else { return false }
    isRaw.store(true, ordering: .releasing)
    installHandlers()
    if brackets { send(pasteOn) }
    return true
  }

  /// Puts everything back; harmless when nothing was changed. Callable from a signal handler.
  static func restore() {
    guard isRaw.exchange(false, ordering: .acquiringAndReleasing) else { return }
    if saved.pointee.output >= 0 { send(pasteOff) }
    _ = tcsetattr(saved.pointee.input, TCSADRAIN, &saved.pointee.modes)
  }

  private static func send(_ bytes: StaticString) {
    _ = write(saved.pointee.output, bytes.utf8Start, bytes.utf8CodeUnitCount)
  }

  private static func installHandlers() {
    for signal in [SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGSEGV] {
      var action = sigaction()
      action.__sigaction_handler.sa_handler = leaveOnSignal
      // Once only: the second delivery, raised below, then acts as it would have without us.
      action.sa_flags = Int32(bitPattern: UInt32(SA_RESETHAND)) | SA_NODEFER
      sigaction(signal, &action, nil)
    }
    var action = sigaction()
    action.__sigaction_handler.sa_handler = noteResize
    action.sa_flags = SA_RESTART
    sigaction(SIGWINCH, &action, nil)
    atexit { TerminalModes.restore() }
  }

  /// Only async-signal-safe calls: write, tcsetattr, raise.
  private static let leaveOnSignal: @convention(c) (Int32) -> Void = { signal in
    TerminalModes.restore()
    raise(signal)
  }

  private static let noteResize: @convention(c) (Int32) -> Void = { _ in
    let before = errno
    var byte: UInt8 = 1
    if TerminalModes.saved.pointee.wake >= 0 {
      _ = write(TerminalModes.saved.pointee.wake, &byte, 1)
    }
    errno = before
  }
}
