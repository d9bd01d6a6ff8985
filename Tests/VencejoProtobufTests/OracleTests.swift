import ProtobufOracle
import TestMessages
import TestSupport
import Testing
import VencejoProtobuf

/// Our codec against Google's Python protobuf (the C engine upb).
@Suite(.enabled(if: Oracle.isWanted))
struct OracleTests {
  private static let shared = Result {
    try Oracle(
      file: Fixture.everythingProto, Legacy.legacyProto, Modern.modernProto, Grouped.groupedProto)
  }
  let oracle: Oracle

  init() throws { oracle = try Self.shared.get() }

  /// Decodes the oracle's random messages and encodes them again. What the oracle makes of that
  /// must be the original; without maps, whose order is free, even before it has seen it.
  private func roundTrip<M: Message>(_ type: M.Type, _ count: Int, maps: Bool = false) throws {
    let originals = try oracle.random(type, count)
    var encoded: [[UInt8]] = []
    for bytes in originals {
      let message = try M(serializedBytes: bytes)
      encoded.append(message.serializedBytes())
      #expect(message.unknownFields.isEmpty)
      #expect(maps || message.serializedBytes() == bytes)
      #expect(message.serializedBytes().count == bytes.count)
      #expect(try M(serializedBytes: message.serializedBytes()) == message)
    }
    let recoded = try oracle.ask(.recode, M.messageName, encoded).map { try $0.get() }
    #expect(recoded == originals)
  }

  @Test func scalars() throws { try roundTrip(Fixture.Scalars.self, 1000) }
  @Test func optionals() throws { try roundTrip(Fixture.Optionals.self, 1000) }
  @Test func lists() throws { try roundTrip(Fixture.Lists.self, 500) }
  @Test func maps() throws { try roundTrip(Fixture.Maps.self, 150, maps: true) }
  @Test func trees() throws { try roundTrip(Fixture.Tree.self, 150, maps: true) }
  @Test func wellKnownTypes() throws { try roundTrip(Fixture.WellKnown.self, 200, maps: true) }
  @Test func editions() throws {
    try roundTrip(Grouped.Grouped.self, 150, maps: true)
    try roundTrip(Legacy.Needy.self, 100, maps: true)
    try roundTrip(Legacy.Defaults.self, 300)
  }

  /// With extensions, which are unknown here: they come back behind the other fields.
  @Test func extensions() throws {
    for (name, recode) in [
      (Legacy.Old.messageName, { try Legacy.Old(serializedBytes: $0).serializedBytes() }),
      (Modern.Modern.messageName, { try Modern.Modern(serializedBytes: $0).serializedBytes() }),
      (Legacy.Set.messageName, { try Legacy.Set(serializedBytes: $0).serializedBytes() }),
    ] as [(String, ([UInt8]) throws -> [UInt8])] {
      let originals = try oracle.random(named: name, 150)
      let again = try oracle.ask(.recode, name, originals.map(recode)).map { try $0.get() }
      #expect(again == originals)
    }
  }

  @Test func everything() throws { try roundTrip(Fixture.Everything.self, 80, maps: true) }

  /// What an older program does not know survives, and a newer one reads it again.
  @Test func unknownFieldsSurvive() throws {
    let originals = try oracle.random(Fixture.Scalars.self, 500)
    for bytes in originals {
      let empty = try Google.Empty(serializedBytes: bytes)
      #expect(empty.serializedBytes() == bytes)
      let sparse = try Fixture.Sparse(serializedBytes: bytes)
      let again = try Fixture.Scalars(serializedBytes: sparse.serializedBytes())
      #expect(again.serializedBytes() == bytes)
    }
  }

  /// Both must accept the same inputs and understand them alike. Not their content when an
  /// entry of a map may have unknown fields: upb keeps such an entry as an unknown field of the
  /// message, we read the entry and drop them, as C++ and Go do.
  private func compare<M: Message>(
    _: M.Type, _ inputs: [[UInt8]], content: Bool = true
  ) throws -> Int {
    var accepted = 0
    for (input, answer) in zip(inputs, try oracle.ask(.recode, M.messageName, inputs)) {
      let message = try? M(partialSerializedBytes: input)
      switch (message, answer) {
      case (let message?, .success(let bytes)):
        accepted += 1
        let theirs = try M(partialSerializedBytes: bytes)
        #expect(!content || message == theirs, "\(input)")
      case (nil, .failure): break
      default: Issue.record("\(input): \(message == nil ? "we refuse" : "we accept")")
      }
    }
    return accepted
  }

  @Test func truncated() throws {
    for bytes in try oracle.random(Fixture.Everything.self, 40) where bytes.count < 2000 {
      _ = try compare(Fixture.Everything.self, bytes.indices.map { Array(bytes[..<$0]) })
    }
  }

  /// Valid messages with up to four bytes replaced.
  private func mutate<M: Message>(_: M.Type, content: Bool) throws {
    let inputs = Oracle.mutated(try oracle.random(M.self, 100))
    #expect(try compare(M.self, inputs, content: content) > 100)
  }

  @Test func mutated() throws {
    try mutate(Fixture.Scalars.self, content: true)
    try mutate(Fixture.Optionals.self, content: true)
    try mutate(Fixture.Lists.self, content: true)
    try mutate(Fixture.Tree.self, content: false)
    try mutate(Legacy.Needy.self, content: false)
    try mutate(Grouped.Grouped.self, content: false)
    try mutate(Legacy.Defaults.self, content: false)
  }

  @Test func randomBytes() throws {
    var random = SeededGenerator(state: 11)
    let inputs = (0..<100_000).map { _ in
      (0..<random.next(upperBound: UInt64(24))).map { _ -> UInt8 in
        // Small numbers are more often valid tags and lengths.
        let byte = UInt8(truncatingIfNeeded: random.next())
        return random.next() & 1 == 0 ? byte : byte & 0x1F
      }
    }
    #expect(try compare(Fixture.Tree.self, inputs) > 1000)
  }

  /// Nesting up to the limit is fine, and one more is not; both agree.
  @Test func nesting() throws {
    let inputs = [98, 99, 100, 101, 102, 1000].map { depth -> [UInt8] in
      var bytes: [UInt8] = []
      for _ in 0..<depth {
        let writer = Google.BytesValue(value: bytes).serializedBytes()
        // BytesValue.value is field 1, Tree.left field 2, both length-delimited.
        bytes = writer.isEmpty ? [0x12, 0] : [0x12] + writer.dropFirst()
      }
      return bytes
    }
    #expect(try compare(Fixture.Tree.self, inputs) == 3)
    // Each step into a map is two messages: the entry and its value.
    let maps = [49, 50, 51, 200].map { depth -> [UInt8] in
      var tree = Fixture.Tree()
      for _ in 0..<depth { tree = Fixture.Tree(named: ["": tree]) }
      return tree.serializedBytes()
    }
    #expect(try compare(Fixture.Tree.self, maps) == 2)
    // A packed list is no message.
    var lists = Fixture.Tree(numbers: [1, 2])
    for _ in 0..<100 { lists = Fixture.Tree(left: lists) }
    #expect(try compare(Fixture.Tree.self, [lists.serializedBytes()]) == 1)
  }
}
