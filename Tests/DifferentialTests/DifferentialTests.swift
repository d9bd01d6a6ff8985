import Glibc
import ProtobufOracle
import TestMessages
import Testing
import VencejoAPI
import VencejoDescriptors
import VencejoProtobuf
import VencejoRPC

/// Our codec against three others: Google's C++ and Python (whose engine is upb), and protobuf-c.
/// Random messages go through each and mean the same afterwards; damaged ones are accepted or
/// refused as they do it.
@Suite(.serialized)
struct DifferentialTests {
  /// How many messages of each type; ten times as many in a full run.
  private static let count = getenv("VENCEJO_FULL") == nil ? 25 : 250

  private static let files = [
    Fixture.everythingProto, Legacy.legacyProto, Google.descriptorProto, Auth.authProto,
    Chat.chatProto, Record.recordProto, GoogleRPC.statusProto, GoogleRPC.errorDetailsProto,
  ]

  /// A type and whether protobuf-c can be generated for it.
  struct Subject: Sendable, CustomTestStringConvertible {
    let type: any Message.Type
    var isKnownToC = true
    var testDescription: String { type.messageName }
  }

  static let subjects = [
    Subject(type: Fixture.Everything.self), Subject(type: Fixture.Lists.self),
    Subject(type: Fixture.Maps.self), Subject(type: Fixture.Tree.self),
    Subject(type: Fixture.WellKnown.self), Subject(type: Google.FileDescriptorSet.self),
    Subject(type: Google.FileDescriptorProto.self), Subject(type: Chat.Message.self),
    Subject(type: Chat.Chat.self), Subject(type: Record.Record.self),
    Subject(type: Auth.Session.self), Subject(type: GoogleRPC.Status.self),
    Subject(type: GoogleRPC.BadRequest.self),
    Subject(type: Legacy.Old.self, isKnownToC: false),
    Subject(type: Legacy.Defaults.self, isKnownToC: false),
    Subject(type: Legacy.Needy.self, isKnownToC: false),
    Subject(type: Legacy.Set.self, isKnownToC: false),
  ]

  private static let engines = Result {
    try Oracle.Engine.allCases.map { ($0, try Oracle($0, files: files)) }
  }

  private static var areWanted: Bool { Oracle.Engine.allCases.allSatisfy(Oracle.isWanted) }

  @Test(.enabled(if: areWanted), arguments: subjects)
  func random(subject: Subject) throws { try compare(subject.type, isKnownToC: subject.isKnownToC) }

  private func compare<M: Message>(_: M.Type, isKnownToC: Bool) throws {
    let engines = try Self.engines.get()
    let python = try #require(engines.first { $0.0 == .python }?.1)
    let type = try #require(try DescriptorPool.generated(for: M.self).message(M.messageName))
    let seeds = (0..<Self.count).map { Array(String($0).utf8) }
    let originals = try python.ask(
      isKnownToC ? .randomPlain : .random, M.messageName, seeds
    ).map { try $0.get() }
    let canonical = try python.ask(.recode, M.messageName, originals).map { try $0.get() }
    let ours = try originals.map { try M(partialSerializedBytes: $0).serializedBytes() }
    let dynamic = try originals.map {
      try DynamicMessage(type, serializedBytes: $0, partial: true).serializedBytes()
    }
    for (engine, oracle) in engines where engine != .c || isKnownToC {
      // What we wrote, read by the other, means what was there first; then the way back.
      for written in [ours, dynamic] {
        let theirs = try oracle.ask(.recode, M.messageName, written).map { try $0.get() }
        let back = try theirs.map { try M(partialSerializedBytes: $0).serializedBytes() }
        let again = try python.ask(.recode, M.messageName, back).map { try $0.get() }
        let differing = zip(again, canonical).filter { $0 != $1 }
        #expect(differing.isEmpty, "\(engine) changes \(M.messageName)")
      }
    }
    // Where the order is defined bytes are equal to C++'s. Of maps it is not; extensions of
    // generated messages stay where they arrived.
    if let cpp = engines.first(where: { $0.0 == .cpp })?.1,
      isKnownToC || M.self == Legacy.Defaults.self
    {
      let theirs = try cpp.ask(.recode, M.messageName, originals).map { try $0.get() }
      let mine = try originals.map {
        try M(partialSerializedBytes: $0).serializedBytes(deterministic: true)
      }
      let differing = zip(mine, theirs).filter { $0 != $1 }
      #expect(differing.isEmpty, "\(differing.count) of \(M.messageName) in another order")
    }
  }

  @Test(.enabled(if: areWanted), arguments: subjects)
  func damaged(subject: Subject) throws { try damage(subject.type) }

  private func damage<M: Message>(_: M.Type) throws {
    let engines = try Self.engines.get()
    let python = try #require(engines.first { $0.0 == .python }?.1)
    let type = try #require(try DescriptorPool.generated(for: M.self).message(M.messageName))
    let damaged = Oracle.mutated(try python.random(M.self, Self.count), each: 30)
    let verdicts = try python.ask(.recode, M.messageName, damaged).map { answer in
      if case .success = answer { true } else { false }
    }
    let cpp = try #require(engines.first { $0.0 == .cpp }?.1)
    let lenient = try cpp.ask(.recode, M.messageName, damaged).map { answer in
      if case .success = answer { true } else { false }
    }
    for (bytes, (strict, lenient)) in zip(damaged, zip(verdicts, lenient)) {
      let mine = (try? M(partialSerializedBytes: bytes)) != nil
      let dynamic = (try? DynamicMessage(type, serializedBytes: bytes, partial: true)) != nil
      // C++ 3.21 takes tags of more than 32 bits, and anything in maps of messages it knows by
      // their descriptors only; upb does not. upb takes fields without a number in items of a
      // MessageSet; C++ does not.
      let isBehind = lenient || !mine || M.self == Legacy.Set.self
      #expect(mine == dynamic && mine == strict && isBehind, "\(bytes)")
    }
  }
}
