import VencejoDescriptors

// The text forms of bytes, timestamps, durations and masks.

/// Base64 (RFC 4648): written in the standard alphabet with padding, read in either alphabet
/// with or without it.
enum Base64 {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// Two letters for twelve bits.
  private static let pairs: [UInt16] = (0..<4096).map {
    UInt16(alphabet[$0 >> 6]) | UInt16(alphabet[$0 & 63]) << 8
  }

  static func encode(_ bytes: UnsafeRawBufferPointer, to text: inout ByteBuffer) {
    pairs.withUnsafeBufferPointer { pairs in
      text.append(count: (bytes.count + 2) / 3 * 4) { place in
        var place = UnsafeMutableRawPointer(place)
        var index = 0
        // Six bytes become eight letters, in one load and one store.
        while index &+ 8 <= bytes.count {
          let bits = UInt64(
            bigEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
          func pair(_ shift: UInt64) -> UInt64 {
            UInt64(pairs[Int(truncatingIfNeeded: bits &>> shift & 4095)])
          }
          let letters = pair(52) | pair(40) &<< 16 | pair(28) &<< 32 | pair(16) &<< 48
          place.storeBytes(of: letters.littleEndian, as: UInt64.self)
          place += 8
          index &+= 6
        }
        while index + 3 <= bytes.count {
          let bits =
            Int(bytes[index]) << 16 | Int(bytes[index + 1]) << 8 | Int(bytes[index + 2])
          place.storeBytes(of: pairs[bits >> 12].littleEndian, as: UInt16.self)
          place.storeBytes(of: pairs[bits & 4095].littleEndian, toByteOffset: 2, as: UInt16.self)
          place += 4
          index += 3
        }
        let rest = bytes.count - index
        if rest == 0 { return }
        let bits = Int(bytes[index]) << 16 | (rest == 2 ? Int(bytes[index + 1]) << 8 : 0)
        place.storeBytes(of: pairs[bits >> 12].littleEndian, as: UInt16.self)
        place.storeBytes(
          of: rest == 2 ? alphabet[bits >> 6 & 63] : UInt8(ascii: "="), toByteOffset: 2,
          as: UInt8.self)
        place.storeBytes(of: UInt8(ascii: "="), toByteOffset: 3, as: UInt8.self)
      }
    }
  }

  /// The value of each letter; 64 for the padding and 255 for what is none.
  private static let values: [UInt8] = (0...255).map { byte in
    switch UInt8(byte) {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt8(byte) - UInt8(ascii: "A")
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt8(byte) - UInt8(ascii: "a") + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt8(byte) - UInt8(ascii: "0") + 52
    case UInt8(ascii: "+"), UInt8(ascii: "-"): 62
    case UInt8(ascii: "/"), UInt8(ascii: "_"): 63
    case UInt8(ascii: "="): 64
    default: 255
    }
  }

  /// Writes the bytes a text stands for; false when it is not base64.
  static func decode(_ text: UnsafeRawBufferPointer, to bytes: inout ByteBuffer) -> Bool {
    bytes.reserve(text.count / 4 * 3 + 3)
    return values.withUnsafeBufferPointer { values in
      var index = 0
      while index + 4 <= text.count {
        let a = values[Int(text[index])]
        let b = values[Int(text[index + 1])]
        let c = values[Int(text[index + 2])]
        let d = values[Int(text[index + 3])]
        if a | b | c | d >= 64 { break }
        let bits = UInt32(a) << 18 | UInt32(b) << 12 | UInt32(c) << 6 | UInt32(d)
        bytes.append(UInt8(truncatingIfNeeded: bits >> 16))
        bytes.append(UInt8(truncatingIfNeeded: bits >> 8))
        bytes.append(UInt8(truncatingIfNeeded: bits))
        index += 4
      }
      // The end: up to three letters, then padding, if any, to four.
      var bits: UInt32 = 0
      var letters = 0
      while index < text.count, values[Int(text[index])] < 64 {
        bits = bits << 6 | UInt32(values[Int(text[index])])
        letters += 1
        index += 1
        if letters > 3 { return false }
      }
      let padding = text.count - index
      for letter in text[index...] where letter != UInt8(ascii: "=") { return false }
      if letters == 1 || padding > 2 || padding > 0 && letters + padding != 4 { return false }
      if letters > 1 {
        bits <<= UInt32(24 - 6 * letters)
        bytes.append(UInt8(truncatingIfNeeded: bits >> 16))
        if letters > 2 { bytes.append(UInt8(truncatingIfNeeded: bits >> 8)) }
      }
      return true
    }
  }
}

extension ByteBuffer {
  /// Nanoseconds behind a decimal point: none, three, six or nine digits.
  fileprivate mutating func fraction(_ nanos: Int32) {
    let nanos = UInt64(nanos.magnitude)
    if nanos == 0 { return }
    append(UInt8(ascii: "."))
    if nanos % 1_000_000 == 0 {
      append(decimal: nanos / 1_000_000, width: 3)
    } else if nanos % 1000 == 0 {
      append(decimal: nanos / 1000, width: 6)
    } else {
      append(decimal: nanos, width: 9)
    }
  }
}

/// A text being read from its beginning; nil is returned for what is not there.
private struct Scanner {
  var rest: UnsafeRawBufferPointer.SubSequence

  init(_ text: UnsafeRawBufferPointer) { rest = text[...] }

  /// A number of so many digits.
  mutating func number(_ digits: ClosedRange<Int>) -> (value: Int64, count: Int)? {
    var value: Int64 = 0
    var count = 0
    while count < digits.upperBound, let digit = rest.first, digit >= 0x30 && digit <= 0x39 {
      value = value * 10 + Int64(digit - 0x30)
      count += 1
      rest = rest.dropFirst()
    }
    return count >= digits.lowerBound ? (value, count) : nil
  }

  mutating func number(_ digits: Int) -> Int64? { number(digits...digits)?.value }

  mutating func take(_ character: Character) -> Bool {
    guard let byte = rest.first, byte == character.asciiValue else { return false }
    rest = rest.dropFirst()
    return true
  }

  /// The nanoseconds behind a point; 0 when there is none.
  mutating func nanoseconds() -> Int32? {
    guard take(".") else { return 0 }
    guard let (value, count) = number(1...9) else { return nil }
    return Int32(truncatingIfNeeded: (count..<9).reduce(value) { value, _ in value * 10 })
  }
}

/// A `google.protobuf.Timestamp` in RFC 3339.
enum TimestampText {
  /// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z.
  private static let range = -62_135_596_800...Int64(253_402_300_799)

  /// Writes a time in quotes; false when it has no text.
  static func encode(_ seconds: Int64, _ nanos: Int32, to text: inout ByteBuffer) -> Bool {
    guard range.contains(seconds), (0..<1_000_000_000).contains(nanos) else { return false }
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
    func part(_ value: Int64, _ width: Int, _ behind: Character) {
      text.append(decimal: value.magnitude, width: width)
      text.append(behind.asciiValue ?? 0)
    }
    text.append(UInt8(ascii: "\""))
    part(civilYear, 4, "-")
    part(civilMonth, 2, "-")
    part(dayOfYear - (153 * month + 2) / 5 + 1, 2, "T")
    part(second / 3600, 2, ":")
    part(second / 60 % 60, 2, ":")
    text.append(decimal: (second % 60).magnitude, width: 2)
    text.fraction(nanos)
    text.append(literal: "Z\"")
    return true
  }

  static func decode(_ text: UnsafeRawBufferPointer) -> (seconds: Int64, nanos: Int32)? {
    var scanner = Scanner(text)
    guard let year = scanner.number(4), scanner.take("-"), let month = scanner.number(2),
      scanner.take("-"), let day = scanner.number(2), scanner.take("T"),
      let hour = scanner.number(2), scanner.take(":"), let minute = scanner.number(2),
      scanner.take(":"), let second = scanner.number(2),
      year >= 1, (1...12).contains(month), day >= 1, day <= days(in: month, of: year),
      hour < 24, minute < 60, second < 60,
      let nanos = scanner.nanoseconds(), let offset = zone(&scanner), scanner.rest.isEmpty
    else { return nil }
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
  private static func zone(_ scanner: inout Scanner) -> Int64? {
    if scanner.take("Z") { return 0 }
    let isNegative = scanner.take("-")
    guard isNegative || scanner.take("+"), let hours = scanner.number(2), scanner.take(":"),
      let minutes = scanner.number(2), hours < 24, minutes < 60
    else { return nil }
    let offset = hours * 3600 + minutes * 60
    return isNegative ? -offset : offset
  }
}

/// A `google.protobuf.Duration` in seconds, like `-1.500s`.
enum DurationText {
  /// About 10,000 years.
  private static let longest: Int64 = 315_576_000_000

  /// Writes a duration in quotes; false when it has no text.
  static func encode(_ seconds: Int64, _ nanos: Int32, to text: inout ByteBuffer) -> Bool {
    guard (-longest...longest).contains(seconds), (-999_999_999...999_999_999).contains(nanos),
      !(seconds > 0 && nanos < 0), !(seconds < 0 && nanos > 0)
    else { return false }
    text.append(literal: seconds < 0 || nanos < 0 ? "\"-" : "\"")
    text.append(decimal: seconds.magnitude)
    text.fraction(nanos)
    text.append(literal: "s\"")
    return true
  }

  static func decode(_ text: UnsafeRawBufferPointer) -> (seconds: Int64, nanos: Int32)? {
    var scanner = Scanner(text)
    let isNegative = scanner.take("-")
    guard let (seconds, _) = scanner.number(1...18), seconds <= longest,
      let nanos = scanner.nanoseconds(), scanner.take("s"), scanner.rest.isEmpty
    else { return nil }
    return isNegative ? (-seconds, -nanos) : (seconds, nanos)
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
