package import VencejoStore

/// What the cells of one column are.
package enum ColumnType: Equatable {
  case string
  case int64
  /// `true` and `false`, kept as 1 and 0: there is no type of its own, as in CloudKit.
  case bool
  case double
  /// With a comma before the fraction.
  case decimalComma
  case timestamp(TimeForm)

  package var name: String {
    switch self {
    case .string: "STRING"
    case .int64: "INT64"
    case .bool: "INT64 (true/false)"
    case .double: "DOUBLE"
    case .decimalComma: "DOUBLE (decimal comma)"
    case .timestamp(let form): "TIMESTAMP (\(form.rawValue))"
    }
  }

  /// By the name that an operator writes.
  package init?(name: String) {
    switch name.lowercased() {
    case "string": self = .string
    case "int64": self = .int64
    case "bool": self = .bool
    case "double": self = .double
    case "decimal-comma": self = .decimalComma
    case "timestamp": self = .timestamp(.iso)
    case "timestamp-dmy": self = .timestamp(.dayFirst)
    case "timestamp-mdy": self = .timestamp(.monthFirst)
    default: return nil
    }
  }

  /// The cell's value; nil when it is none of the type.
  package func value(_ text: String) -> RecordValue? {
    switch self {
    case .string: return .string(text)
    case .int64: return Self.integer(text).map { .int64($0) }
    case .bool:
      switch text.lowercased() {
      case "true": return .int64(1)
      case "false": return .int64(0)
      default: return nil
      }
    case .double: return Self.double(text).map { .double($0) }
    case .decimalComma:
      guard !text.utf8.contains(UInt8(ascii: ".")) else { return nil }
      return Self.double(String(text.map { $0 == "," ? "." : $0 })).map { .double($0) }
    case .timestamp(let form): return form.microseconds(text).map { .timestamp($0) }
    }
  }

  /// Digits with a sign before them, none of which would be lost: neither leading zeros nor a
  /// plus, which telephone and postal codes begin with.
  static func integer(_ text: String) -> Int64? {
    var digits = text.utf8[...]
    if digits.first == UInt8(ascii: "-") { digits = digits.dropFirst() }
    guard let first = digits.first, digits.allSatisfy({ (0x30...0x39).contains($0) }),
      first != 0x30 || (digits.count == 1 && text.utf8.count == 1)
    else { return nil }
    return Int64(text)
  }

  /// The same of bytes, where they are digits of a number that surely fits; nil may be one too.
  static func shortInteger(_ bytes: UnsafeBufferPointer<UInt8>) -> Int64? {
    let isNegative = bytes.first == UInt8(ascii: "-")
    let digits = UnsafeBufferPointer(rebasing: bytes[(isNegative ? 1 : 0)...])
    guard let first = digits.first, digits.count <= 17, first != 0x30 || bytes.count == 1 else {
      return nil
    }
    var value: Int64 = 0
    for digit in digits {
      guard (0x30...0x39).contains(digit) else { return nil }
      value = value * 10 + Int64(digit - 0x30)
    }
    return isNegative ? -value : value
  }

  /// A number whose digits a double keeps: at most 17 of them, no leading zeros.
  static func double(_ text: String) -> Double? {
    var rest = text.utf8[...]
    if rest.first == UInt8(ascii: "-") { rest = rest.dropFirst() }
    let whole = rest.prefix { (0x30...0x39).contains($0) }
    rest = rest.dropFirst(whole.count)
    guard let first = whole.first, first != 0x30 || whole.count == 1 else { return nil }
    var digits = whole.count
    if rest.first == UInt8(ascii: ".") {
      rest = rest.dropFirst()
      let fraction = rest.prefix { (0x30...0x39).contains($0) }
      guard !fraction.isEmpty else { return nil }
      digits += fraction.count
      rest = rest.dropFirst(fraction.count)
    }
    if let mark = rest.first {
      guard mark | 0x20 == UInt8(ascii: "e") else { return nil }
      rest = rest.dropFirst()
      if let sign = rest.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") {
        rest = rest.dropFirst()
      }
      guard !rest.isEmpty, rest.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    }
    guard digits <= 17, let number = Double(text), number.isFinite else { return nil }
    return number
  }
}

/// How a time is written.
package enum TimeForm: String, CaseIterable {
  /// Year, month, day, with `-` or `/`; perhaps a time and an offset.
  case iso = "year first"
  case dayFirst = "day first"
  case monthFirst = "month first"

  /// Microseconds since 1970; without an offset the time is UTC's. Nil when it is none.
  package func microseconds(_ text: String) -> Int64? {
    var scan = Scan(rest: text.utf8[...])
    guard let a = scan.number(), let mark = scan.mark("-/."), let b = scan.number(),
      scan.mark(String(UnicodeScalar(mark))) != nil, let c = scan.number()
    else { return nil }
    let year: (value: Int64, digits: Int)
    let month: (value: Int64, digits: Int)
    let day: (value: Int64, digits: Int)
    switch self {
    case .iso: (year, month, day) = (a, b, c)
    case .dayFirst: (year, month, day) = (c, b, a)
    case .monthFirst: (year, month, day) = (c, a, b)
    }
    guard year.digits == 4, month.digits <= 2, day.digits <= 2 else { return nil }
    var time = ""
    var offset = "Z"
    if scan.mark("Tt ") != nil {
      guard let parts = scan.time() else { return nil }
      (time, offset) = parts
    }
    guard scan.rest.isEmpty else { return nil }
    func padded(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let yearText =
      String(repeating: "0", count: max(0, 4 - "\(year.value)".count)) + "\(year.value)"
    let date = "\(yearText)-\(padded(month.value))-\(padded(day.value))"
    return RecordTime.microseconds(time.isEmpty ? date : "\(date)T\(time)\(offset)")
  }

  private struct Scan {
    var rest: Substring.UTF8View

    mutating func number() -> (value: Int64, digits: Int)? {
      let digits = rest.prefix { (0x30...0x39).contains($0) }
      guard !digits.isEmpty, digits.count <= 9 else { return nil }
      rest = rest.dropFirst(digits.count)
      return (digits.reduce(0) { $0 * 10 + Int64($1 - 0x30) }, digits.count)
    }

    mutating func mark(_ marks: String) -> UInt8? {
      guard let first = rest.first, marks.utf8.contains(first) else { return nil }
      rest = rest.dropFirst()
      return first
    }

    /// `H:MM[:SS[.f]][ AM|PM][ ][Z|±HH[:]MM|±HH]` as RFC 3339's time and offset.
    mutating func time() -> (time: String, offset: String)? {
      guard var hour = number(), hour.digits <= 2, mark(":") != nil, let minute = number(),
        minute.digits == 2
      else { return nil }
      func padded(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
      var second = "00"
      if mark(":") != nil {
        guard let value = number(), value.digits == 2 else { return nil }
        second = padded(value.value)
        if mark(".,") != nil {
          let digits = rest.prefix { (0x30...0x39).contains($0) }
          guard !digits.isEmpty else { return nil }
          rest = rest.dropFirst(digits.count)
          second += "." + String(Substring(digits))
        }
      }
      _ = mark(" ")
      if let half = mark("AaPp") {
        guard mark("Mm") != nil, (1...12).contains(hour.value) else { return nil }
        hour.value = hour.value % 12 + (half | 0x20 == UInt8(ascii: "p") ? 12 : 0)
      }
      var offset = "Z"
      if mark("Zz") != nil {
      } else if let sign = mark("+-") {
        guard let hours = number() else { return nil }
        var minutes: Int64 = 0
        var value = hours.value
        if hours.digits == 4 {
          minutes = value % 100
          value /= 100
        } else if hours.digits != 2 {
          return nil
        } else if mark(":") != nil {
          guard let more = number(), more.digits == 2 else { return nil }
          minutes = more.value
        }
        offset = "\(String(UnicodeScalar(sign)))\(padded(value)):\(padded(minutes))"
      } else if rest.starts(with: "UTC".utf8) || rest.starts(with: "GMT".utf8) {
        rest = rest.dropFirst(3)
      }
      return ("\(padded(hour.value)):\(padded(minute.value)):\(second)", offset)
    }
  }
}

/// What a column can still be, after the cells seen so far.
package struct ColumnGuess {
  private var candidates: [ColumnType] = [
    .int64, .bool, .double, .decimalComma, .timestamp(.iso), .timestamp(.dayFirst),
    .timestamp(.monthFirst),
  ]
  package private(set) var filled = 0
  package private(set) var example = ""

  package init() {}

  package mutating func see(_ text: String) {
    if filled == 0 { example = text }
    filled += 1
    if candidates.isEmpty { return }
    // What most cells are, without trying the rest: a short whole number is every kind of number.
    if candidates == Self.numbers, text.utf8.count <= 17, ColumnType.integer(text) != nil { return }
    candidates.removeAll { $0.value(text) == nil }
  }

  /// Sees a cell without making a text of it; false when that takes one.
  mutating func see(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    guard filled > 0,
      candidates.isEmpty || candidates == Self.numbers && ColumnType.shortInteger(bytes) != nil
    else { return false }
    filled += 1
    return true
  }

  private static let numbers: [ColumnType] = [.int64, .double, .decimalComma]

  /// A text may be a time, but is no number.
  mutating func keepTimes() {
    candidates.removeAll { if case .timestamp = $0 { false } else { true } }
  }

  /// The narrowest type of all cells.
  package var type: ColumnType {
    guard filled > 0, let first = candidates.first else { return .string }
    // A day and a month that may be either stay as they are written: somebody has to say.
    return isAmbiguousDate ? .string : first
  }

  package var isAmbiguousDate: Bool {
    candidates == [.timestamp(.dayFirst), .timestamp(.monthFirst)]
  }
}
