import ProtobufOracle
import TestMessages
import Testing
import VencejoDescriptors
import VencejoJSON
import VencejoProtobuf

/// JSON by descriptor against Google's Python protobuf: proto2, editions, extensions, and a
/// table of corner cases.
@Suite(.enabled(if: Oracle.isWanted))
struct JSONTableTests {
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
    "fixture.legacy.Old", "fixture.legacy.Needy", "fixture.legacy.Defaults",
    "fixture.modern.Modern", "fixture.grouped.Grouped", "fixture.Maps",
  ])
  func random(name: String) throws {
    let type = try #require(pool.message(name))
    let originals = try oracle.random(named: name, 20, finite: true)
    let ours = try originals.map { Array(try JSONFormat.encode(wire: $0, as: type).utf8) }
    let read = try oracle.ask(.fromJSON, name, ours).map { try $0.get() }
    #expect(zip(read, originals).allSatisfy { $0 == $1 })
    let texts = try oracle.ask(.toJSON, name, originals).map { try $0.get() }
    let decoded = try texts.map {
      try JSONFormat.decode(String(decoding: $0, as: UTF8.self), as: type)
    }
    let again = try oracle.ask(.recode, name, decoded).map { try $0.get() }
    #expect(zip(again, originals).allSatisfy { $0 == $1 })
  }

  static let cases: [(String, [String])] = [
    (
      "fixture.WellKnown",
      [
        #"{"timestamp": "2026-01-31T12:00:00Z"}"#, #"{"timestamp": "2026-01-31T12:00:00.5+02:30"}"#,
        #"{"timestamp": "2026-02-30T12:00:00Z"}"#, #"{"timestamp": "2026-01-31t12:00:00Z"}"#,
        #"{"timestamp": "2026-01-31T12:00:00z"}"#, #"{"timestamp": "0001-01-01T00:00:00Z"}"#,
        #"{"timestamp": "9999-12-31T23:59:59.999999999Z"}"#,
        #"{"timestamp": "0000-12-31T23:59:59Z"}"#, #"{"timestamp": "2026-01-31T12:00:00"}"#,
        #"{"timestamp": "0001-01-01T00:00:00+01:00"}"#, #"{"timestamp": 5}"#,
        #"{"timestamp": null}"#, #"{"timestamps": [null]}"#,
        #"{"duration": "1s"}"#, #"{"duration": "-1.000000001s"}"#, #"{"duration": "1"}"#,
        #"{"duration": "315576000000s"}"#, #"{"duration": "315576000001s"}"#,
        #"{"duration": "-315576000001s"}"#, #"{"duration": "-0.5s"}"#,
        #"{"fieldMask": ""}"#, #"{"fieldMask": "a,fooBar.bazQux"}"#, #"{"fieldMask": "foo_bar"}"#,
        #"{"any": {}}"#,
        #"{"any": {"@type": "type.googleapis.com/fixture.Sparse", "int64Value": "5"}}"#,
        #"{"any": {"int64Value": 5, "@type": "type.googleapis.com/fixture.Sparse"}}"#,
        #"{"any": {"@type": "type.googleapis.com/nowhere.Nothing"}}"#, #"{"any": {"@type": ""}}"#,
        #"{"any": {"@type": "type.googleapis.com/google.protobuf.Duration", "value": "3s"}}"#,
        #"{"any": {"@type": "type.googleapis.com/google.protobuf.Duration"}}"#,
        #"{"any": {"@type": "type.googleapis.com/google.protobuf.Value", "value": [1, {"a": null}]}}"#,
        #"{"any": {"@type": "type.googleapis.com/google.protobuf.Any", "value": {"@type": "type.googleapis.com/google.protobuf.BoolValue", "value": true}}}"#,
        #"{"any": {"@type": "type.googleapis.com/fixture.Sparse", "nope": 1}}"#,
        #"{"struct": {"a": 1, "b": [true, "x", null, {}]}}"#, #"{"struct": []}"#,
        #"{"value": null}"#, #"{"value": 1.5}"#, #"{"value": "s"}"#, #"{"value": [[]]}"#,
        #"{"listValue": [1, null]}"#, #"{"listValue": {}}"#, #"{"nullValue": null}"#,
        #"{"nullValue": "NULL_VALUE"}"#, #"{"nullValue": 0}"#, #"{"empty": {}}"#,
        #"{"empty": {"a": 1}}"#, #"{"doubleWrapper": "NaN"}"#, #"{"doubleWrapper": null}"#,
        #"{"int64Wrapper": "-9223372036854775808"}"#, #"{"int64Wrapper": "9223372036854775808"}"#,
        #"{"uint64Wrapper": 18446744073709551615}"#, #"{"boolWrapper": false}"#,
        #"{"stringWrapper": "x"}"#, #"{"bytesWrapper": "AQI="}"#, #"{"bytesWrapper": "AQI"}"#,
        #"{"bytesWrapper": "-_"}"#, #"{"values": {"a": null}}"#,
      ]
    ),
    (
      "fixture.Scalars",
      [
        #"{"int32Value": 1e10000}"#, #"{"int32Value": 0e10000}"#, #"{"int32Value": 1e-1}"#,
        #"{"int32Value": 100e-2}"#, #"{"int32Value": "1e2"}"#, #"{"int32Value": "0x1"}"#,
        #"{"int32Value": ""}"#, #"{"int32Value": "1.5"}"#, #"{"int32Value": true}"#,
        #"{"uint32Value": 4294967296}"#, #"{"uint32Value": "-0"}"#, #"{"int64Value": "1.0"}"#,
        #"{"doubleValue": "1e400"}"#, #"{"doubleValue": 1e-400}"#, #"{"doubleValue": "inf"}"#,
        #"{"floatValue": 3.4028235e38}"#, #"{"floatValue": "3.5e38"}"#, #"{"floatValue": ""}"#,
        #"{"stringValue": "\u00e9\u0000"}"#, #"{"stringValue": "\udc00"}"#,
        #"{"stringValue": "\ud83d\u0041"}"#, #"{"stringValue": '"x"'}"#, #"{"colorValue": 77}"#,
        #"{"colorValue": "1"}"#, #"{"colorValue": null}"#, #"{"colorValue": 1.0}"#,
        #"{"colorValue": 1.5}"#, #"{"bytesValue": "="}"#, #"{"bytesValue": "A"}"#,
        #"{"bytesValue": "AA=="}"#, #"{"bytesValue": 1}"#, #"{"boolValue": null}"#,
        #"{"boolValue": "x"}"#, #"{"int32Value": [1]}"#, #"[]"#, #""x""#, #"{"a": }"#,
        #"{"int32Value": 1 "int64Value": 2}"#, #"{"int32Value": +1}"#, #"{"int32Value": 1.}"#,
        #"{int32Value: 1}"#, #"{"int32Value": 1} x"#, #"{"int32Value": 1 /* c */}"#,
        #"{"int32Value": 1, "int32_value": 2}"#,
      ]
    ),
    (
      "fixture.Maps",
      [
        #"{"stringToString": {"a": "b", "": ""}}"#, #"{"int32ToBytes": {"1": "AA=="}}"#,
        #"{"int32ToBytes": {"x": "AA=="}}"#, #"{"boolToScalars": {"true": {}}}"#,
        #"{"boolToScalars": {"1": {}}}"#, #"{"stringToString": {"a": null}}"#,
        #"{"stringToString": null}"#, #"{"sint64ToColor": {"-1": "COLOR_RED"}}"#,
        #"{"sint64ToColor": {"-1": 99}}"#, #"{"uint64ToDouble": {"-1": 1}}"#,
        #"{"stringToString": {"\u00e9": "1", "e\u0301": "2"}}"#,
      ]
    ),
    (
      "fixture.Tree",
      [
        #"{"number": "1", "text": "a"}"#, #"{"number": null, "text": "a"}"#,
        #"{"children": [{}, {"label": "x"}]}"#, #"{"children": [null]}"#, #"{"children": null}"#,
        #"{"children": {}}"#, #"{"left": {"left": {}}}"#, #"{"numbers": [1, "2", 3.0]}"#,
        #"{"numbers": [null]}"#, #"{"color": "COLOR_RED", "scalars": {}}"#,
      ]
    ),
    (
      "fixture.legacy.Old",
      [
        #"{"closed": "CLOSED_SECOND"}"#, #"{"closed": 4}"#, #"{"closed": 5}"#,
        #"{"closeds": [4, 5]}"#, #"{"named": {"a": "ZEROED_TWO"}}"#, #"{"named": {"a": 1}}"#,
        #"{"inner": {"depth": 1}}"#, #"{"Inner": {"depth": 1}}"#,
        #"{"[fixture.legacy.old_number]": 5}"#, #"{"[fixture.legacy.old_list]": [1, 2]}"#,
        #"{"[fixture.legacy.Scope.flag]": true}"#, #"{"[fixture.legacy.nope]": 1}"#,
        #"{"[fixture.legacy.oldgroup]": {"x": 1}}"#,
        #"{"[fixture.legacy.old_old]": {"number": 1}}"#,
        #"{"chunk": {"value": "3"}, "said": "x"}"#, #"{"many": [{"blob": "AA=="}]}"#,
      ]
    ),
  ]

  /// Python is lenient where the mapping is not, or the other way round.
  static let ours: [String: Bool] = [
    #"{"int32Value": 1, "int32_value": 2}"#: false,
    #"{"floatValue": "3.5e38"}"#: false,
    #"{"doubleValue": "inf"}"#: false,
    #"{"doubleValue": "1e400"}"#: false,
    #"{"colorValue": 1.5}"#: false,
    #"{"colorValue": "1"}"#: false,
    #"{"bytesValue": "="}"#: false,
    "[]": false,
    // The largest float, in its shortest form.
    #"{"floatValue": 3.4028235e38}"#: true,
  ]

  @Test(arguments: cases + corners)
  func table(name: String, texts: [String]) throws {
    try compare(name, texts, .fromJSON, JSONOptions())
  }

  @Test(arguments: ignored)
  func ignoring(name: String, texts: [String]) throws {
    var options = JSONOptions()
    options.ignoreUnknown = true
    try compare(name, texts, .fromJSONIgnoring, options)
  }

  private func compare(
    _ name: String, _ texts: [String], _ operation: Oracle.Operation, _ options: JSONOptions
  ) throws {
    let type = try #require(pool.message(name))
    let answers = try oracle.ask(operation, name, texts.map { Array($0.utf8) })
    for (text, answer) in zip(texts, answers) {
      let mine = try? JSONFormat.decode(text, as: type, options)
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
