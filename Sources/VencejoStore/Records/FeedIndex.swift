/// Who follows what in one database: says whom a change concerns, without asking each.
public struct FeedIndex<ID: Hashable & Sendable>: Sendable {
  private struct Target: Hashable, Sendable {
    var feed: ID
    var index: Int
  }

  private var feeds: [ID: RecordFeed] = [:]
  private var zones: [String: Set<ID>] = [:]
  private var queries = TargetIndex<Target>()
  private var subscriptions: [Address: Set<ID>] = [:]
  /// Those who hear of every change.
  private var all: Set<ID> = []

  private struct Address: Hashable, Sendable {
    var user: Int64
    var subscription: String
  }

  public init() {}

  public var isEmpty: Bool { feeds.isEmpty }

  /// Queries tried since the beginning.
  public var tried: Int { queries.tried }

  public mutating func add(_ id: ID, _ feed: RecordFeed) {
    remove(id)
    feeds[id] = feed
    for (index, target) in feed.targets.enumerated() {
      switch target.target {
      case .zone(let zone): zones[zone.zone, default: []].insert(id)
      case .query(let query, _): queries.add(Target(feed: id, index: index), query)
      case .subscription(let saved, let user):
        subscriptions[
          Address(user: user, subscription: saved.subscription), default: []
        ].insert(id)
      case .database: all.insert(id)
      }
    }
  }

  public mutating func remove(_ id: ID) {
    guard let feed = feeds.removeValue(forKey: id) else { return }
    for (index, target) in feed.targets.enumerated() {
      switch target.target {
      case .zone(let zone):
        zones[zone.zone]?.remove(id)
        if zones[zone.zone]?.isEmpty == true { zones[zone.zone] = nil }
      case .query: queries.remove(Target(feed: id, index: index))
      case .subscription(let saved, let user):
        let address = Address(user: user, subscription: saved.subscription)
        subscriptions[address]?.remove(id)
        if subscriptions[address]?.isEmpty == true { subscriptions[address] = nil }
      case .database: all.remove(id)
      }
    }
  }

  /// Those who follow a saved subscription that a change in another database fired.
  public func concerned(byFiringsOf touched: RecordsTouched, in database: Int64) -> Set<ID> {
    var found: Set<ID> = []
    for address in touched.fired where address.database == database {
      found.formUnion(
        subscriptions[Address(user: address.user, subscription: address.subscription)] ?? [])
    }
    return found
  }

  /// Those whom the change concerns.
  public mutating func concerned(by touched: RecordsTouched) -> Set<ID> {
    var found = all
    found.formUnion(concerned(byFiringsOf: touched, in: touched.database))
    switch touched.change {
    case .zoneDeleted, .accessChanged: return Set(feeds.keys)
    case .zoneCreated: return found
    case .record(let zone, let old, let new):
      found.formUnion(zones[zone] ?? [])
      for target in queries.matches(old: old, new: new) { found.insert(target.feed) }
      return found
    }
  }
}
