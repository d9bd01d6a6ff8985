import VencejoTools

/// Messages of one chat: one's own on the right, those of others on the left, each at most two
/// thirds of the width.
struct ConversationView: Sendable {
  struct Message: Sendable, Hashable {
    enum State: Sendable, Hashable { case received, queued, sent, read, failed }
    var sender: String
    var isMine: Bool
    var text: String
    /// Seconds since 1970.
    var time: Int64
    var state = State.received
    /// System messages stand in the middle.
    var isSystem = false
  }

  /// The last message shown, so that a name is not repeated above each of a run.
  private var previous: Message?

  /// Forgets what was shown before; the next message says who and when again.
  mutating func restart() { previous = nil }

  /// The lines of one more message on a screen `width` cells wide.
  mutating func lines(_ message: Message, time: TimeText, width: Int) -> [StyledText] {
    let width = max(width, 12)
    var lines: [StyledText] = []
    if previous.map({ time.date($0.time) != time.date(message.time) }) ?? true {
      lines.append(Self.centred(time.date(message.time), width))
    }
    let text = VisibleText.clean(message.text, keepingLines: true)
    if message.isSystem {
      lines += Wrapping.wrapped(text, to: width).map { Self.centred($0, width) }
    } else if message.isMine {
      lines += Self.own(text, message, time: time, width: width)
    } else {
      lines += others(text, message, time: time, width: width)
    }
    previous = message
    return lines
  }

  /// The line above the first unread message.
  static func newMark(_ count: Int, width: Int) -> StyledText {
    centred("\(count) new", max(width, 12))
  }

  /// One line for a pipe or a log; further lines of a text are indented.
  static func plain(_ message: Message, chat: String?, time: TimeText) -> [StyledText] {
    let text = VisibleText.clean(message.text, keepingLines: true).split(
      separator: "\n", omittingEmptySubsequences: false)
    let place = chat.map { "[\(VisibleText.clean($0))] " } ?? ""
    let sender = VisibleText.clean(message.isSystem ? "*" : message.sender)
    var lines = ["\(time.full(message.time))  \(place)\(sender): \(text.first ?? "")"]
    lines += text.dropFirst().map { "    \($0)" }
    return lines.map { StyledText($0) }
  }

  /// A live message of a chat that is not open.
  static func notice(_ message: Message, chat: String, time: TimeText, width: Int) -> StyledText {
    let sender = VisibleText.clean(message.sender)
    let chat = VisibleText.clean(chat)
    var line = StyledText(sender == chat ? sender : "\(chat) · \(sender)", .other)
    line.append(" \(time.clock(message.time))", .faint)
    let room = max(8, width - line.width - 2)
    line.append(": " + Wrapping.truncated(VisibleText.clean(message.text), to: room))
    return line
  }

  private static func widest(_ width: Int) -> Int { max(8, width * 2 / 3) }

  private static func centred(_ text: String, _ width: Int) -> StyledText {
    let shown = Wrapping.truncated("— \(text) —", to: width)
    return StyledText(
      Wrapping.spaces((width - CellWidth.of(shown)) / 2) + shown, .faint)
  }

  /// The text as a block whose right edge is the screen's, the time and the tick after its last
  /// line, or below where there is no room.
  private static func own(
    _ text: String, _ message: Message, time: TimeText, width: Int
  ) -> [StyledText] {
    let room = widest(width)
    let wrapped = Wrapping.wrapped(text, to: room)
    let mark =
      switch message.state {
      case .queued: " …"
      case .failed: " ✗"
      case .received, .sent: " ✓"
      case .read: " ✓✓"
      }
    let foot = " " + time.clock(message.time) + mark
    let footWidth = CellWidth.of(foot)
    let lastWidth = wrapped.last.map { CellWidth.of($0) } ?? 0
    let footFits = lastWidth + footWidth <= room
    let block = max(
      wrapped.map { CellWidth.of($0) }.max() ?? 0, footFits ? lastWidth + footWidth : footWidth)
    // Where terminals disagree about the width, no line may be too long for any of them.
    let doubt = wrapped.map { CellWidth.doubt($0) }.max() ?? 0
    let indent = Wrapping.spaces(width - block - doubt)
    var lines: [StyledText] = []
    for (index, line) in wrapped.enumerated() {
      var styled = StyledText(indent)
      styled.append(line, message.state == .failed ? .error : .own)
      if footFits, index + 1 == wrapped.count {
        styled.append(Wrapping.spaces(block - lastWidth - footWidth) + foot, .faint)
      }
      lines.append(styled)
    }
    if !footFits { lines.append(StyledText(Wrapping.spaces(width - footWidth) + foot, .faint)) }
    return lines
  }

  private func others(
    _ text: String, _ message: Message, time: TimeText, width: Int
  ) -> [StyledText] {
    var lines: [StyledText] = []
    let isRun =
      previous.map {
        !$0.isMine && !$0.isSystem && $0.sender == message.sender
          && message.time - $0.time < 300 && time.date($0.time) == time.date(message.time)
      } ?? false
    if !isRun {
      var header = StyledText(
        Wrapping.truncated(VisibleText.clean(message.sender), to: Self.widest(width) - 6), .other)
      header.append(" " + time.clock(message.time), .faint)
      lines.append(header)
    }
    return lines + Wrapping.wrapped(text, to: Self.widest(width)).map { StyledText($0) }
  }
}
