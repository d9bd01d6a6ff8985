import Testing
import VencejoAPI
import VencejoProtobuf
import VencejoRPC
import VencejoServer
import VencejoStore

/// What is left of an account in the record store.
@Suite(.timeLimit(.minutes(1))) struct AccountPurgeTests {
  @Test func theRecordsOfAPurgedAccountGo() async throws {
    let clock = TestClock()
    try await withWorld({
      $0.store.clock = { clock.now }
      $0.sweepInterval = .seconds(86_400)
    }) { world in
      try await self.run(world, clock)
    }
  }

  private func run(_ world: World, _ clock: TestClock) async throws {
    let notes = "containers/notes/databases/private"
    let everybody = "containers/notes/databases/public"
    let ana = try await world.person("ana")
    let ben = try await world.person("ben")
    let mine = try await ana.makeZone("z", in: notes)
    let his = try await ben.makeZone("z", in: notes)
    _ = try await ana.save("\(mine.name)/records/a", [:])
    _ = try await ben.save("\(his.name)/records/xyzzy", [:])
    _ = try await ben.save("\(everybody)/zones/_defaultZone/records/p", [:])
    func share(_ zone: Record.Zone, by owner: Person, with guest: Person) async throws -> String {
      let made = try await owner.records.createShare(
        .init(
          parent: notes,
          share: .init(
            scope: .zone(zone.name),
            participants: [.init(user: guest.name, permission: .readWrite)])), owner.options)
      let name = made.share?.name ?? ""
      _ = try await guest.records.acceptShare(.init(name: name), guest.options)
      return name
    }
    let toBen = try await share(mine, by: ana, with: ben)
    _ = try await share(his, by: ben, with: ana)
    for parent in [notes, "containers/notes/databases/shared"] {
      _ = try await ben.records.createSubscription(
        .init(
          parent: parent, subscriptionId: "s",
          subscription: .init(kind: .database(.init()))), ben.options)
    }
    let user = try await world.backend.store.write { try $0.account(named: "ben") }
    let principal = try await world.backend.store.read { try $0.principal(ofHandle: "ben") }
    _ = try await world.backend.store.write { try $0.deleteAccount(user.id, by: principal) }
    clock.advance(seconds: 30 * 86_400 + 1)
    while try await world.backend.store.write({ try $0.purgeAccounts() }) {}
    let again = try await world.signIn("ana")
    let zones = try await ana.records.listZones(
      .init(parent: "containers/notes/databases/shared"), again)
    #expect(zones.zones.isEmpty)
    let left = try await ana.records.getShare(.init(name: toBen), again)
    #expect(left.share?.participants.map(\.user) == [ana.name])
    await expect(.permissionDenied, "NOT_YOUR_DATABASE", "record.vencejo") {
      _ = try await ana.records.getRecord(.init(name: "\(his.name)/records/xyzzy"), again)
    }
    let there = try await ana.records.getRecord(
      .init(name: "\(everybody)/zones/_defaultZone/records/p"), again)
    #expect(there.record?.creator == ben.name)
    // A change that would have fired for ben fires for nobody, and fails for nobody.
    let saved = try await ana.records.modifyRecords(
      .init(parent: notes, operations: [.save("\(mine.name)/records/b", [:])]), again)
    #expect(saved.complete)
    let usage = try await ana.records.getUsage(.init(name: "containers/notes"), again)
    #expect(usage.recordCount == 3)
  }
}
