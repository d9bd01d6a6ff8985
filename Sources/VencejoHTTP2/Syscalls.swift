import Glibc

/// Thin names over system calls, so that the rest reads as Swift.
enum Syscalls {
  /// "Connection refused" and the like. The buffer variant: `strerror` is not
  /// safe between threads.
  static func describe(_ code: Int32) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      guard let base = buffer.baseAddress else { return "error \(code)" }
      guard strerror_r(code, base, buffer.count) == 0 else { return "error \(code)" }
      return String(cString: base)
    }
  }

  static func failure(
    _ what: String, _ kind: HTTP2Error.Kind = .system, code: Int32 = errno
  ) -> HTTP2Error {
    HTTP2Error(kind, "\(what): \(describe(code))", systemError: code)
  }

  /// A monotonic clock in nanoseconds.
  static func monotonicNow() -> UInt64 {
    var t = timespec()
    clock_gettime(CLOCK_MONOTONIC, &t)
    return UInt64(truncatingIfNeeded: t.tv_sec) &* 1_000_000_000
      &+ UInt64(truncatingIfNeeded: t.tv_nsec)
  }

  static func setOption(_ fd: Int32, _ level: Int32, _ name: Int32, _ value: Int32) {
    var v = value
    _ = setsockopt(fd, level, name, &v, socklen_t(MemoryLayout<Int32>.size))
  }
}

extension Duration {
  /// Whole nanoseconds, from 0 up and without overflow.
  var clampedNanoseconds: UInt64 {
    let (seconds, atto) = components
    if seconds < 0 || (seconds == 0 && atto <= 0) { return 0 }
    if seconds > 9_000_000_000 { return 9_000_000_000_000_000_000 }
    return UInt64(seconds) &* 1_000_000_000 &+ UInt64(atto / 1_000_000_000)
  }
}
