import TestSupport
import Testing

@testable import VencejoStore

@Suite struct FilterParserTests {
  private let n3 = Predicate.comparison(field: "n", .greaterThan, .int64(3))
  private let title = Predicate.comparison(field: "title", .equal, .string("a b"))

  @Test func readsComparisons() throws {
    #expect(try Predicate(filter: "n > 3") == n3)
    #expect(try Predicate(filter: "n>3") == n3)
    #expect(try Predicate(filter: #"title = "a b""#) == title)
    #expect(try Predicate(filter: "title='a b'") == title)
    #expect(
      try Predicate(filter: #"t = "say \"hi\"""#)
        == .comparison(field: "t", .equal, .string("say \"hi\"")))
    #expect(try Predicate(filter: "x != -1.5") == .comparison(field: "x", .notEqual, .double(-1.5)))
    #expect(
      try Predicate(filter: "x <= 1e3") == .comparison(field: "x", .lessThanOrEqual, .double(1000)))
    #expect(
      try Predicate(filter: "n = 9223372036854775807")
        == .comparison(field: "n", .equal, .int64(.max)))
    #expect(
      try Predicate(filter: "state = open") == .comparison(field: "state", .equal, .string("open")))
    #expect(try Predicate(filter: "  ") == nil)
  }

  @Test func readsTimes() throws {
    // date -u -d 2026-01-31T12:00:00 +%s
    let noon = Predicate.comparison(field: "t", .lessThan, .timestamp(1_769_860_800_000_000))
    #expect(try Predicate(filter: "t < 2026-01-31T12:00:00Z") == noon)
    #expect(try Predicate(filter: "t < 2026-01-31T14:00:00+02:00") == noon)
    #expect(try Predicate(filter: #"t < timestamp("2026-01-31T12:00:00.000Z")"#) == noon)
    #expect(RFC3339.microseconds("1969-12-31T23:59:59.5Z") == -500_000)
    #expect(RFC3339.microseconds("2024-02-29") == 1_709_164_800_000_000)
    for bad in [
      "2023-02-29", "2026-13-01", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00", "2026-1-1",
    ] {
      #expect(RFC3339.microseconds(bad) == nil, "\(bad)")
    }
  }

  @Test func orBindsTighterThanAnd() throws {
    // AIP-160: "a AND b OR c" is "a AND (b OR c)".
    func p(_ name: String) -> Predicate { .present(field: name) }
    #expect(
      try Predicate(filter: "a:* AND b:* OR c:*") == .allOf([p("a"), .anyOf([p("b"), p("c")])]))
    #expect(
      try Predicate(filter: "(a:* AND b:*) OR NOT c:*")
        == .anyOf([.allOf([p("a"), p("b")]), .not(p("c"))]))
    #expect(try Predicate(filter: "a:* -b:*") == .allOf([p("a"), .not(p("b"))]))
  }

  @Test func readsFunctions() throws {
    #expect(try Predicate(filter: #"beginsWith(t, "x")"#) == .beginsWith(field: "t", "x"))
    #expect(
      try Predicate(filter: "in(n, 1, 2)") == .isIn(field: "n", [.int64(1), .int64(2)]))
    #expect(
      try Predicate(filter: #"tags:"red""#)
        == .listContains(field: "tags", [.string("red")], all: false))
    #expect(
      try Predicate(filter: "containsAll(tags, red, blue)")
        == .listContains(field: "tags", [.string("red"), .string("blue")], all: true))
    #expect(
      try Predicate(filter: "distance(p, 48.5, -2) < 500")
        == .distance(
          field: "p", center: RecordLocation(latitude: 48.5, longitude: -2), radiusMeters: 500))
    #expect(
      try Predicate(filter: #"r = reference("x")"#, zone: "z")
        == .comparison(field: "r", .equal, .reference(RecordReference(zone: "z", record: "x"))))
    #expect(
      try Predicate(filter: #"b = bytes("00fF")"#)
        == .comparison(field: "b", .equal, .bytes([0, 255])))
  }

  @Test(arguments: [
    "n > 3 AND (state = open OR NOT present(done))",
    #"beginsWith(title, "Al") AND tags:"red" AND at < 2026-01-31T12:00:00Z"#,
    "in(n, 1, 2, 3) AND distance(place, 48.85, 2.35) < 5000",
    "containsAll(tags, red, blue) AND ___createTime > 2026-01-01", #"r = reference("milk")"#,
  ])
  func whatTheDocumentationShowsIsRead(filter: String) throws {
    #expect(try Predicate(filter: filter)?.test() != nil)
  }

  @Test func refusesTheRest() {
    let bad = [
      "n", "n >", "> 3", "n > 3 OR", "(n > 3", "n > 3)", "n == 3", "n ! 3", "n > 3x", "n > 0x10",
      "n > 1e999", #"t = "open"#, "AND", "NOT", "f(x)", "distance(p, 1) < 3", "distance(p, 1, 2)",
      "in(n 1)", "t < 2026-99-01T00:00:00Z", "#", #"b = bytes("0")"#, "n:",
      String(repeating: "(", count: 5_000), String(repeating: "x", count: 20_000),
      String(repeating: "NOT ", count: 4_000),
    ]
    for filter in bad {
      #expect(throws: RecordViolation.self, "\(filter.prefix(40))") {
        try Predicate(filter: filter)
      }
    }
  }

  @Test func survivesRandomBytes() {
    var random = SeededGenerator(state: 7)
    let alphabet = Array(#"an1=<>!()-,:*"' \"#.utf8) + [0x00, 0x7F, 0xC3, 0xA9, 0xFF]
    for _ in 0..<20_000 {
      let count = Int.random(in: 0..<24, using: &random)
      let bytes = (0..<count).map { _ in alphabet.randomElement(using: &random) ?? 0 }
      _ = try? Predicate(filter: String(decoding: bytes, as: UTF8.self))
    }
  }
}
