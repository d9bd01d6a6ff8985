// Corners of the language: what parsers disagree about.
extension TextOracleTests {
  static let corners: [(String, [String])] = [
    (
      "fixture.Scalars",
      [
        "int32_value: +1", "int32_value: 0X1f", "int32_value: -017", "int32_value: -0x1f",
        "uint32_value: -0", "int32_value: 0b1", "int32_value: 1_000", "int32_value: 0x",
        "int32_value: 2147483647", "int32_value: -2147483649", "int32_value: 020000000000",
        "int64_value: 9223372036854775808", "int64_value: -9223372036854775808",
        "uint64_value: 01777777777777777777777", "uint64_value: 0xFFFFFFFFFFFFFFFF",
        "uint64_value: 0x10000000000000000", "sint32_value: -1", "fixed64_value: 1",
        "sfixed32_value: -2147483648", "int32_value: 1f", "int32_value: inf",
        "double_value: infinity", "double_value: -inf", "double_value: INF",
        "double_value: Infinity", "double_value: inff", "double_value: nanf", "double_value: NAN",
        "double_value: 1e10f", "double_value: 1.f", "double_value: .5f", "double_value: 5f",
        "double_value: 5F", "double_value: 0x1p3", "double_value: 09", "double_value: 00",
        "double_value: -.5", "double_value: 1.5e+", "double_value: \"1\"", "double_value: 1e10.5",
        "double_value: 18446744073709551616", "double_value: -0.0", "double_value: 1.5.5",
        "double_value: 2.2250738585072011e-308", "double_value: true", "double_value: 1d",
        "float_value: 3.5e38", "float_value: 1e-50", "float_value: 3.4028236e38",
        "float_value: 16777217", "float_value: -1e39", "float_value: 0.1", "float_value: 1e5F",
        "bool_value: 00", "bool_value: 01", "bool_value: F", "bool_value: T", "bool_value: False",
        "bool_value: -1", "bool_value: 'true'", "bool_value: 0x0", "bool_value: 1.0",
        #"string_value: "\xZ""#, #"string_value: "\x1""#, #"string_value: "\x123""#,
        #"string_value: "\1234""#, #"string_value: "\8""#, #"string_value: "\400""#,
        #"string_value: "\u00e9\U0001F600""#, #"string_value: "\ud800""#,
        #"string_value: "\udc00""#, #"string_value: "\U0000D800""#, #"string_value: "\U1""#,
        #"string_value: "nul\0""#, #"string_value: "\"'""#, #"string_value: 'a""#,
        "string_value: \"tab\t\"", "string_value: \"a\\\nb\"", "string_value: \"a\" # c\n \"b\"",
        "string_value: \"a\", int32_value: 1", "string_value: [\"a\"]", "string_value: \"\u{1}\"",
        "string_value: \"a\"int32_value: 1", "string_value: \"a\"\"b\"'c'", "string_value: \"a\" +",
        "string_value: 'é'", "string_value: \"\r\"", "string_value: \"\"", "string_value: ''",
        #"bytes_value: "\u00e9""#, #"bytes_value: "\xe9\0001""#, "bytes_value: 'a' \"b\"",
        "int32_value:1int64_value:2", "int32_value: 1;;", "int32_value: 1;,", ",int32_value: 1",
        "int32_value: 1 ,int64_value: 2 ;", "int32_value\n:\n1", "int32_value: # c\n1",
        "color_value: COLOR_RED;", "color_value: -0", "color_value: 2147483648",
        "color_value: 1.0", "color_value: -2147483648", "color_value: color_red",
        "color_value: 07", "color_value: COLOR_RED COLOR_RED", "int32_value: 1\u{0}",
        "int32_value: 1\u{B}", "int32_value: 1\u{C}", "int32_value: 1 // c", "/* c */",
        "int32_value {}", "int32_value: {}", "int32_value = 1", "INT32_VALUE: 1", "\u{FEFF}",
        "int32_value: \u{A0}1", "string_value: \"a\" string_value: \"b\"",
      ]
    ),
    (
      "fixture.Tree",
      [
        "left: {} ; children: {} , children: {}", "left { # c\n }", "left : {}", "left<label:'a'>",
        "numbers: [1,2],numbers: 3", "children: [{}] children {}", "left [ {} ]", "left: [{}]",
        "named: {key: 'a' value: {}}", "named: [{key:'a'}]", "named { key: 'a' value {} value {} }",
        "named { key: 'a' key: 'b' }", "named { }", "named: []", "text: 'a' text: 'b'",
        "left { } { }", "[left] {}", "numbers: [[1]]", "numbers: 1,2", "numbers: [1;2]",
        "numbers: [,1]", "numbers: [1 #c\n, 2]", "children: {}, children: <>;",
        "children: [{}; {}]",
        "number: 1 last: 2", "number: 1 number: 1", "left: 1", "left", "left {} left: {}",
        "label: 'a' label: 'a'", "left { left { left { } } }", "left {{}}", "left { label: }",
        "children: ['a']", "text: 'a' number: 1", "numbers: ['1']", "numbers: [0x1, 01, -1]",
      ]
    ),
    (
      "fixture.WellKnown",
      [
        "any: { [type.googleapis.com/fixture.Sparse]: < int64_value: 5 > }",
        "any { [type.googleapis.com/fixture.Sparse] { } [type.googleapis.com/fixture.Sparse] { } }",
        "any { [type.googleapis.com/fixture.Sparse] { nope: 1 } }",
        "any { [type.googleapis.com/fixture.Sparse] { int64_value: 5 }; }",
        "any { [type.googleapis.com/fixture.Sparse] }", "any { [type.googleapis.com/] { } }",
        "any { [type.googleapis.com/fixture.Sparse]: 5 }",
        "any { [example.com/a/fixture.Sparse] { int64_value: 5 } }",
        "any { [type.googleapis.com/google.protobuf.Any] { [type.googleapis.com/fixture.Sparse] "
          + "{ int64_value: 5 } } }",
        "any { [type.googleapis.com/google.protobuf.Struct] { fields { key: 'a' value "
          + "{ list_value { values { number_value: 1 } } } } } }",
        "any { value: 'b' }", "any { type_url: 'type.googleapis.com/fixture.Sparse' }",
        "any { [type.googleapis.com/fixture.Sparse] { } value: 'b' }",
        "any { # c\n [type.googleapis.com/fixture.Sparse] # c\n { } }",
        "any { [type.googleapis.com/fixture.Sparse #c\n] { } }",
        "duration { seconds: -1 nanos: -5 }", "field_mask { paths: ['a_b', \"c\"] }",
        "value { null_value: NULL_VALUE }", "value { number_value: nan }", "null_value: 0",
        "null_value: 5", "int32_wrapper { value: 0 }", "int32_wrapper { }", "int32_wrapper: 5",
      ]
    ),
    (
      "fixture.legacy.Old",
      [
        "Inner: { depth: 1 }", "Inner <depth: 1>", "inner: {}", "[fixture.legacy.OldGroup] {}",
        "OldGroup {}", "[fixture.legacy . old_number]: 5",
        "[ fixture.legacy.old_number #c\n ]: 5", "[fixture.legacy.old_number] 5",
        "[fixture.legacy.old_list]: 1 [fixture.legacy.old_list]: [2,3]",
        "[fixture.legacy.old_packed]: [1]", "[fixture.legacy.old_closed]: 5",
        "[fixture.legacy.old_closed]: CLOSED_SECOND", "[fixture.legacy.old_olds] [{}, <>]",
        "[fixture.legacy.oldgroups] { x: 1 } [fixture.legacy.oldgroups] { }",
        "packed_numbers: 1 packed_numbers: [2]", "named [{key: 'a' value: 1}]",
        "named { key: 'a' value: 9 }", "Many [{}, {blob: 'x'}]", "Chunk { } said: 'x'",
        "Chunk { } Chunk { }", "said: 'x' said: 'y'", "[]: 1", "[.fixture.legacy.old_number]: 1",
        "[fixture.legacy.old_number: 1", "[fixture..old_number]: 1", "[1.2]: 1",
        "[fixture.legacy.Old.number]: 1",
      ]
    ),
    (
      "fixture.modern.Modern",
      [
        "Part: { x: 1 }", "Part { x: 1 } part { x: 2 }", "shut: NOPE", "open: -1",
        "[fixture.modern.extra]: 1 [fixture.modern.extra]: 2",
      ]
    ),
    ("fixture.grouped.Grouped", ["", "nope {}"]),
  ]

  /// Where Python's answer is not the language's; by the rules of protobuf.dev.
  static let rules: [String: Bool] = [
    // A sign is a minus, and not before unsigned numbers.
    "int32_value: +1": false, "uint32_value: -0": false,
    "int32_value: 0b1": false, "int32_value: 1_000": false,
    "double_value: inff": false, "double_value: nanf": false,
    // Integers of any notation.
    "bool_value: 00": true, "bool_value: 01": true, "bool_value: 0x0": true,
    "color_value: 07": true,
    #"string_value: "\8""#: false,
    "int32_value: \u{A0}1": false,
    // An Any has one form.
    "any { [type.googleapis.com/fixture.Sparse] { } [type.googleapis.com/fixture.Sparse] { } }":
      false,
    "any { [type.googleapis.com/fixture.Sparse] { } value: 'b' }": false,
    // A separator may stand behind any field.
    "any { [type.googleapis.com/fixture.Sparse] { int64_value: 5 }; }": true,
  ]
}
