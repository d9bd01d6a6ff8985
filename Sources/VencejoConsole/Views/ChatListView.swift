/// The list of chats.
enum ChatListView {
  struct Row: Sendable, Hashable {
    var title: String
    /// Who wrote the last message, where that is not plain from the title.
    var lastSender: String?
    var lastMessage: String
    /// Seconds since 1970.
    var time: Int64?
    var unread = 0
    /// There are more than `unread`.
    var isCapped = false
  }

  /// A table: number, title, last message, time, badge. `width` nil: nothing is cut, times in full
  /// (for pipes and logs).
  static func lines(_ rows: [Row], time: TimeText, width: Int?) -> [StyledText] {
    if rows.isEmpty { return [StyledText("no chats yet; begin one: chat new HANDLE", .hint)] }
    var table = Table(columns: [
      .init(title: "#", alignsRight: true, style: .faint),
      .init(title: "Chat", shrinks: true, style: .strong),
      .init(title: "Last message", shrinks: true),
      .init(title: "Time", alignsRight: true, style: .faint),
      .init(title: "Unread", alignsRight: true, style: .badge),
    ])
    for (index, row) in rows.enumerated() {
      let preview = row.lastSender.map { "\($0): \(row.lastMessage)" } ?? row.lastMessage
      let shown = row.time.map { width == nil ? time.full($0) : time.short($0) } ?? ""
      table.rows.append([String(index + 1), row.title, preview, shown, badge(row)])
    }
    return table.lines(width: width)
  }

  /// Nothing when all is read.
  static func badge(_ row: Row) -> String {
    row.unread <= 0 ? "" : "(\(row.unread)\(row.isCapped ? "+" : ""))"
  }
}
