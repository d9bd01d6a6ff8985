/// One token of a filter.
struct FilterToken: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    case word(String)
    case text(String)
    case number(String)
    /// Microseconds since 1970.
    case time(Int64)
    case symbol(String)
  }

  var kind: Kind
  /// In bytes from the start.
  var offset: Int

  var shown: String {
    switch kind {
    case .word(let word), .number(let word): "`\(word)`"
    case .text(let text): "\"\(text)\""
    case .time: "a time"
    case .symbol(let symbol): "`\(symbol)`"
    }
  }
}

/// Cuts a filter into tokens.
enum FilterLexer {
  static func tokens(of filter: String) throws(RecordViolation) -> [FilterToken] {
    let bytes = Array(filter.utf8)
    var tokens: [FilterToken] = []
    var at = 0
    while at < bytes.count {
      let byte = bytes[at]
      let start = at
      switch byte {
      case 0x20, 0x09, 0x0A, 0x0D: at += 1
      case UInt8(ascii: "\""), UInt8(ascii: "'"):
        let text = try self.text(bytes, &at)
        tokens.append(FilterToken(kind: .text(text), offset: start))
      case UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "!"):
        let hasEqual = at + 1 < bytes.count && bytes[at + 1] == UInt8(ascii: "=")
        guard hasEqual || byte != UInt8(ascii: "!") else {
          throw RecordViolation("filter", "unexpected `!` at byte \(start); negate with NOT")
        }
        at += hasEqual ? 2 : 1
        let symbol = String(decoding: bytes[start..<at], as: UTF8.self)
        tokens.append(FilterToken(kind: .symbol(symbol), offset: start))
      case UInt8(ascii: "="), UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: ","),
        UInt8(ascii: ":"), UInt8(ascii: "*"), UInt8(ascii: "-"):
        at += 1
        tokens.append(
          FilterToken(kind: .symbol(String(UnicodeScalar(byte))), offset: start))
      case _ where RecordNaming.isDigit(byte):
        tokens.append(FilterToken(kind: try numberOrTime(bytes, &at), offset: start))
      case _ where isWordByte(byte):
        while at < bytes.count, isWordByte(bytes[at]) { at += 1 }
        let word = String(decoding: bytes[start..<at], as: UTF8.self)
        tokens.append(FilterToken(kind: .word(word), offset: start))
      default:
        throw RecordViolation("filter", "unexpected character at byte \(start)")
      }
    }
    return tokens
  }

  private static func isWordByte(_ byte: UInt8) -> Bool {
    RecordNaming.isLetter(byte) || RecordNaming.isDigit(byte) || byte == UInt8(ascii: "_")
      || byte >= 0x80
  }

  /// A quoted text; a backslash takes the next character as it is, `\n` and
  /// `\t` excepted.
  private static func text(_ bytes: [UInt8], _ at: inout Int) throws(RecordViolation) -> String {
    let start = at
    let quote = bytes[at]
    at += 1
    var text: [UInt8] = []
    while at < bytes.count {
      var byte = bytes[at]
      at += 1
      if byte == quote { return String(decoding: text, as: UTF8.self) }
      if byte == UInt8(ascii: "\\"), at < bytes.count {
        byte = bytes[at]
        at += 1
        if byte == UInt8(ascii: "n") { byte = 0x0A }
        if byte == UInt8(ascii: "t") { byte = 0x09 }
      }
      text.append(byte)
    }
    throw RecordViolation("filter", "the text that begins at byte \(start) does not end")
  }

  /// `12`, `1.5`, `1e9`, or a time: four digits and a hyphen begin one.
  private static func numberOrTime(
    _ bytes: [UInt8], _ at: inout Int
  ) throws(RecordViolation) -> FilterToken.Kind {
    let start = at
    while at < bytes.count, RecordNaming.isDigit(bytes[at]) { at += 1 }
    if at - start == 4, at < bytes.count, bytes[at] == UInt8(ascii: "-") {
      while at < bytes.count, isTimeByte(bytes[at]) { at += 1 }
      let text = String(decoding: bytes[start..<at], as: UTF8.self)
      guard let time = RFC3339.microseconds(text) else {
        throw RecordViolation("filter", "\(text) is no RFC 3339 time, as 2026-01-31T12:00:00Z")
      }
      return .time(time)
    }
    while at < bytes.count {
      let isExponentSign =
        (bytes[at] == UInt8(ascii: "-") || bytes[at] == UInt8(ascii: "+"))
        && (bytes[at - 1] | 0x20) == UInt8(ascii: "e")
      guard
        isExponentSign || RecordNaming.isDigit(bytes[at]) || RecordNaming.isLetter(bytes[at])
          || bytes[at] == UInt8(ascii: ".")
      else { break }
      at += 1
    }
    let text = String(decoding: bytes[start..<at], as: UTF8.self)
    // Digits, a point and an exponent only: Double would also read 0x10.
    let plain = text.utf8.allSatisfy {
      RecordNaming.isDigit($0) || $0 == UInt8(ascii: ".") || $0 | 0x20 == UInt8(ascii: "e")
        || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "+")
    }
    guard plain, let number = Double(text), number.isFinite else {
      throw RecordViolation("filter", "\(text) at byte \(start) is no number")
    }
    return .number(text)
  }

  private static func isTimeByte(_ byte: UInt8) -> Bool {
    RecordNaming.isDigit(byte) || "-:.+TtZz".utf8.contains(byte)
  }

  static func bytes(hex: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    var high: UInt8?
    for digit in hex.utf8 {
      guard let value = Character(UnicodeScalar(digit)).hexDigitValue else { return nil }
      if let first = high {
        bytes.append(first << 4 | UInt8(value))
        high = nil
      } else {
        high = UInt8(value)
      }
    }
    return high == nil ? bytes : nil
  }
}

/// Times as text (RFC 3339).
enum RFC3339 {
  /// Microseconds since 1970 of `YYYY-MM-DD[THH:MM:SS[.fraction](Z|±HH:MM)]`; a
  /// day alone is its midnight in UTC. Nil when it is no time.
  static func microseconds(_ text: String) -> Int64? {
    var rest = Array(text.utf8)[...]
    func digits(_ count: Int) -> Int64? {
      guard rest.count >= count, rest.prefix(count).allSatisfy(RecordNaming.isDigit) else {
        return nil
      }
      defer { rest = rest.dropFirst(count) }
      return rest.prefix(count).reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }
    func mark(_ marks: String) -> UInt8? {
      guard let first = rest.first, marks.utf8.contains(first) else { return nil }
      rest = rest.dropFirst()
      return first
    }
    guard let year = digits(4), mark("-") != nil, let month = digits(2), mark("-") != nil,
      let day = digits(2), (1...12).contains(month), day >= 1,
      day <= daysInMonth(year, month)
    else { return nil }
    var seconds = days(year, month, day) * 86_400
    if rest.isEmpty { return seconds * 1_000_000 }
    guard mark("Tt") != nil, let hour = digits(2), mark(":") != nil, let minute = digits(2),
      mark(":") != nil, let second = digits(2), hour < 24, minute < 60, second <= 60
    else { return nil }
    seconds += hour * 3600 + minute * 60 + second
    var microseconds: Int64 = 0
    if mark(".") != nil {
      var scale: Int64 = 100_000
      var any = false
      while let digit = digits(1) {
        microseconds += digit * scale
        scale /= 10
        any = true
      }
      guard any else { return nil }
    }
    if mark("Zz") == nil {
      guard let sign = mark("+-"), let hours = digits(2), mark(":") != nil,
        let minutes = digits(2), hours < 24, minutes < 60
      else { return nil }
      let offset = hours * 3600 + minutes * 60
      seconds += sign == UInt8(ascii: "+") ? -offset : offset
    }
    return rest.isEmpty ? seconds * 1_000_000 + microseconds : nil
  }

  /// The time as `YYYY-MM-DDTHH:MM:SS[.ffffff]Z`.
  static func text(microseconds: Int64) -> String {
    let (seconds, rest) = floored(microseconds, 1_000_000)
    let (days, second) = floored(seconds, 86_400)
    // The inverse of `days`: eras of 400 years from 1 March.
    let (era, dayOfEra) = floored(days + 719_468, 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shifted = (5 * dayOfYear + 2) / 153
    let month = shifted < 10 ? shifted + 3 : shifted - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    func padded(_ number: Int64, _ width: Int) -> String {
      let text = String(number)
      return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
    }
    var fraction = ""
    if rest > 0 {
      fraction = padded(rest, 6)
      while fraction.hasSuffix("0") { fraction.removeLast() }
      fraction = "." + fraction
    }
    return padded(year, 4) + "-" + padded(month, 2) + "-"
      + padded(dayOfYear - (153 * shifted + 2) / 5 + 1, 2) + "T" + padded(second / 3600, 2) + ":"
      + padded(second / 60 % 60, 2) + ":" + padded(second % 60, 2) + fraction + "Z"
  }

  private static func floored(_ number: Int64, _ by: Int64) -> (Int64, Int64) {
    let rest = number % by
    return rest < 0 ? (number / by - 1, rest + by) : (number / by, rest)
  }

  private static func daysInMonth(_ year: Int64, _ month: Int64) -> Int64 {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// Days since 1970-01-01 in the proleptic Gregorian calendar, counted from
  /// March so that the leap day is the last of its year.
  private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
    let year = month <= 2 ? year - 1 : year
    let era = (year >= 0 ? year : year - 399) / 400
    let yearOfEra = year - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }
}
