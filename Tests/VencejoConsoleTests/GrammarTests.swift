import Testing

@testable import VencejoConsole

@Suite struct GrammarTests {
  private func parse(_ line: String, inChat: Bool = false) throws(GrammarError) -> Command? {
    try CommandTable.parse(line, chatIsOpen: inChat)
  }

  private func failure(_ line: String, inChat: Bool = false) -> GrammarError? {
    do {
      _ = try parse(line, inChat: inChat)
      return nil
    } catch { return error }
  }

  /// The part of a line an error points at.
  private func place(_ line: String) -> String? {
    guard let range = failure(line)?.range else { return nil }
    let characters = Array(line)
    let lower = min(range.lowerBound, characters.count)
    return String(characters[lower..<min(range.upperBound, characters.count)])
  }

  @Test(arguments: [
    ("sign-up ana", Command.signUp(handle: "ana", password: nil, displayName: nil, email: nil)),
    (
      "sign-up ana pw name=\"Ana B.\"",
      .signUp(handle: "ana", password: "pw", displayName: "Ana B.", email: nil)
    ),
    ("LOGIN ana pw", .signIn(handle: "ana", password: "pw")),
    ("/chats", .chats),
    ("  chats  ", .chats),
    (
      "chat new ana bob title=\"Paseo del domingo\"",
      .newChat(handles: ["ana", "bob"], title: "Paseo del domingo")
    ),
    ("open Paseo del domingo", .open(chat: "Paseo del domingo")),
    ("open \"Paseo\"", .open(chat: "Paseo")),
    ("say ana  don't \"panic\" ", .say(chat: "ana", text: "don't \"panic\"")),
    ("say ana \"one\\ntwo\"", .say(chat: "ana", text: "one\ntwo")),
    ("say ana \"half", .say(chat: "ana", text: "\"half")),
    ("messages", .messages(chat: nil, count: nil)),
    ("messages 5", .messages(chat: nil, count: 5)),
    ("messages ana 5", .messages(chat: "ana", count: 5)),
    ("use zone work", .use(.zone("work"))),
    ("use database public", .use(.database(.public))),
    ("zone new work", .newZone("work")),
    ("zone delete work --yes", .deleteZone("work")),
    ("get first", .get("first")),
    ("wait 3 --timeout 2.5", .wait(.init(count: 3, timeout: 2.5))),
    ("wait --timeout=1", .wait(.init(count: nil, timeout: 1))),
    ("watch zone --count 2", .watch(.zone(nil), .init(count: 2, timeout: nil))),
    ("help query", .help("query")),
    ("exit", .quit),
  ])
  func commands(line: String, command: Command) throws {
    #expect(try parse(line) == command)
  }

  @Test func linesWithNothingToDo() throws {
    #expect(try parse("") == nil)
    #expect(try parse("   ") == nil)
    #expect(try parse("# a comment") == nil)
    #expect(try parse(" \u{200B} ", inChat: true) == nil)
  }

  @Test func inAChatTextIsLiteral() throws {
    #expect(try parse("chats", inChat: true) == .send("chats"))
    #expect(try parse("\"half a quote", inChat: true) == .send("\"half a quote"))
    #expect(try parse("# one", inChat: true) == .send("# one"))
    #expect(try parse("/chats", inChat: true) == .chats)
    #expect(try parse("//etc", inChat: true) == .send("/etc"))
    #expect(try parse("/send  hola ", inChat: true) == .send("hola"))
  }

  @Test func putReadsValues() throws {
    let line =
      "put Note first title=\"a \\\"b\\\" c\" n=3 x=-2.5e1 at=@now when=@2026-11-30T08:15:00.5+01:00 "
      + "loc=41.4,2.2 ref=>abc tags=[a,\"b c\",1] done=true word=hola id=\"3\" empty="
    guard case .put(let put) = try parse(line) else {
      Issue.record("no put")
      return
    }
    #expect(put.type == "Note")
    #expect(put.name == "first")
    // 2026-11-30T07:15:00Z by `date -u -d … +%s`.
    #expect(
      put.fields == [
        "title": .string("a \"b\" c"), "n": .integer(3), "x": .double(-25), "at": .now,
        "when": .timestamp(1_796_022_900, 500_000_000), "loc": .location(41.4, 2.2),
        "ref": .reference("abc"), "tags": .list([.string("a"), .string("b c"), .integer(1)]),
        "done": .integer(1), "word": .string("hola"), "id": .string("3"), "empty": .string(""),
      ])
    #expect(put.policy == .merge)
    guard case .put(let second) = try parse("put Note --new n=1") else { return }
    #expect(second.policy == .create && second.name == nil)
  }

  @Test func queries() throws {
    func query(_ line: String) throws -> RecordQuery? {
      if case .query(let query) = try parse("query " + line) { query } else { nil }
    }
    #expect(try query("Note") == RecordQuery(type: "Note"))
    #expect(
      try query("Note where n > 3 and beginsWith(title,\"x\") order by n desc, title limit 20")
        == RecordQuery(
          type: "Note",
          filter: .all([.compare("n", .greater, .integer(3)), .beginsWith("title", "x")]),
          order: [.init(field: "n", descending: true), .init(field: "title", descending: false)],
          limit: 20))
    // `and` binds stronger than `or`, `not` stronger than both.
    #expect(
      try query("N where a=1 or b<>2 and not c<=3")?.filter
        == .any([
          .compare("a", .equal, .integer(1)),
          .all([
            .compare("b", .notEqual, .integer(2)), .not(.compare("c", .lessOrEqual, .integer(3))),
          ]),
        ]))
    #expect(
      try query("N where (a=1 or b=2) and exists(c) and t in (\"x\", \"y z\")")?.filter
        == .all([
          .any([.compare("a", .equal, .integer(1)), .compare("b", .equal, .integer(2))]),
          .exists("c"), .isIn("t", [.string("x"), .string("y z")]),
        ]))
    #expect(
      try query("N where distance(loc, 41.4, -2.2) < 500 and contains(tags, \"a\")")?.filter
        == .all([
          .within(field: "loc", latitude: 41.4, longitude: -2.2, metres: 500),
          .contains("tags", [.string("a")], all: false),
        ]))
    #expect(
      try parse("watch query N where n > 1 --count 2 --timeout 3")
        == .watch(
          .query(RecordQuery(type: "N", filter: .compare("n", .greater, .integer(1)))),
          .init(count: 2, timeout: 3)))
  }

  @Test(arguments: [
    ("quer Note", "quer"), ("open", ""), ("say ana", ""), ("say ana \" \"", "\" \""),
    ("chats now", "now"), ("messages ana many", "many"), ("use zoo x", "zoo"),
    ("put Note 1x=3", "1x"), ("put Note a=@then", "@then"), ("put Note p=91.0,0", "91.0,0"),
    ("put Note a=\"x", "\"x"), ("put Note a=[1", "[1"), ("put Note a=\"\\q\"", "\\q"),
    ("query", ""), ("query Note were n", "were"), ("query Note where n", ""),
    ("query Note where n ~ 3", "~"), ("query Note where (n = 3", ""),
    ("query Note where ends(n)", "ends"), ("query Note limit 0", "0"),
    ("wait 3 --timeout soon", "soon"), ("wait --timeout", "--timeout"), ("chat", "chat"),
    ("zone delete work", "zone delete"), ("chats --all", "--all"),
  ])
  func errorsPointAtTheirPlace(line: String, expected: String) {
    #expect(failure(line) != nil)
    #expect(place(line) == expected)
  }

  @Test(arguments: [
    ("opne ana", "did you mean open?"), ("mesages", "did you mean messages?"),
    ("sig-in x", "did you mean sign-in?"), ("xyzzy", "see help"), ("zone", "zone new"),
  ])
  func didYouMean(line: String, hint: String) {
    #expect(failure(line)?.hint?.contains(hint) == true)
  }

  @Test func everyCommandHasTwoExamplesThatParse() throws {
    for spec in CommandTable.all {
      #expect(spec.examples.count == 2, "\(spec.name)")
      for example in spec.examples {
        #expect(failure(example) == nil, "\(example)")
      }
      #expect(Help.details(spec.name, width: 80) != nil)
    }
    #expect(Set(CommandTable.names).count == CommandTable.names.count)
    #expect(Help.details("nothing", width: 80) == nil)
  }

  @Test func everyLineIsSurvived() {
    var generator = SystemRandomNumberGenerator()
    let pieces = [
      "query", "put", "Note", " ", "where", "(", ")", "\"", "\\", "=", "<", ">", "[", "]", "@", ",",
      "n", "3", "--count", "and", "not", "limit", "order", "by", "👍🏽", "漢", "\u{301}", "\n", "-",
    ]
    for _ in 0..<500 {
      let line = (0..<Int.random(in: 1...12, using: &generator)).map { _ in
        pieces.randomElement(using: &generator) ?? ""
      }.joined()
      for head in ["", "query ", "put Note ", "watch query "] {
        if let error = failure(head + line) {
          _ = ErrorReport(error, line: head + line).lines(width: 30)
        }
      }
    }
    #expect(failure("query N where " + String(repeating: "(", count: 5000)) != nil)
  }

  @Test(arguments: [
    ("0x10", RecordValue.string("0x10")), ("inf", .string("inf")), ("1e3", .double(1000)),
    ("+5", .integer(5)), ("9223372036854775807", .integer(.max)),
    ("9223372036854775808", .double(9223372036854775808)), ("-", .string("-")),
    ("1.2.3", .string("1.2.3")), (">", .string(">")), ("1,2,3", .string("1,2,3")),
  ])
  func values(text: String, value: RecordValue) throws {
    #expect(try ValueParser.parse(text, isQuoted: false, at: 0) == value)
  }

  @Test(arguments: [
    ("1970-01-01", 0), ("2000-02-29T00:00:00Z", 951_782_400),
    ("2026-11-30T08:15:00Z", 1_796_026_500),
    ("1969-12-31T23:59:59Z", -1),
  ])
  func timestamps(text: String, seconds: Int) {
    #expect(ValueParser.timestamp(text)?.0 == Int64(seconds))
    #expect(TimeText.rfc3339(Int64(seconds), 0).hasPrefix(text))
  }

  @Test(arguments: [
    "2026-13-01", "2026-02-29", "2026-1-1", "2026-01-01T24:00:00Z", "2026-01-01 08:00", "",
  ])
  func noTimestamps(text: String) { #expect(ValueParser.timestamp(text) == nil) }

  @Test func completion() {
    var completer = Completer(
      chats: ["ana", "Paseo del domingo"], zones: ["work"], recordTypes: ["Note"], fields: ["n"])
    #expect(completer.complete("op") == Completion(start: 0, candidates: ["open "]))
    #expect(completer.complete("/op") == Completion(start: 1, candidates: ["open "]))
    #expect(completer.complete("open P").candidates == ["\"Paseo del domingo\" "])
    #expect(completer.complete("use z").candidates == ["zone "])
    #expect(completer.complete("use zone w") == Completion(start: 9, candidates: ["work "]))
    #expect(completer.complete("query N").candidates == ["Note "])
    #expect(completer.complete("put Note n").candidates == ["n="])
    #expect(completer.complete("chat n").candidates == ["chat new "])
    completer.chatIsOpen = true
    #expect(completer.complete("op") == Completion(start: 0, candidates: []))
  }
}
