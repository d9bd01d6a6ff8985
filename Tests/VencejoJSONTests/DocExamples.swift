import Testing
import VencejoDescriptors
import VencejoJSON
import VencejoProtobuf
import VencejoText

// The examples of the documentation's page "Messages"; Tests/Scripts compares them with it.

func generated(_ bytes: [UInt8]) throws -> Google.FieldDescriptorProto {
  let field = try Google.FieldDescriptorProto(serializedBytes: bytes)
  let json = try field.jsonString()
  let text = try field.textString()
  let same = try [
    Google.FieldDescriptorProto(jsonString: json), Google.FieldDescriptorProto(textString: text),
    Google.FieldDescriptorProto(serializedBytes: field.serializedBytes()),
  ]
  return same[0] == same[1] && same[1] == same[2] ? same[0] : field
}

func dynamic(_ json: String, _ fileSet: [UInt8]) throws -> String {
  let pool = try DescriptorPool(serializedFileSet: fileSet)
  guard let type = pool.message("google.protobuf.FieldDescriptorProto") else { return "" }
  var message = try JSONFormat.message(json, as: type)
  message["number"] = .int32(7)
  let bytes = message.serializedBytes()
  let again = try DynamicMessage(type, serializedBytes: bytes)
  let text = TextFormat.encode(again)
  return try JSONFormat.encode(TextFormat.message(text, as: type))
}

func convert(_ bytes: [UInt8], of name: String, in pool: DescriptorPool) throws -> [String] {
  // Without generated code, in the pool's terms.
  guard let type = pool.message(name) else { return [] }
  let message = try DynamicMessage(type, serializedBytes: bytes)
  var results = [try JSONFormat.encode(message), TextFormat.encode(message)]

  // With it: the type is a value, and the formats are the protocol's.
  let known: [any Message.Type] = [Google.FieldDescriptorProto.self, Google.Struct.self]
  if let generated = known.first(where: { $0.messageName == name }) {
    let message = try generated.init(serializedBytes: bytes)
    results += [try message.jsonString(), try message.textString()]
    _ = try generated.init(jsonString: results[0]).serializedBytes()
    _ = try generated.init(textString: results[1]).serializedBytes()
  }
  return results
}

func options(_ json: String, _ types: DescriptorPool) throws -> String {
  var options = JSONOptions()
  options.ignoreUnknown = true  // names the type does not have
  options.originalNames = true  // json_name, not jsonName
  options.types = types  // of what `Any` packs, and extensions in other files
  return try Google.FieldDescriptorProto(jsonString: json, options).jsonString(options)
}

func conveniences(_ types: DescriptorPool) throws -> Bool {
  let packed = Google.AnyMessage(packing: Google.Duration(.milliseconds(1500)))
  let duration = try packed.unpack(Google.Duration.self)?.duration
  let dynamic = try packed.unpack(types: types)

  var field = Google.FieldDescriptorProto(name: "old", number: 1)
  let change = Google.FieldDescriptorProto(name: "new", number: 2)
  try field.merge(change, masked: Google.FieldMask("name"))

  let later = Google.Timestamp(unixMilliseconds: 0) + .seconds(60)
  let settings: Google.Struct = ["theme": "dark", "sizes": [1, 2.5], "beta": nil]
  return duration == .milliseconds(1500) && dynamic != nil && field.name == "new"
    && field.number == 1 && later.seconds == 60 && settings["sizes"]?[1]?.number == 2.5
}

struct DocExamples {
  @Test func formats() throws {
    let field = Google.FieldDescriptorProto(name: "a", number: 1, type: .int32)
    #expect(try generated(field.serializedBytes()) == field)
    let file = try Google.FileDescriptorProto(serializedBytes: Google.descriptorProto.serialized)
    let set = Google.FileDescriptorSet(file: [file]).serializedBytes()
    #expect(try dynamic(#"{"name": "a"}"#, set) == #"{"name":"a","number":7}"#)
    let pool = try DescriptorPool(Google.descriptorProto)
    #expect(try options(#"{"jsonName": "b", "x": 1}"#, pool) == #"{"json_name":"b"}"#)
    #expect(try conveniences(pool))
    let converted = try convert(
      field.serializedBytes(), of: Google.FieldDescriptorProto.messageName, in: pool)
    #expect(Array(converted.prefix(2)) == Array(converted.dropFirst(2)))
  }
}
