// What the index knows of a record. A predicate is brought into a normal form
// of tests over these entries (`IndexTest`), and that form is both run in
// memory and printed as SQL: one meaning, two executions.

/// The kind of an indexed value; the numbers are in the database and order
/// values of different types in a sort.
enum IndexKind: Int64, Sendable, Hashable {
  case number = 1
  case timestamp = 2
  case string = 3
  case bytes = 4
  case reference = 5
  /// Value is z of the unit sphere; x and y stand beside it.
  case location = 8
  /// There is one for each list, so that an empty one is present too.
  case list = 9
  case numberElement = 17
  case timestampElement = 18
  case stringElement = 19
  case bytesElement = 20
  case referenceElement = 21
  /// A word of a text, of any field.
  case word = 31

  /// The largest kind that a sort can order.
  static let lastSortable = IndexKind.reference

  static let sortable: [IndexKind] = [.number, .timestamp, .string, .bytes, .reference]

  var element: IndexKind? { isSortable ? IndexKind(rawValue: rawValue + 16) : nil }
  var isSortable: Bool { rawValue <= Self.lastSortable.rawValue }
}

/// A value as SQLite orders it: numbers by value, text and blobs by bytes.
enum IndexScalar: Sendable, Hashable {
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])

  /// -1, 0 or 1. Both sides are of one kind.
  static func order(_ a: IndexScalar, _ b: IndexScalar) -> Int {
    switch (a, b) {
    case (.integer(let x), .integer(let y)): sign(x, y)
    case (.real(let x), .real(let y)): sign(x, y)
    case (.integer(let x), .real(let y)): order(x, y)
    case (.real(let x), .integer(let y)): -order(y, x)
    case (.text(let x), .text(let y)): lexicographic(x.utf8, y.utf8)
    case (.blob(let x), .blob(let y)): lexicographic(x, y)
    default: sign(a.rank, b.rank)
    }
  }

  private var rank: Int {
    switch self {
    case .integer, .real: 0
    case .text: 1
    case .blob: 2
    }
  }

  private static func sign<T: Comparable>(_ a: T, _ b: T) -> Int { a < b ? -1 : a > b ? 1 : 0 }

  private static func lexicographic<S: Sequence<UInt8>>(_ a: S, _ b: S) -> Int {
    a.lexicographicallyPrecedes(b) ? -1 : b.lexicographicallyPrecedes(a) ? 1 : 0
  }

  /// Exact, as SQLite does it: converting the integer would lose digits above 2^53.
  private static func order(_ integer: Int64, _ real: Double) -> Int {
    if real >= 0x1p63 { return -1 }
    if real < -0x1p63 { return 1 }
    let whole = real.rounded(.towardZero)
    let other = Int64(whole)
    return integer == other ? sign(0, real - whole) : sign(integer, other)
  }
}

/// One row of the index: a scalar, or one element of a list.
struct IndexEntry: Sendable, Hashable {
  var kind: IndexKind
  var value: IndexScalar
  /// Only of locations.
  var x = 0.0
  var y = 0.0

  /// The entries of a field's value.
  static func entries(of value: RecordValue) -> [IndexEntry] {
    if case .list(let elements) = value {
      var entries = [IndexEntry(kind: .list, value: .integer(Int64(elements.count)))]
      for element in elements {
        // Places in lists are kept but not searched.
        if let (kind, scalar) = scalar(of: element), let kind = kind.element {
          entries.append(IndexEntry(kind: kind, value: scalar))
        }
      }
      return entries
    }
    if case .location(let place) = value {
      let point = SpherePoint(place)
      return [IndexEntry(kind: .location, value: .real(point.z), x: point.x, y: point.y)]
    }
    return scalar(of: value).map { [IndexEntry(kind: $0.0, value: $0.1)] } ?? []
  }

  /// The entries of a field of a record, system fields included.
  static func entries(of path: FieldPath, in record: StoredRecord) -> [IndexEntry] {
    switch path {
    case .system(.share) where record.share.isEmpty: []
    case .system(let field): [IndexEntry(kind: field.kind, value: field.scalar(of: record))]
    case .user(let name): record.fields[name].map { entries(of: $0) } ?? []
    case .words(let fields):
      RecordWords.all(in: record, fields: fields).map {
        IndexEntry(kind: .word, value: .text($0))
      }
    }
  }

  /// Kind and scalar of a value that can be compared; nil for lists and places.
  static func scalar(of value: RecordValue) -> (IndexKind, IndexScalar)? {
    switch value {
    case .string(let text): (.string, .text(text))
    case .int64(let number): (.number, .integer(number))
    case .double(let number): (.number, .real(number))
    case .bytes(let bytes): (.bytes, .blob(bytes))
    case .timestamp(let time): (.timestamp, .integer(time))
    case .reference(let target): (.reference, .text(target.key))
    case .location, .list, .asset: nil
    }
  }
}
