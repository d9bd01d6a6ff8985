/// The normal form of a predicate: every leaf says "the field has an entry
/// such that …". `Predicate` is checked while it is brought into this form.
indirect enum IndexTest: Sendable, Hashable {
  case all([IndexTest])
  case any([IndexTest])
  case not(IndexTest)
  case entry(FieldPath, Leaf)

  enum Leaf: Sendable, Hashable {
    case compare(IndexKind, Relation, IndexScalar)
    case oneOf(IndexKind, [IndexScalar])
    /// Text from `lower` on and below `upper`; nil is no bound.
    case range(IndexKind, lower: IndexScalar, upper: IndexScalar?)
    case within(SpherePoint, squaredChord: Double)
    case present
  }

  enum Relation: String, Sendable, Hashable {
    case equal = "="
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="

    func holds(_ order: Int) -> Bool {
      switch self {
      case .equal: order == 0
      case .less: order < 0
      case .lessOrEqual: order <= 0
      case .greater: order > 0
      case .greaterOrEqual: order >= 0
      }
    }
  }

  /// Whether the record satisfies the test.
  func holds(for record: StoredRecord) -> Bool {
    switch self {
    case .all(let tests): tests.allSatisfy { $0.holds(for: record) }
    case .any(let tests): tests.contains { $0.holds(for: record) }
    case .not(let test): !test.holds(for: record)
    case .entry(let path, let leaf):
      IndexEntry.entries(of: path, in: record).contains { leaf.holds(for: $0) }
    }
  }
}

extension IndexTest.Leaf {
  func holds(for entry: IndexEntry) -> Bool {
    switch self {
    case .compare(let kind, let relation, let value):
      entry.kind == kind && relation.holds(IndexScalar.order(entry.value, value))
    case .oneOf(let kind, let values):
      entry.kind == kind && values.contains { IndexScalar.order(entry.value, $0) == 0 }
    case .range(let kind, let lower, let upper):
      entry.kind == kind && IndexScalar.order(entry.value, lower) >= 0
        && (upper.map { IndexScalar.order(entry.value, $0) < 0 } ?? true)
    case .within(let center, let squaredChord):
      if case (.location, .real(let z)) = (entry.kind, entry.value) {
        SpherePoint(x: entry.x, y: entry.y, z: z).squaredChord(to: center) <= squaredChord
      } else {
        false
      }
    case .present: true
    }
  }
}

extension Predicate {
  /// Deepest nesting accepted.
  static let maxDepth = 20
  /// Most conditions accepted in one predicate: each may be a level of an expression of SQLite,
  /// which has at most 1,000. Ten values of a membership test weigh as much as a condition.
  static let maxConditions = 400
  /// Most values of one membership test.
  static let maxValues = 250

  /// Checks the predicate and brings it into normal form.
  func test() throws(RecordViolation) -> IndexTest {
    var size = 0
    return try test(depth: 0, size: &size)
  }

  private func test(depth: Int, size: inout Int) throws(RecordViolation) -> IndexTest {
    try Self.count(1, &size)
    guard depth <= Self.maxDepth else {
      throw RecordViolation("predicate", "nested deeper than \(Self.maxDepth)")
    }
    switch self {
    case .allOf(let parts): return .all(try Self.tests(parts, depth, &size))
    case .anyOf(let parts): return .any(try Self.tests(parts, depth, &size))
    case .not(let part): return .not(try part.test(depth: depth + 1, size: &size))
    case .present(let field): return .entry(try FieldPath(field), .present)
    case .comparison(let field, let comparator, let value):
      return try Self.comparison(field, comparator, value)
    case .isIn(let field, let values):
      try Self.check(values, field, &size)
      return try Self.oneOf(field, values, elements: false)
    case .listContains(let field, let values, let all):
      try Self.check(values, field, &size)
      guard all else { return try Self.oneOf(field, values, elements: true) }
      try Self.count(values.count, &size)
      var tests: [IndexTest] = []
      for value in values { tests.append(try Self.oneOf(field, [value], elements: true)) }
      return .all(tests)
    case .beginsWith(let field, let prefix):
      return .entry(
        try FieldPath(field),
        .range(.string, lower: .text(prefix), upper: Self.successor(of: prefix).map { .text($0) }))
    case .search(let words, let all, let fields):
      return try Self.search(words, all, fields, &size)
    case .distance(let field, let center, let radius):
      guard radius >= 0 else {
        throw RecordViolation(field, "a radius is a number of metres from 0 on")
      }
      try RecordRules.check(center, field: field)
      return .entry(
        try FieldPath(field),
        .within(SpherePoint(center), squaredChord: SpherePoint.squaredChord(meters: radius)))
    }
  }

  /// A text to search for may be several words after the cut: then each counts.
  private static func search(
    _ texts: [String], _ all: Bool, _ fields: [String], _ size: inout Int
  ) throws(RecordViolation) -> IndexTest {
    for field in fields where !RecordNaming.isWord(field) {
      throw RecordViolation(field, "not a field name")
    }
    var words: [String] = []
    for word in texts.flatMap({ RecordWords.words(of: $0) }) where !words.contains(word) {
      words.append(word)
    }
    guard (1...RecordWords.maxSearched).contains(words.count), fields.count <= 100 else {
      throw RecordViolation(
        "search", "give 1 to \(RecordWords.maxSearched) words with letters or digits")
    }
    try count(words.count, &size)
    let tests = words.map {
      IndexTest.entry(.words(fields.sorted()), .compare(.word, .equal, .text($0)))
    }
    return all ? .all(tests) : .any(tests)
  }

  private static func tests(
    _ parts: [Predicate], _ depth: Int, _ size: inout Int
  ) throws(RecordViolation) -> [IndexTest] {
    var tests: [IndexTest] = []
    for part in parts {
      tests.append(try part.test(depth: depth + 1, size: &size))
    }
    return tests
  }

  private static func count(_ more: Int, _ size: inout Int) throws(RecordViolation) {
    size += more
    guard size <= maxConditions else {
      throw RecordViolation("predicate", "more than \(maxConditions) conditions")
    }
  }

  private static func check(
    _ values: [RecordValue], _ field: String, _ size: inout Int
  ) throws(RecordViolation) {
    try count(values.count / 10, &size)
    guard (1...maxValues).contains(values.count) else {
      throw RecordViolation(field, "give 1 to \(maxValues) values")
    }
  }

  private static func comparison(
    _ field: String, _ comparator: Comparator, _ value: RecordValue
  ) throws(RecordViolation) -> IndexTest {
    let path = try FieldPath(field)
    let (kind, scalar) = try self.scalar(value, field)
    let relation: IndexTest.Relation
    switch comparator {
    case .equal, .notEqual: relation = .equal
    case .lessThan: relation = .less
    case .lessThanOrEqual: relation = .lessOrEqual
    case .greaterThan: relation = .greater
    case .greaterThanOrEqual: relation = .greaterOrEqual
    }
    guard relation == .equal || kind != .reference else {
      throw RecordViolation(field, "references are equal or not; they have no order")
    }
    let leaf = IndexTest.entry(path, .compare(kind, relation, scalar))
    return comparator == .notEqual ? .all([.entry(path, .present), .not(leaf)]) : leaf
  }

  private static func oneOf(
    _ field: String, _ values: [RecordValue], elements: Bool
  ) throws(RecordViolation) -> IndexTest {
    let path = try FieldPath(field)
    var groups: [IndexKind: [IndexScalar]] = [:]
    var order: [IndexKind] = []
    for value in values {
      var (kind, scalar) = try self.scalar(value, field)
      if elements, let element = kind.element { kind = element }
      if groups[kind] == nil { order.append(kind) }
      groups[kind, default: []].append(scalar)
    }
    let leaves = order.map { IndexTest.entry(path, .oneOf($0, groups[$0] ?? [])) }
    return leaves.count == 1 ? leaves[0] : .any(leaves)
  }

  private static func scalar(
    _ value: RecordValue, _ field: String
  ) throws(RecordViolation) -> (IndexKind, IndexScalar) {
    if case .double(let number) = value, number.isNaN {
      throw RecordViolation(field, "NaN compares with nothing")
    }
    guard let pair = IndexEntry.scalar(of: value) else {
      throw RecordViolation(
        field, "locations and lists have no comparison; use distance or contains")
    }
    return pair
  }

  /// The least text above every text with this prefix, in byte order (which
  /// for UTF-8 is the order of the scalars); nil when there is none.
  static func successor(of prefix: String) -> String? {
    var scalars = Array(prefix.unicodeScalars)
    while let last = scalars.popLast() {
      // Over the surrogates, which are not scalars.
      let next = last.value == 0xD7FF ? 0xE000 : last.value + 1
      if let scalar = Unicode.Scalar(next) {
        scalars.append(scalar)
        var text = ""
        text.unicodeScalars.append(contentsOf: scalars)
        return text
      }
    }
    return nil
  }
}
