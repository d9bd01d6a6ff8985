import Glibc
import VencejoRPC

enum WallClock {
  /// Nanoseconds since 1970.
  static var now: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(max(0, time.tv_sec)) &* 1_000_000_000 &+ UInt64(max(0, time.tv_nsec))
  }

  /// As RFC 3339 writes it, in UTC, to the millisecond.
  static func text(_ nanoseconds: UInt64) -> String {
    var seconds = time_t(clamping: nanoseconds / 1_000_000_000)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    func padded(_ number: some BinaryInteger, _ digits: Int) -> String {
      let text = "\(number)"
      return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
    let date = "\(padded(parts.tm_year + 1900, 4))-\(padded(parts.tm_mon + 1, 2))-"
    let day = "\(padded(parts.tm_mday, 2))T\(padded(parts.tm_hour, 2)):"
    let time = "\(padded(parts.tm_min, 2)):\(padded(parts.tm_sec, 2))."
    return date + day + time + padded(nanoseconds / 1_000_000 % 1_000, 3) + "Z"
  }
}

enum CallEnding {
  /// The status a call ends with when this is thrown: a handler that is cancelled because its
  /// deadline passed does not say so itself.
  static func error(_ error: any Error, deadline: ContinuousClock.Instant?) -> RPCError {
    var status: RPCError
    switch error {
    case let error as RPCError: status = error
    case is CancellationError: status = RPCError(.cancelled, "the handler was cancelled")
    default: status = RPCError(.unknown, "the handler failed with \(type(of: error))")
    }
    if status.code == .cancelled, status.origin == .local, let deadline, deadline <= .now {
      status = RPCError(.deadlineExceeded, "the deadline passed before the handler answered")
    }
    return status
  }
}
