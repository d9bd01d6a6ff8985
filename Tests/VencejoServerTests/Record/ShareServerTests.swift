import Testing
import VencejoAPI
import VencejoProtobuf
import VencejoRPC

/// Sharing through the real client.
@Suite(.timeLimit(.minutes(1))) struct ShareServerTests {
  private let notes = "containers/notes/databases/private"
  private let shared = "containers/notes/databases/shared"

  /// All of it was there before ben was: page by page.
  @Test func aLargeShareIsFetchedToItsEnd() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let ben = try await world.person("ben")
      let zone = try await ana.makeZone("z", in: notes)
      _ = try await ana.modify(notes, (0..<20).map { .save("\(zone.name)/records/r\($0)", [:]) })
      let made = try await ana.records.createShare(
        .init(
          parent: notes,
          share: .init(
            scope: .zone(zone.name),
            participants: [.init(user: ben.name, permission: .readOnly)])), ana.options)
      _ = try await ben.records.acceptShare(.init(name: made.share?.name ?? ""), ben.options)
      var names: Set<String> = []
      var token = ""
      for page in 1...5 {
        let changes = try await ben.records.fetchZoneChanges(
          .init(parent: zone.name, changeToken: token, pageSize: 4), ben.options)
        for change in changes.changes {
          if case .changed(let record)? = change.change { names.insert(record.name) }
        }
        token = changes.changeToken
        #expect(changes.moreComing == (page < 5))
      }
      #expect(names.count == 20)
      let after = try await ben.records.fetchZoneChanges(
        .init(parent: zone.name, changeToken: token), ben.options)
      #expect(after.changes.isEmpty)
    }
  }

  @Test func aFolderIsSharedFollowedAndTakenBack() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let ben = try await world.person("ben")
      let cat = try await world.person("cat")
      let zone = try await ana.makeZone("z", in: notes)
      func name(_ id: String) -> String { "\(zone.name)/records/\(id)" }
      func save(_ person: Person, _ id: String, under parent: String = "") async throws -> String? {
        var record = Record.Record(name: name(id), recordType: "Note")
        if !parent.isEmpty { record.parent = .init(record: name(parent)) }
        let database = zone.name.split(separator: "/").prefix(4).joined(separator: "/")
        return try await person.modify(
          database, [.init(operation: .save(.init(record: record, savePolicy: .allKeys)))]
        ).results[0].reason
      }
      #expect(try await save(ana, "folder") == nil)
      #expect(try await save(ana, "note", under: "folder") == nil)
      #expect(try await save(ana, "secret") == nil)
      await expect(.notFound, "USER_NOT_FOUND", "record.vencejo") {
        _ = try await ana.records.createShare(
          .init(
            parent: notes,
            share: .init(
              scope: .rootRecord(name("folder")), participants: [.init(user: "users/nobody")])),
          ana.options)
      }
      let made = try await ana.records.createShare(
        .init(
          parent: notes,
          share: .init(
            scope: .rootRecord(name("folder")),
            participants: [.init(user: ben.name, permission: .readWrite)], title: "Folder")),
        ana.options)
      let share = try #require(made.share)
      #expect(share.participants.map(\.role) == [.owner, .privateUser])
      let link = try await ben.records.resolveShareLink(.init(link: share.link), ben.options)
      #expect(link.title == "Folder" && link.permission == .readWrite)
      #expect(link.acceptanceStatus == .pending && link.rootRecord == name("folder"))
      let invited = try await ben.records.listShares(.init(parent: shared), ben.options)
      #expect(invited.shares.map(\.name) == [share.name] && invited.shares[0].link == "")
      _ = try await ben.records.acceptShare(.init(name: share.name), ben.options)
      await expect(.permissionDenied, "PARTICIPANT_MAY_NEED_VERIFICATION", "record.vencejo") {
        _ = try await cat.records.acceptShare(.init(link: share.link), cat.options)
      }
      let zones = try await ben.records.listZones(.init(parent: shared), ben.options)
      #expect(zones.zones.map(\.name) == [zone.name] && zones.zones[0].owner == ana.name)
      let first = try await ben.records.fetchDatabaseChanges(.init(parent: shared), ben.options)
      #expect(first.changedZones.map(\.name) == [zone.name])
      // Live, until it is taken back.
      let owners = String(zone.name.split(separator: "/").prefix(4).joined(separator: "/"))
      let targets = [Record.SubscribeTarget(targetId: 1, target: .zone(zone.name))]
      let call = ben.records.subscribe(
        .init(parent: owners, targets: targets, includeSnapshot: true), ben.options)
      var frames = call.makeAsyncIterator()
      var seen: [String] = []
      var token = ""
      while let frame = try await frames.next() {
        if case .recordMatched(let matched)? = frame.event {
          seen.append(matched.record?.name ?? "")
        }
        if case .caughtUp? = frame.event {
          token = frame.resumeToken
          break
        }
      }
      #expect(Set(seen) == [name("folder"), name("note")])
      #expect(try await save(ana, "secret2") == nil)
      #expect(try await save(ana, "note2", under: "folder") == nil)
      guard case .recordMatched(let matched)? = try await frames.next()?.event else {
        Issue.record("no frame")
        return
      }
      #expect(matched.record?.name == name("note2"))
      #expect(matched.record?.share == share.name)
      #expect(try await save(ben, "note3", under: "folder") == nil)
      _ = try await frames.next()
      _ = try await ana.records.deleteShare(.init(name: share.name), ana.options)
      await expect(.permissionDenied, "NOT_YOUR_DATABASE", "record.vencejo") {
        while try await frames.next() != nil {}
      }
      await expect(.permissionDenied, "NOT_YOUR_DATABASE", "record.vencejo") {
        let again = ben.records.subscribe(
          .init(parent: owners, targets: targets, resumeToken: token), ben.options)
        for try await _ in again {}
      }
      let after = try await ben.records.fetchDatabaseChanges(
        .init(parent: shared, changeToken: first.changeToken), ben.options)
      #expect(after.deletedZones == [.init(name: zone.name, reason: .accessLost)])
      #expect(after.changedZones.isEmpty)
    }
  }

  @Test func aPublicLinkLetsIn() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let cat = try await world.person("cat")
      let zone = try await ana.makeZone("z", in: notes)
      _ = try await ana.save("\(zone.name)/records/a", ["n": .init(kind: .int64Value(1))])
      let made = try await ana.records.createShare(
        .init(
          parent: notes, share: .init(scope: .zone(zone.name), publicPermission: .readOnly)),
        ana.options)
      let share = try #require(made.share)
      let joined = try await cat.records.acceptShare(.init(link: share.link), cat.options)
      #expect(joined.share?.participants.map(\.user) == [ana.name, cat.name])
      #expect(
        try await cat.query(zone.name, "Note").records.map(\.name) == ["\(zone.name)/records/a"])
      let response = try await cat.modify(
        String(zone.name.split(separator: "/").prefix(4).joined(separator: "/")),
        [.save("\(zone.name)/records/b", ["n": .init(kind: .int64Value(1))])])
      #expect(response.results[0].reason == "PERMISSION_FAILURE")
      // Another link leaves those inside where they are.
      let rotated = try await ana.records.updateShare(
        .init(share: .init(name: share.name), updateMask: .init(paths: ["link"])), ana.options)
      #expect(rotated.share?.link != share.link && rotated.share?.link.isEmpty == false)
      await expect(.notFound, "SHARE_NOT_FOUND", "record.vencejo") {
        _ = try await cat.records.resolveShareLink(.init(link: share.link), cat.options)
      }
      #expect(try await cat.query(zone.name, "Note").records.count == 1)
      let got = try await cat.records.getShare(.init(name: share.name), cat.options)
      _ = try await cat.records.deleteShare(
        .init(name: share.name, etag: got.share?.etag ?? ""), cat.options)
      await expect(.permissionDenied, "NOT_YOUR_DATABASE", "record.vencejo") {
        _ = try await cat.query(zone.name, "Note")
      }
    }
  }
}
