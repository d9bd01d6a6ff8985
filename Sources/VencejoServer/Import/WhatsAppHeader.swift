extension WhatsAppExport {
  struct Clock {
    var hour: Int, minute: Int, second: Int
    var isTwelveHours: Bool
  }

  /// What a message begins with: `31/12/23, 21:41 - ` on Android, `[31.12.23, 21:41:05] ` on
  /// iOS, with the digits, separators and halves of the day of some language.
  struct Header: Sendable {
    /// As written, left to right.
    var date: (Int, Int, Int)
    var hour: Int
    var minute: Int
    var second: Int
    var isTwelveHours: Bool
    var isSlashed: Bool
    /// In brackets, as iOS writes it.
    var isBracketed = false

    init(_ clock: Clock, _ date: (parts: (Int, Int, Int), isSlashed: Bool)) {
      self.date = date.parts
      (hour, minute, second) = (clock.hour, clock.minute, clock.second)
      isTwelveHours = clock.isTwelveHours
      isSlashed = date.isSlashed
    }

    /// The header of a line and what follows it; nil where there is none.
    static func parse(_ line: Substring) -> (Header, Substring)? {
      let scalars = line.unicodeScalars
      var reader = HeaderReader(scalars)
      reader.skipMarks()
      let isBracketed = reader.take("[")
      guard var header = reader.header(), reader.end(isBracketed) else { return nil }
      header.isBracketed = isBracketed
      return (header, Substring(scalars[reader.index...]))
    }

    /// Microseconds as if the phone's clock were UTC; nil where no such day is.
    func time(_ order: DateOrder) -> Int64? {
      var (day, month, written) =
        switch order {
        case .dayMonthYear: (date.0, date.1, date.2)
        case .monthDayYear: (date.1, date.0, date.2)
        case .yearMonthDay: (date.2, date.1, date.0)
        }
      if written < 100 { written += 2000 }
      // The Buddhist calendar of Thai phones is 543 years ahead.
      var year = written
      if year > 2500 { year -= 543 }
      // So is the Persian one of Iranian phones, behind by 621 or 622.
      if (1300...1500).contains(year), (1...12).contains(month), (1...31).contains(day) {
        (year, month, day) = Self.gregorian(persian: year, month, day)
      }
      guard (1...12).contains(month), (1...31).contains(day), (1990...2200).contains(year),
        (0...23).contains(hour), (0...59).contains(minute), (0...59).contains(second)
      else { return nil }
      let days = Self.days(year, month, day)
      // No 30 February.
      guard Self.date(days) == (year, month, day) else { return nil }
      return (((Int64(days) * 24 + Int64(hour)) * 60 + Int64(minute)) * 60 + Int64(second))
        * 1_000_000
    }

    /// The Gregorian day of one of the Persian calendar, whose leap years come eight times in 33:
    /// right from 1799 to 2256.
    static func gregorian(persian year: Int, _ month: Int, _ day: Int) -> (Int, Int, Int) {
      func firstDay(_ year: Int) -> Int {
        // 1 Farvardin 1403 was 20 March 2024.
        var count = days(2024, 3, 20)
        let leaps: Set<Int> = [1, 5, 9, 13, 17, 22, 26, 30]
        for other in min(year, 1403)..<max(year, 1403) {
          let length = leaps.contains(other % 33) ? 366 : 365
          count += year > 1403 ? length : -length
        }
        return count
      }
      let ofYear = month <= 7 ? (month - 1) * 31 : 186 + (month - 7) * 30
      return date(firstDay(year) + ofYear + day - 1)
    }

    /// The Gregorian day so many days after 1970-01-01.
    static func date(_ days: Int) -> (Int, Int, Int) {
      let shifted = days + 719_468
      let era = shifted / 146_097
      let ofEra = shifted - era * 146_097
      let yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
      let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
      let month = (5 * ofYear + 2) / 153
      return (
        yearOfEra + era * 400 + (month >= 10 ? 1 : 0), month < 10 ? month + 3 : month - 9,
        ofYear - (153 * month + 2) / 5 + 1
      )
    }

    /// Days since 1970-01-01 in the Gregorian calendar: years that begin in March make leap
    /// days the last of them.
    static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
      let shifted = month <= 2 ? year - 1 : year
      let era = shifted / 400
      let ofEra = shifted - era * 400
      let ofYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
      return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
    }
  }
}

/// Reads a header, scalar by scalar.
private struct HeaderReader {
  typealias Scalars = Substring.UnicodeScalarView
  private let scalars: Scalars
  private(set) var index: Scalars.Index

  init(_ scalars: Scalars) {
    self.scalars = scalars
    index = scalars.startIndex
  }

  private var next: Unicode.Scalar? { index < scalars.endIndex ? scalars[index] : nil }

  private mutating func advance() { index = scalars.index(after: index) }

  mutating func skipMarks() {
    while let scalar = next, WhatsAppExport.isDirectionMark(scalar) { advance() }
  }

  private mutating func skipSpaces() {
    while let scalar = next,
      scalar.properties.isWhitespace || WhatsAppExport.isDirectionMark(scalar)
    {
      advance()
    }
  }

  mutating func take(_ wanted: Unicode.Scalar) -> Bool {
    guard next == wanted else { return false }
    advance()
    return true
  }

  /// A number in the digits of any script, of at most `digits`.
  private mutating func number(_ digits: Int) -> Int? {
    var value = 0
    var count = 0
    skipMarks()
    while count < digits, let scalar = next, scalar.properties.numericType == .decimal,
      let digit = scalar.properties.numericValue
    {
      value = value * 10 + Int(digit)
      count += 1
      advance()
    }
    return count == 0 ? nil : value
  }

  private mutating func separator(_ known: Set<Unicode.Scalar>) -> Unicode.Scalar? {
    skipMarks()
    guard let scalar = next, known.contains(scalar) else { return nil }
    advance()
    skipSpaces()
    return scalar
  }

  /// Date and time, in either order; the time may come first (Vietnam).
  mutating func header() -> WhatsAppExport.Header? {
    let start = index
    if let time = clock(), comma(), let date = date() {
      return WhatsAppExport.Header(time, date)
    }
    index = start
    guard let date = date() else { return nil }
    _ = comma()
    skipConnector()
    return clock().map { WhatsAppExport.Header($0, date) }
  }

  private mutating func comma() -> Bool {
    skipSpaces()
    defer { skipSpaces() }
    return take(",") || take("\u{060C}") || take("\u{3001}")
  }

  typealias Date = (parts: (Int, Int, Int), isSlashed: Bool)

  /// `31/12/23`, `31. 12. 2023.`, `2023-12-31`, `2023年12月31日`, `31.12.23 г.`
  private mutating func date() -> Date? {
    guard let first = number(4), let one = separator(["/", ".", "-", "年", "년"]),
      let second = number(2), separator(one == "年" ? ["月"] : one == "년" ? ["월"] : [one]) != nil,
      let third = number(4)
    else { return nil }
    _ = take(".") || take("日") || take("일")
    let here = index
    skipSpaces()
    if !(take("г") && take(".")) { index = here }
    skipMarks()
    return ((first, second, third), one == "/")
  }

  /// A word between date and time, as "à", "às", "klo", "kl." and "um".
  private mutating func skipConnector() {
    let start = index
    var letters = 0
    while let scalar = next, scalar.properties.isAlphabetic, letters < 4 {
      letters += 1
      advance()
    }
    guard letters > 0 else { return }
    _ = take(".")
    let end = index
    skipSpaces()
    // It stands alone: a half of the day may stand here too, and is not one of these words.
    let isConnector =
      end != index
      && Self.connectors.contains(
        String(String.UnicodeScalarView(scalars[start..<end].filter { $0 != "." })).lowercased())
    if !isConnector { index = start }
  }

  private static let connectors: Set<String> = [
    "à", "a", "às", "as", "klo", "kl", "um", "om", "at",
  ]

  private mutating func clock() -> WhatsAppExport.Clock? {
    var half = half()
    skipSpaces()
    guard var hour = number(2) else { return nil }
    // "21 h 41" in Canada.
    let digits = index
    skipSpaces()
    if next != "h" { index = digits }
    guard separator([":", ".", "h"]) != nil, let minute = number(2) else { return nil }
    var seconds = 0
    if next == ":" || next == "." {
      let here = index
      advance()
      if let found = number(2) { seconds = found } else { index = here }
    }
    let here = index
    skipSpaces()
    half = half ?? self.half()
    if half == nil {
      index = here
      skipUnit()
    }
    // Some phones write "21:41 PM".
    if let half, hour <= 12 {
      switch half {
      case .morning: hour %= 12
      case .afternoon: hour = hour % 12 + 12
      // From eleven on it is noon in Chinese.
      case .noon: hour = hour == 11 ? 11 : hour % 12 + 12
      // Before dawn and late in the evening are one word in some languages.
      case .night: hour = hour == 12 ? 0 : hour < 6 ? hour : hour + 12
      }
    }
    return WhatsAppExport.Clock(
      hour: hour, minute: minute, second: seconds, isTwelveHours: half != nil)
  }

  /// "Uhr" and "h" behind a time, or a half of the day in a language that is not known here: the
  /// message is worth more than its hour.
  private mutating func skipUnit() {
    let start = index
    skipSpaces()
    var letters = 0
    while let scalar = next, scalar.properties.isAlphabetic || scalar == ".", letters < 8 {
      letters += 1
      advance()
    }
    let end = index
    skipSpaces()
    guard letters > 0, next == "]" || next == "-" || next == "\u{2013}" || next == "," else {
      index = start
      return
    }
    index = end
  }

  private enum Half { case morning, afternoon, noon, night }

  private static let halves: [String: Half] = [
    "am": .morning, "pm": .afternoon, "a": .morning, "p": .afternoon,
    "πμ": .morning, "μμ": .afternoon, "上午": .morning, "下午": .afternoon, "凌晨": .morning,
    "清晨": .morning, "早上": .morning, "中午": .noon, "晚上": .afternoon, "午前": .morning,
    "午後": .afternoon, "오전": .morning, "오후": .afternoon, "ص": .morning, "م": .afternoon,
    "قظ": .morning, "بظ": .afternoon, "قبلازظهر": .morning, "بعدازظهر": .afternoon,
    "vorm": .morning, "nachm": .afternoon, "дп": .morning, "пп": .afternoon, "др": .morning,
    "проб": .morning, "слоб": .afternoon, "sa": .morning, "ch": .afternoon, "öö": .morning,
    "ös": .afternoon, "पूर्वाह्न": .morning, "अपराह्न": .afternoon, "vm": .morning,
    "nm": .afternoon, "fm": .morning, "em": .afternoon, "ip": .afternoon, "ap": .morning,
    "de": .morning, "du": .afternoon, "pd": .morning, "md": .afternoon, "pg": .morning,
    "ptg": .afternoon, "dop": .morning, "odp": .afternoon, "முற்பகல்": .morning,
    "பிற்பகல்": .afternoon, "ก่อนเที่ยง": .morning, "หลังเที่ยง": .afternoon, "सुबह": .morning,
    "दोपहर": .noon, "शाम": .afternoon, "रात": .night, "לפנהצ": .morning, "אחהצ": .afternoon,
  ]

  /// A half of the day, with the dots and spaces some languages write in it (`p. m.`).
  private mutating func half() -> Half? {
    var at = index
    var word = ""
    while at < scalars.endIndex, word.unicodeScalars.count < 16 {
      let scalar = scalars[at]
      if scalar == "-" || scalar == "]" || scalar == "\u{2013}" || scalar == ","
        || scalar == "\u{060C}" || scalar.properties.numericType == .decimal
      {
        break
      }
      let isWritten =
        scalar != "." && scalar != "\"" && scalar != "״" && scalar != "\u{200C}"
        && !scalar.properties.isWhitespace && !WhatsAppExport.isDirectionMark(scalar)
      if isWritten { word.unicodeScalars.append(scalar) }
      at = scalars.index(after: at)
    }
    guard let found = Self.halves[word.lowercased()] else { return nil }
    index = at
    return found
  }

  /// What parts a header from its message.
  mutating func end(_ isBracketed: Bool) -> Bool {
    skipSpaces()
    if isBracketed {
      guard take("]") else { return false }
      _ = take(" ")
      return true
    }
    guard take("-") || take("\u{2013}") else { return false }
    _ = take(" ")
    return true
  }
}
