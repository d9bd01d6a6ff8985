import Glibc
import Synchronization

/// SIGTERM and SIGINT as something to await.
///
/// A pipe carries the signal out of the handler: writing is all that a handler may do
/// (POSIX, "Signal Concepts", async-signal-safe functions).
enum TerminationSignal {
  private static let descriptors = Mutex<(read: Int32, write: Int32)?>(nil)

  /// From here on the signals end the process no more; one that comes is kept for `wait()`.
  @discardableResult
  static func arm() -> Int32 {
    let reading = descriptors.withLock { pair -> Int32 in
      if let pair { return pair.read }
      var ends: [Int32] = [-1, -1]
      guard pipe(&ends) == 0 else { return -1 }
      pair = (ends[0], ends[1])
      writeEnd.store(ends[1], ordering: .releasing)
      return ends[0]
    }
    signal(SIGTERM, terminationSignalHandler)
    signal(SIGINT, terminationSignalHandler)
    return reading
  }

  static func wait() async {
    let reading = arm()
    await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
      detachThread {
        var byte: UInt8 = 0
        while read(reading, &byte, 1) < 0, errno == EINTR {}
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

/// A thread of its own for a call that blocks.
func detachThread(_ body: @escaping @Sendable () -> Void) {
  final class Box {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
  var thread = pthread_t()
  let box = Unmanaged.passRetained(Box(body))
  let result = pthread_create(
    &thread, nil,
    { argument in
      if let argument { Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body() }
      return nil
    }, box.toOpaque())
  if result == 0 {
    pthread_detach(thread)
  } else {
    // No thread to be had: better here and now than never.
    box.takeRetainedValue().body()
  }
}
