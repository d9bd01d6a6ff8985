import VencejoDescriptors

// The text forms of bytes, timestamps, durations and masks.

/// Base64 (RFC 4648): written in the standard alphabet with padding, read in either alphabet
/// with or without it.
enum Base64 {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    var index = 0
    while index < bytes.count {
      let rest = min(3, bytes.count - index)
      var bits: UInt32 = 0
      for offset in 0..<3 {
        bits = bits << 8 | (offset < rest ? UInt32(bytes[index + offset]) : 0)
      }
      for digit in 0..<4 {
        let value = Int(bits >> UInt32(18 - 6 * digit) & 63)
        text.append(digit <= rest ? alphabet[value] : UInt8(ascii: "="))
      }
      index += 3
    }
    return String(decoding: text, as: UTF8.self)
  }

  static func decode(_ text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    var bits: UInt32 = 0
    var digits = 0
    var padding = 0
    for character in text.utf8 {
      let value: UInt8
      switch character {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = character - UInt8(ascii: "A")
      case UInt8(ascii: "a")...UInt8(ascii: "z"): value = character - UInt8(ascii: "a") + 26
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = character - UInt8(ascii: "0") + 52
      case UInt8(ascii: "+"), UInt8(ascii: "-"): value = 62
      case UInt8(ascii: "/"), UInt8(ascii: "_"): value = 63
      case UInt8(ascii: "="):
        padding += 1
        continue
      default: return nil
      }
      if padding > 0 { return nil }
      bits = bits << 6 | UInt32(value)
      digits += 1
      if digits & 3 != 1 {
        let spare = UInt32(6 - 2 * ((digits & 3) == 0 ? 3 : digits & 3 - 1))
        bytes.append(UInt8(truncatingIfNeeded: bits >> spare))
      }
    }
    if digits & 3 == 1 || padding > 0 && (digits + padding) & 3 != 0 || padding > 2 { return nil }
    return bytes
  }
}

/// Nanoseconds behind a decimal point: none, three, six or nine digits.
func fraction(_ nanos: Int32) -> String {
  guard nanos != 0 else { return "" }
  let digits = padded(Int64(nanos), 9)
  if nanos % 1_000_000 == 0 { return "." + digits.prefix(3) }
  if nanos % 1000 == 0 { return "." + digits.prefix(6) }
  return "." + digits
}

private func padded(_ value: Int64, _ width: Int) -> String {
  let digits = String(value)
  return String(repeating: "0", count: max(0, width - digits.count)) + digits
}

/// A fraction's digits as nanoseconds; nil unless there are one to nine.
private func nanoseconds(_ digits: Substring.UTF8View) -> Int32? {
  guard (1...9).contains(digits.count), let value = number(digits) else { return nil }
  return Int32(truncatingIfNeeded: (digits.count..<9).reduce(value) { value, _ in value * 10 })
}

/// Up to eighteen digits as a number, nothing else.
private func number(_ digits: Substring.UTF8View) -> Int64? {
  guard (1...18).contains(digits.count) else { return nil }
  var value: Int64 = 0
  for digit in digits {
    guard digit >= 0x30 && digit <= 0x39 else { return nil }
    value = value * 10 + Int64(digit - 0x30)
  }
  return value
}

/// A `google.protobuf.Timestamp` in RFC 3339.
enum TimestampText {
  /// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z.
  private static let range = -62_135_596_800...Int64(253_402_300_799)

  static func encode(_ seconds: Int64, _ nanos: Int32) -> String? {
    guard range.contains(seconds), (0..<1_000_000_000).contains(nanos) else { return nil }
    // Since 0000-03-01, where every era of 400 years has 146,097 days and leap days come last
    // (Howard Hinnant, "chrono-compatible low-level date algorithms").
    let days = (seconds + 62_135_596_800) / 86_400 + 306
    let second = (seconds + 62_135_596_800) % 86_400
    let era = days / 146_097
    let day = days % 146_097
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365
    let dayOfYear = day - (365 * year + year / 4 - year / 100)
    let month = (5 * dayOfYear + 2) / 153
    let civilMonth = month < 10 ? month + 3 : month - 9
    let civilYear = year + era * 400 + (civilMonth <= 2 ? 1 : 0)
    let date =
      "\(padded(civilYear, 4))-\(padded(civilMonth, 2))-"
      + padded(dayOfYear - (153 * month + 2) / 5 + 1, 2)
    let time =
      "\(padded(second / 3600, 2)):\(padded(second / 60 % 60, 2)):\(padded(second % 60, 2))"
    return "\(date)T\(time)\(fraction(nanos))Z"
  }

  static func decode(_ text: String) -> (seconds: Int64, nanos: Int32)? {
    let bytes = text[...].utf8
    let all = Array(bytes)
    guard all.count >= 20, all[4] == UInt8(ascii: "-"), all[7] == UInt8(ascii: "-"),
      all[10] == UInt8(ascii: "T"), all[13] == UInt8(ascii: ":"), all[16] == UInt8(ascii: ":")
    else { return nil }
    func part(_ start: Int, _ count: Int) -> Int64? {
      number(bytes.dropFirst(start).prefix(count))
    }
    guard let year = part(0, 4), let month = part(5, 2), let day = part(8, 2),
      let hour = part(11, 2), let minute = part(14, 2), let second = part(17, 2),
      year >= 1, (1...12).contains(month), day >= 1, day <= days(in: month, of: year),
      hour < 24, minute < 60, second < 60
    else { return nil }
    var rest = bytes.dropFirst(19)
    var nanos: Int32 = 0
    if rest.first == UInt8(ascii: ".") {
      let digits = rest.dropFirst().prefix { $0 >= 0x30 && $0 <= 0x39 }
      guard let value = nanoseconds(digits) else { return nil }
      nanos = value
      rest = rest.dropFirst(1 + digits.count)
    }
    guard let offset = zone(rest) else { return nil }
    let shifted = month > 2 ? year : year - 1
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let date = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + dayOfYear - 306
    let seconds = date * 86_400 + hour * 3600 + minute * 60 + second - offset - 62_135_596_800
    return range.contains(seconds) ? (seconds, nanos) : nil
  }

  private static func days(in month: Int64, of year: Int64) -> Int64 {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// `Z` or an offset like `+02:00`, in seconds.
  private static func zone(_ text: Substring.UTF8View) -> Int64? {
    if text.elementsEqual("Z".utf8) { return 0 }
    guard text.count == 6, let sign = text.first,
      sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-"),
      text.dropFirst(3).first == UInt8(ascii: ":"),
      let hours = number(text.dropFirst().prefix(2)), let minutes = number(text.dropFirst(4)),
      hours < 24, minutes < 60
    else { return nil }
    let offset = hours * 3600 + minutes * 60
    return sign == UInt8(ascii: "-") ? -offset : offset
  }
}

/// A `google.protobuf.Duration` in seconds, like `-1.500s`.
enum DurationText {
  /// About 10,000 years.
  private static let longest: Int64 = 315_576_000_000

  static func encode(_ seconds: Int64, _ nanos: Int32) -> String? {
    guard (-longest...longest).contains(seconds), (-999_999_999...999_999_999).contains(nanos),
      !(seconds > 0 && nanos < 0), !(seconds < 0 && nanos > 0)
    else { return nil }
    let sign = seconds < 0 || nanos < 0 ? "-" : ""
    return "\(sign)\(abs(seconds))\(fraction(abs(nanos)))s"
  }

  static func decode(_ text: String) -> (seconds: Int64, nanos: Int32)? {
    var bytes = text[...].utf8
    let negative = bytes.first == UInt8(ascii: "-")
    if negative { bytes = bytes.dropFirst() }
    guard bytes.last == UInt8(ascii: "s") else { return nil }
    bytes = bytes.dropLast()
    let whole = bytes.prefix { $0 != UInt8(ascii: ".") }
    guard let seconds = number(whole), seconds <= longest else { return nil }
    var nanos: Int32 = 0
    if whole.count < bytes.count {
      guard let value = nanoseconds(bytes.dropFirst(whole.count + 1)) else { return nil }
      nanos = value
    }
    return negative ? (-seconds, -nanos) : (seconds, nanos)
  }
}

/// A `google.protobuf.FieldMask`'s paths, in lowerCamel.
enum MaskText {
  /// nil for a path that would not come back as it was.
  static func encode(_ path: String) -> String? {
    let camel = lowerCamel(path)
    return decode(camel) == path ? camel : nil
  }

  /// nil for a path with underscores.
  static func decode(_ path: Substring) -> String? { decode(String(path)) }

  private static func decode(_ path: String) -> String? {
    var result = ""
    for character in path {
      if character == "_" { return nil }
      if character.isASCII && character.isUppercase {
        result += "_" + character.lowercased()
      } else {
        result.append(character)
      }
    }
    return result
  }
}
