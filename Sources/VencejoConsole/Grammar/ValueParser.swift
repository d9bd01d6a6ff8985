/// Values as people type them: `3`, `2.5`, `"text"`, `@now`, `@2026-11-30T08:15:00Z`, `41.4,2.2`,
/// `>record`, `[1,2]`, `true`; anything else is a text.
enum ValueParser {
  static func parse(
    _ text: String, isQuoted: Bool, at start: Int
  ) throws(GrammarError) -> RecordValue {
    if isQuoted { return .string(text) }
    let range = start..<start + max(text.count, 1)
    switch text.first {
    case "@":
      let time = String(text.dropFirst())
      if time == "now" { return .now }
      guard let (seconds, nanoseconds) = timestamp(time) else {
        throw GrammarError(
          message: "this is no time", hint: "write @now or @2026-11-30T08:15:00Z", range: range)
      }
      return .timestamp(seconds, nanoseconds)
    case ">" where text.count > 1: return .reference(String(text.dropFirst()))
    case "[" where text.last == "]": return .list(try list(text, at: start))
    default: break
    }
    if text == "true" { return .integer(1) }
    if text == "false" { return .integer(0) }
    if let integer = Int64(text) { return .integer(integer) }
    if looksNumeric(text) {
      guard let double = Double(text), double.isFinite else {
        throw GrammarError(
          message: "this number is too large", hint: "quote it to keep it as a text", range: range)
      }
      return .double(double)
    }
    let parts = text.split(separator: ",", omittingEmptySubsequences: false)
    if parts.count == 2, parts.allSatisfy({ looksNumeric(String($0)) }),
      let latitude = Double(parts[0]), let longitude = Double(parts[1])
    {
      guard abs(latitude) <= 90, abs(longitude) <= 180 else {
        throw GrammarError(
          message: "no such place on earth",
          hint: "latitude −90…90, longitude −180…180: 41.4,2.2", range: range)
      }
      return .location(latitude, longitude)
    }
    return .string(text)
  }

  /// Digits with a sign, a point, an exponent: "1.5", "-2e3"; not "inf" or "0x1p3".
  static func looksNumeric(_ text: String) -> Bool {
    var digits = false
    for (index, byte) in text.utf8.enumerated() {
      switch byte {
      case 0x30...0x39: digits = true
      case 0x2B, 0x2D:
        if index > 0 {
          let before = Array(text.utf8)[index - 1]
          if before != 0x65, before != 0x45 { return false }
        }
      case 0x2E: break
      case 0x65, 0x45: if !digits { return false }
      default: return false
      }
    }
    return digits && Double(text) != nil
  }

  private static func list(_ text: String, at start: Int) throws(GrammarError) -> [RecordValue] {
    let line = Array(text)
    var values: [RecordValue] = []
    var index = 1
    while index < line.count - 1 {
      if line[index].isWhitespace || line[index] == "," {
        index += 1
      } else if line[index] == "\"" {
        values.append(.string(try Words.quoted(line, &index)))
      } else {
        let begin = index
        while index < line.count - 1, line[index] != ",", !line[index].isWhitespace { index += 1 }
        let item = try parse(String(line[begin..<index]), isQuoted: false, at: start + begin)
        if case .list = item {
          throw GrammarError(
            message: "a list holds no lists", hint: nil, range: start + begin..<start + index)
        }
        values.append(item)
      }
    }
    return values
  }

  /// RFC 3339, the time and the zone optional (then midnight, UTC): seconds since 1970 and
  /// nanoseconds.
  static func timestamp(_ text: String) -> (Int64, Int32)? {
    var rest = Substring(text)
    guard let year = digits(&rest, 4), take(&rest, "-"), let month = digits(&rest, 2),
      take(&rest, "-"), let day = digits(&rest, 2), (1...12).contains(month), year >= 1,
      (1...daysInMonth(year, month)).contains(day)
    else { return nil }
    var seconds = Int64(CivilDate.days(year: year, month: month, day: day)) * 86400
    var nanoseconds: Int32 = 0
    if rest.isEmpty { return (seconds, 0) }
    guard take(&rest, "T") || take(&rest, "t"), let hour = digits(&rest, 2), take(&rest, ":"),
      let minute = digits(&rest, 2), hour < 24, minute < 60
    else { return nil }
    seconds += Int64(hour * 3600 + minute * 60)
    if take(&rest, ":") {
      guard let second = digits(&rest, 2), second < 60 else { return nil }
      seconds += Int64(second)
      if take(&rest, ".") {
        let fraction = rest.prefix { $0.isASCII && $0.isNumber }
        guard (1...9).contains(fraction.count), var value = Int32(fraction) else { return nil }
        for _ in fraction.count..<9 { value *= 10 }
        nanoseconds = value
        rest = rest.dropFirst(fraction.count)
      }
    }
    if rest.isEmpty || take(&rest, "Z") || take(&rest, "z") {
      return rest.isEmpty ? (seconds, nanoseconds) : nil
    }
    let isEast = take(&rest, "+")
    guard isEast || take(&rest, "-"), let hours = digits(&rest, 2), take(&rest, ":"),
      let minutes = digits(&rest, 2), rest.isEmpty, hours < 24, minutes < 60
    else { return nil }
    let offset = Int64(hours * 3600 + minutes * 60)
    return (isEast ? seconds - offset : seconds + offset, nanoseconds)
  }

  private static func digits(_ rest: inout Substring, _ count: Int) -> Int? {
    let digits = rest.prefix(count)
    guard digits.count == count, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
      return nil
    }
    rest = rest.dropFirst(count)
    return Int(digits)
  }

  private static func take(_ rest: inout Substring, _ character: Character) -> Bool {
    guard rest.first == character else { return false }
    rest.removeFirst()
    return true
  }

  private static func daysInMonth(_ year: Int, _ month: Int) -> Int {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }
}
