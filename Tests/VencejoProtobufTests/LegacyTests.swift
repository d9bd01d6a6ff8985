import TestMessages
import Testing
import VencejoProtobuf

/// What proto2 and editions say beyond proto3; bytes by hand from protobuf.dev, "Encoding".
struct LegacyTests {
  @Test func groups() throws {
    // inner {depth: 5, innermost {label: "x"}}, many {blob: "b"} twice.
    let bytes: [UInt8] = [
      0x4B, 0x08, 0x05, 0x1B, 0x0A, 0x01, 0x78, 0x1C, 0x4C,
      0x53, 0x0A, 0x01, 0x62, 0x54, 0x53, 0x54,
    ]
    let old = try Legacy.Old(serializedBytes: bytes)
    #expect(old.inner?.depth == 5)
    #expect(old.inner?.innermost?.label == "x")
    #expect(old.many == [.init(blob: [0x62]), .init()])
    #expect(old.serializedBytes() == bytes)
  }

  @Test(
    arguments: [
      ([0x4B], DecodingError.Kind.unterminatedGroup), ([0x4B, 0x54], .unexpectedEndGroup),
      ([0x4C], .unexpectedEndGroup), ([0x4B, 0x08], .truncated),
      // A group that ends in the message within it, and one that ends outside of it.
      ([0x4B, 0x12, 0x01, 0x4C], .unexpectedEndGroup), ([0x4B, 0x12, 0x00], .unterminatedGroup),
      ([0x12, 0x00, 0x4B, 0x1B, 0x4C], .unexpectedEndGroup),
    ] as [([UInt8], DecodingError.Kind)])
  func brokenGroups(bytes: [UInt8], kind: DecodingError.Kind) {
    let error = #expect(throws: DecodingError.self) { try Legacy.Old(serializedBytes: bytes) }
    #expect(error?.kind == kind)
  }

  @Test func groupsNestToTheLimit() throws {
    func nested(_ depth: Int) -> [UInt8] {
      // The number of Old.inner's group is 9, of its member old 2: two levels a turn.
      var bytes: [UInt8] = []
      for _ in 0..<depth {
        let old = Google.BytesValue(value: bytes).serializedBytes()
        bytes = [0x4B] + (old.isEmpty ? [0x12, 0] : [0x12] + old.dropFirst()) + [0x4C]
      }
      return bytes
    }
    #expect(try Legacy.Old(serializedBytes: nested(50)).inner != nil)
    #expect(throws: DecodingError.self) { try Legacy.Old(serializedBytes: nested(51)) }
  }

  @Test func closedEnums() throws {
    // closed 3: 3, then 5; closeds 4: 4, 5, -7; packed 5: [3, 6, 9]; chosen 11: 8.
    let minus7: [UInt8] = [0xF9, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]
    let bytes: [UInt8] =
      [0x18, 3, 0x18, 5, 0x20, 4, 0x20, 5, 0x20] + minus7 + [0x2A, 3, 3, 6, 9, 0x58, 8]
    let old = try Legacy.Old(serializedBytes: bytes)
    #expect(old.closed == .first)
    #expect(old.closeds == [.second, .negative])
    #expect(old.packedCloseds == [.first, .apart])
    #expect(old.choice == nil)
    #expect(old.unknownFields.bytes == [0x18, 5, 0x20, 5, 0x28, 6, 0x58, 8])
    // A map's entry stays as a whole.
    let entry: [UInt8] = [0x32, 5, 0x0A, 1, 0x61, 0x10, 1]
    let map = try Legacy.Old(serializedBytes: entry)
    #expect(map.named.isEmpty && map.unknownFields.bytes == entry)
    #expect(try Legacy.Old(serializedBytes: [0x32, 3, 0x0A, 1, 0x61]).named == ["a": .noneValue])
    #expect(!Legacy.Closed.isKnown(5) && Legacy.Closed.isKnown(-7) && !Legacy.Closed.isKnown(0))
    #expect(Legacy.Closed.defaultValue == .first)
  }

  @Test func stringsNobodyChecks() throws {
    for bytes: [UInt8] in [
      [0x12, 1, 0xFF], [0x42, 2, 0xC3, 0x28], [0x62, 1, 0x80],
      [0x3A, 5, 8, 1, 0x12, 1, 0xFF],
    ] {
      let old = try Legacy.Old(serializedBytes: bytes)
      #expect(old.unknownFields.bytes == bytes)
      #expect(old.serializedBytes() == bytes)
    }
    #expect(try Legacy.Old(serializedBytes: [0x12, 1, 0x61]).text == "a")
    #expect(throws: DecodingError.self) { try Modern.Modern(serializedBytes: [0x22, 1, 0xFF]) }
    #expect(try Modern.Modern(serializedBytes: [0x1A, 1, 0xFF]).loose == nil)
  }

  /// What a `String` cannot hold leaves the map entry after it alone.
  @Test(
    arguments: [
      [0x82, 1, 6, 0x0A, 1, 0xCF, 0x12, 1, 0xE0],  // loose_map: neither key nor value
      [0x82, 1, 6, 0x12, 1, 0xE0, 0x12, 1, 0x61],  // loose_map: a value, then a better one
      [0xC2, 6, 1, 0xFF],  // extra_text
      [0xB3, 6, 0x82, 1, 6, 0x0A, 1, 0xCF, 0x12, 1, 0xE0, 0xB4, 6],  // extra_group's loose_map
      [0x1A, 1, 0xFF, 0x8A, 1, 1, 0xFF, 0x92, 1, 1, 0xFF],  // loose, looses, said
    ] as [[UInt8]])
  func refusals(before: [UInt8]) throws {
    let message = try Modern.Modern(serializedBytes: before + [0x72, 0])
    #expect(message.shutMap.mapValues(\.rawValue) == ["": 0])
    #expect(message.unknownFields.bytes == before)
    #expect(try Modern.Modern(serializedBytes: message.serializedBytes()) == message)
  }

  /// Both spellings of é are one key to Swift, and two in protobuf.
  @Test func equivalentKeys() throws {
    let composed: [UInt8] = [0x0A, 7, 0x0A, 2, 0xC3, 0xA9, 0x12, 1, 0x31]
    let decomposed: [UInt8] = [0x0A, 8, 0x0A, 3, 0x65, 0xCC, 0x81, 0x12, 1, 0x32]
    let maps = try Fixture.Maps(serializedBytes: composed + decomposed + composed)
    #expect(maps.stringToString == ["\u{E9}": "1"])
    #expect(maps.serializedBytes() == composed + decomposed)
  }

  @Test func defaults() {
    let empty = Legacy.Defaults()
    #expect(empty.int32OrDefault == -42 && empty.uint64OrDefault == .max)
    #expect(empty.sint64OrDefault == .min && empty.floatOrDefault == 1.5e-9)
    #expect(empty.doubleOrDefault == .infinity && empty.negativeOrDefault == -.infinity)
    #expect(empty.notANumberOrDefault.isNaN && empty.boolOrDefault)
    #expect(empty.stringOrDefault == "a\"\\\né?" && empty.closedOrDefault == .apart)
    #expect(empty.bytesOrDefault == [0, 1, 0x5C, 0x22, 0xFE])
    #expect(empty.plainOrDefault == 0.25 && empty.firstOrDefault == 7)
    #expect(empty.defaultOrDefault == "x" && empty.classOrDefault == "")
    #expect(Legacy.Defaults(int32: 1, either: .first(3)).int32OrDefault == 1)
    #expect(Legacy.Defaults(either: .first(3)).firstOrDefault == 3)
    #expect(empty.serializedBytes().isEmpty)
  }

  @Test func required() throws {
    func path(_ needy: Legacy.Needy) -> String? {
      let error = #expect(throws: DecodingError.self) {
        try Legacy.Needy(serializedBytes: needy.serializedBytes())
      }
      #expect(error?.kind == .missingRequired)
      return error?.path
    }
    #expect(path(.init()) == "id")
    let full = Legacy.Needy(id: 1)
    #expect(try Legacy.Needy(serializedBytes: full.serializedBytes()) == full)
    #expect(path(.init(id: 1, next: .init())) == "next.id")
    #expect(path(.init(id: 1, list: [full, .init(id: 2, next: .init())])) == "list[1].next.id")
    #expect(path(.init(id: 1, map: ["k": .init()])) == "map[k].id")
    #expect(path(.init(id: 1, either: .one(.init()))) == "one.id")
    #expect(path(.init(id: 1, part: .init())) == "part.name")
    #expect(try Legacy.Needy(partialSerializedBytes: []).id == nil)
    #expect(throws: DecodingError.self) { try Legacy.Outer(serializedBytes: [0x0A, 0]) }
    #expect(throws: DecodingError.self) { try Modern.Required(serializedBytes: []) }
    #expect(Legacy.Old().missingRequiredField == nil)
  }

  /// Strings of proto2 may hold any bytes. Those that are no text stay unknown fields, and what is
  /// behind them in a list too: whoever reads the bytes again finds the list as it was.
  /// upb looks at nothing in an item of a `MessageSet` but the number and the message; C++ refuses
  /// fields without a number there too.
  @Test func itemsTakeFieldsWithoutNumbers() throws {
    let item: [UInt8] = [
      0x0B, 0x10, 0xF9, 0xBB, 0x5E, 0x1A, 2, 0x78, 5, 0x02, 1, 0xFF, 0x00, 7, 0x0C,
    ]
    let set = try Legacy.Set(serializedBytes: item)
    #expect(set[Legacy.Item.item]?.i == 5 && set.serializedBytes() == item)
    #expect(throws: DecodingError.self) { try Legacy.Old(serializedBytes: [0x02, 1, 0xFF]) }
    #expect(throws: DecodingError.self) { try Legacy.Set(serializedBytes: [0x0B, 0x04, 0x0C]) }
  }

  @Test func listsKeepTheirOrder() throws {
    let bytes: [UInt8] = [
      0x42, 1, 0x61, 0x42, 1, 0xFF, 0x42, 1, 0x62, 0x08, 5, 0x42, 2, 0x63, 0x64,
    ]
    let old = try Legacy.Old(serializedBytes: bytes)
    #expect(old.lines == ["a"] && old.number == 5)
    #expect(old.unknownFields.bytes == [0x42, 1, 0xFF, 0x42, 1, 0x62, 0x42, 2, 0x63, 0x64])
    #expect(
      old.serializedBytes()
        == [0x08, 5, 0x42, 1, 0x61, 0x42, 1, 0xFF, 0x42, 1, 0x62, 0x42, 2, 0x63, 0x64])
    #expect(try Legacy.Old(serializedBytes: old.serializedBytes()) == old)
  }

  @Test func requiredInExtensions() throws {
    func path(_ change: (inout Legacy.Extensible) -> Void) throws -> String? {
      var message = Legacy.Extensible()
      change(&message)
      let bytes = message.serializedBytes()
      #expect(try Legacy.Extensible(partialSerializedBytes: bytes) == message)
      do throws(DecodingError) {
        _ = try Legacy.Extensible(serializedBytes: bytes)
        return nil
      } catch {
        #expect(error.kind == .missingRequired)
        return error.path
      }
    }
    #expect(try path { _ in } == nil)
    #expect(try path { $0[Legacy.needy] = .init(id: 1) } == nil)
    #expect(try path { $0[Legacy.needy] = .init() } == "[fixture.legacy.needy].id")
    #expect(
      try path { $0[Legacy.needies] = [.init(id: 1), .init(id: 1, next: .init())] }
        == "[fixture.legacy.needies][1].next.id")
    #expect(try path { $0[Legacy.needygroup] = .init() } == "[fixture.legacy.needygroup].id")
    var inner = Legacy.Extensible()
    inner[Legacy.needy] = .init()
    #expect(
      try path { $0[Legacy.needygroup] = .init(id: 1, nested: inner) }
        == "[fixture.legacy.needygroup].nested.[fixture.legacy.needy].id")
    #expect(throws: DecodingError.self) { try inner.value(of: Legacy.needy) }
    #expect(inner[Legacy.needy] == .init())
  }

  @Test func extensions() throws {
    var old = try Legacy.Old(serializedBytes: [0x08, 1, 0xA0, 6, 5, 0xA2, 6, 1, 6])
    // 100 as a varint is oldNumber; with another wire type it is not.
    #expect(old[Legacy.oldNumber] == 5 && old.has(Legacy.oldNumber))
    #expect(old.serializedBytes() == [0x08, 1, 0xA0, 6, 5, 0xA2, 6, 1, 6])
    #expect(old[Legacy.oldText] == "none" && old[Legacy.oldClosed] == .second)
    #expect(old[Legacy.oldList] == [] && !old.has(Legacy.oldList))
    old[Legacy.oldText] = "t"
    old[Legacy.oldList] = [1, -1]
    old[Legacy.oldPacked] = [2, -2]
    old[Legacy.oldOld] = .init(number: 7)
    old[Legacy.oldOlds] = [.init(), .init(text: "x")]
    old[Legacy.oldClosed] = .apart
    old[Legacy.oldgroup] = .init(x: 8)
    old[Legacy.oldgroups] = [.init(x: 1), .init()]
    old[Legacy.Scope.flag] = true
    old[Legacy.Scope.flags] = ["a", "b"]
    let again = try Legacy.Old(serializedBytes: old.serializedBytes())
    #expect(again == old && again[Legacy.oldText] == "t" && again[Legacy.oldList] == [1, -1])
    #expect(again[Legacy.oldPacked] == [2, -2] && again[Legacy.oldOld]?.number == 7)
    #expect(again[Legacy.oldOlds] == [.init(), .init(text: "x")])
    #expect(again[Legacy.oldClosed] == .apart && again[Legacy.oldgroup]?.x == 8)
    #expect(again[Legacy.oldgroups] == [.init(x: 1), .init()])
    #expect(again[Legacy.Scope.flag] == true && again[Legacy.Scope.flags] == ["a", "b"])
    old[Legacy.oldNumber] = nil
    #expect(!old.has(Legacy.oldNumber) && old.number == 1)
    // Merged like a field: the last number, both parts of a message.
    let twice = try Legacy.Old(
      serializedBytes: [0xC2, 6, 2, 8, 1, 0xC2, 6, 3, 0x12, 1, 0x61, 0xA0, 6, 1, 0xA0, 6, 2])
    #expect(twice[Legacy.oldOld] == .init(number: 1, text: "a") && twice[Legacy.oldNumber] == 2)
  }

  /// Extensions of the message's own file are checked with it, as if they were its fields.
  @Test func malformedExtensions() throws {
    func kind(_ bytes: [UInt8]) -> DecodingError.Kind? {
      do throws(DecodingError) {
        _ = try Legacy.Old(serializedBytes: bytes)
        return nil
      } catch {
        return error.kind
      }
    }
    #expect(kind([0xC2, 6, 1, 8]) == .truncated)  // old_old, its field 1 without a value
    #expect(kind([0xC2, 6, 1, 0]) == .invalidTag)
    #expect(kind([0xDB, 6, 8, 1]) == .unterminatedGroup)  // oldgroup that does not end
    #expect(kind([0xE2, 6, 1, 0x80]) == .truncated)  // old_closeds, packed
    #expect(kind([0xD2, 6, 1, 8]) == nil)  // old_closed with a string's wire type: unknown
    // Closed enums keep what they do not know.
    let closed = try Legacy.Old(serializedBytes: [0xD0, 6, 99])
    #expect(closed.serializedBytes() == [0xD0, 6, 99])
    // A string of editions is UTF-8, one of proto2 anything.
    #expect(throws: DecodingError.self) {
      try Modern.Modern(serializedBytes: [0xCA, 6, 1, 0xFF])
    }
    #expect(throws: Never.self) { try Modern.Modern(serializedBytes: [0xC2, 6, 1, 0xFF]) }
    #expect(try Legacy.Old(serializedBytes: [0xAA, 6, 1, 0xFF]).has(Legacy.oldText))
    // Another message's extension in a file we were not generated with stays a lump of bytes.
    #expect(try Legacy.Old(serializedBytes: [0xBA, 0x0C, 1, 0xFF]).unknownFields.bytes.count == 4)
  }

  /// The depth counts through extensions and items of a `MessageSet`.
  @Test func deepExtensions() {
    func nested(_ depth: Int, _ wrap: ([UInt8]) -> [UInt8]) -> [UInt8] {
      (0..<depth).reduce([]) { bytes, _ in wrap(bytes) }
    }
    func length(_ count: Int) -> [UInt8] {
      count < 128 ? [UInt8(count)] : [UInt8(count & 127) | 128] + length(count >> 7)
    }
    func old(_ bytes: [UInt8]) -> [UInt8] { [0xC2, 6] + length(bytes.count) + bytes }
    #expect(throws: Never.self) { try Legacy.Old(serializedBytes: nested(100, old)) }
    #expect(throws: DecodingError.self) { try Legacy.Old(serializedBytes: nested(101, old)) }
    #expect(throws: DecodingError.self) { try Legacy.Old(serializedBytes: nested(20_000, old)) }
  }

  @Test func messageSets() throws {
    var set = Legacy.Set()
    set[Legacy.Item.item] = .init(i: 5)
    set[Legacy.Second.second] = .init(text: "t")
    let again = try Legacy.Set(serializedBytes: set.serializedBytes())
    #expect(again[Legacy.Item.item]?.i == 5 && again[Legacy.Second.second]?.text == "t")
    set[Legacy.Item.item] = nil
    #expect(!set.has(Legacy.Item.item) && set[Legacy.Second.second]?.text == "t")
  }

  /// The odd items other writers make; 1547769 is 0xF9 0xBB 0x5E as a varint.
  @Test(arguments: [
    // The message before its number.
    [0x0B, 0x1A, 2, 0x78, 5, 0x10, 0xF9, 0xBB, 0x5E, 0x0C],
    // Two messages, two numbers: the first ones count.
    [0x0B, 0x10, 0xF9, 0xBB, 0x5E, 0x1A, 2, 0x78, 5, 0x1A, 2, 0x78, 6, 0x0C],
    [0x0B, 0x1A, 2, 0x78, 5, 0x10, 0xF9, 0xBB, 0x5E, 0x1A, 2, 0x78, 6, 0x0C],
    [0x0B, 0x10, 0xF9, 0xBB, 0x5E, 0x1A, 2, 0x78, 5, 0x10, 7, 0x0C],
    // Two items are merged.
    [0x0B, 0x10, 0xF9, 0xBB, 0x5E, 0x1A, 2, 0x78, 4, 0x0C]
      + [0x0B, 0x10, 0xF9, 0xBB, 0x5E, 0x1A, 2, 0x78, 5, 0x0C],
    // As a plain field, from who does not know of the set.
    [0xCA, 0xDF, 0xF3, 0x05, 2, 0x78, 5],
  ])
  func oddItems(bytes: [UInt8]) throws {
    let set = try Legacy.Set(serializedBytes: bytes)
    #expect(set[Legacy.Item.item] == .init(i: 5))
    #expect(set.serializedBytes() == bytes)
    var changed = set
    changed[Legacy.Item.item] = nil
    #expect(changed.serializedBytes().isEmpty)
  }

  @Test func malformedItems() {
    // The message's field has no value; also when it comes before its number.
    for item: [UInt8] in [
      [0x0B, 0x10, 0xF9, 0xBB, 0x5E, 0x1A, 1, 0x78, 0x0C],
      [0x0B, 0x1A, 1, 0x78, 0x10, 0xF9, 0xBB, 0x5E, 0x0C],
    ] {
      #expect(throws: DecodingError.self) { try Legacy.Set(serializedBytes: item) }
    }
    // Nobody looks into the message of an unknown number.
    let unknown: [UInt8] = [0x0B, 0x10, 9, 0x1A, 1, 0x78, 0x0C]
    #expect((try? Legacy.Set(serializedBytes: unknown))?.serializedBytes() == unknown)
  }

  @Test func features() throws {
    let message = Modern.Modern(
      explicit: 0, implicit: 0, implicitLoose: "", packed: [1], expanded: [1],
      prefixed: .init(), delimited: .init(), delimiteds: [.init()], open: .zero,
      shuts: [.one], part: .init(x: 1))
    let bytes: [UInt8] = [
      0x08, 0, 0x32, 1, 1, 0x38, 1, 0x42, 0, 0x4B, 0x4C, 0x53, 0x54, 0x6A, 1, 1,
      0xB3, 1, 0x08, 1, 0xB4, 1,
    ]
    #expect(message.serializedBytes() == bytes)
    #expect(try Modern.Modern(serializedBytes: bytes) == message)
    #expect(try Modern.Modern(serializedBytes: [0x60, 3]).shut == nil)
    #expect(try Modern.Modern(serializedBytes: [0x58, 3]).open == .init(rawValue: 3))
    // Maps stand behind their lengths, whatever the file says.
    let grouped = Grouped.Grouped(child: .init(), map: [1: .init(text: "a")], shuts: [.five])
    #expect(
      grouped.serializedBytes()
        == [0x0B, 0x0C, 0x1A, 7, 8, 1, 0x12, 3, 0x3A, 1, 0x61, 0x20, 5])
  }

  @Test func alikeNames() throws {
    let alike = Legacy.Alike(
      fooBar: 1, fooBar2: 2, fooBar3: 3, choice: .ab(4), fooBarOneof: .c(5),
      missingRequiredFieldField: 6)
    #expect(try Legacy.Alike(serializedBytes: alike.serializedBytes()) == alike)
  }
}
