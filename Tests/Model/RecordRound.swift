import Glibc
import Synchronization
import TestSupport
import Testing
import VencejoAPI
import VencejoCrypto
import VencejoRPC

/// One round of the record store: people write, share, take back; followers read its feeds with
/// tokens; the server dies once; at the end every cache is what the model says.
final class RecordRound {
  let seed: UInt64
  var random: SeededGenerator
  var model = RecordModel()
  /// As it was before the act under way.
  var before = RecordModel()
  var names: [String] = []
  var tokens: [String] = []
  var followers: [Follower]
  var world: ModelWorld
  var records: Record.RecordClient
  var faults: [String] = []
  private(set) var journal: [String] = []
  private let root: String
  private var crashPoint = ""
  /// The server is about to die.
  private(set) var isArmed = false

  static let database = "containers/model/databases/private"
  static let shared = "containers/model/databases/shared"

  /// A user's cache, fed by the feeds only.
  struct Follower {
    struct Zone {
      var token = ""
      var notes: [String: RecordModel.Note] = [:]
    }
    var tokens = [RecordRound.database: "", RecordRound.shared: ""]
    var zones: [String: Zone] = [:]
  }

  init(seed: UInt64, users: Int) throws {
    self.seed = seed
    random = SeededGenerator(state: seed)
    var template = Array("/tmp/vencejo-records-XXXXXX".utf8CString)
    root = String(cString: try #require(mkdtemp(&template)))
    world = try ModelWorld(root: root, number: 0)
    records = Record.RecordClient(world.server.channel())
    followers = Array(repeating: Follower(), count: users)
  }

  func run(operations: Int) async throws {
    let auth = Auth.AuthClient(world.server.channel())
    for user in followers.indices {
      let response = try await auth.signUp(
        .with {
          $0.handle = "user\(user)"
          $0.password = "password"
        })
      names.append(response.user?.name ?? "")
      tokens.append(response.tokens?.accessToken ?? "")
    }
    _ = try await records.createSubscription(
      .init(
        parent: Self.database, subscriptionId: "all",
        subscription: .init(
          kind: .query(
            .init(
              query: .init(recordType: "Note", criteria: .filter("n > 5")),
              firesOn: [.creation, .update, .deletion])))), options(0))
    let crashAt = pick(operations / 4..<operations * 3 / 4)
    for step in 0..<operations {
      if step == crashAt {
        crashPoint = ModelWorld.crashPoints.randomElement(using: &random) ?? "after-commit"
        world.arm(crashPoint, image: 1)
        isArmed = true
        log("the server will die at \(crashPoint)")
      }
      before = model
      do { try await act() } catch let error as RPCError {
        if !world.hasCrashed { fault("an act failed: \(error)") }
      }
      if world.hasCrashed { try await restart() }
      if !faults.isEmpty { break }
    }
    if faults.isEmpty { try await compare() }
    await world.end()
    TemporaryFolder.remove(root)
  }

  func options(_ user: Int) -> CallOptions { .bearer(tokens[user]) }
  func pick(_ range: Range<Int>) -> Int { Int.random(in: range, using: &random) }
  func any<C: Collection>(_ values: C) -> C.Element? { values.randomElement(using: &random) }
  func fault(_ text: String) { faults.append("seed \(seed): \(text)") }
  func log(_ text: String) {
    journal.append(text)
    if journal.count > 40 { journal.removeFirst() }
  }

  // MARK: The end of a server

  private func restart() async throws {
    await world.end()
    world = try ModelWorld(root: root, number: 1)
    records = Record.RecordClient(world.server.channel())
    log("the server was started again")
    // The act under way is done or is not: whichever, for everybody.
    var agrees: [RecordModel] = []
    for candidate in [model, before] where try await isServer(candidate) {
      agrees.append(candidate)
    }
    guard let found = agrees.first else { return fault("neither before nor after the last act") }
    model = found
    isArmed = false
    // What fired cannot be told by what is there, nor whether a file came that no note holds.
    model.firings = try await firings()
    model.files = model.files.filter { file, _ in
      before.files[file] != nil
        || model.zones.values.contains { $0.values.contains { $0.file == file } }
    }
  }

  private func isServer(_ model: RecordModel) async throws -> Bool {
    let container = try await records.getContainer(.init(name: "containers/model"), options(0))
    guard (container.container?.environment == .production) == model.isProduction else {
      return false
    }
    for user in followers.indices {
      var follower = Follower()
      try await sync(user, &follower, pages: .max, pageSize: 100)
      if follower.zones.mapValues(\.notes) != model.view(user) { return false }
      let shares = try await records.listShares(
        .init(parent: Self.database, pageSize: 1000), options(user)
      ).shares
      let expected = model.shares.filter { model.owners[$0.zone] == user }
      guard shares.count == expected.count else { return false }
      for share in shares {
        guard let known = expected.first(where: { $0.name == share.name }) else { return false }
        var people: [String: String] = [:]
        for one in share.participants where one.role != .owner {
          people[one.user] =
            "\(one.permission == .readWrite) \(one.acceptanceStatus == .accepted)"
        }
        var wanted: [String: String] = [:]
        for (user, one) in known.people { wanted[names[user]] = "\(one.writes) \(one.isIn)" }
        if people != wanted { return false }
      }
    }
    return true
  }

  private func firings() async throws -> [String] {
    var all: [String] = []
    var token = ""
    while true {
      let page = try await records.listFirings(
        .init(parent: "\(Self.database)/subscriptions/all", pageSize: 1000, changeToken: token),
        options(0))
      all += page.firings.map {
        let record = $0.record.split(separator: "/").last ?? ""
        return
          "\(record) \($0.reason == .creation ? "creation" : $0.reason == .update ? "update" : "deletion")"
      }
      token = page.changeToken
      if !page.moreComing { return all }
    }
  }

  // MARK: Feeds

  /// Brings a cache on: the zones there are, then some pages of each.
  func sync(
    _ user: Int, _ follower: inout Follower, pages: Int, pageSize: Int32
  ) async throws {
    for parent in [Self.database, Self.shared] {
      var more = true
      while more {
        let changes = try await records.fetchDatabaseChanges(
          .init(parent: parent, changeToken: follower.tokens[parent] ?? "", pageSize: pageSize),
          options(user))
        if world.hasCrashed { return }
        for zone in changes.changedZones where !zone.name.hasSuffix("_defaultZone") {
          if follower.zones[zone.name] == nil { follower.zones[zone.name] = .init() }
        }
        for zone in changes.deletedZones { follower.zones[zone.name] = nil }
        follower.tokens[parent] = changes.changeToken
        more = changes.moreComing
      }
    }
    for name in follower.zones.keys.sorted() {
      var left = pages
      var restarts = 0
      while left > 0, let zone = follower.zones[name] {
        left -= 1
        do {
          let changes = try await records.fetchZoneChanges(
            .init(parent: name, changeToken: zone.token, pageSize: pageSize), options(user))
          if world.hasCrashed { return }
          for change in changes.changes {
            switch change.change {
            case .changed(let record)?:
              guard let note = RecordModel.Note(record) else { continue }
              follower.zones[name]?.notes[Self.last(record.name)] = note
            case .deleted(let record)?:
              follower.zones[name]?.notes[Self.last(record.name)] = nil
            case nil: break
            }
          }
          follower.zones[name]?.token = changes.changeToken
          if !changes.moreComing { break }
        } catch {
          if world.hasCrashed { return }
          switch error.detail(GoogleRPC.ErrorInfo.self)?.reason {
          case "CHANGE_TOKEN_EXPIRED":
            follower.zones[name] = .init()
            // Nobody changes anything meanwhile: a walk from the beginning gets to its end.
            restarts += 1
            if restarts > 1 { return fault("a walk through \(name) begins again and again") }
          case "ZONE_NOT_FOUND", "NOT_YOUR_DATABASE": follower.zones[name] = nil
          default: throw error
          }
        }
      }
    }
  }

  static func last(_ name: String) -> String { String(name.split(separator: "/").last ?? "") }

  /// Everybody's cache, and a query of everything they see.
  private func compare() async throws {
    for user in followers.indices {
      try await sync(user, &followers[user], pages: .max, pageSize: 3)
      let cached = followers[user].zones.mapValues(\.notes)
      let expected = model.view(user)
      if cached != expected { fault("user \(user) holds \(cached), and should hold \(expected)") }
      for zone in expected.keys { try await query(user, zone) }
    }
    let fired = try await firings()
    if fired != model.firings { fault("fired: \(fired), expected: \(model.firings)") }
  }

  func query(_ user: Int, _ zone: String) async throws {
    let least = pick(0..<10)
    let page = try await records.queryRecords(
      .init(
        parent: zone,
        query: .init(
          recordType: "Note", criteria: .filter("n > \(least)"), sort: [.init(field: "n")]),
        pageSize: 1000), options(user))
    if world.hasCrashed { return }
    let found = Set(page.records.map { Self.last($0.name) })
    let expected = Set(model.view(user, zone).filter { $0.value.number > least }.keys)
    if found != expected {
      fault("user \(user) finds \(found) in \(Self.last(zone)), and should find \(expected)")
    }
  }
}
