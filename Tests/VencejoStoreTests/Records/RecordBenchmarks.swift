import Glibc
import Synchronization
import Testing

@testable import VencejoStore

/// What records cost; `Scripts/bench/records` runs it. No bound is asserted: figures depend on the
/// machine, their ratios hardly do.
@Suite(.serialized, .enabled(if: getenv("VENCEJO_BENCH") != nil)) struct RecordBenchmarks {
  private static let count =
    getenv("VENCEJO_BENCH_RECORDS").flatMap { Int(String(cString: $0)) }
    ?? 20_000

  /// Seconds of processor time of this process.
  private func cpu() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  private func microseconds(_ body: () async throws -> Void, per count: Int) async rethrows
    -> Double
  {
    let before = cpu()
    try await body()
    return (cpu() - before) * 1e6 / Double(count)
  }

  private func shown(_ number: Double) -> String { "\((number * 100).rounded() / 100)" }

  /// Queries as apps have them: one value, a range, a word, each about something else.
  private func query(_ index: Int) throws -> CheckedQuery {
    let predicate: Predicate =
      switch index % 4 {
      case 0: .comparison(field: "owner", .equal, .string("user\(index)"))
      case 1: .comparison(field: "n", .greaterThan, .int64(Int64(1_000 + index)))
      case 2: .listContains(field: "tags", [.string("tag\(index)")], all: false)
      default:
        .allOf([
          .comparison(field: "state", .equal, .string("open")),
          .comparison(field: "room", .equal, .int64(Int64(index))),
        ])
      }
    return try RecordQuery(type: "Note", predicate: predicate).checked()
  }

  /// The processor time of matching one change against 100, 1,000 and 10,000 live targets; each
  /// size matches the same four.
  @Test func matching() async throws {
    let bench = try RecordBench()
    defer { bench.store.close() }
    let sizes = [100, 1_000, 10_000]
    var indexes: [TargetIndex<Int>] = []
    for size in sizes {
      var index = TargetIndex<Int>()
      for number in 0..<size { index.add(number, try query(number)) }
      indexes.append(index)
    }
    let record = try bench.record(
      "a",
      [
        "owner": .string("user4"), "n": .int64(1_004), "tags": .list([.string("tag6")]),
        "state": .string("open"), "room": .int64(7), "title": .string("nothing asked for"),
      ])
    var best = [Double](repeating: .infinity, count: sizes.count)
    for _ in 0..<7 {
      for place in sizes.indices {
        let time = await microseconds(
          {
            for _ in 0..<500 { _ = indexes[place].matches(old: record, new: record) }
          }, per: 500)
        best[place] = min(best[place], time)
      }
    }
    for place in sizes.indices {
      let found = indexes[place].matches(old: nil, new: record).count
      print("matching, \(sizes[place]) targets, \(found) found: \(shown(best[place])) us a change")
    }
    print("matching, 10,000 to 100 targets: \(shown(best[2] / best[0])) times")
  }

  /// Acknowledged batches of one save, from 64 callers at once, with 10,000 live targets over
  /// 1,000 streams that are told by an index as the server's hub does.
  @Test func acknowledgedSaves() async throws {
    let bench = try RecordBench()
    defer { bench.store.close() }
    try await bench.makeZone()
    let index = Mutex(FeedIndex<Int>())
    for stream in 0..<1_000 {
      let targets = (0..<10).map { number in
        (
          id: Int32(number),
          target: RecordFeed.Target.query(
            RecordQuery(
              type: "Note",
              predicate: .comparison(
                field: "owner", .equal, .string("user\(stream * 10 + number)"))))
        )
      }
      let feed = try RecordFeed(database: bench.database, targets: targets)
      index.withLock { $0.add(stream, feed) }
    }
    bench.store.observe { batch in
      index.withLock { index in
        for event in batch.transactions.joined() {
          if let touched = event.payload as? RecordsTouched {
            _ = index.concerned(by: touched)
          }
        }
      }
    }
    let calls = 4_000
    let start = ContinuousClock.now
    let used = try await microseconds(
      {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for caller in 0..<64 {
            group.addTask {
              for call in 0..<calls / 64 {
                try await bench.save(
                  [
                    bench.record(
                      "r\(caller)-\(call)",
                      ["owner": .string("user\(call)"), "n": .int64(Int64(call))])
                  ], policy: .replace)
              }
            }
          }
          try await group.waitForAll()
        }
      }, per: calls)
    let seconds =
      Double(start.duration(to: .now).components.attoseconds) / 1e18
      + Double(start.duration(to: .now).components.seconds)
    print(
      "acknowledged saves with 10,000 targets: \(shown(Double(calls) / seconds)) a second,"
        + " \(shown(used)) us of processor time each")
  }

  /// A table of many records with 20 fields each: reading, asking, following and saving.
  @Test func manyRecords() async throws {
    let bench = try RecordBench()
    defer { bench.store.close() }
    try await bench.makeZone()
    let (zone, caller) = (bench.zone, bench.caller)
    var total = 0.0
    for size in [Self.count / 10, Self.count] {
      let already = size == Self.count ? Self.count / 10 : 0
      total += try await microseconds(
        {
          for start in stride(from: already, to: size, by: 5_000) {
            let part = try (start..<min(start + 5_000, size)).map { number in
              var fields: [String: RecordValue] = [:]
              for field in 0..<20 {
                fields["f\(field)"] =
                  field % 2 == 0
                  ? .int64(Int64((number &* 7919 &+ field) % 1_000_003))
                  : .string("value \(number % 5_000) \(field)")
              }
              return try bench.record("r\(number)", fields)
            }
            _ = try await bench.store.writeRecords(bench.database, caller: caller) {
              try $0.importRecords(part, into: zone, in: $1, caller: caller)
            }
          }
        }, per: size - already)
      func tell(_ what: String, _ count: Int, _ body: () async throws -> Void) async throws {
        let time = try await microseconds(body, per: count)
        print("\(size) records, \(what): \(shown(time)) us")
      }
      try await tell("a point read", 500) {
        for number in 0..<500 {
          let id = try bench.id("r\((number &* 104_729) % size)")
          _ = try await bench.store.readRecords(bench.database, caller: caller) {
            try $0.record(id, in: $1)
          }
        }
      }
      for (what, query) in [
        (
          "equality",
          RecordQuery(
            type: "Note", predicate: .comparison(field: "f1", .equal, .string("value 7 1")))
        ),
        (
          "range with its sort",
          RecordQuery(
            type: "Note", predicate: .comparison(field: "f0", .greaterThan, .int64(500_000)),
            sort: [SortKey("f0")])
        ),
        ("sort alone", RecordQuery(type: "Note", sort: [SortKey("f4", descending: true)])),
      ] {
        var token = ""
        var pages = 0
        try await tell("a page of 100 by \(what), from a cursor", 20) {
          while pages < 20 {
            pages += 1
            let page = try await bench.store.readRecords(bench.database, caller: caller) {
              [token] in
              try $0.queryRecords(
                query, zone: zone, in: $1, pageSize: 100, pageToken: token)
            }
            token = page.nextPageToken ?? ""
          }
        }
      }
      let middle = try await bench.store.read { try $0.head() } - Int64(size / 2)
      try await tell("a page of 100 of the zone's changes, from the middle", 20) {
        for _ in 0..<20 {
          _ = try await bench.store.readRecords(bench.database, caller: caller) {
            try $0.zoneChanges(
              $0.recordZone(zone, in: $1), in: $1, after: middle, types: [], pageSize: 100,
              caller: caller)
          }
        }
      }
      try await tell("a save in a batch of 400", 400) {
        try await bench.save(
          (0..<400).map { number in
            try bench.record(
              "new\(size)-\(number)",
              Dictionary(
                uniqueKeysWithValues: (0..<20).map { ("f\($0)", RecordValue.int64(Int64($0))) }
                  .map {
                    $0.0.hasSuffix("1") || Int($0.0.dropFirst()).map { $0 % 2 == 1 } == true
                      ? ($0.0, .string("new")) : $0
                  }))
          })
      }
      print("\(size) records, importing one: \(shown(total / (already == 0 ? 1 : 2))) us")
    }
  }
}
