/// Where in a trace something happens (W3C "Trace Context").
public struct TraceContext: Sendable, Hashable {
  /// Sixteen bytes, never all zero.
  public let traceID: TraceID
  /// Of the span under way; never 0.
  public let spanID: UInt64
  public let isSampled: Bool
  /// What tracing systems on the way have added; empty when there is nothing.
  public let state: TraceState

  /// That of the call that the handler answers; calls made in it are its children.
  @TaskLocal public static var current: TraceContext?

  public struct TraceID: Sendable, Hashable, CustomStringConvertible {
    public let high: UInt64
    public let low: UInt64

    public init(high: UInt64, low: UInt64) {
      self.high = high
      self.low = low
    }

    /// 32 hexadecimal digits in lower case.
    public var description: String { Hex.text(high, digits: 16) + Hex.text(low, digits: 16) }
  }

  public init(traceID: TraceID, spanID: UInt64, isSampled: Bool, state: TraceState = .init()) {
    self.traceID = traceID
    self.spanID = spanID
    self.isSampled = isSampled
    self.state = state
  }

  /// A new trace.
  public static func root(isSampled: Bool) -> TraceContext {
    var (high, low) = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))
    if high == 0, low == 0 { (high, low) = (1, 1) }
    return TraceContext(
      traceID: .init(high: high, low: low), spanID: .random(in: 1 ... .max), isSampled: isSampled)
  }

  /// A span below this one.
  public func child() -> TraceContext {
    TraceContext(
      traceID: traceID, spanID: .random(in: 1 ... .max), isSampled: isSampled, state: state)
  }

  /// Reads the headers of the names; nil when `traceparent` is none, which begins a new trace. A
  /// `tracestate` that is malformed is left out.
  public init?(traceparent: String, tracestate: [String] = []) {
    let bytes = Array(traceparent.utf8)
    // version "-" trace-id "-" parent-id "-" flags (section 3.2.2)
    guard bytes.count >= 55, let version = Hex.value(bytes[0..<2]), version != 0xff,
      bytes[2] == UInt8(ascii: "-"), bytes[35] == UInt8(ascii: "-"),
      bytes[52] == UInt8(ascii: "-"),
      let high = Hex.value(bytes[3..<19]), let low = Hex.value(bytes[19..<35]),
      let span = Hex.value(bytes[36..<52]), let flags = Hex.value(bytes[53..<55]),
      high != 0 || low != 0, span != 0
    else { return nil }
    // Of later versions what version 00 has is read, if it ends where it should (section 4).
    if version == 0 {
      guard bytes.count == 55 else { return nil }
    } else if bytes.count > 55 {
      guard bytes[55] == UInt8(ascii: "-") else { return nil }
    }
    traceID = TraceID(high: high, low: low)
    spanID = span
    isSampled = flags & 1 == 1
    state = TraceState(headers: tracestate) ?? TraceState()
  }

  /// The header's value, version 00.
  public var traceparent: String {
    "00-\(traceID)-\(Hex.text(spanID, digits: 16))-\(isSampled ? "01" : "00")"
  }
}

/// The `tracestate` header (W3C "Trace Context", section 3.3): up to 32 members, in order.
public struct TraceState: Sendable, Hashable {
  public struct Member: Sendable, Hashable {
    public let key: String
    public let value: String
  }

  public private(set) var members: [Member] = []

  public init() {}

  /// Reads the header's values in the order they came; nil when they are malformed.
  public init?(headers: [String]) {
    var keys: Set<String> = []
    for text in headers.joined(separator: ",").utf8.split(separator: UInt8(ascii: ",")) {
      let member = Self.trimmed(text[...])
      if member.isEmpty { continue }
      guard let equals = member.firstIndex(of: UInt8(ascii: "=")) else { return nil }
      let (key, value) = (member[..<equals], member[member.index(after: equals)...])
      guard Self.isKey(Array(key)), Self.isValue(Array(value)), members.count < 32,
        let name = String(key), let text = String(value), keys.insert(name).inserted
      else { return nil }
      members.append(Member(key: name, value: text))
    }
  }

  /// The header's value; nil when there is nothing to send.
  public var header: String? {
    members.isEmpty ? nil : members.map { "\($0.key)=\($0.value)" }.joined(separator: ",")
  }

  private static func trimmed(_ text: Substring.UTF8View) -> Substring.UTF8View {
    var text = text
    while let first = text.first, first == 0x20 || first == 0x09 { text = text.dropFirst() }
    while let last = text.last, last == 0x20 || last == 0x09 { text = text.dropLast() }
    return text
  }

  private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte) }
  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
  private static func isKeyByte(_ byte: UInt8) -> Bool {
    isLetter(byte) || isDigit(byte) || [0x5f, 0x2d, 0x2a, 0x2f].contains(byte)  // _ - * /
  }

  /// `simple-key`, or `tenant-id "@" system-id` (section 3.3.1.3.1).
  private static func isKey(_ key: [UInt8]) -> Bool {
    guard let first = key.first else { return false }
    guard let at = key.firstIndex(of: UInt8(ascii: "@")) else {
      return isLetter(first) && key.count <= 256 && key.allSatisfy(isKeyByte)
    }
    let (tenant, system) = (key[..<at], key[(at + 1)...])
    guard let begin = system.first else { return false }
    return (isLetter(first) || isDigit(first)) && tenant.count <= 241
      && tenant.allSatisfy(isKeyByte) && isLetter(begin) && system.count <= 14
      && system.allSatisfy(isKeyByte)
  }

  /// Up to 256 printable characters but `,` and `=`, the last no space (section 3.3.1.3.2).
  private static func isValue(_ value: [UInt8]) -> Bool {
    guard let last = value.last, last != 0x20, value.count <= 256 else { return false }
    return value.allSatisfy { (0x20...0x7e).contains($0) && $0 != 0x2c && $0 != 0x3d }
  }
}

enum Hex {
  /// Digits in lower case only, at most 16.
  static func value(_ digits: ArraySlice<UInt8>) -> UInt64? {
    var value: UInt64 = 0
    for digit in digits {
      switch digit {
      case 0x30...0x39: value = value << 4 | UInt64(digit - 0x30)
      case 0x61...0x66: value = value << 4 | UInt64(digit - 0x61 + 10)
      default: return nil
      }
    }
    return value
  }

  static func text(_ value: UInt64, digits: Int) -> String {
    let text = String(value, radix: 16)
    return String(repeating: "0", count: max(0, digits - text.count)) + text
  }

  static func bytes(_ value: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
  }
}
