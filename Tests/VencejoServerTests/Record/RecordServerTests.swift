import Testing
import VencejoAPI
import VencejoProtobuf
import VencejoRPC

/// RecordService through the real client.
@Suite struct RecordServerTests {
  private let notes = "containers/notes/databases/private"

  @Test func savesAndReadsBackEveryKindOfValue() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let zone = try await ana.makeZone("z", in: notes)
      #expect(zone.capabilities == .init(atomic: true, fetchChanges: true, sharing: true))
      #expect(zone.owner == ana.name)
      let target = "\(zone.name)/records/other"
      let fields: [String: Record.Value] = [
        "s": .init(kind: .stringValue("héllo")), "i": .init(kind: .int64Value(.min)),
        "d": .init(kind: .doubleValue(-0.5)), "b": .init(kind: .bytesValue([0, 255])),
        "t": .init(kind: .timestampValue(.init(seconds: -1, nanos: 999_999_000))),
        "p": .init(
          kind: .locationValue(
            .init(latitudeDegrees: 48.5, longitudeDegrees: 2.25, altitudeMeters: 0))),
        "r": .init(kind: .referenceValue(.init(record: target))),
        "l": .init(kind: .listValue(.init(values: [.init(kind: .int64Value(1))]))),
        "e": .init(kind: .listValue(.init())),
      ]
      let saved = try await ana.save("\(zone.name)/records/a", fields)
      #expect(saved.fields == fields)
      #expect(saved.creator == ana.name)
      #expect(!saved.changeTag.isEmpty)
      let got = try await ana.records.getRecord(.init(name: saved.name), ana.options)
      #expect(got.record == saved)
      let bare = try await ana.records.getRecord(
        .init(name: saved.name, desiredKeys: .init()), ana.options)
      #expect(bare.record?.fields == [:])
      let looked = try await ana.records.lookupRecords(
        .init(
          parent: notes, names: [target, saved.name], desiredKeys: .init(fields: ["i"])),
        ana.options)
      #expect(looked.results.count == 2)
      #expect(looked.results[0].reason == "RECORD_NOT_FOUND")
      guard case .record(let record)? = looked.results[1].result else {
        Issue.record("no record")
        return
      }
      #expect(record.fields == ["i": .init(kind: .int64Value(.min))])
    }
  }

  /// The bounds are timestamp.proto's.
  @Test func refusesTimesThatAreNone() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let zone = try await ana.makeZone("z", in: notes)
      let name = "\(zone.name)/records/a"
      let times: [Google.Timestamp] = [
        .init(seconds: .max), .init(seconds: .min), .init(seconds: 253_402_300_800),
        .init(seconds: -62_135_596_801), .init(seconds: 1, nanos: -1),
        .init(seconds: 1, nanos: 1_000_000_000), .init(seconds: 1, nanos: .max),
      ]
      for time in times {
        for value in [
          Record.Value(kind: .timestampValue(time)),
          Record.Value(kind: .locationValue(.init(sampleTime: time))),
          Record.Value(
            kind: .listValue(.init(values: [.init(kind: .timestampValue(time))]))),
        ] {
          await expect(.invalidArgument, "INVALID_REQUEST", "record.vencejo") {
            _ = try await ana.save(name, ["t": value])
          }
        }
      }
      for time in [
        Google.Timestamp(seconds: 253_402_300_799, nanos: 999_999_000),
        Google.Timestamp(seconds: -62_135_596_800),
      ] {
        let value = Record.Value(kind: .timestampValue(time))
        #expect(try await ana.save("\(zone.name)/records/", ["t": value]).fields["t"] == value)
      }
    }
  }

  @Test func conflictsCarryBothRecords() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let zone = try await ana.makeZone("z", in: notes)
      let name = "\(zone.name)/records/a"
      let first = try await ana.save(name, ["n": .init(kind: .int64Value(1))])
      let response = try await ana.modify(
        notes,
        [
          .save(name, ["n": .init(kind: .int64Value(2))]),
          .save("\(zone.name)/records/b", [:]),
        ])
      #expect(!response.complete)
      #expect(response.results.map(\.reason) == ["RECORD_CHANGED", "BATCH_ABORTED"])
      guard case .error(let status)? = response.results[0].result else { return }
      #expect(status.code == 10)
      let conflict = status.details.lazy.compactMap {
        $0.typeName == "vencejo.record.v1.RecordConflict"
          ? try? Record.RecordConflict(serializedBytes: $0.value) : nil
      }.first
      #expect(conflict?.serverRecord == first)
      #expect(conflict?.clientRecord?.fields == ["n": .init(kind: .int64Value(2))])
      #expect(status.details.filter { $0.typeName == "google.rpc.ErrorInfo" }.count == 1)
    }
  }

  @Test func theServerNamesTheUnnamedAndRemembers() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let zone = try await ana.makeZone("z", in: notes)
      var request = Record.ModifyRecordsRequest()
      request.parent = notes
      request.requestId = "once"
      request.operations = [
        .save("\(zone.name)/records/", [:]), .save("\(zone.name)/records/", [:]),
      ]
      let first = try await ana.records.modifyRecords(request, ana.options)
      let second = try await ana.records.modifyRecords(request, ana.options)
      #expect(first.complete)
      #expect(first.results == second.results)
      #expect(first.zoneTokens.map(\.zone) == [zone.name])
      let page = try await ana.query(zone.name, "Note")
      #expect(page.records.count == 2)
      request.operations.removeLast()
      await expect(.invalidArgument, "REQUEST_ID_REUSED", "record.vencejo") { [request] in
        _ = try await ana.records.modifyRecords(request, ana.options)
      }
    }
  }

  @Test func queriesFilterSortAndPage() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let zone = try await ana.makeZone("z", in: notes)
      _ = try await ana.modify(
        notes,
        (0..<7).map { index in
          .save("\(zone.name)/records/r\(index)", ["n": .init(kind: .int64Value(Int64(index)))])
        })
      var request = Record.QueryRecordsRequest()
      request.parent = zone.name
      request.pageSize = 2
      request.query = .init(
        recordType: "Note", criteria: .filter("n > 1 AND n != 4"),
        sort: [.init(field: "n", descending: true)])
      var names: [String] = []
      repeat {
        let page = try await ana.records.queryRecords(request, ana.options)
        names += page.records.map { $0.name.split(separator: "/").last.map(String.init) ?? "" }
        #expect(page.resumeToken.isEmpty == !request.pageToken.isEmpty)
        request.pageToken = page.nextPageToken
      } while !request.pageToken.isEmpty
      #expect(names == ["r6", "r5", "r3", "r2"])
      // The same as a predicate, over the whole database.
      let predicate = Record.Predicate(
        kind: .allOf(
          .init(predicates: [
            .init(
              kind: .comparison(
                .init(
                  field: "n", comparator: .greaterThan, value: .init(kind: .int64Value(1))))),
            .init(
              kind: .not(
                .init(
                  kind: .in(.init(field: "n", values: [.init(kind: .doubleValue(4))]))))),
          ])))
      let all = try await ana.records.queryRecords(
        .init(parent: notes, query: .init(recordType: "Note", criteria: .predicate(predicate))),
        ana.options)
      #expect(all.records.count == 4)
      // A page token belongs to its query.
      request.pageToken = ""
      let token = try await ana.records.queryRecords(request, ana.options).nextPageToken
      request.pageToken = token
      request.query?.sort = []
      await expect(.invalidArgument, "PAGE_TOKEN_MISMATCH", "record.vencejo") { [request] in
        _ = try await ana.records.queryRecords(request, ana.options)
      }
      request.pageToken = "x"
      await expect(.invalidArgument, "BAD_PAGE_TOKEN", "record.vencejo") { [request] in
        _ = try await ana.records.queryRecords(request, ana.options)
      }
    }
  }

  @Test func queriesAreExplained() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let zone = try await ana.makeZone("z", in: notes)
      for number in 0..<30 {
        _ = try await ana.save(
          "\(zone.name)/records/r\(number)", ["n": .init(kind: .int64Value(Int64(number)))])
      }
      let page = try await ana.records.queryRecords(
        .init(
          parent: zone.name,
          query: .init(recordType: "Note", criteria: .filter("n > 3"), sort: [.init(field: "n")]),
          pageSize: 5, explain: true), ana.options)
      let explanation = try #require(page.explanation)
      #expect(page.records.count == 5 && !explanation.cutShort)
      #expect((10...24).contains(explanation.rowsRead))
      #expect(
        explanation.steps.contains {
          $0.plan.contains("SEARCH record_entry USING PRIMARY KEY")
        })
      #expect(explanation.steps.allSatisfy { !$0.plan.contains("SCAN") })
    }
  }

  @Test func recordsAreCountedAndSearched() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let zone = try await ana.makeZone("z", in: notes)
      _ = try await ana.modify(
        notes,
        ["Café au lait", "thé", "CAFE NOIR", "eau"].enumerated().map { index, text in
          .save("\(zone.name)/records/r\(index)", ["text": .init(kind: .stringValue(text))])
        })
      func count(_ query: Record.Query, _ limit: Int64 = 0) async throws -> [Int64] {
        let response = try await ana.records.countRecords(
          .init(parent: notes, query: query, limit: limit), ana.options)
        return [response.count, response.limitReached ? 1 : 0]
      }
      #expect(try await count(.init(recordType: "Note")) == [4, 0])
      #expect(try await count(.init(recordType: "Note"), 3) == [3, 1])
      #expect(try await count(.init(recordType: "Nothing")) == [0, 0])
      let filter = Record.Query(recordType: "Note", criteria: .filter("search(\"cafe\")"))
      #expect(try await count(filter) == [2, 0])
      let search = Record.Predicate(
        kind: .search(.init(tokens: ["THE", "Noir"], fields: ["text"])))
      let page = try await ana.records.queryRecords(
        .init(
          parent: notes,
          query: .init(recordType: "Note", criteria: .predicate(search))), ana.options)
      #expect(page.records.map(\.name) == ["r1", "r2"].map { "\(zone.name)/records/\($0)" })
      await expect(.invalidArgument, "INVALID_REQUEST", "record.vencejo") {
        _ = try await count(
          .init(
            recordType: "Note",
            criteria: .predicate(.init(kind: .search(.init(tokens: ["!"]))))))
      }
      await expect(.invalidArgument, "INVALID_REQUEST", "record.vencejo") {
        _ = try await count(.init(recordType: "Note"), -1)
      }
    }
  }

  @Test func changedZonesAreFetchedByToken() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let one = try await ana.makeZone("one", in: notes)
      let two = try await ana.makeZone("two", in: notes)
      func fetch(_ token: String, _ size: Int32 = 0) async throws
        -> Record.FetchDatabaseChangesResponse
      {
        try await ana.records.fetchDatabaseChanges(
          .init(parent: notes, changeToken: token, pageSize: size), ana.options)
      }
      let all = try await fetch("")
      #expect(all.changedZones.map(\.name).suffix(2) == [one.name, two.name])
      #expect(!all.moreComing)
      #expect(try await fetch(all.changeToken).changedZones.isEmpty)
      _ = try await ana.save("\(two.name)/records/a", [:])
      _ = try await ana.save("\(one.name)/records/a", [:])
      _ = try await ana.save("\(two.name)/records/b", [:])
      let first = try await fetch(all.changeToken, 1)
      #expect(first.changedZones.map(\.name) == [one.name])
      #expect(first.moreComing)
      let second = try await fetch(first.changeToken, 1)
      #expect(second.changedZones.map(\.name) == [two.name])
      #expect(!second.moreComing)
      // A zone that goes, and one that goes and comes again.
      for zone in [one, two] {
        _ = try await ana.records.deleteZone(.init(name: zone.name), ana.options)
      }
      _ = try await ana.makeZone("two", in: notes)
      let last = try await fetch(second.changeToken)
      #expect(last.deletedZones.map(\.name) == [one.name])
      #expect(last.changedZones.map(\.name) == [two.name])
      let fresh = try await fetch("")
      #expect(fresh.deletedZones.isEmpty)
      await expect(.invalidArgument, "TOKEN_MISMATCH", "record.vencejo") {
        _ = try await ana.records.fetchZoneChanges(
          .init(parent: two.name, changeToken: fresh.changeToken), ana.options)
      }
    }
  }

  @Test func changesAreFetchedByToken() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let zone = try await ana.makeZone("z", in: notes)
      let name = "\(zone.name)/records/a"
      let saved = try await ana.save(name, [:])
      let query = try await ana.query(zone.name, "Note")
      _ = try await ana.modify(
        notes,
        [
          .init(operation: .delete(.init(name: name, changeTag: saved.changeTag)))
        ])
      func fetch(_ token: String) async throws -> Record.FetchZoneChangesResponse {
        try await ana.records.fetchZoneChanges(
          .init(parent: zone.name, changeToken: token), ana.options)
      }
      for token in [zone.changeToken, query.resumeToken] {
        let changes = try await fetch(token)
        #expect(changes.changes.count == 1)
        guard case .deleted(let deleted)? = changes.changes.first?.change else {
          Issue.record("no deletion")
          continue
        }
        #expect(deleted.name == name)
        #expect(try await fetch(changes.changeToken).changes.isEmpty)
      }
      #expect(try await fetch("").changes.isEmpty)
      let other = try await ana.makeZone("other", in: notes)
      await expect(.invalidArgument, "TOKEN_MISMATCH", "record.vencejo") {
        _ = try await fetch(other.changeToken)
      }
      await expect(.failedPrecondition, "NO_FETCH_CHANGES", "record.vencejo") {
        _ = try await ana.records.fetchZoneChanges(
          .init(parent: "\(notes)/zones/_defaultZone"), ana.options)
      }
      _ = try await ana.records.deleteZone(.init(name: zone.name, etag: zone.etag), ana.options)
      await expect(.notFound, "ZONE_NOT_FOUND", "record.vencejo") { _ = try await fetch("") }
      _ = try await ana.makeZone("z", in: notes)
      await expect(.failedPrecondition, "CHANGE_TOKEN_EXPIRED", "record.vencejo") {
        _ = try await fetch(zone.changeToken)
      }
    }
  }

  @Test func strangersAndMalformedRequestsAreRefused() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let bob = try await world.person("bob")
      let mine = try await ana.makeZone("z", in: notes)
      func refused(
        _ code: StatusCode, _ reason: String, line: SourceLocation = #_sourceLocation,
        _ body: () async throws -> Void
      ) async {
        await expect(code, reason, "record.vencejo", sourceLocation: line, body)
      }
      await refused(.unauthenticated, "MISSING_CREDENTIAL") {
        _ = try await ana.records.getZone(.init(name: mine.name))
      }
      await refused(.permissionDenied, "NOT_YOUR_DATABASE") {
        _ = try await bob.records.getZone(.init(name: mine.name), bob.options)
      }
      await refused(.permissionDenied, "NOT_YOUR_DATABASE") {
        _ = try await bob.query(mine.name, "Note")
      }
      await refused(.notFound, "CONTAINER_NOT_FOUND") {
        _ = try await bob.query("containers/none/databases/private", "Note")
      }
      await refused(.permissionDenied, "NOT_AN_ADMINISTRATOR") {
        _ = try await bob.makeZone("p", in: "containers/notes/databases/public")
      }
      await refused(.invalidArgument, "INVALID_REQUEST") {
        _ = try await ana.records.getZone(.init(name: "nonsense"), ana.options)
      }
      await refused(.invalidArgument, "INVALID_REQUEST") {
        _ = try await ana.query(mine.name, "")
      }
      await refused(.invalidArgument, "INVALID_REQUEST") {
        _ = try await ana.records.queryRecords(
          .init(parent: notes, query: .init(recordType: "N", criteria: .filter("n >"))),
          ana.options)
      }
      await refused(.invalidArgument, "INVALID_REQUEST") {
        _ = try await ana.records.queryRecords(
          .init(parent: notes, query: .init(recordType: "N"), pageSize: -1), ana.options)
      }
      await refused(.invalidArgument, "INVALID_REQUEST") {
        _ = try await ana.modify(notes, [.save("\(mine.name)/records/a", ["f": .init()])])
      }
      await refused(.invalidArgument, "LIMIT_EXCEEDED") {
        _ = try await ana.modify(
          notes, (0...400).map { .save("\(mine.name)/records/r\($0)", [:]) })
      }
      await refused(.invalidArgument, "NOT_ATOMIC") {
        _ = try await ana.records.modifyRecords(
          .init(
            parent: notes, operations: [.save("\(notes)/zones/_defaultZone/records/a", [:])],
            atomic: true), ana.options)
      }
      // Others' records in the public database can be read and not written.
      let shared = "containers/notes/databases/public/zones/_defaultZone/records/x"
      let record = try await bob.save(shared, [:])
      #expect(record.creator == bob.name)
      let eve = try await world.person("eve")
      #expect(
        try await eve.records.getRecord(.init(name: shared), eve.options).record == record)
      let denied = try await eve.modify(
        "containers/notes/databases/public", [.init(operation: .delete(.init(name: shared)))])
      #expect(denied.results[0].reason == "PERMISSION_FAILURE")
    }
  }
}

extension Person {
  var records: Record.RecordClient { Record.RecordClient(channel) }

  func makeZone(_ id: String, in database: String) async throws -> Record.Zone {
    let response = try await records.createZone(.init(parent: database, zoneId: id), options)
    return try #require(response.zone)
  }

  func modify(_ database: String, _ operations: [Record.RecordOperation]) async throws
    -> Record.ModifyRecordsResponse
  {
    try await records.modifyRecords(.init(parent: database, operations: operations), options)
  }

  func save(
    _ name: String, _ fields: [String: Record.Value], tag: String = ""
  ) async throws -> Record.Record {
    let database = name.split(separator: "/").prefix(4).joined(separator: "/")
    let response = try await modify(database, [.save(name, fields, tag: tag)])
    guard case .record(let record)? = response.results.first?.result else {
      Issue.record("not saved: \(response)")
      return .init()
    }
    return record
  }

  func query(_ parent: String, _ type: String) async throws -> Record.QueryRecordsResponse {
    try await records.queryRecords(.init(parent: parent, query: .init(recordType: type)), options)
  }
}

extension Record.RecordOperation {
  static func save(
    _ name: String, _ fields: [String: Record.Value], tag: String = "",
    policy: Record.SavePolicy = .unspecified
  ) -> Self {
    .init(
      operation: .save(
        .init(
          record: .init(name: name, recordType: "Note", fields: fields, changeTag: tag),
          savePolicy: policy)))
  }
}

extension Record.OperationResult {
  /// The reason of an error; nil when it is none.
  var reason: String? {
    guard case .error(let status)? = result else { return nil }
    return status.details.lazy.compactMap {
      $0.typeName == "google.rpc.ErrorInfo"
        ? (try? GoogleRPC.ErrorInfo(serializedBytes: $0.value))?.reason : nil
    }.first
  }
}
