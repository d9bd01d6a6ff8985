import Glibc

/// Times as people read them, in the zone of the terminal.
struct TimeText: Sendable {
  /// Seconds since 1970.
  var now: Int64
  /// Seconds east of Greenwich at a time.
  var offset: @Sendable (Int64) -> Int64

  /// The machine's clock and zone (`TZ`).
  static var local: TimeText {
    var seconds = timespec()
    clock_gettime(CLOCK_REALTIME, &seconds)
    return TimeText(now: Int64(seconds.tv_sec)) { time in
      var time = time_t(time)
      var parts = tm()
      return localtime_r(&time, &parts) == nil ? 0 : Int64(parts.tm_gmtoff)
    }
  }

  private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// `08:15`.
  func clock(_ time: Int64) -> String {
    let second = local(time).second
    return "\(two(second / 3600)):\(two(second / 60 % 60))"
  }

  /// For a list: the clock today, the weekday within a week, else the date.
  func short(_ time: Int64) -> String {
    let day = local(time).day
    let today = local(now).day
    if day == today { return clock(time) }
    if day < today, today - day < 7 { return Self.weekdays[((day + 4) % 7 + 7) % 7] }
    let date = CivilDate.date(days: day)
    if date.year == CivilDate.date(days: today).year {
      return "\(date.day) \(Self.months[date.month - 1])"
    }
    return self.date(time)
  }

  /// `2026-11-30`.
  func date(_ time: Int64) -> String {
    let date = CivilDate.date(days: local(time).day)
    return "\(date.year)-\(two(date.month))-\(two(date.day))"
  }

  /// `2026-11-30 08:15`, the same for everybody who reads a log.
  func full(_ time: Int64) -> String { "\(date(time)) \(clock(time))" }

  /// RFC 3339 in UTC, microseconds where there are some.
  static func rfc3339(_ seconds: Int64, _ nanoseconds: Int32) -> String {
    let utc = TimeText(now: 0) { _ in 0 }
    let second = utc.local(seconds).second % 60
    let micro = String(Int(nanoseconds) / 1000)
    let fraction =
      nanoseconds >= 1000
      ? "." + String(repeating: "0", count: max(0, 6 - micro.count)) + micro : ""
    return "\(utc.date(seconds))T\(utc.clock(seconds)):\(utc.two(second))\(fraction)Z"
  }

  private func local(_ time: Int64) -> (day: Int, second: Int) {
    // Far enough for every calendar, and no overflow for a hostile clock.
    let bounded = min(max(time, -62_135_596_800), 253_402_300_799)
    let shifted = Int(bounded + offset(bounded))
    let day = shifted >= 0 ? shifted / 86400 : (shifted - 86399) / 86400
    return (day, shifted - day * 86400)
  }

  private func two(_ value: Int) -> String { value < 10 ? "0\(value)" : String(value) }
}
