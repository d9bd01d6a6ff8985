/// What the record store should hold, in the simplest words: it shares no code with it.
struct RecordModel: Equatable {
  struct Note: Equatable {
    var number: Int
    var parent = ""
    /// A file's asset_id.
    var file = ""
    /// A field that not every note has.
    var extra = ""

    var fields: [String] { ["n"] + (file.isEmpty ? [] : ["file"]) + (extra.isEmpty ? [] : [extra]) }
  }

  struct File: Equatable {
    var user: Int
    var content: [UInt8]
  }

  struct Share: Equatable {
    var name: String
    var link: String
    var zone: String
    /// Empty: the whole zone.
    var root: String
    /// By user: whether they may write, and whether they took it up.
    var people: [Int: (writes: Bool, isIn: Bool)] = [:]

    static func == (a: Self, b: Self) -> Bool {
      a.name == b.name && a.zone == b.zone && a.root == b.root
        && a.people.mapValues { "\($0)" } == b.people.mapValues { "\($0)" }
    }
  }

  /// By the full name of the zone.
  var zones: [String: [String: Note]] = [:]
  var owners: [String: Int] = [:]
  var shares: [Share] = []
  /// What the first user's saved subscription has to tell: record and reason.
  var firings: [String] = []
  /// By asset_id: who uploaded it, and what it holds.
  var files: [String: File] = [:]
  var isProduction = false
  /// Fields that production knows.
  var deployed: Set<String> = []

  /// Whether production takes a note.
  func isDeployed(_ note: Note) -> Bool { note.fields.allSatisfy { deployed.contains($0) } }

  /// Whether a user may put a file into a note: their own, or one they may read in this database.
  func mayUse(_ user: Int, _ file: String, _ zone: String, _ name: String) -> Bool {
    if files[file]?.user == user || zones[zone]?[name]?.file == file { return true }
    return zones.contains { other, notes in
      owners[other] == owners[zone]
        && notes.contains { $0.value.file == file && mayRead(user, other, $0.key) }
    }
  }

  /// The share whose root is nearest above a record, itself included.
  func cover(_ zone: String, _ name: String) -> Share? {
    var name = name
    for _ in 0..<50 {
      guard let note = zones[zone]?[name] else { return nil }
      if let share = shares.first(where: { $0.zone == zone && $0.root == name }) { return share }
      name = note.parent
    }
    return nil
  }

  private func whole(_ zone: String) -> Share? {
    shares.first { $0.zone == zone && $0.root.isEmpty }
  }

  func mayRead(_ user: Int, _ zone: String, _ name: String) -> Bool {
    if owners[zone] == user { return true }
    return [whole(zone), cover(zone, name)].contains { $0?.people[user]?.isIn == true }
  }

  /// Whether a user may save where this share covers.
  private func mayWrite(_ user: Int, _ zone: String, _ share: Share?) -> Bool {
    if owners[zone] == user { return true }
    return [whole(zone), share].contains {
      let one = $0?.people[user]
      return one?.isIn == true && one?.writes == true
    }
  }

  func seesAnything(_ user: Int, of zone: String) -> Bool {
    owners[zone] == user
      || shares.contains { $0.zone == zone && $0.people[user]?.isIn == true }
  }

  /// What a user sees of a zone.
  func view(_ user: Int, _ zone: String) -> [String: Note] {
    (zones[zone] ?? [:]).filter { mayRead(user, zone, $0.key) }
  }

  /// Everything a user sees.
  func view(_ user: Int) -> [String: [String: Note]] {
    var all: [String: [String: Note]] = [:]
    for zone in zones.keys where seesAnything(user, of: zone) { all[zone] = view(user, zone) }
    return all
  }

  private func isBelow(_ zone: String, _ name: String, _ top: String) -> Bool {
    var name = name
    for _ in 0..<50 {
      if name == top { return true }
      guard let note = zones[zone]?[name], !note.parent.isEmpty else { return false }
      name = note.parent
    }
    return false
  }

  private func holdsRoot(_ zone: String, _ top: String) -> Bool {
    shares.contains { $0.zone == zone && !$0.root.isEmpty && isBelow(zone, $0.root, top) }
  }

  /// Saves a note; false when it has to be refused.
  mutating func save(_ user: Int, _ zone: String, _ name: String, _ note: Note) -> Bool {
    let old = zones[zone]?[name]
    if old != nil, !mayWrite(user, zone, cover(zone, name)) { return false }
    let isMoved = note.parent != (old?.parent ?? "")
    if isMoved, !note.parent.isEmpty {
      guard note.parent != name, zones[zone]?[note.parent] != nil,
        old == nil || !isBelow(zone, note.parent, name)
      else { return false }
      // Of a name that dangles below itself.
      if old == nil, isBelow(zone, note.parent, name) { return false }
    }
    let own = shares.first { $0.zone == zone && $0.root == name }
    let above = note.parent.isEmpty ? nil : cover(zone, note.parent)
    guard mayWrite(user, zone, own ?? above) else { return false }
    if isMoved, old != nil, above != nil {
      if own != nil { return false }
      if cover(zone, name)?.name != above?.name, holdsRoot(zone, name) { return false }
    }
    zones[zone]?[name] = note
    if owners[zone] == 0, note.number > 5 {
      firings.append("\(name) \(old == nil ? "creation" : "update")")
    }
    return true
  }

  mutating func delete(_ user: Int, _ zone: String, _ name: String) -> Bool {
    guard let old = zones[zone]?[name], mayWrite(user, zone, cover(zone, name)) else {
      return false
    }
    let own = shares.firstIndex { $0.zone == zone && $0.root == name }
    if let own {
      // Whoever writes the whole zone is no owner either; but a zone has one kind of share.
      guard owners[zone] == user else { return false }
      shares.remove(at: own)
    }
    zones[zone]?[name] = nil
    if owners[zone] == 0, old.number > 5 { firings.append("\(name) deletion") }
    return true
  }

  mutating func deleteZone(_ zone: String) {
    zones[zone] = nil
    owners[zone] = nil
    shares.removeAll { $0.zone == zone }
  }

  /// Whether a place can be shared.
  func mayShare(_ zone: String, _ root: String) -> Bool {
    if root.isEmpty { return !shares.contains { $0.zone == zone } }
    return whole(zone) == nil && zones[zone]?[root] != nil && cover(zone, root) == nil
      && !holdsRoot(zone, root)
  }
}
