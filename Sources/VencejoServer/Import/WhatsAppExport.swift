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
    var raw: [(header: Header, body: String)] = []
    // Swift takes both bytes of a DOS line end for one character.
    let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
    for line in lines {
      if let (header, body) = Header.parse(line) {
        raw.append((header, String(body)))
      } else if raw.isEmpty {
        if !line.allSatisfy(\.isWhitespace) { strayLines += 1 }
      } else {
        raw[raw.count - 1].body += "\n" + line
      }
    }
    dateOrder = Self.order(of: raw.map(\.header))
    entries = raw.compactMap { header, body in
      guard let time = header.time(dateOrder) else { return nil }
      return Self.entry(body.trimmingNewlines, time)
    }
  }

  // MARK: Bodies

  private static func entry(_ body: String, _ time: Int64) -> Entry {
    guard let colon = body.firstRange(of: ": ") ?? body.firstRangeOfFinalColon else {
      return Entry(sender: nil, text: clean(body), attachment: nil, localTime: time)
    }
    let sender = clean(String(body[..<colon.lowerBound]))
    let text = String(body[colon.upperBound...])
    // A name has one line; a colon further down belongs to the text of a notice.
    guard !sender.isEmpty, !sender.contains("\n"), sender.count <= 100 else {
      return Entry(sender: nil, text: clean(body), attachment: nil, localTime: time)
    }
    if let attachment = attachment(text) {
      return Entry(
        sender: sender, text: attachment.caption, attachment: attachment.name, localTime: time)
    }
    // iOS writes notices under a name, behind a mark that nobody types.
    if text.unicodeScalars.first == "\u{200E}" {
      return Entry(sender: nil, text: clean(text), attachment: nil, localTime: time)
    }
    return Entry(sender: sender, text: clean(text), attachment: nil, localTime: time)
  }

  /// A file named or left out: `IMG-1.jpg (file attached)`, `<attached: 1.jpg>`,
  /// `<Media omitted>`, `image omitted`, and what other languages make of them: something in
  /// angle brackets alone, or behind iOS's mark with a word of leaving out.
  private static func attachment(_ text: String) -> (name: String, caption: String)? {
    let isMarked = text.unicodeScalars.first == "\u{200E}"
    var lines = clean(text).split(separator: "\n", omittingEmptySubsequences: false)
    let first = String(lines.removeFirst())
    let caption = lines.joined(separator: "\n")
    if first.hasPrefix("<"), first.hasSuffix(">") {
      let inside = first.dropFirst().dropLast()
      if let colon = inside.firstRange(of: ": ") {
        return (String(inside[colon.upperBound...]), caption)
      }
      // One word or two in brackets and nothing else is how Android leaves media out.
      return inside.contains("<") ? nil : ("", caption)
    }
    if first.hasSuffix(")"), let open = first.range(ofLast: " (") {
      let name = first[..<open.lowerBound]
      let isFile =
        name.contains(".") && !name.contains(" ") || name.hasPrefix("IMG-") || isMarked
      if isFile, name.split(separator: ".").last.map({ $0.count <= 5 }) ?? false {
        return (String(name), caption)
      }
    }
    let leftOut = [
      "omitted", "omitido", "omitida", "omitidos", "weggelassen", "ausgeschlossen", "omis",
      "omise", "omesso", "omessa", "weggelaten", "ocultado", "ocultada", "não revelada",
      "пропущено", "pominięto", "dahil edilmedi", "省略", "생략",
    ]
    if isMarked, first.count <= 60, leftOut.contains(where: { first.lowercased().contains($0) }) {
      return ("", caption)
    }
    return nil
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
    if dates.contains(where: { $0.0 > 31 }) { return .yearMonthDay }
    if dates.contains(where: { $0.0 > 12 }) { return .dayMonthYear }
    if dates.contains(where: { $0.1 > 12 }) { return .monthDayYear }
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

extension String {
  fileprivate var trimmingNewlines: String {
    var text = Substring(self)
    while text.last == "\n" { text.removeLast() }
    return String(text)
  }

  /// `Name:` and nothing more: a message that was empty, or all of it an image.
  fileprivate var firstRangeOfFinalColon: Range<String.Index>? {
    guard last == ":", !contains("\n") else { return nil }
    return index(before: endIndex)..<endIndex
  }

  fileprivate func range(ofLast text: String) -> Range<String.Index>? {
    ranges(of: text).last
  }
}
