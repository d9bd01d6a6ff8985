import Testing

@testable import VencejoStore

/// Whom a change concerns.
@Suite struct TargetIndexTests {
  private static func zone() throws -> ZoneID {
    try ZoneID(database: DatabaseID(container: "c", database: "public"), zone: "z")
  }

  @Test(arguments: [11, 12] as [UInt64])
  func findsWhatTryingEachFinds(seed: UInt64) throws {
    var generator = RecordGenerator(seed: seed)
    let zone = try Self.zone()
    var queries: [Int: CheckedQuery] = [:]
    var index = TargetIndex<Int>()
    var matched = 0
    for round in 0..<600 {
      let query = RecordQuery(
        type: generator.below(8) == 0 ? "Other" : "Note", predicate: generator.predicate())
      let id = generator.below(200)
      if generator.below(5) == 0 {
        queries[id] = nil
        index.remove(id)
      } else {
        queries[id] = try query.checked()
        index.add(id, try query.checked())
      }
      let old =
        generator.below(3) == 0 ? nil : try generator.record("r\(round % 10)", zone: zone)
      let new =
        generator.below(4) == 0 ? nil : try generator.record("r\(round % 10)", zone: zone)
      let expected = queries.filter { _, query in
        old.map { query.matches($0) } ?? false || new.map { query.matches($0) } ?? false
      }
      matched += expected.count
      #expect(index.matches(old: old, new: new) == Set(expected.keys))
    }
    #expect(matched > 600)
  }

  /// The bound: from 100 to 10,000 targets over 1,000 streams, the work of a commit grows
  /// 1.5 times at most. Counted are the queries tried.
  @Test func triesAsManyWhateverTheNumberOfTargets() throws {
    func tried(targets: Int, streams: Int) throws -> (tried: Int, concerned: Int) {
      let zone = try Self.zone()
      var index = FeedIndex<Int>()
      for stream in 0..<streams {
        var parts: [(id: Int32, target: RecordFeed.Target)] = []
        for part in 0..<(targets / streams) {
          let number = Int64(stream * (targets / streams) + part)
          let state = Predicate.comparison(field: "state", .equal, .string("open"))
          let predicate: Predicate =
            switch part % 5 {
            case 0: .allOf([state, .comparison(field: "owner", .equal, .string("u\(number)"))])
            case 1:
              .allOf([
                .comparison(field: "n", .greaterThanOrEqual, .int64(number * 10)),
                .comparison(field: "n", .lessThan, .int64(number * 10 + 10)),
              ])
            case 2: .beginsWith(field: "title", "note \(number) ")
            case 3: .listContains(field: "tags", [.string("t\(number)")], all: false)
            default: .allOf([.search(words: ["w\(number)"], all: true, fields: []), state])
            }
          parts.append((Int32(part), .query(RecordQuery(type: "Note", predicate: predicate))))
        }
        index.add(stream, try RecordFeed(database: zone.database, targets: parts))
      }
      var concerned = 0
      for change in 0..<50 {
        let owner = change % 100
        let record = StoredRecord(
          id: try RecordID(zone: zone, record: "r"), type: "Note",
          fields: [
            "owner": .string("u\(owner)"), "state": .string("open"),
            "n": .int64(Int64(owner * 10 + 3)), "title": .string("note \(owner) w\(owner)"),
            "tags": .list([.string("t\(owner)")]),
          ])
        concerned +=
          index.concerned(
            by: RecordsTouched(database: 1, change: .record(zone: "z", old: nil, new: record))
          ).count
      }
      return (index.tried, concerned)
    }
    let few = try tried(targets: 100, streams: 10)
    let many = try tried(targets: 10_000, streams: 1_000)
    #expect(few.concerned == 50 && many.concerned == 50)
    #expect(2 * many.tried <= 3 * few.tried, "\(few.tried) and \(many.tried)")
  }
}
