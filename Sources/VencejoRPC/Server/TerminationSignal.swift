import Glibc
import Synchronization
import VencejoHTTP2

/// SIGTERM and SIGINT as something to await, SIGHUP as something to be told of.
///
/// A pipe carries the signal out of the handler: writing is all that a handler may do
/// (POSIX, "Signal Concepts", async-signal-safe functions).
enum TerminationSignal {
  private static let descriptors = Mutex<(read: Int32, write: Int32)?>(nil)

  /// From here on the signals end the process no more; one that comes is kept for `wait()`.
  @discardableResult
  static func arm(hangup: Bool = false) -> Int32 {
    let reading = descriptors.withLock { pair -> Int32 in
      if let pair { return pair.read }
      var ends: [Int32] = [-1, -1]
      guard pipe(&ends) == 0 else { return -1 }
      pair = (ends[0], ends[1])
      writeEnd.store(ends[1], ordering: .releasing)
      return ends[0]
    }
    // Without a pipe the signals keep on ending the process.
    guard reading >= 0 else { return reading }
    signal(SIGTERM, terminationSignalHandler)
    signal(SIGINT, terminationSignalHandler)
    if hangup { signal(SIGHUP, terminationSignalHandler) }
    return reading
  }

  /// Until SIGTERM or SIGINT; `hangup` runs on a thread of its own, for each SIGHUP.
  static func wait(hangup: (@Sendable () -> Void)? = nil) async {
    let reading = arm(hangup: hangup != nil)
    await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
      guard reading >= 0 else { return }
      detachThread {
        var byte: UInt8 = 0
        while true {
          let count = read(reading, &byte, 1)
          if count < 0 && errno == EINTR { continue }
          guard count == 1, byte == UInt8(SIGHUP) else { break }
          hangup?()
        }
        continuation.resume()
      }
    }
  }
}

private let writeEnd = Atomic<Int32>(-1)

nonisolated private func terminationSignalHandler(_ number: Int32) {
  let saved = errno
  var byte = UInt8(truncatingIfNeeded: number)
  _ = write(writeEnd.load(ordering: .acquiring), &byte, 1)
  errno = saved
}
