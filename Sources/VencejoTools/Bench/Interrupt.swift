import Glibc
import Synchronization

/// Ctrl-C as something to look for: the first one asks for the end, a second one ends the process.
enum Interrupt {
  private static let flag = Atomic<Bool>(false)

  static var hasCome: Bool { flag.load(ordering: .relaxed) }

  static func arm() {
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in
      // An atomic store is all that happens: it is safe in a handler.
      Interrupt.flag.store(true, ordering: .relaxed)
    }
    action.sa_flags = Int32(bitPattern: UInt32(SA_RESETHAND))
    sigaction(SIGINT, &action, nil)
  }

  /// Until it comes, or the task is cancelled.
  static func wait() async {
    while !hasCome, !Task.isCancelled { try? await Task.sleep(for: .milliseconds(20)) }
  }
}
