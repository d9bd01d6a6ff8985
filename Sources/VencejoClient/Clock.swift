import Glibc
import VencejoProtobuf

/// The machine's clock. Only differences to the server's are ever used.
enum WallClock {
  /// Seconds since 1970.
  static var seconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec)
  }

  /// Milliseconds since 1970.
  static var milliseconds: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(max(0, time.tv_sec)) * 1000 + UInt64(max(0, time.tv_nsec)) / 1_000_000
  }
}

extension Google.Duration {
  /// Whole nanoseconds of a duration.
  init(_ duration: Swift.Duration) {
    let (seconds, attoseconds) = duration.components
    self.init(seconds: seconds, nanos: Int32(clamping: attoseconds / 1_000_000_000))
  }
}
