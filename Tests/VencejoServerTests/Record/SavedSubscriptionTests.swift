import Testing
import VencejoAPI
import VencejoCrypto
import VencejoHTTPClient
import VencejoJSON
import VencejoProtobuf
import VencejoRPC

@testable import VencejoServer

/// Saved subscriptions through the real client.
@Suite struct SavedSubscriptionTests {
  private let notes = "containers/notes/databases/private"

  private func subscription(_ filter: String, _ info: Record.NotificationInfo? = nil)
    -> Record.Subscription
  {
    .init(
      kind: .query(
        .init(
          query: .init(recordType: "Note", criteria: .filter(filter)),
          firesOn: [.creation, .update])), notificationInfo: info)
  }

  @Test func theyFireWithNobodyConnected() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let zone = try await ana.makeZone("z", in: notes)
      let wanted = subscription("n > 1", .init(title: "{t}!", incrementsBadge: true))
      for _ in 0..<2 {
        let made = try await ana.records.createSubscription(
          .init(parent: notes, subscriptionId: "s", subscription: wanted), ana.options)
        #expect(made.subscription?.kind == wanted.kind)
        #expect(made.subscription?.name.hasSuffix("/subscriptions/s") == true)
      }
      _ = try await ana.save(
        "\(zone.name)/records/a",
        ["n": .init(kind: .int64Value(2)), "t": .init(kind: .stringValue("hi"))])
      _ = try await ana.save("\(zone.name)/records/b", ["n": .init(kind: .int64Value(1))])
      let all = "\(notes)/subscriptions/-"
      let page = try await ana.records.listFirings(.init(parent: all), ana.options)
      #expect(page.firings.map(\.record) == ["\(zone.name)/records/a"])
      #expect(page.firings.map(\.title) == ["hi!"] && page.badge == 1 && !page.moreComing)
      #expect(page.firings.first?.actor == ana.name)
      let after = try await ana.records.listFirings(
        .init(parent: all, changeToken: page.changeToken), ana.options)
      #expect(after.firings.isEmpty)
      let badge = try await ana.records.acknowledgeFirings(
        .init(parent: all, changeToken: page.changeToken), ana.options)
      #expect(badge.badge == 0)
      let listed = try await ana.records.listSubscriptions(.init(parent: notes), ana.options)
      #expect(listed.subscriptions.count == 1)
      let got = try await ana.records.getSubscription(
        .init(name: listed.subscriptions[0].name), ana.options)
      #expect(got.subscription == listed.subscriptions[0])
      _ = try await ana.records.deleteSubscription(
        .init(name: listed.subscriptions[0].name), ana.options)
      await expect(.notFound, "SUBSCRIPTION_NOT_FOUND", "record.vencejo") {
        _ = try await ana.records.getSubscription(
          .init(name: listed.subscriptions[0].name), ana.options)
      }
    }
  }

  /// CloudKit's database subscription of the shared database, saved and live.
  @Test func theSharedDatabaseTellsWhatChangesThere() async throws {
    try await withWorld { try await sharedDatabase(of: $0) }
  }

  private func sharedDatabase(of world: World) async throws {
    let ana = try await world.person("ana")
    let ben = try await world.person("ben")
    let shared = "containers/notes/databases/shared"
    let zone = try await ana.makeZone("z", in: notes)
    let other = try await ana.makeZone("other", in: notes)
    func name(_ id: String) -> String { "\(zone.name)/records/\(id)" }
    _ = try await ana.save(name("top"), ["n": .init(kind: .int64Value(1))])
    let made = try await ana.records.createShare(
      .init(
        parent: notes,
        share: .init(
          scope: .rootRecord(name("top")),
          participants: [.init(user: ben.name, permission: .readWrite)])), ana.options)
    _ = try await ben.records.acceptShare(.init(name: made.share?.name ?? ""), ben.options)
    await expect(.invalidArgument, "INVALID_REQUEST", "record.vencejo") {
      _ = try await ben.records.createSubscription(
        .init(parent: shared, subscriptionId: "q", subscription: subscription("n > 1")),
        ben.options)
    }
    let saved = try await ben.records.createSubscription(
      .init(
        parent: shared, subscriptionId: "s",
        subscription: .init(
          kind: .database(.init()), notificationInfo: .init(incrementsBadge: true))), ben.options)
    let savedName = try #require(saved.subscription?.name)
    await expect(.invalidArgument, "INVALID_REQUEST", "record.vencejo") {
      for try await _ in ben.records.subscribe(
        .init(parent: shared, targets: [.init(targetId: 1, target: .database(true))]),
        ben.options)
      {}
    }
    let call = ben.records.subscribe(
      .init(
        parent: shared,
        targets: [.init(targetId: 1, target: .subscription("\(shared)/subscriptions/s"))]),
      ben.options)
    var frames = call.makeAsyncIterator()
    guard case .caughtUp? = try await frames.next()?.event else {
      Issue.record("not caught up")
      return
    }
    // What is not shared, and other zones, are not ben's to hear of.
    _ = try await ana.save(name("secret"), ["n": .init(kind: .int64Value(1))])
    _ = try await ana.save("\(other.name)/records/a", ["n": .init(kind: .int64Value(1))])
    let child = Record.Record(
      name: name("child"), recordType: "Note", parent: .init(record: name("top")))
    _ = try await ana.modify(notes, [.init(operation: .save(.init(record: child)))])
    guard case .firing(let event)? = try await frames.next()?.event,
      let firing = event.firing
    else {
      Issue.record("nothing fired")
      return
    }
    #expect(firing.subscription == savedName && firing.zone == zone.name)
    #expect(firing.badge == 1 && firing.actor == ana.name)
    func firings() async throws -> [String] {
      try await ben.records.listFirings(
        .init(parent: "\(shared)/subscriptions/-"), ben.options
      ).firings.map(\.zone)
    }
    #expect(try await firings() == [zone.name])
    // Others hear of what ben does there, and ben does.
    _ = try await ben.modify(
      String(zone.name.split(separator: "/").prefix(4).joined(separator: "/")),
      [
        .init(
          operation: .save(
            .init(
              record: .init(
                name: name("child"), recordType: "Note",
                fields: ["n": .init(kind: .int64Value(2))]), savePolicy: .allKeys)))
      ])
    #expect(try await firings().count == 2)
    _ = try await ben.records.deleteShare(.init(name: made.share?.name ?? ""), ben.options)
    _ = try await ana.modify(
      notes, [.save(name("top"), ["n": .init(kind: .int64Value(3))], policy: .allKeys)])
    #expect(try await firings().count == 2)
    call.cancel()
  }

  @Test func firingsAndChangedZonesComeLive() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let zone = try await ana.makeZone("z", in: notes)
      let made = try await ana.records.createSubscription(
        .init(parent: notes, subscriptionId: "s", subscription: subscription("n > 1")),
        ana.options)
      let name = try #require(made.subscription?.name)
      let call = ana.records.subscribe(
        .init(
          parent: notes,
          targets: [
            .init(targetId: 1, target: .subscription(name)),
            .init(targetId: 2, target: .database(true)),
            .init(targetId: 3, target: .subscription("\(notes)/subscriptions/none")),
          ]), ana.options)
      var frames = call.makeAsyncIterator()
      guard case .targetFailed(let failed)? = try await frames.next()?.event else {
        Issue.record("a target that is not there must fail")
        return
      }
      #expect(failed.targetId == 3)
      guard case .caughtUp? = try await frames.next()?.event else {
        Issue.record("not caught up")
        return
      }
      _ = try await ana.save("\(zone.name)/records/a", ["n": .init(kind: .int64Value(1))])
      var token = ""
      func next() async throws -> String {
        let frame = try await frames.next()
        if let frame, !frame.resumeToken.isEmpty { token = frame.resumeToken }
        switch frame?.event {
        case .firing(let firing)?: return "fired \(firing.firing?.record.suffix(1) ?? "")"
        case .zoneChanged(let changed)?: return "zone \(changed.zone?.name.suffix(1) ?? "")"
        default: return "\(String(describing: frame))"
        }
      }
      #expect(try await next() == "zone z")
      _ = try await ana.save("\(zone.name)/records/b", ["n": .init(kind: .int64Value(2))])
      #expect(Set([try await next(), try await next()]) == ["zone z", "fired b"])
      call.cancel()
      // And later from the token.
      _ = try await ana.save("\(zone.name)/records/c", ["n": .init(kind: .int64Value(2))])
      let again = ana.records.subscribe(
        .init(
          parent: notes,
          targets: [
            .init(targetId: 1, target: .subscription(name)),
            .init(targetId: 2, target: .database(true)),
            .init(targetId: 3, target: .subscription("\(notes)/subscriptions/none")),
          ], resumeToken: token), ana.options)
      frames = again.makeAsyncIterator()
      #expect(Set([try await next(), try await next()]) == ["zone z", "fired c"])
      again.cancel()
    }
  }

  /// In the public database everybody has subscriptions of their own.
  @Test func theyBelongToTheirMaker() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let ben = try await world.person("ben")
      let shared = "containers/notes/databases/public"
      for person in [ana, ben] {
        _ = try await person.records.createSubscription(
          .init(
            parent: shared, subscriptionId: "s",
            subscription: subscription(person.name == ana.name ? "n > 1" : "n > 5")),
          person.options)
      }
      _ = try await ben.save(
        "\(shared)/zones/_defaultZone/records/a", ["n": .init(kind: .int64Value(3))])
      let all = Record.ListFiringsRequest(parent: "\(shared)/subscriptions/-")
      #expect(try await ana.records.listFirings(all, ana.options).firings.count == 1)
      #expect(try await ben.records.listFirings(all, ben.options).firings.isEmpty)
      await expect(.invalidArgument, "INVALID_REQUEST", "record.vencejo") {
        _ = try await ana.records.createSubscription(
          .init(
            parent: shared, subscriptionId: "t",
            subscription: .init(kind: .database(.init()))), ana.options)
      }
    }
  }

  @Test func firingsArePostedAndSigned() async throws {
    let receiver = try Receiver()
    defer { receiver.close() }
    let here = NetworkPolicy(allowed: [NetworkRange("127.0.0.0/8")].compactMap(\.self))
    try await withWorld({ $0.hookPolicy = here }) { world in
      let ana = try await world.person("ana")
      let zone = try await ana.makeZone("z", in: notes)
      let made = try await ana.records.createSubscription(
        .init(
          parent: notes, subscriptionId: "s",
          subscription: subscription("n > 1", .init(title: "{t}", httpHookUri: receiver.uri))),
        ana.options)
      #expect(made.signingSecret.hasPrefix("whsec_"))
      _ = try await ana.save(
        "\(zone.name)/records/a",
        ["n": .init(kind: .int64Value(2)), "t": .init(kind: .stringValue("hi"))])
      var requests = receiver.requests()
      let request = try #require(await requests.next())
      let firing = try Record.Firing(jsonString: request.body)
      let listed = try await ana.records.listFirings(
        .init(parent: "\(notes)/subscriptions/s"), ana.options)
      #expect(listed.firings == [firing] && firing.title == "hi")
      // HMAC-SHA256 over id.timestamp.body, with the secret's bytes.
      let (id, time) = (
        request.headers["webhook-id"] ?? "", request.headers["webhook-timestamp"] ?? ""
      )
      let code = HMACSHA256.authenticate(
        Array("\(id).\(time).\(request.body)".utf8), key: try HookSignature.key(made.signingSecret))
      #expect(request.headers["webhook-signature"] == "v1,\(HookSignature.base64(code))")
      await expect(.invalidArgument, "BAD_URI", "record.vencejo") {
        _ = try await ana.records.createSubscription(
          .init(
            parent: notes, subscriptionId: "t",
            subscription: subscription("n > 1", .init(httpHookUri: "ftp://example.com"))),
          ana.options)
      }
    }
  }
}
