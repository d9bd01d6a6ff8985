/// A chat as WhatsApp exports it: a text file of lines, in the form of the phone's system and
/// language. What there is to go by is only what such files look like; there is no specification.
public struct WhatsAppExport: Sendable, Hashable {
  /// One message of the file.
  public struct Entry: Sendable, Hashable {
    /// Nil for what the system says.
    public var sender: String?
    /// Lines of one message together.
    public var text: String
    /// The name of a file that belongs to it, or empty where one was left out.
    public var attachment: String?
    /// Its sender took it back, or changed it.
    public var isDeleted = false
    public var isEdited = false
    /// The phone's own clock, as microseconds since the Unix epoch as if it were UTC.
    public var localTime: Int64
  }

  /// In which order the file writes day, month and year.
  public enum DateOrder: String, Sendable, Hashable {
    case dayMonthYear = "day/month/year"
    case monthDayYear = "month/day/year"
    case yearMonthDay = "year/month/day"
  }

  public private(set) var entries: [Entry] = []
  public private(set) var dateOrder = DateOrder.dayMonthYear
  /// Lines before the first message: no export, or the rest of one.
  public private(set) var strayLines = 0

  /// Who wrote, in the order they first did.
  public var senders: [String] {
    var seen: Set<String> = []
    return entries.compactMap(\.sender).filter { seen.insert($0).inserted }
  }

  public init(_ text: String) {
    // Swift takes both bytes of a DOS line end for one character.
    let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
    let parsed = lines.map { line in (line, Header.parse(line)) }
    // A file is written by one phone: a line now and then that begins in the other system's way was
    // pasted.
    let headers = parsed.compactMap { $0.1?.0 }
    let bracketed = headers.filter(\.isBracketed).count
    let fewer = min(bracketed, headers.count - bracketed)
    let isPasted = fewer * 10 <= headers.count || (fewer == 1 && headers.count > 3)
    func belongs(_ header: Header) -> Bool {
      !isPasted || header.isBracketed == (bracketed * 2 > headers.count)
    }
    dateOrder = Self.order(of: headers.filter(belongs))
    var raw: [(time: Int64, body: String)] = []
    for (line, found) in parsed {
      if let (header, body) = found, belongs(header), let time = header.time(dateOrder) {
        raw.append((time, String(body)))
      } else if raw.isEmpty {
        if !line.allSatisfy(\.isWhitespace) { strayLines += 1 }
      } else {
        raw[raw.count - 1].body += "\n" + line
      }
    }
    let reader = WhatsAppBody(raw.map(\.body))
    entries = raw.map { time, body in reader.entry(body, time) }
  }

  /// Without the marks that only turn the writing's direction.
  static func clean(_ text: String) -> String {
    var scalars = String.UnicodeScalarView()
    for scalar in text.unicodeScalars where !isDirectionMark(scalar) { scalars.append(scalar) }
    return String(scalars)
  }

  static func isDirectionMark(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069, 0xFEFF: true
    default: false
    }
  }

  // MARK: Dates

  /// What all dates together allow; where both do, in which time goes back less often.
  private static func order(of headers: [Header]) -> DateOrder {
    let dates = headers.map(\.date)
    func share(_ test: ((Int, Int, Int)) -> Bool) -> Int { dates.filter(test).count }
    if share({ $0.0 > 31 }) * 2 > dates.count { return .yearMonthDay }
    // Most of those that allow only one order: a few may be lines of text that look like dates.
    let (days, months) = (share { $0.0 > 12 && $0.1 <= 12 }, share { $0.1 > 12 && $0.0 <= 12 })
    if days != months { return days > months ? .dayMonthYear : .monthDayYear }
    func regressions(_ order: DateOrder) -> Int {
      let times = headers.map { $0.time(order) ?? 0 }
      return zip(times, times.dropFirst()).filter { $0 > $1 }.count
    }
    let (day, month) = (regressions(.dayMonthYear), regressions(.monthDayYear))
    if day != month { return day < month ? .dayMonthYear : .monthDayYear }
    // Slashes with a clock of twelve hours are American.
    let isAmerican = headers.contains { $0.isSlashed && $0.isTwelveHours }
    return isAmerican ? .monthDayYear : .dayMonthYear
  }
}
