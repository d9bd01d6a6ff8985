import Testing

@testable import VencejoConsole

@Suite struct ViewTests {
  /// Monday, 30 November 2026, 12:00 UTC (`date -u -d 2026-11-30T12:00 +%s`).
  private static let noon: Int64 = 1_796_040_000
  private let time = TimeText(now: noon) { _ in 0 }

  private func text(_ lines: [StyledText]) -> [String] { lines.map(\.plain) }

  @Test func timesAreShortWhereTheyCanBe() {
    #expect(time.short(Self.noon - 60) == "11:59")
    #expect(time.short(Self.noon - 86400) == "Sun")
    #expect(time.short(Self.noon - 7 * 86400) == "23 Nov")
    #expect(time.short(Self.noon - 365 * 86400) == "2025-11-30")
    #expect(time.full(0) == "1970-01-01 00:00")
    #expect(TimeText(now: 0) { _ in 3600 }.full(82800) == "1970-01-02 00:00")
    #expect(TimeText.rfc3339(0, 1_500_000) == "1970-01-01T00:00:00.001500Z")
    _ = time.short(.min)
    _ = time.short(.max)
  }

  @Test func chatList() {
    let rows = [
      ChatListView.Row(
        title: "Ana", lastMessage: "hola", time: Self.noon - 60, unread: 2),
      ChatListView.Row(
        title: "日本語のグループ", lastSender: "bob", lastMessage: "a much longer message, cut",
        time: Self.noon - 86400, unread: 999, isCapped: true),
      ChatListView.Row(title: "Empty", lastMessage: ""),
    ]
    let lines = ChatListView.lines(rows, time: time, width: 50)
    #expect(
      text(lines) == [
        "#  Chat            Last message       Time  Unread",
        "1  Ana             hola              11:59     (2)",
        "2  日本語のグル…   bob: a much lon…    Sun  (999+)",
        "3  Empty",
      ])
    #expect(lines.allSatisfy { $0.width <= 50 })
    #expect(text(ChatListView.lines(rows, time: time, width: nil))[2].contains("message, cut"))
    #expect(text(ChatListView.lines([], time: time, width: 50)).count == 1)
  }

  @Test func oneLongMessageDoesNotWidenTheRowsOfAPipe() {
    let long = String(repeating: "x", count: 65_536)
    let rows = [
      ChatListView.Row(title: "Ana", lastMessage: long, time: Self.noon, unread: 1),
      ChatListView.Row(title: "Ben", lastMessage: "hola", time: Self.noon, unread: 2),
    ]
    let lines = text(ChatListView.lines(rows, time: time, width: nil))
    #expect(lines[1].contains(long) && lines[1].hasSuffix("2026-11-30 12:00     (1)"))
    #expect(lines[2].hasPrefix("2  Ben   hola") && lines[2].hasSuffix("2026-11-30 12:00     (2)"))
    #expect(lines[2].count < 120)
  }

  private func message(
    _ text: String, mine: Bool = false, from sender: String = "Ana", at time: Int64 = noon,
    state: ConversationView.Message.State = .sent
  ) -> ConversationView.Message {
    .init(sender: sender, isMine: mine, text: text, time: time, state: state)
  }

  @Test func ownMessagesOnTheRightOthersOnTheLeft() {
    var view = ConversationView()
    var lines = view.lines(message("hola"), time: time, width: 30)
    lines += view.lines(message("¿qué tal?"), time: time, width: 30)
    lines += view.lines(message("bien 漢字", mine: true), time: time, width: 30)
    lines += view.lines(message("😀"), time: time, width: 30)
    #expect(
      text(lines) == [
        "        — 2026-11-30 —",
        "Ana 12:00",
        "hola",
        "¿qué tal?",
        "             bien 漢字 12:00 ✓",
        "Ana 12:00",
        "😀",
      ])
    #expect(lines[4].width == 30)
  }

  @Test(arguments: [12, 20, 33, 80, 200])
  func twoThirdsAtMost(width: Int) {
    let long = "uno dos tres 漢字漢字漢字漢字 https://example.org/a/very/long/path 👩‍👩‍👧👩‍👩‍👧 fin\nnew line"
    for mine in [true, false] {
      var view = ConversationView()
      let lines = view.lines(message(long, mine: mine), time: time, width: width).dropFirst()
      for line in lines {
        #expect(line.width <= width)
        let content = line.plain.drop { $0 == " " }
        #expect(CellWidth.of(content) <= max(8, width * 2 / 3) || content.hasPrefix("Ana"))
      }
      // The words arrive complete and in order.
      let all = lines.map { String($0.plain.filter { $0 != " " }) }.joined()
      #expect(all.contains("漢字漢字漢字漢字"))
      #expect(all.contains("fin"))
      // Up to the right edge, less what terminals may disagree about: four cells a family.
      if mine { #expect((width - 8...width).contains(lines.map(\.width).max() ?? 0)) }
    }
  }

  @Test func queuedAndFailedAreMarked() {
    var view = ConversationView()
    _ = view.lines(message("a", mine: true), time: time, width: 40)
    let queued = view.lines(message("b", mine: true, state: .queued), time: time, width: 40)
    #expect(queued[0].plain.hasSuffix("b 12:00 …"))
  }

  @Test func plainLines() {
    let lines = ConversationView.plain(message("one\ntwo\u{1B}[2J"), chat: "Paseo", time: time)
    #expect(text(lines) == ["2026-11-30 12:00  [Paseo] Ana: one", "    two␛[2J"])
  }

  @Test func errorsUnderlineThePlace() {
    let report = ErrorReport(
      GrammarError(message: "no such command: quer", hint: "did you mean query?", range: 3..<7),
      line: "漢 quer")
    // The line from its third cluster on is short, so the place is beyond its end.
    #expect(
      text(report.lines(width: 40))
        == [
          "error: no such command: quer", "  漢 quer", "      ^^^", "hint: did you mean query?",
        ].map { $0 })
    #expect(report.exitCode == 1)
    let long = ErrorReport(
      GrammarError(message: "m", hint: nil, range: 90..<95),
      line: String(repeating: "x", count: 100))
    #expect(long.lines(width: 40).allSatisfy { $0.width <= 40 })
  }

  @Test func records() {
    let rows = [
      RecordView.Row(name: "first", type: "Note", fields: ["n": "3", "title": "\"a\""]),
      RecordView.Row(name: "second", type: "Note", fields: ["n": "10"]),
    ]
    #expect(
      text(RecordView.table(rows, width: 80)) == [
        "Name    Type  n   title", "first   Note  3   \"a\"", "second  Note  10",
      ])
    #expect(text(RecordView.details(rows[0], time: time))[1] == "  n      3")
    #expect(RecordView.line("+", rows[1]).plain == "+ Note second  n=10")
  }

  @Test func stylesAreForTerminalsOnly() {
    #expect(StyledText("x", .error).rendered(colour: true) == "\u{1B}[1;31mx\u{1B}[0m")
    #expect(StyledText("x", .error).rendered(colour: false) == "x")
  }
}
