import ProtobufOracle
import TestMessages
import Testing
import VencejoDescriptors
import VencejoProtobuf

/// Dynamic messages against Google's Python protobuf, with all their extensions known.
@Suite(.enabled(if: Oracle.isWanted))
struct DynamicOracleTests {
  private static let shared = Result {
    try Oracle(
      file: Fixture.everythingProto, Legacy.legacyProto, Modern.modernProto, Grouped.groupedProto)
  }
  let oracle: Oracle
  let pool: DescriptorPool

  init() throws {
    oracle = try Self.shared.get()
    pool = try DescriptorPool(
      Fixture.everythingProto, Legacy.legacyProto, Modern.modernProto, Grouped.groupedProto)
  }

  static let names = [
    "fixture.legacy.Old", "fixture.legacy.Set", "fixture.legacy.Needy", "fixture.legacy.Defaults",
    "fixture.modern.Modern", "fixture.grouped.Grouped", "fixture.Everything", "fixture.Lists",
  ]

  @Test(arguments: names)
  func roundTrip(name: String) throws {
    let type = try #require(pool.message(name))
    let originals = try oracle.random(named: name, 120)
    var ours: [[UInt8]] = []
    for bytes in originals {
      let message = try DynamicMessage(type, serializedBytes: bytes)
      #expect(message.unknownFields.isEmpty)
      ours.append(message.serializedBytes())
    }
    // Extensions and maps come in another order: the oracle puts them into its own.
    let recoded = try oracle.ask(.recode, name, ours).map { try $0.get() }
    #expect(zip(recoded, originals).allSatisfy { $0 == $1 })
  }

  /// Accepted or refused alike, and of the same content; not where an entry of a map may hold
  /// unknown fields, see OracleTests. Not sets: in an item upb takes a field number 0.
  @Test(arguments: names.filter { $0 != "fixture.legacy.Set" })
  func mutated(name: String) throws {
    let type = try #require(pool.message(name))
    let inputs = Oracle.mutated(try oracle.random(named: name, 40), each: 6)
    for (input, answer) in zip(inputs, try oracle.ask(.recode, name, inputs)) {
      let message = try? DynamicMessage(type, serializedBytes: input, partial: true)
      switch (message, answer) {
      case (let message?, .success(let bytes)):
        let theirs = try DynamicMessage(type, serializedBytes: bytes, partial: true)
        if ["fixture.Lists", "fixture.legacy.Defaults"].contains(name) {
          #expect(message == theirs, "\(input)")
        }
      case (nil, .failure): break
      default: Issue.record("\(answer) \(input): \(message == nil ? "we refuse" : "we accept")")
      }
    }
  }
}
