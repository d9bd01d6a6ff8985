extension WhatsAppExport {
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

    /// The header of a line and what follows it; nil where there is none.
    static func parse(_ line: Substring) -> (Header, Substring)? {
      let scalars = line.unicodeScalars
      var reader = HeaderReader(scalars)
      reader.skipMarks()
      let isBracketed = reader.take("[")
      guard let header = reader.header(), reader.end(isBracketed) else { return nil }
      return (header, Substring(scalars[reader.index...]))
    }

    /// Microseconds as if the phone's clock were UTC; nil where no such day is.
    func time(_ order: DateOrder) -> Int64? {
      let (day, month, written) =
        switch order {
        case .dayMonthYear: (date.0, date.1, date.2)
        case .monthDayYear: (date.1, date.0, date.2)
        case .yearMonthDay: (date.2, date.1, date.0)
        }
      // The Buddhist calendar of Thai phones is 543 years ahead.
      var year = written < 100 ? 2000 + written : written
      if year > 2500 { year -= 543 }
      guard (1...12).contains(month), (1...31).contains(day), (1990...2200).contains(year),
        (0...23).contains(hour), (0...59).contains(minute), (0...59).contains(second)
      else { return nil }
      let days = Self.days(year, month, day)
      return (((Int64(days) * 24 + Int64(hour)) * 60 + Int64(minute)) * 60 + Int64(second))
        * 1_000_000
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

  mutating func header() -> WhatsAppExport.Header? {
    guard let first = number(4), let one = separator(["/", ".", "-"]),
      let second = number(2), separator([one]) != nil, let third = number(4)
    else { return nil }
    _ = take(".")
    skipMarks()
    _ = take(",") || take("\u{060C}")
    skipSpaces()
    var half = half()
    skipSpaces()
    guard var hour = number(2), separator([":", "."]) != nil, let minute = number(2) else {
      return nil
    }
    var seconds = 0
    if next == ":" || next == "." {
      let here = index
      advance()
      if let found = number(2) { seconds = found } else { index = here }
    }
    skipSpaces()
    half = half ?? self.half()
    if let half {
      guard (1...12).contains(hour) || hour == 0 else { return nil }
      hour = hour % 12 + (half == .afternoon ? 12 : 0)
    }
    return WhatsAppExport.Header(
      date: (first, second, third), hour: hour, minute: minute, second: seconds,
      isTwelveHours: half != nil, isSlashed: one == "/")
  }

  private enum Half { case morning, afternoon }

  private static let halves: [(String, Half)] = [
    ("am", .morning), ("pm", .afternoon), ("πμ", .morning), ("μμ", .afternoon),
    ("上午", .morning), ("下午", .afternoon), ("午前", .morning), ("午後", .afternoon),
    ("오전", .morning), ("오후", .afternoon), ("ص", .morning), ("م", .afternoon),
    ("vorm", .morning), ("nachm", .afternoon), ("дп", .morning), ("пп", .afternoon),
    ("sa", .morning), ("ch", .afternoon), ("öö", .morning), ("ös", .afternoon),
    ("पूर्वाह्न", .morning), ("अपराह्न", .afternoon),
  ]

  /// A half of the day, with the dots and spaces some languages write in it (`p. m.`).
  private mutating func half() -> Half? {
    var at = index
    var word = ""
    while at < scalars.endIndex, word.unicodeScalars.count < 12 {
      let scalar = scalars[at]
      if scalar == "-" || scalar == "]" || scalar == "\u{2013}"
        || scalar.properties.numericType == .decimal
      {
        break
      }
      if scalar != ".", !scalar.properties.isWhitespace, !WhatsAppExport.isDirectionMark(scalar) {
        word.unicodeScalars.append(scalar)
      }
      at = scalars.index(after: at)
    }
    let folded = word.lowercased()
    guard let found = Self.halves.first(where: { $0.0 == folded }) else { return nil }
    index = at
    return found.1
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
