import ProtobufOracle
import TestMessages
import Testing
import VencejoDescriptors
import VencejoProtobuf
import VencejoText

/// Text format against Google's Python protobuf, both ways.
@Suite(.enabled(if: Oracle.isWanted))
struct TextOracleTests {
  private static let shared = Result {
    try Oracle(
      file: Fixture.everythingProto, Legacy.legacyProto, Modern.modernProto, Grouped.groupedProto)
  }
  let oracle: Oracle
  let pool: DescriptorPool

  init() throws {
    oracle = try Self.shared.get()
    pool = try DescriptorPool(
      Fixture.everythingProto, Legacy.legacyProto, Modern.modernProto, Grouped.groupedProto)
  }

  @Test(arguments: [
    "fixture.legacy.Old", "fixture.legacy.Set", "fixture.legacy.Needy", "fixture.legacy.Defaults",
    "fixture.modern.Modern", "fixture.grouped.Grouped", "fixture.Everything", "fixture.Lists",
    "fixture.Scalars", "fixture.Maps", "fixture.Tree",
  ])
  func random(name: String) throws {
    let type = try #require(pool.message(name))
    let originals = try oracle.random(named: name, 15)
    for single in [false, true] {
      var options = TextOptions()
      options.singleLine = single
      let ours = try originals.map {
        Array(try TextFormat.encode(wire: $0, as: type, options).utf8)
      }
      let read = try oracle.ask(.fromText, name, ours).map { try $0.get() }
      #expect(zip(read, originals).allSatisfy { $0 == $1 })
    }
    // Straight from the bytes, and from the fields of a message; also where the bytes are in
    // disorder.
    for bytes in originals + Oracle.mutated(originals) {
      let direct = try? TextFormat.encode(wire: bytes, as: type)
      let decoded = try? DynamicMessage(type, serializedBytes: bytes, partial: true)
      #expect(direct == decoded.map { TextFormat.encode($0) }, "\(bytes)")
    }
    let texts = try oracle.ask(.toText, name, originals).map { try $0.get() }
    let decoded = try texts.map {
      try TextFormat.message(String(decoding: $0, as: UTF8.self), as: type).serializedBytes()
    }
    let again = try oracle.ask(.recode, name, decoded).map { try $0.get() }
    #expect(zip(again, originals).allSatisfy { $0 == $1 })
  }

  static let cases: [(String, [String])] = [
    (
      "fixture.Scalars",
      [
        "", "# only a comment", "int32_value: 1", "int32_value:1 # c\nint64_value: 2",
        "int32_value: -1", "int32_value: - 1", "int32_value: 0x1F", "int32_value: -0x80000000",
        "int32_value: 017", "int32_value: 08", "int32_value: 0", "int32_value: 00",
        "int32_value: 2147483648", "int32_value: 1.0", "int32_value: 1e1", "int32_value 1",
        "int32_value: 1, int64_value: 2; uint32_value: 3", "int32_value: 1,, int64_value: 2",
        "int32_value: 1 int32_value: 2", "uint32_value: -1", "uint32_value: 4294967295",
        "uint64_value: 18446744073709551615", "uint64_value: 18446744073709551616",
        "int32Value: 1", "nope: 1", "1: 1", "int32_value: \"1\"", "int32_value: [1]",
        "double_value: 1", "double_value: .5", "double_value: 5.", "double_value: 1e5",
        "double_value: 1.5f", "double_value: 1F", "double_value: inf", "double_value: -Infinity",
        "double_value: NaN", "double_value: -nan", "double_value: 1e400", "double_value: 0x10",
        "double_value: 010", "double_value: 1e-400", "float_value: 1e39",
        "float_value: 3.4028235e38",
        "double_value: 1.2.3", "double_value: e5", "double_value: .", "double_value: 1e",
        "double_value: 1e+5", "double_value: 0", "double_value: -0", "double_value: 0.5",
        "bool_value: true", "bool_value: True", "bool_value: t", "bool_value: TRUE",
        "bool_value: 1", "bool_value: 2", "bool_value: 0x1", "bool_value: f", "bool_value: yes",
        "string_value: \"a\" \"b\"", "string_value: 'a' \"b\"\n'c'", "string_value: \"a'\"",
        "string_value: 'a\"'", "string_value: \"a\nb\"", "string_value: \"a", "string_value: a",
        #"string_value: "\a\b\f\n\r\t\v\?\\\'\"""#, #"string_value: "\101\x41\u0041\U00000041""#,
        #"string_value: "\1""#, #"string_value: "\q""#, #"string_value: "\x""#,
        #"string_value: "\u12""#, #"string_value: "\ud83d\ude00""#, #"string_value: "\377""#,
        #"string_value: "\U0010FFFF""#, #"string_value: "\U00110000""#, #"bytes_value: "\377\xfe""#,
        #"bytes_value: "\477""#, #"bytes_value: "é""#, "color_value: COLOR_RED", "color_value: 1",
        "color_value: 77", "color_value: -1", "color_value: NOPE", "color_value: \"COLOR_RED\"",
        "color_value: 0x1", "int32_value: 1}", "int32_value:", "{int32_value: 1}",
      ]
    ),
    (
      "fixture.Tree",
      [
        "left {}", "left: {}", "left <>", "left: < >", "left { }", "left {>", "left {", "left }",
        "left { left { label: 'x' } }", "left {} left {}", "children {} children {}",
        "children [{}, {label: 'a'}]", "children: [<>, {}]", "children []", "children: []",
        "children [{},]", "children [,]", "numbers: [1, 2]", "numbers: [1, 2,]", "numbers: []",
        "numbers: 1 numbers: [2]", "numbers [1]", "numbers: [1 2]", "number: 1 text: 'a'",
        "named { key: 'a' value { label: 'x' } }", "named { key: 'a' } named { key: 'a' value {} }",
        "named { value {} }", "named [{key: 'a'}, {key: 'b'}]", "named { key: 'a' other: 1 }",
        "left { label: 'a', };", "left;", "; left {}", "left {;}", "left { label: 'a'; }",
        "content { }", "last: 5", "color: COLOR_RED", "scalars { int32_value: 1 }",
      ]
    ),
    (
      "fixture.WellKnown",
      [
        "any { [type.googleapis.com/fixture.Sparse] { int64_value: 5 } }",
        "any { [type.googleapis.com/fixture.Sparse]: { int64_value: 5 } }",
        "any { [type.googleapis.com/fixture.Sparse] < int64_value: 5 > }",
        "any { [ type.googleapis.com / fixture.Sparse ] { } }",
        "any { [type.googleapis.com/nowhere.Nothing] { } }",
        "any { [fixture.Sparse] { } }", "any { type_url: 'a' value: 'b' }",
        "any { type_url: 'a' [type.googleapis.com/fixture.Sparse] { } }",
        "any { [type.googleapis.com/google.protobuf.Any] { type_url: 'x' } }",
        "timestamp { seconds: 5 nanos: 1 }",
        "struct { fields { key: 'a' value { null_value: NULL_VALUE } } }",
        "empty {}", "[type.googleapis.com/fixture.Sparse] { }",
      ]
    ),
    (
      "fixture.legacy.Old",
      [
        "closed: CLOSED_SECOND", "closed: 4", "closed: 5", "Inner { depth: 1 }",
        "inner { depth: 1 }", "INNER { }", "Many { blob: 'x' } Many { }", "Chunk { value: -3 }",
        "[fixture.legacy.old_number]: 5", "[fixture.legacy.old_text]: 'x'",
        "[fixture.legacy.old_list]: [1, 2] [fixture.legacy.old_list]: 3",
        "[fixture.legacy.old_old] { number: 1 }", "[fixture.legacy.old_old]: < number: 1 >",
        "[fixture.legacy.oldgroup] { x: 1 }", "[fixture.legacy.Scope.flag]: true",
        "[fixture.legacy.nope]: 1", "[fixture.legacy.old_number] : 5",
        "[ fixture.legacy.old_number ]: 5",
        "[fixture.legacy.old_number]: 5 [fixture.legacy.old_number]: 6", #"text: "\377""#,
        "packed_numbers: [1, 2]", "named { key: 'a' value: ZEROED_TWO }",
        "named { key: 'a' value: 1 }",
      ]
    ),
    ("fixture.legacy.Set", ["[fixture.legacy.Item] { i: 5 }", "item { i: 5 }"]),
    (
      "fixture.modern.Modern",
      [
        "Part { x: 1 }", "part { x: 1 }", "delimited { }", "Modern { }", #"strict: "\377""#,
        #"loose: "\377""#, "shut: 5", "open: 5", "[fixture.modern.extra]: 1",
      ]
    ),
  ]

  /// Python is lenient where the specification is not, or the other way round.
  static let ours: [String: Bool] = [
    #"string_value: "\q""#: false,
    "any { type_url: 'a' [type.googleapis.com/fixture.Sparse] { } }": false,
    // Python's strings hold nothing but UTF-8; proto2's may.
    #"text: "\377""#: true,
    #"loose: "\377""#: true,
    "int32_value: - 1": true,
    "bool_value: 0x1": true,
    // Python keeps the backslash of "\?".
    #"string_value: "\a\b\f\n\r\t\v\?\\\'\"""#: true,
  ]

  @Test(arguments: cases + corners)
  func table(name: String, texts: [String]) throws {
    let type = try #require(pool.message(name))
    let answers = try oracle.ask(.fromText, name, texts.map { Array($0.utf8) })
    for (text, answer) in zip(texts, answers) {
      let mine = try? TextFormat.message(text, as: type).serializedBytes()
      if let accepted = Self.ours[text] ?? Self.rules[text] {
        #expect((mine != nil) == accepted, "\(text)")
        continue
      }
      switch (answer, mine) {
      case (.success(let bytes), let mine?):
        let recoded = try oracle.ask(.recode, name, [mine])[0].get()
        #expect(recoded == bytes, "\(text)")
      case (.failure, nil): break
      case (.success, nil): Issue.record("we refuse \(text)")
      case (.failure(let error), _): Issue.record("we accept \(text): \(error.text)")
      }
    }
  }
}
