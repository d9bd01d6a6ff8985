import TestMessages
import Testing
import VencejoDescriptors
import VencejoProtobuf
import VencejoText

struct TextTests {
  @Test func layout() throws {
    let old = Legacy.Old(
      number: -1, text: "a\"\né\u{1}", closed: .second, named: ["k": .two],
      inner: .init(depth: 2, innermost: .init(label: "x")), many: [.init(blob: [0xFF])])
    let expected = #"""
      number: -1
      text: "a\"\né\001"
      closed: CLOSED_SECOND
      named {
        key: "k"
        value: ZEROED_TWO
      }
      Inner {
        depth: 2
        Innermost {
          label: "x"
        }
      }
      Many {
        blob: "\377"
      }

      """#
    #expect(try old.textString() == expected)
    #expect(try Legacy.Old(textString: expected) == old)
    var options = TextOptions()
    options.singleLine = true
    #expect(
      try old.textString(options)
        == #"number: -1 text: "a\"\né\001" closed: CLOSED_SECOND named { key: "k" value: "#
        + #"ZEROED_TWO } Inner { depth: 2 Innermost { label: "x" } } Many { blob: "\377" }"#)
  }

  @Test func anyAndExtensions() throws {
    let any = Google.AnyMessage(packing: Google.Duration(seconds: 5, nanos: 0))
    let message = Fixture.WellKnown(any: any)
    let text = "any {\n  [type.googleapis.com/google.protobuf.Duration] {\n    seconds: 5\n  }\n}\n"
    #expect(try message.textString() == text)
    #expect(try Fixture.WellKnown(textString: text) == message)
    var old = Legacy.Old()
    old[Legacy.oldNumber] = 5
    old[Legacy.oldgroup] = .init(x: 1)
    let extended = "[fixture.legacy.old_number]: 5\n[fixture.legacy.oldgroup] {\n  x: 1\n}\n"
    #expect(try old.textString() == extended)
    #expect(try Legacy.Old(textString: extended) == old)
  }

  /// Numbers, hexadecimal where the width is fixed, and what may be a message as one.
  @Test func unknownFields() throws {
    let bytes: [UInt8] = [
      0x08, 5, 0x15, 1, 0, 0, 0, 0x19, 2, 0, 0, 0, 0, 0, 0, 0, 0x22, 2, 8, 1, 0x2A, 1, 0x41, 0x33,
      8, 1, 0x34,
    ]
    let expected = """
      1: 5
      2: 0x00000001
      3: 0x0000000000000002
      4 {
        1: 1
      }
      5: "A"
      6 {
        1: 1
      }

      """
    #expect(try TextFormat.raw(bytes) == expected)
    #expect(try Google.Empty(serializedBytes: bytes).textString() == expected)
    #expect(throws: TextError.self) { try TextFormat.raw([0x0A]) }
    // As deep as anybody likes: shown as far as it goes.
    var deep: [UInt8] = []
    for _ in 0..<200 { deep = Google.BytesValue(value: deep + [8, 1]).serializedBytes() }
    #expect(try TextFormat.raw(deep).count > 100)
  }

  @Test func mistakesSayWhere() {
    let error = #expect(throws: TextError.self) {
      try Fixture.Tree(textString: "label: 'é'\n  left {\n    é: 1 }")
    }
    #expect(error?.description == "3:5: expected a name")
  }

  @Test func ignoring() throws {
    var options = TextOptions()
    options.ignoreUnknown = true
    let text =
      "nope: 1 label: 'x' other { a: [1, -2.5f, 'x' \"y\"] b <> [x.y]: z } e [{}, {}] f: -inf"
    #expect(try Fixture.Tree(textString: text, options).label == "x")
    #expect(throws: TextError.self) { try Fixture.Tree(textString: "a: {", options) }
  }

  @Test func hostile() {
    let deep = String(repeating: "left {", count: 100_000)
    #expect(throws: TextError.self) { try Fixture.Tree(textString: deep) }
    var options = TextOptions()
    options.ignoreUnknown = true
    let unknown = String(repeating: "nope {", count: 100_000)
    #expect(throws: TextError.self) { try Fixture.Tree(textString: unknown, options) }
    let digits = "number: " + String(repeating: "9", count: 10_000)
    #expect(throws: TextError.self) { try Fixture.Tree(textString: digits) }
    #expect(throws: TextError.self) { try Legacy.Needy(textString: "") }
  }
}
