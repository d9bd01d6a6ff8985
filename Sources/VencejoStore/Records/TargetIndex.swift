/// Queries that wait for changes, found by the values of the record that changed.
///
/// Each query stands under one of its conditions: a value that a field must have, a range it must
/// lie in, that it must be there, or under its type. A change is asked about with its images
/// before and after; only queries under the values of these are tried. So the cost of a change
/// is that of the queries it concerns and not of all there are.
public struct TargetIndex<ID: Hashable & Sendable>: Sendable {
  private struct Target: Sendable {
    var query: CheckedQuery
    var guards: [Guard]
  }

  private var targets: [ID: Target] = [:]
  private var places: [Place: Bucket] = [:]
  /// Guards that are words: without any, texts of changed records are not cut.
  private var words = 0
  /// Queries tried since the beginning, for tests of the above.
  public private(set) var tried = 0

  public init() {}

  public var isEmpty: Bool { targets.isEmpty }

  /// Adds a query; one of the same identifier is replaced.
  public mutating func add(_ id: ID, _ query: CheckedQuery) {
    remove(id)
    // Of several conditions that would do, the one under which fewest stand.
    let options = Guard.options(of: query)
    func crowd(_ guards: [Guard]) -> Int {
      guards.reduce(0) { $0 + (places[$1.place]?.count ?? 0) }
    }
    let guards = options.min { crowd($0) < crowd($1) } ?? []
    targets[id] = Target(query: query, guards: guards)
    for found in guards {
      if found.place.isWord { words += 1 }
      places[found.place, default: Bucket()].add(id, found.range)
    }
  }

  public mutating func remove(_ id: ID) {
    guard let target = targets.removeValue(forKey: id) else { return }
    for found in target.guards {
      if found.place.isWord { words -= 1 }
      places[found.place]?.remove(id, found.range)
      if places[found.place]?.isEmpty == true { places[found.place] = nil }
    }
  }

  /// The queries that one of the images matches.
  public mutating func matches(old: StoredRecord?, new: StoredRecord?) -> Set<ID> {
    var found: Set<ID> = []
    for image in [old, new] {
      guard let image else { continue }
      var seen: Set<ID> = []
      for place in Place.all(of: image, words: words > 0) {
        places[place.place]?.visit(place.value) { id in
          guard !found.contains(id), seen.insert(id).inserted, let target = targets[id] else {
            return
          }
          tried += 1
          if target.query.matches(image) { found.insert(id) }
        }
      }
    }
    return found
  }

  // MARK: Places

  /// Where queries of one kind stand.
  private enum Place: Hashable, Sendable {
    case type(String)
    case value(String, FieldPath, IndexKind, IndexScalar)
    /// Their ranges are in the bucket.
    case range(String, FieldPath, IndexKind)
    case present(String, FieldPath)

    /// Every place that a record's values lead to, with the value for ranges.
    static func all(
      of record: StoredRecord, words: Bool
    ) -> [(place: Place, value: IndexScalar?)] {
      let type = record.type
      var all: [(place: Place, value: IndexScalar?)] = [(.type(type), nil)]
      func add(_ path: FieldPath, _ entries: [IndexEntry]) {
        if !entries.isEmpty { all.append((.present(type, path), nil)) }
        for entry in entries {
          all.append((.value(type, path, entry.kind, entry.value.normal), nil))
          all.append((.range(type, path, entry.kind), entry.value))
        }
      }
      for (name, value) in record.fields { add(.user(name), IndexEntry.entries(of: value)) }
      for field in SystemField.allCases {
        add(.system(field), IndexEntry.entries(of: .system(field), in: record))
      }
      if words { add(.words([]), IndexEntry.entries(of: .words([]), in: record)) }
      return all
    }

    var isWord: Bool {
      if case .value(_, .words, _, _) = self { true } else { false }
    }
  }

  private struct Guard: Sendable {
    var place: Place
    var range: Interval?

    /// The places of a query, for each of its conditions that will do; several places when any
    /// of several values satisfies it. Single values first, then ranges.
    static func options(of query: CheckedQuery) -> [[Guard]] {
      let conjuncts = query.test?.conjuncts ?? []
      let type = query.type
      let values = conjuncts.compactMap { conjunct -> [Guard]? in
        guard let parts = conjunct.equalities else { return nil }
        let places = parts.map { part -> Place in
          // Words stand under the record, whichever fields are asked.
          let path = if case .words = part.path { FieldPath.words([]) } else { part.path }
          return .value(type, path, part.kind, part.value.normal)
        }
        return Set(places).map { Guard(place: $0) }
      }
      guard values.isEmpty else { return values }
      for case .entry(let path, let leaf) in conjuncts {
        switch leaf {
        case .compare(let kind, let relation, let value):
          let isUpper = relation == .less || relation == .lessOrEqual
          let range = isUpper ? Interval(upper: value) : Interval(lower: value)
          return [[Guard(place: .range(type, path, kind), range: range)]]
        case .range(let kind, let lower, let upper):
          let range = Interval(lower: lower, upper: upper)
          return [[Guard(place: .range(type, path, kind), range: range)]]
        case .within(let center, let squaredChord):
          let margin = squaredChord.squareRoot() + 1e-9
          let range = Interval(lower: .real(center.z - margin), upper: .real(center.z + margin))
          return [[Guard(place: .range(type, path, .location), range: range)]]
        case .oneOf, .present: continue
        }
      }
      for case .entry(.user(let name), .present) in conjuncts {
        return [[Guard(place: .present(type, .user(name)))]]
      }
      return [[Guard(place: .type(type))]]
    }
  }

  // MARK: Buckets

  /// From a bound to a bound, both included; nil is none.
  private struct Interval: Hashable, Sendable {
    var lower: IndexScalar?
    var upper: IndexScalar?
  }

  /// Queries of one place: some with ranges, found by value.
  private struct Bucket: Sendable {
    private var plain: Set<ID> = []
    private var ranges: [ID: Interval] = [:]
    /// The ranges as a tree in an array, by lower bound; nil when it has to be made again.
    private var tree: [Node]?

    private struct Node: Sendable {
      var id: ID
      var interval: Interval
      /// Highest upper bound of the subtree; nil: without bound.
      var highest: IndexScalar?
    }

    var isEmpty: Bool { plain.isEmpty && ranges.isEmpty }
    var count: Int { plain.count + ranges.count }

    mutating func add(_ id: ID, _ range: Interval?) {
      guard let range else {
        plain.insert(id)
        return
      }
      ranges[id] = range
      tree = nil
    }

    mutating func remove(_ id: ID, _ range: Interval?) {
      plain.remove(id)
      guard ranges.removeValue(forKey: id) != nil else { return }
      tree = nil
    }

    mutating func visit(_ value: IndexScalar?, _ body: (ID) -> Void) {
      for id in plain { body(id) }
      guard let value, !ranges.isEmpty else { return }
      var nodes = tree ?? []
      if tree == nil {
        nodes = ranges.map { Node(id: $0.key, interval: $0.value, highest: nil) }
        nodes.sort { Self.isBefore($0.interval.lower, $1.interval.lower) }
        Self.measure(&nodes, 0, nodes.count)
        tree = nodes
      }
      Self.visit(nodes, 0, nodes.count, value, body)
    }

    private static func isBefore(_ a: IndexScalar?, _ b: IndexScalar?) -> Bool {
      switch (a, b) {
      case (nil, let b): b != nil
      case (_, nil): false
      case (let a?, let b?): IndexScalar.order(a, b) < 0
      }
    }

    /// The middle of a part of the array is the root of its subtree.
    private static func measure(_ nodes: inout [Node], _ from: Int, _ to: Int) {
      guard from < to else { return }
      let root = (from + to) / 2
      measure(&nodes, from, root)
      measure(&nodes, root + 1, to)
      var highest = nodes[root].interval.upper
      for (low, high) in [(from, root), (root + 1, to)] where low < high {
        let other = nodes[(low + high) / 2].highest
        guard let known = highest else { break }
        if let other {
          if IndexScalar.order(other, known) > 0 { highest = other }
        } else {
          highest = nil
        }
      }
      nodes[root].highest = highest
    }

    private static func visit(
      _ nodes: [Node], _ from: Int, _ to: Int, _ value: IndexScalar, _ body: (ID) -> Void
    ) {
      guard from < to else { return }
      let root = (from + to) / 2
      let node = nodes[root]
      if let highest = node.highest, IndexScalar.order(highest, value) < 0 { return }
      visit(nodes, from, root, value, body)
      if let lower = node.interval.lower, IndexScalar.order(lower, value) > 0 { return }
      if node.interval.upper.map({ IndexScalar.order($0, value) >= 0 }) ?? true { body(node.id) }
      visit(nodes, root + 1, to, value, body)
    }
  }
}

extension IndexScalar {
  /// One form for equal numbers, so that they hash alike.
  var normal: IndexScalar {
    guard case .real(let number) = self, number.rounded(.towardZero) == number,
      number >= -0x1p63, number < 0x1p63
    else { return self }
    return .integer(Int64(number))
  }
}
