import TestMessages
import Testing
import VencejoProtobuf

/// Bytes from protobuf.dev, "Encoding", and cases by hand.
struct WireTests {
  private func error<M: Message>(_: M.Type, _ bytes: [UInt8]) -> DecodingError.Kind? {
    do throws(DecodingError) {
      _ = try M(serializedBytes: bytes)
      return nil
    } catch {
      return error.kind
    }
  }

  @Test func documentationExamples() throws {
    #expect(Google.Int32Value(value: 150).serializedBytes() == [0x08, 0x96, 0x01])
    let testing: [UInt8] = [0x0A, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6E, 0x67]
    #expect(Google.StringValue(value: "testing").serializedBytes() == testing)
    // int32s is field 3 here, 6 in the document.
    let packed: [UInt8] = [0x1A, 0x06, 0x03, 0x8E, 0x02, 0x9E, 0xA7, 0x05]
    #expect(Fixture.Lists(int32s: [3, 270, 86942]).serializedBytes() == packed)
    #expect(try Fixture.Lists(serializedBytes: packed).int32s == [3, 270, 86942])
    #expect(
      Google.Int64Value(value: -2).serializedBytes() == [0x08, 0xFE]
        + [UInt8](repeating: 0xFF, count: 8) + [0x01])
  }

  @Test(
    arguments: [
      (0, 0), (-1, 1), (1, 2), (-2, 3), (0x7FFF_FFFF, 0xFFFF_FFFE), (-0x8000_0000, 0xFFFF_FFFF),
    ] as [(Int32, UInt64)])
  func zigzag(value: Int32, encoded: UInt64) throws {
    let bytes = Fixture.Scalars(sint32Value: value).serializedBytes()
    let plain = Fixture.Scalars(uint64Value: encoded).serializedBytes()
    #expect(bytes.dropFirst() == plain.dropFirst())
  }

  @Test func bothFormsOfLists() throws {
    let unpacked: [UInt8] = [0x18, 0x03, 0x18, 0x8E, 0x02]
    #expect(try Fixture.Lists(serializedBytes: unpacked).int32s == [3, 270])
    let packed: [UInt8] = [0x92, 0x01, 0x02, 0x05, 0x06, 0x90, 0x01, 0x07]
    #expect(try Fixture.Lists(serializedBytes: packed).unpackedInt32s == [5, 6, 7])
    #expect(error(Fixture.Lists.self, [0x0A, 0x07, 0, 0, 0, 0, 0, 0, 0]) == .misalignedPacked)
    #expect(error(Fixture.Lists.self, [0x1A, 0x01, 0x80]) == .truncated)
  }

  /// The last value of a scalar wins; sub-messages are merged; lists grow.
  @Test func merging() throws {
    let first = Fixture.Tree(
      label: "a", left: .init(label: "left", children: [.init(label: "x")]),
      content: .subtree(.init(label: "sub")))
    let second = Fixture.Tree(
      label: "b", left: .init(children: [.init(label: "y")]),
      content: .subtree(.init(content: .flag(true))))
    let merged = try Fixture.Tree(
      serializedBytes: first.serializedBytes() + second.serializedBytes())
    #expect(merged.label == "b")
    #expect(merged.left?.label == "left")
    #expect(merged.left?.children.map(\.label) == ["x", "y"])
    #expect(merged.content == .subtree(.init(label: "sub", content: .flag(true))))
    let third = try Fixture.Tree(
      serializedBytes: merged.serializedBytes()
        + Fixture.Tree(content: .number(7)).serializedBytes())
    #expect(third.content == .number(7))
  }

  @Test func mapEntries() throws {
    // An entry without a value, one without a key, and the same key twice.
    let bytes: [UInt8] = [
      0x0A, 0x03, 0x0A, 0x01, 0x61, 0x0A, 0x03, 0x12, 0x01, 0x62,
      0x0A, 0x06, 0x0A, 0x01, 0x63, 0x12, 0x01, 0x31, 0x0A, 0x06, 0x12, 0x01, 0x32, 0x0A, 0x01,
      0x63,
    ]
    let maps = try Fixture.Maps(serializedBytes: bytes)
    #expect(maps.stringToString == ["a": "", "": "b", "c": "2"])
  }

  @Test func defaultsAreAbsent() {
    #expect(Fixture.Scalars().serializedBytes() == [])
    #expect(
      Fixture.Optionals(int32Value: 0, stringValue: "").serializedBytes() == [0x18, 0, 0x72, 0])
    // -0.0 is not the default.
    #expect(Fixture.Scalars(floatValue: -0.0).serializedBytes() == [0x15, 0, 0, 0, 0x80])
    #expect(Fixture.Tree(content: .number(0)).serializedBytes() == [0x20, 0])
  }

  @Test func openEnums() throws {
    let scalars = try Fixture.Scalars(serializedBytes: [0x80, 0x01, 0x63])
    #expect(scalars.colorValue.rawValue == 99)
    #expect(scalars.serializedBytes() == [0x80, 0x01, 0x63])
    #expect(Fixture.Color.allCases == [.unspecified, .red, .deepBlue, .negative])
  }

  @Test func malformed() {
    #expect(error(Fixture.Scalars.self, [0x00]) == .invalidTag)
    #expect(error(Fixture.Scalars.self, [0x0E]) == .invalidTag)
    #expect(error(Fixture.Scalars.self, [0xFF, 0xFF, 0xFF, 0xFF, 0x1F]) == .invalidTag)
    #expect(error(Fixture.Scalars.self, [0x18]) == .truncated)
    #expect(
      error(Fixture.Scalars.self, [0x18] + [UInt8](repeating: 0x80, count: 10)) == .malformedVarint)
    #expect(error(Fixture.Scalars.self, [0x72, 0x05, 0x61]) == .truncated)
    #expect(error(Fixture.Scalars.self, [0x72, 0x01, 0xFF]) == .invalidUTF8)
    #expect(error(Fixture.Scalars.self, [0x72, 0x03, 0xED, 0xA0, 0x80]) == .invalidUTF8)
    #expect(error(Fixture.Scalars.self, [0x0C]) == .unexpectedEndGroup)
    #expect(error(Fixture.Scalars.self, [0xFB, 0x07]) == .unterminatedGroup)
    #expect(error(Fixture.Scalars.self, [0xFB, 0x07, 0x0C]) == .unexpectedEndGroup)
    // A length of 2^64 - 1.
    #expect(
      error(Fixture.Scalars.self, [0x72] + [UInt8](repeating: 0xFF, count: 9) + [1]) == .truncated)
  }

  /// Groups are kept whole, and skipping them does not recurse.
  @Test func groups() throws {
    let group: [UInt8] = [0xFB, 0x07, 0x08, 0x01, 0x13, 0x0A, 0x01, 0x61, 0x14, 0xFC, 0x07]
    #expect(try Fixture.Scalars(serializedBytes: group).serializedBytes() == group)
    let deep = [UInt8](repeating: 0x0B, count: 1_000_000)
    #expect(error(Google.Empty.self, deep) == .depthExceeded)
  }

  /// An error after a sub-message's end must not be forgotten on the way out.
  @Test func errorsInside() {
    #expect(error(Fixture.Tree.self, [0x12, 0x02, 0x0A, 0x05, 0x0A, 0x01, 0x61]) == .truncated)
    #expect(error(Fixture.Maps.self, [0x0A, 0x02, 0x0A, 0x05]) == .truncated)
  }

  @Test func prefixIsReserved() {
    let bytes = Google.Int32Value(value: 150).serializedBytes(reservingPrefix: 5)
    #expect(bytes == [0, 0, 0, 0, 0, 0x08, 0x96, 0x01])
  }

  /// Larger than the scratch memory, several times over.
  @Test func growth() throws {
    let list = Fixture.Lists(
      int64s: (0..<20_000).map { $0 * 0x1_0000_0001 },
      strings: (0..<3000).map { String(repeating: "x", count: $0 % 97) })
    #expect(try Fixture.Lists(serializedBytes: list.serializedBytes()) == list)
  }

  @Test func copiesAreValues() {
    var a = Fixture.Scalars(int32Value: 1)
    let b = a
    a.int32Value = 2
    #expect(b.int32Value == 1)
    #expect(a != b)
    a.int32Value = 1
    #expect(a == b)
    #expect(a.hashValue == b.hashValue)
    let nan = Names.Hasher(withFloat: .nan)
    #expect(nan == nan)
  }
}
