// Queries as bytes, one form for each: tokens are bound to the request they
// continue by a hash of these.

extension RecordQuery {
  /// Appends the query.
  public func write(to writer: inout KeysetWriter) {
    writer.text(type)
    writer.int(predicate == nil ? 0 : 1)
    predicate?.write(to: &writer)
    writer.int(Int64(sort.count))
    for key in sort {
      writer.text(key.field)
      writer.int(key.descending ? 1 : 0)
      writer.optional(key.relativeTo?.latitude)
      writer.optional(key.relativeTo?.longitude)
    }
  }
}

extension Predicate {
  fileprivate func write(to writer: inout KeysetWriter) {
    switch self {
    case .allOf(let parts): Self.write(1, parts, &writer)
    case .anyOf(let parts): Self.write(2, parts, &writer)
    case .not(let part): Self.write(3, [part], &writer)
    case .comparison(let field, let comparator, let value):
      writer.int(4)
      writer.text(field)
      writer.int(comparator.code)
      RecordCoding.write(value, to: &writer)
    case .isIn(let field, let values):
      writer.int(5)
      writer.text(field)
      RecordCoding.write(.list(values), to: &writer)
    case .beginsWith(let field, let prefix):
      writer.int(6)
      writer.text(field)
      writer.text(prefix)
    case .listContains(let field, let values, let all):
      writer.int(all ? 8 : 7)
      writer.text(field)
      RecordCoding.write(.list(values), to: &writer)
    case .distance(let field, let center, let radius):
      writer.int(9)
      writer.text(field)
      RecordCoding.write(.location(center), to: &writer)
      writer.double(radius)
    case .present(let field):
      writer.int(10)
      writer.text(field)
    case .search(let words, let all, let fields):
      writer.int(all ? 12 : 11)
      for list in [words, fields] {
        writer.int(Int64(list.count))
        for text in list { writer.text(text) }
      }
    }
  }

  private static func write(_ code: Int64, _ parts: [Predicate], _ writer: inout KeysetWriter) {
    writer.int(code)
    writer.int(Int64(parts.count))
    for part in parts { part.write(to: &writer) }
  }
}

extension Predicate.Comparator {
  init?(code: Int64) {
    let all: [Self] = [
      .equal, .notEqual, .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual,
    ]
    guard let known = all.first(where: { $0.code == code }) else { return nil }
    self = known
  }

  fileprivate var code: Int64 {
    switch self {
    case .equal: 1
    case .notEqual: 2
    case .lessThan: 3
    case .lessThanOrEqual: 4
    case .greaterThan: 5
    case .greaterThanOrEqual: 6
    }
  }
}
