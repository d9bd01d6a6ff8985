import TestSupport
import Testing

@testable import VencejoStore

/// Random records and predicates over few fields and few values, so that they meet often.
struct RecordGenerator {
  var random: SeededGenerator
  static let fields = ["a", "b", "c", "place", "tags"]
  static let words = [
    "", "a", "ab", "abc", "b", "é", "e\u{301}", "z\u{0}q", "\u{10FFFF}", "日本", "Ab É a-b",
    "B, abc!",
  ]
  static let integers: [Int64] = [.min, -1, 0, 1, 2, 9_007_199_254_740_993, .max]
  static let doubles: [Double] = [
    -.infinity, -1, -0.0, 0, 0.5, 1, 2, 9_007_199_254_740_992, 0x1p63, .infinity,
  ]
  static let spots: [(Double, Double)] = [
    (0, 0), (0, 180), (0, -180), (90, 0), (-90, 12), (48.8566, 2.3522), (48.8584, 2.2945),
    (-33.86, 151.2),
  ]

  init(seed: UInt64) { random = SeededGenerator(state: seed) }

  mutating func pick<T>(_ values: [T]) -> T {
    values[Int.random(in: 0..<values.count, using: &random)]
  }
  mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

  mutating func place() -> RecordLocation {
    let spot = pick(Self.spots)
    return RecordLocation(latitude: spot.0, longitude: spot.1)
  }

  mutating func scalar(_ kind: Int) -> RecordValue {
    switch kind {
    case 0: .string(pick(Self.words))
    case 1: .int64(pick(Self.integers))
    case 2: .double(pick(Self.doubles))
    case 3: .bytes(Array(pick(Self.words).utf8))
    case 4: .timestamp(pick([-1, 0, 1, 1_700_000_000_000_000]))
    default: .reference(RecordReference(zone: "z", record: pick(["r1", "r2", "é"])))
    }
  }

  mutating func value() -> RecordValue {
    switch below(8) {
    case 0...5: return scalar(below(6))
    case 6: return .location(place())
    default:
      let kind = below(6)
      return .list((0..<below(4)).map { _ in scalar(kind) })
    }
  }

  mutating func record(_ name: String, zone: ZoneID) throws -> StoredRecord {
    var fields: [String: RecordValue] = [:]
    for field in Self.fields where below(3) > 0 {
      fields[field] =
        switch field {
        case "place": below(4) == 0 ? value() : .location(place())
        case "tags":
          below(4) == 0 ? value() : .list((0..<below(4)).map { _ in .string(pick(Self.words)) })
        default: value()
        }
    }
    return StoredRecord(id: try RecordID(zone: zone, record: name), type: "Note", fields: fields)
  }

  mutating func field() -> String {
    below(10) == 0 ? pick(["___recordName", "___createTime", "___creator"]) : pick(Self.fields)
  }

  mutating func field(in names: [String]) -> String { pick(names) }

  mutating func predicate(_ depth: Int = 3) -> Predicate {
    if depth > 0, below(2) == 0 {
      let parts = (0..<below(4)).map { _ in predicate(depth - 1) }
      switch below(3) {
      case 0: return .allOf(parts)
      case 1: return .anyOf(parts)
      default: return .not(predicate(depth - 1))
      }
    }
    switch below(8) {
    case 7:
      return .search(
        words: (0...below(2)).map { _ in pick(["a", "É", "abc", "e b", "日本", "Z"]) },
        all: below(2) == 0, fields: below(2) == 0 ? [] : [field(in: Self.fields)])
    case 0...2:
      let value = scalar(below(6))
      let operators: [Predicate.Comparator] =
        if case .reference = value {
          [.equal, .notEqual]
        } else {
          [.equal, .notEqual, .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual]
        }
      return .comparison(field: field(), pick(operators), value)
    case 3: return .isIn(field: field(), (0...below(4)).map { _ in scalar(below(6)) })
    case 4: return .beginsWith(field: field(), pick(Self.words))
    case 5:
      return .listContains(
        field: below(3) == 0 ? field() : "tags",
        (0...below(2)).map { _ in below(4) == 0 ? scalar(below(6)) : .string(pick(Self.words)) },
        all: below(2) == 0)
    default:
      return below(2) == 0
        ? .present(field: field())
        : .distance(
          field: "place", center: place(), radiusMeters: pick([0, 1, 2_500, 5_000, 1e6, 2e7, 3e7]))
    }
  }

  mutating func sort() -> [SortKey] {
    (0..<below(4)).map { _ in
      below(5) == 0
        ? SortKey("place", descending: below(2) == 0, relativeTo: place())
        : SortKey(field(), descending: below(2) == 0)
    }
  }
}

/// A store in a folder of its own, with an administrator.
struct RecordBench {
  let scratch: Scratch
  let store: Store
  let caller = RecordCaller(key: 1, user: "ada", isAdministrator: true)
  let database: DatabaseID
  let zone: ZoneID

  init(_ change: (inout StoreOptions) -> Void = { _ in }) throws {
    scratch = try Scratch()
    store = try scratch.open(change)
    database = try DatabaseID(container: "notes", database: "u-ada")
    zone = try ZoneID(database: database, zone: "z")
  }

  func makeZone() async throws {
    _ = try await store.writeRecords(database, caller: caller) { [zone, caller] in
      try $0.createZone(zone, in: $1, caller: caller)
    }
  }

  func id(_ name: String) throws -> RecordID { try RecordID(zone: zone, record: name) }

  func record(
    _ name: String, _ fields: [String: RecordValue] = [:], tag: String = ""
  ) throws -> StoredRecord {
    StoredRecord(id: try id(name), type: "Note", fields: fields, changeTag: tag)
  }

  @discardableResult
  func modify(_ batch: ModifyBatch, as other: RecordCaller? = nil) async throws -> ModifyOutcome {
    let caller = other ?? self.caller
    return try await store.writeRecords(database, caller: caller) {
      try $0.modifyRecords(batch, in: $1, caller: caller)
    }
  }

  @discardableResult
  func save(
    _ records: [StoredRecord], policy: SavePolicy = .ifServerRecordUnchanged, mixed: Bool = false
  ) async throws -> [ModifyResult] {
    var batch = ModifyBatch(operations: records.map { .save($0, changedKeys: [], policy) })
    batch.checksTypes = !mixed
    return try await modify(batch).results
  }

  func query(_ query: RecordQuery, pageSize: Int = 1_000, pageToken: String = "") async throws
    -> QueryPage
  {
    try await store.readRecords(database, caller: caller) { [zone] in
      try $0.queryRecords(
        query, zone: zone, in: $1, pageSize: pageSize, pageToken: pageToken)
    }
  }
}

extension ModifyResult {
  var saved: StoredRecord? { if case .saved(let record) = self { record } else { nil } }
  var failure: RecordFailure? { if case .failed(let failure) = self { failure } else { nil } }
  var reason: String? { failure?.error.reason }
}
