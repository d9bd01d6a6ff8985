// How a query finds its records: what in its predicate is a range of the index, and in which
// order that range comes.

extension IndexTest {
  /// The parts that must all hold.
  var conjuncts: [IndexTest] {
    if case .all(let tests) = self { tests.flatMap(\.conjuncts) } else { [self] }
  }

  /// The entries of the index, each of one value, that together hold exactly what satisfies the
  /// test: they come by record name. Nil when the test is none of that kind.
  var equalities: [(path: FieldPath, kind: IndexKind, value: IndexScalar)]? {
    switch self {
    case .entry(let path, .compare(let kind, .equal, let value)): return [(path, kind, value)]
    case .entry(let path, .oneOf(let kind, let values)):
      return values.map { (path, kind, $0) }
    case .any(let tests):
      var all: [(path: FieldPath, kind: IndexKind, value: IndexScalar)] = []
      for test in tests {
        guard let some = test.equalities else { return nil }
        all += some
      }
      return all.isEmpty ? nil : all
    case .all, .not, .entry: return nil
    }
  }

  /// The order that the index has for a test of more than single values.
  var naturalKey: SortPlan.Key? {
    switch self {
    case .entry(let path, .compare(_, let relation, _)) where relation != .equal:
      return SortPlan.Key(path: path, descending: false)
    case .entry(let path, .range): return SortPlan.Key(path: path, descending: false)
    case .entry(let path, .within(let center, _)):
      return SortPlan.Key(path: path, descending: false, center: center)
    case .not(.entry(let path, .compare(_, .equal, _))):
      if case .words = path { return nil }
      return SortPlan.Key(path: path, descending: false)
    case .all, .any, .not, .entry: return nil
    }
  }

  /// False when no record of a shape satisfies the test.
  func admits(_ shape: RecordShape, key: (String) -> Int64) -> Bool {
    switch self {
    case .entry(.user(let name), let leaf):
      guard let form = shape.forms[key(name)] else { return false }
      switch leaf {
      case .present: return true
      case .within: return form == .place
      case .compare(let kind, _, _), .oneOf(let kind, _), .range(let kind, _, _):
        return form == (kind.isSortable ? .value : .list)
      }
    case .not(.entry(.user(let name), .present)): return shape.forms[key(name)] == nil
    case .all(let tests): return tests.allSatisfy { $0.admits(shape, key: key) }
    case .any(let tests): return tests.contains { $0.admits(shape, key: key) }
    case .not, .entry: return true
    }
  }

  /// The shape alone decides it.
  var isOfShape: Bool {
    switch self {
    case .entry(.user, .present), .not(.entry(.user, .present)): true
    default: false
    }
  }
}

/// A range of one field's values in the index.
struct IndexSegment: Sendable, Hashable {
  var kind: IndexKind
  var conditions: [Condition] = []

  /// Conditions of one field that become ranges.
  static let maxConjuncts = 6
  /// Ranges of one field: as many as the values of one membership, for each kind.
  static let maxSegments = IndexKind.sortable.count * Predicate.maxValues

  struct Condition: Sendable, Hashable {
    var relation: IndexTest.Relation
    var value: IndexScalar
  }

  func with(_ relation: IndexTest.Relation, _ value: IndexScalar) -> IndexSegment {
    var copy = self
    copy.conditions.append(Condition(relation: relation, value: value))
    return copy
  }

  /// The ranges of a field in which a conjunction can hold, ascending, and nothing else of the
  /// field; nil when no conjunct limits it.
  static func segments(
    of path: FieldPath, in conjuncts: [IndexTest]
  ) -> (segments: [IndexSegment], isLimited: Bool) {
    var segments =
      switch path {
      case .system(let field): [IndexSegment(kind: field.kind)]
      case .user, .words: IndexKind.sortable.map { IndexSegment(kind: $0) }
      }
    var isLimited = false
    // What goes beyond these is left to the test of each record.
    var applied: Set<IndexTest> = []
    for conjunct in conjuncts where applied.count < maxConjuncts {
      if case .not(.entry(path, .compare(let kind, .equal, let value))) = conjunct {
        guard applied.insert(conjunct).inserted else { continue }
        segments = segments.flatMap {
          $0.kind == kind ? [$0.with(.less, value), $0.with(.greater, value)] : [$0]
        }
        isLimited = true
        continue
      }
      guard let leaves = leaves(of: conjunct, on: path), applied.insert(conjunct).inserted else {
        continue
      }
      isLimited = true
      let width = leaves.reduce(0) { $0 + $1.width }
      guard segments.count * width <= maxSegments else { continue }
      segments = segments.flatMap { segment in leaves.flatMap { segment.limited(by: $0) } }
    }
    return (segments, isLimited)
  }

  private static func leaves(of test: IndexTest, on path: FieldPath) -> [IndexTest.Leaf]? {
    switch test {
    case .entry(path, let leaf):
      switch leaf {
      case .compare(let kind, _, _), .oneOf(let kind, _), .range(let kind, _, _):
        return kind.isSortable ? [leaf] : nil
      case .within, .present: return nil
      }
    case .any(let tests):
      // Membership of several types; each kind in one leaf only.
      var found: [IndexTest.Leaf] = []
      for test in tests {
        guard case .entry(path, .oneOf(let kind, let values)) = test, kind.isSortable,
          !found.contains(where: { if case .oneOf(kind, _) = $0 { true } else { false } })
        else { return nil }
        found.append(.oneOf(kind, values))
      }
      return found.isEmpty ? nil : found
    default: return nil
    }
  }

  private func limited(by leaf: IndexTest.Leaf) -> [IndexSegment] {
    switch leaf {
    case .compare(kind, let relation, let value): return [with(relation, value)]
    case .range(kind, let lower, nil): return [with(.greaterOrEqual, lower)]
    case .range(kind, let lower, let upper?):
      return [with(.greaterOrEqual, lower).with(.less, upper)]
    case .oneOf(kind, let values):
      var ordered: [IndexScalar] = []
      for value in values.sorted(by: { IndexScalar.order($0, $1) < 0 })
      where ordered.last.map({ IndexScalar.order($0, value) != 0 }) ?? true {
        ordered.append(value)
      }
      return ordered.map { with(.equal, $0) }
    default: return []
    }
  }
}

extension IndexTest.Leaf {
  /// Ranges it makes of one.
  fileprivate var width: Int {
    if case .oneOf(_, let values) = self { values.count } else { 1 }
  }
}

/// Counts what a query reads, and says when that is enough for one answer.
///
/// Not Sendable: lives on the reader's thread with its transaction.
final class QueryMeter {
  /// Entries of the index and records read.
  private(set) var rows = 0
  /// Rows after which an answer ends with a page token, however few records it has.
  let budget: Int
  /// Zones among which the budget is spent.
  var zones = 1
  /// What was run, when somebody asks.
  var statements: [SQLText]?

  init(budget: Int) { self.budget = budget }

  /// A page reads four times its size at most. Below four records that would not do to see where
  /// one value ends and the next begins.
  convenience init(pageSize: Int) { self.init(budget: max(4 * pageSize, 16)) }

  /// Candidates that may still be looked at: each costs its entry and its record.
  var affordable: Int { (budget - rows) / 2 }
  var isSpent: Bool { affordable < 1 }
  /// Most entries of each of so many parts of a condition, read to compare them: a quarter of the
  /// budget for all, so that the rest suffices for a page in the order of an index. Not above zero
  /// when there is nothing to spend on that.
  func share(of options: Int) -> Int {
    // Small pages leave nothing for it.
    budget < 32 ? 0 : budget / (4 * max(1, options) * max(1, zones)) - 1
  }
  /// Records of one value of a sort key that are sorted at once: so many that they fit an answer.
  var groupLimit: Int { max(1, budget / (6 * max(1, zones))) }
  func read(_ count: Int = 1) { rows += count }
  func note(_ text: SQLText) { statements?.append(text) }
}
