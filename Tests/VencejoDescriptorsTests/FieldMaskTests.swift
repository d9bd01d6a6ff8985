import ProtobufOracle
import TestMessages
import Testing
import VencejoDescriptors
import VencejoProtobuf

/// Updates with masks; what they do is `field_mask.proto`'s, and Google's Python's.
struct FieldMaskTests {
  private let old = Fixture.Tree(
    label: "old", left: .init(label: "l", numbers: [1]), children: [.init(label: "c")],
    numbers: [1, 2])
  private let new = Fixture.Tree(
    label: "new", left: .init(numbers: [2]), children: [.init(label: "d")], numbers: [3])

  private func merged(
    _ paths: [String], _ options: FieldMaskOptions = .init()
  ) throws -> Fixture.Tree {
    var tree = old
    try tree.merge(new, masked: .init(paths: paths), options)
    return tree
  }

  @Test func merges() throws {
    #expect(try merged([]) == old)
    #expect(try merged(["label"]) == with { $0.label = "new" })
    #expect(try merged(["left.numbers"]) == with { $0.left?.numbers = [1, 2] })
    #expect(try merged(["left.label"]) == with { $0.left?.label = "" })
    #expect(try merged(["left"]) == with { $0.left?.numbers = [1, 2] })
    #expect(try merged(["numbers"]) == with { $0.numbers = [1, 2, 3] })
    #expect(try merged(["children.label", "nowhere", "label.x", ""]) == old)
    #expect(try merged(["left"], .replacing) == with { $0.left = .init(numbers: [2]) })
    #expect(try merged(["numbers", "right"], .replacing) == with { $0.numbers = [3] })
    // A mask that names a message and a part of it names the message.
    #expect(try merged(["left", "left.label"], .replacing) == with { $0.left = new.left })
  }

  private func with(_ change: (inout Fixture.Tree) -> Void) -> Fixture.Tree {
    var tree = old
    change(&tree)
    return tree
  }

  @Test func trims() throws {
    var tree = old
    try tree.trim(to: .init("left.label", "numbers", "right.label"))
    #expect(tree == .init(left: .init(label: "l"), numbers: [1, 2]))
    try tree.trim(to: .init())
    #expect(tree == .init())
  }

  @Test func validates() throws {
    let pool = try DescriptorPool.generated(for: Fixture.Tree.self)
    let tree = try #require(pool.message(Fixture.Tree.messageName))
    #expect(Google.FieldMask("left.left.label", "children").invalidPath(in: tree) == nil)
    for path in ["", "nope", "left.nope", "children.label", "label.x", "left.", "intoTheWild"] {
      #expect(Google.FieldMask("label", path).invalidPath(in: tree) == path)
    }
    #expect(Google.FieldMask(allFieldsOf: tree).invalidPath(in: tree) == nil)
  }

  @Test func unknownFieldsGo() throws {
    var tree = try Fixture.Tree(serializedBytes: old.serializedBytes() + [0xFA, 0x7F, 1, 0])
    let unknown = tree.unknownFields
    tree.left?.unknownFields = unknown
    tree.children[0].unknownFields = unknown
    try tree.discardUnknownFields()
    #expect(tree == old)
  }

  @Test func packs() throws {
    let pool = try DescriptorPool(Fixture.everythingProto)
    let packed = Google.AnyMessage(packing: old)
    let message = try #require(try packed.unpack(types: pool))
    #expect(message == (try DynamicMessage(old)) && packed.holds(Fixture.Tree.self))
    #expect(Google.AnyMessage(packing: message).typeUrl == packed.typeUrl)
    #expect(try Google.AnyMessage(typeUrl: "x/y").unpack(types: pool) == nil)
    #expect(try Fixture.Tree(message) == old)
    #expect(throws: DescriptorError.self) { try Fixture.Scalars(message) }
  }
}

/// Merging with masks as Google's Python does it.
@Suite(.enabled(if: Oracle.isWanted))
struct FieldMaskOracleTests {
  @Test(arguments: [FieldMaskOptions(), .replacing])
  func random(options: FieldMaskOptions) throws {
    let oracle = try Oracle(file: Fixture.everythingProto)
    let sources = try oracle.random(Fixture.Tree.self, 60)
    let targets = sources.reversed()
    // Of oneofs and of what is absent within a message Python thinks differently than C++ and
    // Java, whom we follow.
    let masks = [
      ["label"], ["left"], ["left.label"], ["numbers", "children"], ["named"],
      ["left.numbers", "left.children"], ["last", "label"],
    ]
    let operation: Oracle.Operation = options == .replacing ? .maskReplacing : .mask
    for (index, pair) in zip(sources, targets).enumerated() {
      let mask = Google.FieldMask(paths: masks[index % masks.count])
      var tree = try Fixture.Tree(serializedBytes: pair.1)
      let source = try Fixture.Tree(serializedBytes: pair.0)
      if source.left == nil && mask.paths[0].hasPrefix("left.") { continue }
      try tree.merge(source, masked: mask, options)
      let request = Fixture.Tree.messageName
      let question = Self.parts([pair.0, pair.1, mask.serializedBytes()])
      let answer = try oracle.ask(operation, request, [question])[0].get()
      let mine = try oracle.ask(.recode, request, [tree.serializedBytes()])[0].get()
      #expect(mine == answer, "\(mask.paths)")
    }
  }

  private static func parts(_ parts: [[UInt8]]) -> [UInt8] {
    parts.flatMap { part in
      withUnsafeBytes(of: UInt32(part.count).littleEndian) { Array($0) } + part
    }
  }
}
