/// Help, printed from the command table.
enum Help {
  static func overview() -> [StyledText] {
    var lines: [StyledText] = []
    let widest = CommandTable.all.map { CellWidth.of($0.name) }.max() ?? 0
    for group in CommandSpec.Group.allCases {
      lines.append(StyledText(group.rawValue, .strong))
      for spec in CommandTable.all where spec.group == group {
        lines.append(
          StyledText("  " + Wrapping.padded(spec.name, to: widest) + "  ")
            + StyledText(spec.summary, .faint))
      }
    }
    lines.append(
      StyledText("help COMMAND shows two examples. With a chat open, what you type is sent;", .hint)
    )
    lines.append(StyledText("commands then begin with a slash: /back, /chats, /help", .hint))
    return lines
  }

  /// Nil when there is no such command.
  static func details(_ name: String, width: Int) -> [StyledText]? {
    let wanted = name.hasPrefix("/") ? String(name.dropFirst()) : name
    guard let spec = CommandTable.spec(named: wanted) else { return nil }
    var lines = [StyledText(spec.usage, .strong), StyledText("  " + spec.summary)]
    if !spec.aliases.isEmpty {
      lines.append(StyledText("  also: " + spec.aliases.joined(separator: ", "), .faint))
    }
    if !spec.details.isEmpty {
      lines += Wrapping.wrapped(spec.details, to: max(20, min(width, 100) - 2)).map {
        StyledText("  " + $0)
      }
    }
    lines.append(StyledText("examples", .faint))
    lines += spec.examples.map { StyledText("  " + $0, .own) }
    return lines
  }
}
