import TestMessages
import Testing
import VencejoDescriptors
import VencejoJSON
import VencejoProtobuf
import VencejoText

/// Input made to exhaust the stack or the memory: a typed error for each, and soon.
struct HostileTests {
  private func length(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = count
    while rest >= 128 {
      bytes.append(UInt8(rest & 127) | 128)
      rest >>= 7
    }
    return bytes + [UInt8(rest)]
  }

  /// A message within a message, so many times, each behind a tag.
  private func nested(_ tag: [UInt8], _ depth: Int, inside: [UInt8] = []) -> [UInt8] {
    // Backwards, as lengths are known from inside out.
    var reversed = Array(inside.reversed())
    for _ in 0..<depth {
      reversed += length(reversed.count).reversed()
      reversed += tag.reversed()
    }
    return reversed.reversed()
  }

  private func kind<M: Message>(_: M.Type, _ bytes: [UInt8]) throws -> DecodingError.Kind? {
    let type = try #require(try DescriptorPool.generated(for: M.self).message(M.messageName))
    func error(_ body: () throws(DecodingError) -> Void) -> DecodingError.Kind? {
      do throws(DecodingError) {
        try body()
        return nil
      } catch {
        return error.kind
      }
    }
    let generated = error { () throws(DecodingError) in _ = try M(serializedBytes: bytes) }
    let dynamic = error { () throws(DecodingError) in
      _ = try DynamicMessage(type, serializedBytes: bytes)
    }
    #expect(generated == dynamic)
    return generated
  }

  @Test func deepBinary() throws {
    let left: [UInt8] = [0x12]
    #expect(try kind(Fixture.Tree.self, nested(left, 100)) == nil)
    for depth in [101, 100_000] {
      #expect(try kind(Fixture.Tree.self, nested(left, depth)) == .depthExceeded)
      // Children, members of oneofs, values of maps.
      #expect(try kind(Fixture.Tree.self, nested([0x1A], depth)) == .depthExceeded)
      #expect(try kind(Fixture.Tree.self, nested([0x32], depth)) == .depthExceeded)
      // Lists in lists of JSON's values.
      #expect(try kind(Google.ListValue.self, nested([0x0A, 0x32], depth)) != nil)
    }
    // An entry and its value count twice.
    var maps: [UInt8] = []
    for _ in 0..<51 {
      let entry = [0x12] + length(maps.count) + maps
      maps = [0x62] + length(entry.count) + entry
    }
    #expect(try kind(Fixture.Tree.self, maps) == .depthExceeded)
    // Groups that nobody knows, and those somebody does, without ends.
    let groups = [UInt8](repeating: 0x7B, count: 100_000)
    #expect(try kind(Fixture.Tree.self, groups) == .depthExceeded)
    let known = [UInt8](repeating: 0x4B, count: 100_000)
    #expect(try kind(Modern.Modern.self, known) == .depthExceeded)
    #expect(throws: TextError.self) { try TextFormat.raw(groups) }
    _ = try TextFormat.raw(nested(left, 100_000))
  }

  @Test func lengthsAndVarints() throws {
    let twoGiB: [UInt8] = [0x80, 0x80, 0x80, 0x80, 0x08]
    for tag: UInt8 in [0x0A, 0x12, 0x1A, 0x62, 0x6A, 0x7A] {
      #expect(try kind(Fixture.Tree.self, [tag] + twoGiB) == .truncated)
    }
    let longest = [UInt8](repeating: 0xFF, count: 9)
    #expect(try kind(Fixture.Tree.self, [0x0A] + longest + [0x01]) == .truncated)
    // Ten bytes hold 70 bits: those beyond the 64th do not count. Eleven are too many.
    #expect(try kind(Fixture.Tree.self, [0x20] + longest + [0x7F]) == nil)
    #expect(try Fixture.Tree(serializedBytes: [0x20] + longest + [0x7F]).content == .number(-1))
    #expect(try kind(Fixture.Tree.self, [0x20] + longest + [0x80, 1]) == .malformedVarint)
    #expect(try kind(Fixture.Tree.self, [0x20] + longest) == .truncated)
    for tag: [UInt8] in [[0], [7], [0x0E], [0x0F], [0x80, 0x80, 0x80, 0x80, 0x10]] {
      #expect(try kind(Fixture.Tree.self, tag + [0]) == .invalidTag)
    }
    #expect(try kind(Fixture.Tree.self, [0x0C]) == .unexpectedEndGroup)
    #expect(try kind(Modern.Modern.self, [0x4B, 0x54]) == .unexpectedEndGroup)
    #expect(try kind(Modern.Modern.self, [0x4B, 0x42, 1, 0x4C, 0x4C]) == .unexpectedEndGroup)
  }

  /// Whatever is cut off, it ends in an error or at the end of a field.
  @Test func truncated() throws {
    let whole = Fixture.Everything(
      scalars: .init(doubleValue: 1, int32Value: -1, stringValue: "añb", bytesValue: [1, 2]),
      lists: .init(doubles: [1, 2], int32s: [1, -1], strings: ["a"]),
      maps: .init(stringToString: ["k": "v"]),
      tree: .init(label: "l", left: .init(numbers: [-5, 5]), children: [.init(), .init()]))
    let bytes = whole.serializedBytes()
    for end in 0..<bytes.count {
      let cut = Array(bytes[..<end])
      if try kind(Fixture.Everything.self, cut) == nil {
        #expect(try Fixture.Everything(serializedBytes: cut) != whole)
      }
    }
  }

  @Test func deepText() throws {
    let many = 100_000
    func refuses<M: Message>(_: M.Type, _ json: String) {
      #expect(throws: JSONError.self) { try M(jsonString: json) }
      var options = JSONOptions()
      options.ignoreUnknown = true
      #expect(throws: JSONError.self) { try M(jsonString: json, options) }
    }
    refuses(Google.Value.self, String(repeating: "[", count: many))
    refuses(
      Google.Value.self,
      String(repeating: "[", count: many) + String(repeating: "]", count: many))
    refuses(Google.Value.self, String(repeating: "{\"a\":", count: many))
    refuses(Fixture.Tree.self, String(repeating: "{\"left\":", count: many))
    refuses(Fixture.Tree.self, "{\"nobody\":" + String(repeating: "[", count: many))
    let any = "{\"@type\":\"type.googleapis.com/google.protobuf.Any\",\"value\":"
    refuses(Google.AnyMessage.self, String(repeating: any, count: many))
    for text in ["left {", "left <", "nobody {", "children [{"] {
      var options = TextOptions()
      options.ignoreUnknown = text == "nobody {"
      #expect(throws: TextError.self) {
        try Fixture.Tree(textString: String(repeating: text, count: many), options)
      }
    }
  }

  /// `Any` in `Any`: bytes to the wire, so deeper than a message may be.
  @Test func deepAny() throws {
    let url = Array("type.googleapis.com/google.protobuf.Any".utf8)
    let bytes = nested([0x0A, UInt8(url.count)] + url + [0x12], 20_000)
    let any = try Google.AnyMessage(serializedBytes: bytes)
    #expect(throws: JSONError.self) { try any.jsonString() }
    // What is too deep stays packed.
    #expect(try any.textString().contains("type_url"))
    let few = try Google.AnyMessage(
      serializedBytes: nested([0x0A, UInt8(url.count)] + url + [0x12], 20))
    let json = try few.jsonString()
    #expect(try Google.AnyMessage(jsonString: json).jsonString() == json)
  }

  @Test func longNumbers() throws {
    let digits = String(repeating: "7", count: 10_000)
    let zeros = String(repeating: "0", count: 10_000)
    func json(_ field: String, _ value: String) -> Fixture.Scalars? {
      try? Fixture.Scalars(jsonString: "{\"\(field)\":\(value)}")
    }
    for field in ["int32Value", "uint64Value", "doubleValue"] {
      #expect(json(field, digits) == nil && json(field, "-\(digits)") == nil)
      #expect(json(field, "1e\(digits)") == nil && json(field, "\"1e\(digits)\"") == nil)
      #expect(json(field, "1e-\(digits)") == nil || field == "doubleValue")
      #expect(json(field, "0\(digits)") == nil)
    }
    #expect(json("int32Value", "5.\(zeros)")?.int32Value == 5)
    #expect(json("uint64Value", "1\(zeros)e-10000")?.uint64Value == 1)
    #expect(json("int32Value", "0.\(zeros)1e10001")?.int32Value == 1)
    #expect(json("doubleValue", "0.\(digits)")?.doubleValue == 7.0 / 9.0)
    #expect(json("enumValue", digits) == nil && json("colorValue", "1e\(digits)") == nil)
    #expect(throws: JSONError.self) {
      try Google.Duration(jsonString: "\"\(digits)s\"")
    }
    #expect(throws: JSONError.self) { try Google.Duration(jsonString: "\"1.\(digits)s\"") }
    #expect(throws: JSONError.self) {
      try Google.Timestamp(jsonString: "\"\(digits)-01-01T00:00:00Z\"")
    }
    func text(_ line: String) -> Fixture.Scalars? { try? Fixture.Scalars(textString: line) }
    #expect(text("int32_value: \(digits)") == nil && text("int32_value: 0x\(digits)") == nil)
    #expect(text("double_value: \(digits)")?.doubleValue == .infinity)
    #expect(text("double_value: 1e\(digits)")?.doubleValue == .infinity)
    #expect(text("double_value: -1e-\(digits)")?.doubleValue.sign == .minus)
  }
}
