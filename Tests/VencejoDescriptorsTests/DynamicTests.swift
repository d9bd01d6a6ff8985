import TestMessages
import Testing
import VencejoDescriptors
import VencejoProtobuf

struct DynamicTests {
  private func type(_ name: String, _ files: FileDescriptor...) throws -> MessageDescriptor {
    let protos = try files.map { try Google.FileDescriptorProto(serializedBytes: $0.serialized) }
    return try #require(try DescriptorPool(files: protos).message(name))
  }

  @Test func closedEnumsAndStrings() throws {
    let old = try type("fixture.legacy.Old", Legacy.legacyProto)
    let bytes: [UInt8] = [0x18, 3, 0x18, 5, 0x2A, 3, 3, 6, 9, 0x32, 5, 0x0A, 1, 0x61, 0x10, 1]
    let message = try DynamicMessage(old, serializedBytes: bytes)
    #expect(message["closed"] == .enumeration(3))
    #expect(message["packed_closeds"] == .list([.enumeration(3), .enumeration(9)]))
    #expect(message.unknownFields.bytes == [0x18, 5, 0x28, 6, 0x32, 5, 0x0A, 1, 0x61, 0x10, 1])
    let text = try DynamicMessage(old, serializedBytes: [0x12, 1, 0xFF])
    #expect(text["text"] == .bytes([0xFF]) && text.serializedBytes() == [0x12, 1, 0xFF])
  }

  /// Both spellings of é are two keys.
  @Test func equivalentKeys() throws {
    let maps = try type("fixture.legacy.Old", Legacy.legacyProto)
    let bytes: [UInt8] = [
      0x32, 7, 0x0A, 3, 0x65, 0xCC, 0x81, 0x10, 2, 0x32, 6, 0x0A, 2, 0xC3, 0xA9, 0x10, 2,
    ]
    let two = [
      DynamicValue.string("\u{E9}"): DynamicValue.enumeration(2),
      .string("e\u{301}"): .enumeration(2),
    ]
    let message = try DynamicMessage(maps, serializedBytes: bytes)
    #expect(message["named"] == .map(two))
    #expect(message.serializedBytes(deterministic: true) == bytes)
  }

  @Test func required() throws {
    let needy = try type("fixture.legacy.Needy", Legacy.legacyProto)
    let bytes = Legacy.Needy(id: 1, list: [.init(id: 1, map: ["k": .init()])]).serializedBytes()
    let error = #expect(throws: DecodingError.self) {
      try DynamicMessage(needy, serializedBytes: bytes)
    }
    #expect(error?.path == "list[0].map[k].id")
  }

  @Test func defaultsAndExtensions() throws {
    let defaults = try type("fixture.legacy.Defaults", Legacy.legacyProto)
    let expected: [String: DynamicValue] = [
      "int32": .int32(-42), "uint64": .uint64(.max), "sint64": .int64(.min),
      "float": .float(1.5e-9), "double": .double(.infinity), "bool": .bool(true),
      "string": .string("a\"\\\né?"), "bytes": .bytes([0, 1, 0x5C, 0x22, 0xFE]),
      "closed": .enumeration(9), "default": .string("x"),
    ]
    for (name, value) in expected {
      #expect(defaults.field(named: name)?.defaultValue == value)
    }
    let old = try type("fixture.legacy.Old", Legacy.legacyProto)
    let field = try #require(old.field(named: "[fixture.legacy.old_text]"))
    #expect(field.isExtension && field.number == 101 && field.defaultValue == .string("none"))
    #expect(old.field(number: 150)?.name == "[fixture.legacy.Scope.flag]")
    #expect(old.fields.allSatisfy { !$0.isExtension })
  }

  /// An item's number may stand behind its message; what nobody knows stays as it is.
  @Test func messageSets() throws {
    let set = try type("fixture.legacy.Set", Legacy.legacyProto)
    let bytes: [UInt8] = [0x0B, 0x1A, 2, 0x78, 5, 0x10, 0xF9, 0xBB, 0x5E, 0x0C]
    let message = try DynamicMessage(set, serializedBytes: bytes)
    guard case .message(let item)? = message["[fixture.legacy.Item.item]"] else {
      Issue.record("no item")
      return
    }
    #expect(item["i"] == .int32(5))
    let unknown: [UInt8] = [0x0B, 0x10, 99, 0x1A, 1, 8, 0x0C]
    #expect(try DynamicMessage(set, serializedBytes: unknown).serializedBytes() == unknown)
  }

  @Test func brokenDescriptors() throws {
    func pool(_ field: Google.FieldDescriptorProto) -> DescriptorError? {
      let file = Google.FileDescriptorProto(
        name: "f", messageType: [.init(name: "M", field: [field])])
      do throws(DescriptorError) {
        _ = try DescriptorPool(files: [file])
        return nil
      } catch {
        return error
      }
    }
    #expect(pool(.init(name: "a", number: 1, label: .optional, type: .int32)) == nil)
    #expect(pool(.init(name: "a", number: 0, label: .optional, type: .int32)) != nil)
    #expect(pool(.init(name: "a", number: -5, label: .optional, type: .int32)) != nil)
    #expect(pool(.init(name: "a", number: 1, label: .optional)) != nil)
    #expect(
      pool(.init(name: "a", number: 1, label: .optional, type: .message, typeName: ".X")) != nil)
  }
}
