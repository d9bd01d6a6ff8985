import ProtobufOracle
import TestMessages
import Testing
import VencejoJSON
import VencejoProtobuf

/// Our JSON against Google's Python protobuf, both ways.
@Suite(.enabled(if: Oracle.isWanted))
struct JSONOracleTests {
  private static let shared = Result { try Oracle(file: Fixture.everythingProto) }
  let oracle: Oracle

  init() throws { oracle = try Self.shared.get() }

  private func compare<M: Message>(_ type: M.Type, _ count: Int) throws {
    let descriptor = try M.messageDescriptor()
    let originals = try oracle.random(type, count, finite: true)
    let texts = try oracle.ask(.toJSON, M.messageName, originals)
    var ours: [[UInt8]] = []
    var expected: [[UInt8]] = []
    for (bytes, text) in zip(originals, texts) {
      // What Python cannot say, for example -0.0 in a Value, is nobody's fault.
      guard case .success(let text) = text else { continue }
      let json = String(decoding: text, as: UTF8.self)
      let message = try M(serializedBytes: bytes)
      let read = try JSONFormat.decode(json, as: descriptor)
      #expect(try M(serializedBytes: read) == message, "\(json)")
      ours.append(Array(try JSONFormat.encode(wire: bytes, as: descriptor).utf8))
      expected.append(bytes)
      var pretty = JSONOptions()
      pretty.pretty = true
      pretty.originalNames = true
      pretty.defaults = true
      pretty.enumNumbers = true
      #expect(try M(jsonString: message.jsonString(pretty)) == message)
    }
    #expect(expected.count > count / 2)
    let read = try oracle.ask(.fromJSON, M.messageName, ours)
    for (index, result) in read.enumerated() {
      switch result {
      case .success(let bytes): #expect(bytes == expected[index])
      case .failure(let error):
        Issue.record("\(error.text): \(String(decoding: ours[index], as: UTF8.self))")
      }
    }
  }

  @Test func scalars() throws { try compare(Fixture.Scalars.self, 300) }
  @Test func optionals() throws { try compare(Fixture.Optionals.self, 300) }
  @Test func lists() throws { try compare(Fixture.Lists.self, 100) }
  @Test func maps() throws { try compare(Fixture.Maps.self, 80) }
  @Test func trees() throws { try compare(Fixture.Tree.self, 40) }
  @Test func wellKnownTypes() throws { try compare(Fixture.WellKnown.self, 200) }
  @Test func everything() throws { try compare(Fixture.Everything.self, 30) }

  /// Texts by hand: both must accept or refuse, and read the same.
  @Test(arguments: [
    "{}", "", "{", "null", "{\"int32Value\": 1.0}", "{\"int32Value\": 1.5}",
    "{\"int32Value\": \"12\"}", "{\"int32Value\": 1e3}", "{\"int32Value\": 2147483648}",
    "{\"int64Value\": 9007199254740993}", "{\"uint64Value\": \"18446744073709551615\"}",
    "{\"uint64Value\": -1}", "{\"int32_value\": 5}", "{\"int32Value\": 1, \"int32Value\": 2}",
    "{\"boolValue\": 1}", "{\"boolValue\": \"true\"}", "{\"stringValue\": 1}",
    "{\"stringValue\": null}", "{\"stringValue\": \"\\ud83d\\ude00\"}",
    "{\"stringValue\": \"\\ud83d\"}", "{\"bytesValue\": \"_-8\"}", "{\"bytesValue\": \"+/8=\"}",
    "{\"colorValue\": \"COLOR_RED\"}", "{\"colorValue\": 1}", "{\"colorValue\": \"NOPE\"}",
    "{\"floatValue\": \"NaN\"}", "{\"floatValue\": \"-Infinity\"}", "{\"floatValue\": 1e39}",
    "{\"doubleValue\": 1e309}", "{\"doubleValue\": \"1.5\"}", "{\"nope\": 1}",
    "{\"doubleValue\": .5}", "{\"stringValue\": \"a\nb\"}", "{\"int32Value\": 01}",
    "{\"int32Value\": 1,}", "{\"int32Value\": -0}", "{\"fixed32Value\": 4294967295}",
  ])
  func byHand(json: String) throws {
    let theirs = try oracle.ask(.fromJSON, Fixture.Scalars.messageName, [Array(json.utf8)])[0]
    let ours = try? Fixture.Scalars(jsonString: json)
    // Python is lenient where the mapping is not: bare 01 aside, it joins what json.loads takes.
    switch theirs {
    case .success(let bytes): #expect(ours?.serializedBytes() == bytes)
    case .failure: #expect(ours == nil)
    }
  }
}
