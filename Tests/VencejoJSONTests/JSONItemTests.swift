import TestMessages
import Testing
import VencejoDescriptors
import VencejoJSON
import VencejoProtobuf

/// The items of a `MessageSet`: their odd forms say in JSON what they say when decoded.
@Suite struct JSONItemTests {
  /// 1547769, the extension's number, is 0xF9 0xBB 0x5E as a varint; 0x78 is `i`.
  @Test(arguments: [
    [0x0B, 0x10, 0xF9, 0xBB, 0x5E, 0x1A, 2, 0x78, 5, 0x0C],
    // The message before its number; more of both, of which the first count.
    [0x0B, 0x1A, 2, 0x78, 5, 0x10, 0xF9, 0xBB, 0x5E, 0x0C],
    [0x0B, 0x10, 0xF9, 0xBB, 0x5E, 0x1A, 2, 0x78, 5, 0x1A, 2, 0x78, 6, 0x0C],
    [0x0B, 0x1A, 2, 0x78, 5, 0x10, 0xF9, 0xBB, 0x5E, 0x1A, 2, 0x78, 6, 0x0C],
    [0x0B, 0x10, 0xF9, 0xBB, 0x5E, 0x1A, 2, 0x78, 5, 0x10, 7, 0x0C],
    // Two items, merged; one with a field without a number in it; a plain field.
    [0x0B, 0x10, 0xF9, 0xBB, 0x5E, 0x1A, 2, 0x78, 4, 0x0C]
      + [0x0B, 0x10, 0xF9, 0xBB, 0x5E, 0x1A, 2, 0x78, 5, 0x0C],
    [0x0B, 0x00, 1, 0x10, 0xF9, 0xBB, 0x5E, 0x1A, 2, 0x78, 5, 0x0C],
    [0xCA, 0xDF, 0xF3, 0x05, 2, 0x78, 5],
    // Of a number nobody knows there is one with two messages besides.
    [0x0B, 0x10, 9, 0x1A, 0, 0x1A, 0, 0x0C, 0x0B, 0x10, 0xF9, 0xBB, 0x5E, 0x1A, 2, 0x78, 5, 0x0C],
  ])
  func oddItems(bytes: [UInt8]) throws {
    let expected = #"{"[fixture.legacy.Item.item]":{"i":5}}"#
    let type = try Legacy.Set.messageDescriptor()
    #expect(try JSONFormat.encode(wire: bytes, as: type) == expected)
    #expect(try Legacy.Set(serializedBytes: bytes).jsonString() == expected)
    let any = Google.AnyMessage(typeUrl: "type.googleapis.com/fixture.legacy.Set", value: bytes)
    var options = JSONOptions()
    options.types = try DescriptorPool(Legacy.legacyProto)
    #expect(
      try any.jsonString(options)
        == #"{"@type":"type.googleapis.com/fixture.legacy.Set","[fixture.legacy.Item.item]":{"i":5}}"#
    )
  }

  /// Any within Any, each followed by fields in disorder: in time that does not double with each.
  @Test func disorderInEachAny() throws {
    var bytes: [UInt8] = []
    for _ in 0..<30 {
      bytes = Fixture.WellKnown(
        any: .init(
          typeUrl: "type.googleapis.com/\(Fixture.WellKnown.messageName)", value: bytes)
      ).serializedBytes()
      bytes += Fixture.WellKnown(timestamp: .init(seconds: 1)).serializedBytes()
    }
    let json = try JSONFormat.encode(wire: bytes, as: Fixture.WellKnown.messageDescriptor())
    #expect(json.utf8.count > 30 * 60)
  }

  /// A value without a JSON form does not count when the field comes again, as in C++.
  @Test func theLastValueCounts() throws {
    // text: a byte that is not UTF-8, then "a".
    #expect(
      try JSONFormat.encode(
        wire: [0x12, 1, 0xBF, 0x12, 1, 0x61], as: Legacy.Old.messageDescriptor())
        == #"{"text":"a"}"#)
    #expect(throws: JSONError.self) {
      try JSONFormat.encode(
        wire: [0x12, 1, 0x61, 0x12, 1, 0xBF], as: Legacy.Old.messageDescriptor())
    }
    // nanos: 2³¹ - 1, then 0.
    let nanos: [UInt8] = [0x10, 0xFF, 0xFF, 0xFF, 0xFF, 0x07]
    let type = try Google.Timestamp.messageDescriptor()
    #expect(
      try JSONFormat.encode(wire: nanos + [0x10, 0], as: type) == #""1970-01-01T00:00:00Z""#)
    #expect(throws: JSONError.self) { try JSONFormat.encode(wire: nanos, as: type) }
  }
}
