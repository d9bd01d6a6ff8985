import TestMessages
import Testing
import VencejoDescriptors
import VencejoJSON
import VencejoProtobuf

/// The forms of protobuf.dev, "ProtoJSON Format", and errors.
struct JSONTests {
  private func fault<M: Message>(_: M.Type, _ json: String) -> JSONError? {
    do throws(JSONError) {
      _ = try M(jsonString: json)
      return nil
    } catch {
      return error
    }
  }

  @Test func documentedForms() throws {
    var message = Fixture.Scalars(
      int32Value: -3, int64Value: 1, stringValue: "\"\\\u{7}", bytesValue: [0xFF, 0xEE])
    message.colorValue = .deepBlue
    #expect(
      try message.jsonString()
        == #"{"int32Value":-3,"int64Value":"1","stringValue":"\"\\\u0007","bytesValue":"/+4=","#
        + #""colorValue":"COLOR_DEEP_BLUE"}"#)
    #expect(
      try Fixture.Scalars(stringValue: "\u{9B}31m\u{202E}\u{2066}\u{FEFF}é").jsonString()
        == #"{"stringValue":"\u009b31m\u202e\u2066\ufeffé"}"#)
    #expect(
      try Fixture.Scalars(doubleValue: .infinity).jsonString() == #"{"doubleValue":"Infinity"}"#)
    #expect(try Google.Int64Value(value: 5).jsonString() == "\"5\"")
    #expect(try Google.Duration(seconds: 3, nanos: 1000).jsonString() == "\"3.000001s\"")
    #expect(try Google.FieldMask("f.foo_bar", "h").jsonString() == "\"f.fooBar,h\"")
    #expect(try Google.Empty().jsonString() == "{}")
  }

  /// RFC 3339, section 5.8, and the ends of the range.
  @Test(arguments: [
    ("1985-04-12T23:20:50.52Z", "1985-04-12T23:20:50.520Z"),
    ("1996-12-19T16:39:57-08:00", "1996-12-20T00:39:57Z"),
    ("1937-01-01T12:00:27.87+00:20", "1937-01-01T11:40:27.870Z"),
    ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"),
    ("2000-02-29T00:00:00Z", "2000-02-29T00:00:00Z"),
  ])
  func timestamps(text: String, canonical: String) throws {
    #expect(try Google.Timestamp(jsonString: "\"\(text)\"").jsonString() == "\"\(canonical)\"")
  }

  @Test(arguments: [
    "1900-02-29T00:00:00Z", "0000-12-31T23:59:59Z", "2000-01-01T00:00:00", "2000-01-01 00:00:00Z",
    "2000-13-01T00:00:00Z", "2000-01-01T24:00:00Z", "2000-01-01T00:00:00.Z",
    "0001-01-01T00:00:00+01:00",
    "2000-01-01T00:00:00.1234567890Z", "é000-01-01T00:00:00Z", "",
  ])
  func malformedTimestamps(text: String) {
    #expect(fault(Google.Timestamp.self, "\"\(text)\"") != nil)
  }

  @Test func epoch() throws {
    #expect(try Google.Timestamp(jsonString: "\"1970-01-01T00:00:00Z\"") == .init())
    #expect(try Google.Timestamp(jsonString: "\"2001-09-09T01:46:40Z\"").seconds == 1_000_000_000)
    #expect(throws: JSONError.self) { try Google.Timestamp(nanos: -1).jsonString() }
    #expect(throws: JSONError.self) { try Google.Duration(seconds: 1, nanos: -1).jsonString() }
  }

  @Test func errorsSayWhere() throws {
    let unknown = try #require(fault(Fixture.Tree.self, "{\n  \"left\": {\"lable\": 1}}"))
    #expect(unknown.path == "$.left.lable")
    #expect((unknown.line, unknown.column) == (2, 12))
    let element = try #require(fault(Fixture.Lists.self, "{\"strings\": [\"é\", 5]}"))
    #expect(element.path == "$.strings[1]")
    #expect((element.line, element.column) == (1, 19))
    let end = try #require(fault(Fixture.Tree.self, "{\"left\": {"))
    #expect((end.line, end.column, end.path) == (1, 11, "$.left"))
  }

  @Test func unknownNamesCanBeSkipped() throws {
    var options = JSONOptions()
    options.ignoreUnknown = true
    let json = #"{"nope": [1, {"x": null}], "int32Value": 4, "colorValue": "COLOR_MAUVE"}"#
    #expect(try Fixture.Scalars(jsonString: json, options) == .init(int32Value: 4))
  }

  @Test func anything() throws {
    let packed = Google.AnyMessage(packing: Google.Duration(seconds: 1, nanos: 0))
    let json = #"{"@type":"type.googleapis.com/google.protobuf.Duration","value":"1s"}"#
    #expect(try packed.jsonString() == json)
    #expect(try Google.AnyMessage(jsonString: json) == packed)
    let unknown = Google.AnyMessage(packing: Fixture.Sparse(int64Value: 1))
    #expect(throws: JSONError.self) { try unknown.jsonString() }
    var options = JSONOptions()
    options.types = try DescriptorPool(Fixture.everythingProto)
    #expect(
      try unknown.jsonString(options)
        == #"{"@type":"type.googleapis.com/fixture.Sparse","int64Value":"1"}"#)
  }

  /// Neither deep JSON nor Any within Any may exhaust the stack.
  @Test func nesting() {
    #expect(
      fault(Google.Value.self, String(repeating: "[", count: 1_000_000))?.message
        == "nested too deeply")
    var any = Google.AnyMessage(packing: Google.Empty())
    for _ in 0..<1000 { any = .init(packing: any) }
    let nested = any
    #expect(throws: JSONError.self) { try nested.jsonString() }
  }

  /// Dynamic messages agree with generated ones, and keep what they do not know.
  @Test func dynamicMessages() throws {
    let pool = try DescriptorPool(Fixture.everythingProto)
    let tree = Fixture.Tree(
      label: "a", left: .init(content: .scalars(.init(floatValue: 2))),
      children: [.init(last: -5)], content: .blob([1]), named: ["x": .init(label: "y")])
    let type = try #require(pool.message("fixture.Tree"))
    var message = try DynamicMessage(type, serializedBytes: tree.serializedBytes())
    #expect(message["label"] == .string("a"))
    #expect(message.serializedBytes() == tree.serializedBytes())
    message["label"] = .string("b")
    #expect(try Fixture.Tree(serializedBytes: message.serializedBytes()).label == "b")
    let sparse = try #require(pool.message("fixture.Sparse"))
    let scalars = Fixture.Scalars(doubleValue: 1, int64Value: 2)
    let kept = try DynamicMessage(sparse, serializedBytes: scalars.serializedBytes())
    #expect(try Fixture.Scalars(serializedBytes: kept.serializedBytes()) == scalars)
  }

  @Test func missingTypes() {
    var file = Google.FileDescriptorProto()
    file.messageType = [
      .init(name: "A", field: [.init(name: "b", number: 1, type: .message, typeName: ".B")])
    ]
    let broken = file
    #expect(throws: DescriptorError.unknownType("B", usedBy: "A.b")) {
      try DescriptorPool(files: [broken])
    }
  }

  @Test func services() throws {
    var file = Google.FileDescriptorProto(package: "p")
    file.service = [
      .init(name: "S", method: [.init(name: "M", inputType: ".p.A", serverStreaming: true)])
    ]
    let pool = try DescriptorPool(files: [file])
    let method = try #require(pool.service("p.S")?.method("M"))
    #expect(method.path == "/p.S/M" && method.input == "p.A")
    #expect(method.serverStreaming && !method.clientStreaming)
  }

  /// Texts with a byte changed either parse or give an error; nothing traps, and what parses
  /// is written and read again alike.
  @Test func mutations() throws {
    let tree = Fixture.Tree(
      label: "a\"é", left: .init(content: .scalars(.init(doubleValue: 1.5e-7, bytesValue: [1]))),
      children: [.init(last: -5)], content: .color(.red), named: ["x": .init(label: "y")])
    let known = Fixture.WellKnown(
      timestamp: .init(seconds: 1, nanos: 5), duration: .init(seconds: -3, nanos: -1),
      fieldMask: .init("a_b"), any: .init(packing: Google.Duration(seconds: 1)),
      struct: .init(fields: ["k": .init(kind: .nullValue(.nullValue))]),
      int64Wrapper: .init(value: 9))
    try mutate(tree)
    try mutate(known)
  }

  private func mutate<M: Message>(_ message: M) throws {
    let text = Array(try message.jsonString().utf8)
    for index in text.indices {
      for byte in "\\\"{}[]:,0-.eEnu9A_Z \u{1}".utf8 {
        var text = text
        text[index] = byte
        guard let changed = try? M(jsonString: String(decoding: text, as: UTF8.self)) else {
          continue
        }
        #expect(try M(jsonString: changed.jsonString()) == changed)
      }
    }
  }
}
