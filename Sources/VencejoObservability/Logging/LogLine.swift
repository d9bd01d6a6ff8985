/// Something that happened, for people and for programs that read logs.
public struct LogLine: Sendable {
  public enum Level: String, Sendable, Comparable, CaseIterable {
    case debug, info, error

    public static func < (left: Level, right: Level) -> Bool {
      (allCases.firstIndex(of: left) ?? 0) < (allCases.firstIndex(of: right) ?? 0)
    }
  }

  public enum Value: Sendable, Hashable {
    case text(String)
    case number(Double)
  }

  public let level: Level
  /// What happened, in a few words that do not change from line to line.
  public let message: String
  public let fields: [(key: String, value: Value)]
  /// Nanoseconds since 1970.
  public let time: UInt64

  public init(_ level: Level, _ message: String, _ fields: [(key: String, value: Value)] = []) {
    self.level = level
    self.message = message
    self.fields = fields
    time = WallClock.now
  }
}

/// How log lines are written. Whatever a field holds, a line stays one line.
public enum LogFormat: String, Sendable, CaseIterable {
  /// For people: the message, then the fields.
  case text
  /// `key=value` pairs.
  case logfmt
  /// One object a line.
  case json

  public func encode(_ line: LogLine) -> String {
    switch self {
    case .text:
      ([line.message] + line.fields.map(Self.pair)).joined(separator: " ")
    case .logfmt:
      ([
        ("time", .text(WallClock.text(line.time))), ("level", .text(line.level.rawValue)),
        ("msg", .text(line.message)),
      ] + line.fields).map(Self.pair).joined(separator: " ")
    case .json:
      "{"
        + ([
          ("time", .text(WallClock.text(line.time))), ("level", .text(line.level.rawValue)),
          ("msg", .text(line.message)),
        ] + line.fields).map(Self.member).joined(separator: ",") + "}"
    }
  }

  private static func pair(_ field: (key: String, value: LogLine.Value)) -> String {
    switch field.value {
    case .number(let number): return "\(key(field.key))=\(text(number))"
    case .text(let value):
      let isPlain =
        !value.isEmpty
        && value.utf8.allSatisfy {
          $0 > 0x20 && $0 < 0x7f && $0 != 0x22 && $0 != 0x3d && $0 != 0x5c
        }
      return "\(key(field.key))=\(isPlain ? value : quoted(value))"
    }
  }

  /// A key without white space, quotes and equals signs.
  private static func key(_ name: String) -> String {
    var clean = ""
    for scalar in name.unicodeScalars {
      let isPlain =
        scalar.value > 0x20 && scalar.value < 0x7f && !["\"", "=", "\\"].contains(scalar)
      clean.unicodeScalars.append(isPlain ? scalar : "_")
    }
    return clean
  }

  private static func member(_ field: (key: String, value: LogLine.Value)) -> String {
    switch field.value {
    case .number(let number): "\(quoted(field.key)):\(number.isFinite ? text(number) : "null")"
    case .text(let value): "\(quoted(field.key)):\(quoted(value))"
    }
  }

  private static func text(_ number: Double) -> String {
    if number == number.rounded(), abs(number) < 1e15 { return "\(Int64(number))" }
    return "\(number)"
  }

  /// As JSON quotes (RFC 8259, section 7); controls of a terminal too.
  private static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": quoted += "\\\""
      case "\\": quoted += "\\\\"
      case "\n": quoted += "\\n"
      case "\r": quoted += "\\r"
      case "\t": quoted += "\\t"
      case "\u{0}"..."\u{1f}", "\u{7f}"..."\u{9f}", "\u{2028}", "\u{2029}":
        quoted += "\\u" + Hex.text(UInt64(scalar.value), digits: 4)
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }
}

extension LogLine.Value: ExpressibleByStringInterpolation {
  public init(stringLiteral value: String) { self = .text(value) }
}
