// Corners of the mapping: what parsers disagree about.
extension JSONTableTests {
  static let corners: [(String, [String])] = [
    (
      "fixture.Scalars",
      [
        #"{"doubleValue": -0}"#, #"{"doubleValue": "-0"}"#, #"{"floatValue": 1e-50}"#,
        #"{"doubleValue": "nan"}"#, #"{"doubleValue": "infinity"}"#, #"{"doubleValue": "-NaN"}"#,
        #"{"doubleValue": "+Infinity"}"#, #"{"doubleValue": NaN}"#, #"{"doubleValue": Infinity}"#,
        #"{"doubleValue": -Infinity}"#, #"{"doubleValue": " 1"}"#, #"{"doubleValue": "1 "}"#,
        #"{"doubleValue": "1_0"}"#, #"{"doubleValue": "0x10"}"#, #"{"doubleValue": "1."}"#,
        #"{"doubleValue": "٣"}"#, #"{"doubleValue": 1E5}"#, #"{"doubleValue": 1e+05}"#,
        #"{"doubleValue": 1e}"#, #"{"doubleValue": -}"#, #"{"doubleValue": --1}"#,
        #"{"doubleValue": 00.5}"#, #"{"doubleValue": true}"#, #"{"doubleValue": {}}"#,
        #"{"doubleValue": 123456789012345678901234567890}"#,
        #"{"doubleValue": 2.2250738585072011e-308}"#, #"{"doubleValue": 1.7976931348623158e308}"#,
        #"{"doubleValue": -1.8e308}"#, #"{"floatValue": -3.5e38}"#, #"{"floatValue": "NaN"}"#,
        #"{"floatValue": 1.1754942e-38}"#, #"{"floatValue": 0.1}"#,
        #"{"floatValue": 16777217}"#, #"{"floatValue": 3.40282356e38}"#,
        #"{"int32Value": " 1"}"#, #"{"int32Value": "1 "}"#, #"{"int32Value": "+1"}"#,
        #"{"int32Value": "01"}"#, #"{"int32Value": "--1"}"#, #"{"int32Value": "1_0"}"#,
        #"{"int32Value": 2147483647.0}"#, #"{"int32Value": 2147483647.5}"#,
        #"{"int32Value": -2147483648}"#, #"{"int32Value": -2147483649}"#,
        #"{"int32Value": 0.1e1}"#, #"{"int32Value": 10e-1}"#, #"{"int32Value": 1e0}"#,
        #"{"int32Value": {}}"#, #"{"int64Value": 1e18}"#, #"{"int64Value": 1e19}"#,
        #"{"int64Value": "9223372036854775807"}"#, #"{"int64Value": -9223372036854775808}"#,
        #"{"int64Value": "-9223372036854775809"}"#, #"{"uint64Value": 18446744073709551616}"#,
        #"{"uint64Value": -0}"#, #"{"uint64Value": "1e536870000"}"#,
        #"{"uint64Value": 0e536870000}"#,
        #"{"doubleValue": 1e-536870000}"#, #"{"uint32Value": 4294967295.0}"#,
        #"{"uint32Value": "-1"}"#,
        #"{"sint32Value": "-2147483648"}"#, #"{"sfixed64Value": "1"}"#, #"{"fixed32Value": -1}"#,
        #"{"boolValue": "false"}"#, #"{"boolValue": 0}"#, #"{"boolValue": []}"#,
        #"{"boolValue": True}"#, #"{"boolValue": tru}"#, #"{"boolValue": false}"#,
        #"{"stringValue": "\/\b\f\n\r\t\"\\"}"#, #"{"stringValue": "\x41"}"#,
        #"{"stringValue": "\u12"}"#, #"{"stringValue": "\U0041"}"#, #"{"stringValue": "\ud800"}"#,
        #"{"stringValue": "\ud800x"}"#, #"{"stringValue": "\ud800\n"}"#,
        #"{"stringValue": "\udc00\ud800"}"#, #"{"stringValue": "\ud800\ud800"}"#,
        #"{"stringValue": "\uDBFF\uDFFF"}"#, #"{"stringValue": "\uFFFF"}"#,
        "{\"stringValue\": \"a\tb\"}", "{\"stringValue\": \"\u{7F}\u{80}\u{2028}\"}",
        "{\"stringValue\": \"\u{1}\"}", #"{"stringValue": []}"#, #"{"stringValue": true}"#,
        #"{"stringValue": "a"#, #"{"stringValue": "a\"#, #"{"bytesValue": ""}"#,
        #"{"bytesValue": "AA="}"#, #"{"bytesValue": "AAA"}"#, #"{"bytesValue": "AAA="}"#,
        #"{"bytesValue": "AAAA="}"#, #"{"bytesValue": "AB"}"#, #"{"bytesValue": "A+_="}"#,
        #"{"bytesValue": "\u0041A=="}"#, #"{"colorValue": "color_red"}"#, #"{"colorValue": ""}"#,
        #"{"colorValue": 2147483648}"#, #"{"colorValue": -1}"#, #"{"colorValue": true}"#,
        #"{"": 1}"#, #"{"int32Value": 1, "int32Value": null}"#, "{} ", " \t\r\n{ } ", "{}{}",
        "{},", "\u{FEFF}{}", "{\u{A0}}", "\u{C}{}", "nul", "1", #"{"a"}"#, #"{"int32Value":}"#,
        #"{"int32Value" 1}"#, "{,}", #"{"int32Value": 1,, "int64Value": 2}"#, "{1: 2}", "[{}]",
        #"{"int32Value": 1]"#, #"{"int32_value": 1}"#, #"{"Int32Value": 1}"#,
        #"{"int32\u0056alue": 1}"#, #"{"stringValue": "x"} // c"#,
      ]
    ),
    (
      "fixture.WellKnown",
      [
        #"{"timestamp": "2026-01-31T12:00:00.1234567890Z"}"#,
        #"{"timestamp": "2026-01-31T12:00:00.Z"}"#, #"{"timestamp": "2026-1-31T12:00:00Z"}"#,
        #"{"timestamp": "2026-01-31T24:00:00Z"}"#, #"{"timestamp": "2026-01-31T23:59:60Z"}"#,
        #"{"timestamp": "2026-01-31 12:00:00Z"}"#, #"{"timestamp": "2026-01-31T12:00:00+0200"}"#,
        #"{"timestamp": "9999-12-31T23:59:59-00:01"}"#, #"{"timestamp": ""}"#,
        #"{"timestamp": "10000-01-01T00:00:00Z"}"#, #"{"timestamp": "2024-02-29T00:00:00Z"}"#,
        #"{"timestamp": "2023-02-29T00:00:00Z"}"#, #"{"timestamp": "1900-02-29T00:00:00Z"}"#,
        #"{"timestamp": "1969-12-31T23:59:59.999999999Z"}"#, #"{"timestamp": {}}"#,
        #"{"timestamp": " 2026-01-31T12:00:00Z"}"#, #"{"timestamp": "2026-01-31T12:00:00,5Z"}"#,
        #"{"duration": "1.5"}"#, #"{"duration": ".5s"}"#, #"{"duration": "+1s"}"#,
        #"{"duration": "1.0000000001s"}"#, #"{"duration": "--1s"}"#, #"{"duration": "-0s"}"#,
        #"{"duration": ""}"#, #"{"duration": "s"}"#, #"{"duration": "1e3s"}"#,
        #"{"duration": "-315576000000s"}"#, #"{"duration": "1 s"}"#, #"{"duration": 1}"#,
        #"{"duration": "0.123456789s"}"#, #"{"duration": "1.-5s"}"#, #"{"duration": "1S"}"#,
        #"{"fieldMask": "fooBar,foo"}"#, #"{"fieldMask": "a.b"}"#, #"{"fieldMask": null}"#,
        #"{"fieldMask": ["a"]}"#, #"{"fieldMask": "foo1Bar"}"#, #"{"fieldMask": "a_b"}"#,
        #"{"any": {"@type": "Sparse"}}"#, #"{"any": {"@type": 5}}"#, #"{"any": null}"#,
        #"{"any": []}"#, #"{"any": {"value": "3s"}}"#,
        #"{"any": {"@type": "type.googleapis.com/google.protobuf.Struct", "value": {"a": [1, {}]}}}"#,
        #"{"any": {"value": [null, "x"], "@type": "type.googleapis.com/google.protobuf.ListValue"}}"#,
        #"{"any": {"@type": "type.googleapis.com/google.protobuf.Timestamp", "value": "1970-01-01T00:00:01Z"}}"#,
        #"{"any": {"@type": "type.googleapis.com/google.protobuf.Timestamp", "seconds": 1}}"#,
        #"{"any": {"@type": "type.googleapis.com/google.protobuf.FieldMask", "value": "aB"}}"#,
        #"{"any": {"@type": "type.googleapis.com/google.protobuf.Int64Value", "value": "5"}}"#,
        #"{"any": {"@type": "type.googleapis.com/google.protobuf.Value", "value": null}}"#,
        #"{"any": {"@type": "type.googleapis.com/google.protobuf.Any", "value": {}}}"#,
        #"{"any": {"@type": "example.com/a/b/fixture.Sparse"}}"#,
        #"{"any": {"@type": "type.googleapis.com/fixture.Sparse", "int64Value": "x"}}"#,
        #"{"boolWrapper": "true"}"#, #"{"int32Wrapper": {"value": 1}}"#, #"{"bytesWrapper": ""}"#,
        #"{"stringWrapper": 5}"#, #"{"floatWrapper": "Infinity"}"#, #"{"uint32Wrapper": -1}"#,
        #"{"doubleWrapper": "1.5"}"#, #"{"boolWrapper": 1}"#, #"{"int64Wrapper": 1.0}"#,
        #"{"struct": {"a": NaN}}"#, #"{"struct": {"a": 1e400}}"#, #"{"struct": null}"#,
        #"{"struct": {"": {"": []}}}"#, #"{"listValue": null}"#, #"{"listValue": []}"#,
        #"{"value": {"a": {"b": [null]}}}"#, #"{"value": -0}"#, #"{"value": {}}"#,
        #"{"value": "NaN"}"#, #"{"nullValue": "null"}"#, #"{"nullValue": 1}"#,
        #"{"empty": null}"#, #"{"empty": []}"#,
      ]
    ),
    (
      "fixture.Maps",
      [
        #"{"int32ToBytes": {"1.0": "AA=="}}"#, #"{"int32ToBytes": {"1e1": "AA=="}}"#,
        #"{"int32ToBytes": {"": "AA=="}}"#, #"{"int32ToBytes": {"-0": "AA=="}}"#,
        #"{"int32ToBytes": {"2147483648": "AA=="}}"#, #"{"int32ToBytes": [["1", "AA=="]]}"#,
        #"{"boolToScalars": {"True": {}}}"#, #"{"boolToScalars": {"false": null}}"#,
        #"{"boolToScalars": {"": {}}}"#, #"{"stringToString": {"a": 1}}"#,
        #"{"stringToString": {"a": ["b"]}}"#, #"{"stringToString": {1: "b"}}"#,
        #"{"uint64ToDouble": {"18446744073709551615": "NaN"}}"#,
        #"{"uint64ToDouble": {"18446744073709551616": 1}}"#, #"{"sint64ToColor": {"1": "NOPE"}}"#,
        #"{"stringToString": {"\ud800": "x"}}"#,
      ]
    ),
    (
      "fixture.Tree",
      [
        #"{"number": "1", "number": "2"}"#, #"{"text": "a", "last": 1}"#, #"{"numbers": 1}"#,
        #"{"numbers": ["x"]}"#, #"{"numbers": [[1]]}"#, #"{"numbers": [1,]}"#, #"{"left": []}"#,
        #"{"left": "x"}"#, #"{"left": null}"#, #"{"named": {"a": {}}}"#, #"{"named": {"a": 1}}"#,
        #"{"children": [[]]}"#, #"{"children": [{}, 1]}"#,
      ]
    ),
    (
      "fixture.legacy.Old",
      [
        #"{"named": {"a": 7}}"#, #"{"closeds": ["NOPE"]}"#, #"{"closed": null}"#,
        #"{"[fixture.legacy.old_olds]": [{"number": 1}, {}]}"#,
        #"{"[fixture.legacy.old_closed]": "CLOSED_SECOND"}"#,
        #"{"[fixture.legacy.old_closed]": 5}"#, #"{"[ fixture.legacy.old_number ]": 5}"#,
        #"{"fixture.legacy.old_number": 5}"#, #"{"[fixture.legacy.old_number]": null}"#,
        #"{"[fixture.legacy.Old.number]": 5}"#, #"{"[]": 5}"#,
      ]
    ),
    (
      "fixture.modern.Modern",
      [
        #"{"part": {"x": 1}}"#, #"{"Part": {"x": 1}}"#, #"{"shut": 5}"#, #"{"open": 5}"#,
        #"{"delimited": {}}"#, #"{"[fixture.modern.extra]": 1}"#,
      ]
    ),
  ]

  /// Where Python's answer is not the mapping's; by the rules of protobuf.dev and RFC 8259.
  static let rules: [String: Bool] = [
    // Numbers in strings are JSON's numbers.
    #"{"doubleValue": "infinity"}"#: false, #"{"doubleValue": "-NaN"}"#: false,
    #"{"doubleValue": "+Infinity"}"#: false, #"{"doubleValue": " 1"}"#: false,
    #"{"doubleValue": "1 "}"#: false, #"{"doubleValue": "1_0"}"#: false,
    #"{"doubleValue": "1."}"#: false, #"{"doubleValue": "٣"}"#: false,
    #"{"int32Value": "+1"}"#: false, #"{"int32Value": "01"}"#: false,
    #"{"int32Value": "1_0"}"#: false,
    // It rounds to the largest float.
    #"{"floatValue": 3.40282356e38}"#: true,
    // Python takes it for an integer, which has no such zero.
    #"{"doubleValue": -0}"#: true, #"{"value": -0}"#: true,
    #"{"doubleValue": true}"#: false, #"{"colorValue": true}"#: false,
    // Padding is whole or not there.
    #"{"bytesValue": "AA="}"#: false, #"{"bytesValue": "AAAA="}"#: false,
    // RFC 3339, and up to nine digits behind the point.
    #"{"timestamp": "2026-01-31T12:00:00.Z"}"#: false,
    #"{"timestamp": "2026-1-31T12:00:00Z"}"#: false,
    #"{"duration": "+1s"}"#: false, #"{"duration": "1 s"}"#: false,
    #"{"duration": "1.0000000001s"}"#: false,
    // Not JSON, and no finite number.
    #"{"struct": {"a": NaN}}"#: false, #"{"struct": {"a": 1e400}}"#: false,
    #"{"empty": []}"#: false, #"{"left": []}"#: false, #"{"children": [[]]}"#: false,
  ]

  /// With unknown names skipped, of fields and of enums' values.
  static let ignored: [(String, [String])] = [
    (
      "fixture.Scalars",
      [
        #"{"nope": 1, "int32Value": 2}"#, #"{"nope": {"a": [1, {"b": null}]}}"#,
        #"{"nope": [[[]]]}"#, #"{"nope": "\ud83d\ude00"}"#, #"{"nope": }"#, #"{"nope": [}"#,
        #"{"nope": 1 "a": 2}"#, #"{"nope": tru}"#, #"{"nope": 1e400}"#, #"{"nope": "\q"}"#,
        #"{"colorValue": "NOPE", "int32Value": 2}"#, #"{"colorValue": ""}"#,
      ]
    ),
    (
      "fixture.Lists",
      [
        #"{"colors": ["NOPE", "COLOR_RED", "NOPE"]}"#, #"{"colors": ["NOPE"]}"#,
        #"{"colors": [77, "COLOR_RED"]}"#,
      ]
    ),
    (
      "fixture.Maps",
      [
        #"{"sint64ToColor": {"1": "NOPE", "2": "COLOR_RED"}}"#,
        #"{"boolToScalars": {"true": {"nope": 1, "int32Value": 1}}}"#,
      ]
    ),
    (
      "fixture.WellKnown",
      [
        #"{"any": {"@type": "type.googleapis.com/fixture.Sparse", "nope": 1, "int64Value": 5}}"#,
        #"{"empty": {"a": 1}}"#,
        #"{"nullValue": "NOPE"}"#,
      ]
    ),
    (
      "fixture.legacy.Old",
      [
        #"{"closed": "NOPE", "number": 1}"#, #"{"closeds": ["NOPE", "CLOSED_SECOND"]}"#,
        #"{"named": {"a": "NOPE", "b": "ZEROED_TWO"}}"#, #"{"[fixture.legacy.nope]": 1}"#,
      ]
    ),
  ]
}
