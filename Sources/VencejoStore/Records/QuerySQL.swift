import VencejoSQLite

extension IndexScalar: SQLiteBindable {
  var sqliteValue: SQLiteValue {
    switch self {
    case .integer(let number): .integer(number)
    case .real(let number): .real(number)
    case .text(let text): .text(text)
    case .blob(let bytes): .blob(bytes)
    }
  }
}

/// SQL that grows together with its parameters. Values are bound, never printed.
struct SQLText {
  var sql = ""
  var values: [any SQLiteBindable] = []

  init(_ sql: String = "", _ values: [any SQLiteBindable] = []) {
    self.sql = sql
    self.values = values
  }

  static func += (text: inout SQLText, more: SQLText) {
    text.sql += more.sql
    text.values += more.values
  }

  static func += (text: inout SQLText, more: String) { text.sql += more }

  static func joined(_ parts: [SQLText], by separator: String) -> SQLText {
    var text = SQLText()
    for (index, part) in parts.enumerated() {
      if index > 0 { text += separator }
      text += part
    }
    return text
  }
}

/// The zones a query reads.
enum QueryScope: Sendable, Hashable {
  case zone(Int64)
  case database(Int64)

  /// `column` is in scope.
  func condition(_ column: String) -> SQLText {
    switch self {
    case .zone(let key): SQLText("\(column) = ?", [key])
    case .database(let key):
      SQLText(
        "\(column) IN (SELECT zone_key FROM record_zone WHERE database_key = ? AND deleted = 0)",
        [key])
    }
  }
}

/// Prints a checked query as SQL over `record r` and `record_index`.
struct QuerySQL {
  var type: String
  var scope: QueryScope
  var test: IndexTest?
  var plan: SortPlan

  private static let wordKey = "(SELECT word_key FROM record_word WHERE word = ?)"

  /// The columns of a record, in the order that `RecordRow` reads.
  static let columns = """
    r.record_key, r.zone_key, z.zone, r.record_name, w.word, r.fields, r.change, r.change_tag, \
    r.created_us, r.modified_us, r.creator, r.modifier, r.deleted
    """
  static let tables =
    "record r JOIN record_zone z ON z.zone_key = r.zone_key "
    + "JOIN record_word w ON w.word_key = r.type_key"

  /// A page after `position` in the query's order.
  func page(after position: SortPosition?, limit: Int) -> SQLText {
    var text = SQLText("SELECT \(Self.columns) FROM \(Self.tables)")
    for (index, key) in plan.keys.enumerated() {
      guard case .user(let field) = key.path else { continue }
      let kinds =
        key.center == nil
        ? "BETWEEN 1 AND \(IndexKind.lastSortable.rawValue)"
        : "= \(IndexKind.location.rawValue)"
      text += SQLText(
        " LEFT JOIN record_index s\(index) ON s\(index).record_key = r.record_key"
          + " AND s\(index).field_key = \(Self.wordKey) AND s\(index).kind \(kinds)", [field])
    }
    text += " WHERE "
    text += condition()
    if let position {
      text += " AND ("
      text += after(position)
      text += ")"
    }
    text += " ORDER BY "
    for (index, key) in plan.keys.enumerated() {
      let direction = key.descending ? "DESC" : "ASC"
      let (kind, value) = expressions(of: key, index)
      if let kind { text += "\(kind) \(direction), " }
      text += value
      text += " \(direction), "
    }
    text += SQLText("r.record_name, z.zone LIMIT ?", [limit])
    return text
  }

  /// Whether a live record of the type is in scope and satisfies the predicate.
  func condition() -> SQLText {
    // Without statistics SQLite would walk the whole type. Where the predicate
    // must find an entry of the index, a plus sign keeps it from doing so: the
    // records come from there.
    let mark = test?.needsEntry == true ? "+" : ""
    var text = scope.condition("\(mark)r.zone_key")
    text += SQLText(
      " AND \(mark)r.type_key = \(Self.wordKey) AND \(mark)r.deleted = 0", [type])
    if let test {
      text += " AND "
      text += sql(of: test)
    }
    return text
  }

  // MARK: Predicates

  private func sql(of test: IndexTest) -> SQLText {
    switch test {
    case .all(let tests): combine(tests, "AND", empty: "1")
    case .any(let tests): combine(tests, "OR", empty: "0")
    case .not(let test): wrap("NOT (", sql(of: test), ")")
    case .entry(.system(let field), let leaf): sql(of: leaf, on: field)
    case .entry(.user(let name), let leaf): sql(of: leaf, field: name)
    }
  }

  private func combine(_ tests: [IndexTest], _ operation: String, empty: String) -> SQLText {
    guard !tests.isEmpty else { return SQLText(empty) }
    return wrap("(", .joined(tests.map { sql(of: $0) }, by: " \(operation) "), ")")
  }

  private func wrap(_ before: String, _ inner: SQLText, _ after: String) -> SQLText {
    var text = SQLText(before)
    text += inner
    text += after
    return text
  }

  /// A system column is always there, so a leaf is a plain comparison, or
  /// false when it asks for another kind.
  private func sql(of leaf: IndexTest.Leaf, on field: SystemField) -> SQLText {
    switch leaf {
    case .present: SQLText("1")
    case .within: SQLText("0")
    case .compare(let kind, _, _), .oneOf(let kind, _), .range(let kind, _, _):
      kind == field.kind ? values(of: leaf, column: field.column) : SQLText("0")
    }
  }

  private func sql(of leaf: IndexTest.Leaf, field: String) -> SQLText {
    var text = SQLText("r.record_key IN (SELECT i.record_key FROM record_index i WHERE ")
    text += scope.condition("i.zone_key")
    text += SQLText(
      " AND i.type_key = \(Self.wordKey) AND i.field_key = \(Self.wordKey)", [type, field])
    switch leaf {
    case .present: break
    case .within(let center, let squaredChord):
      // |z - z0| <= chord, made a little wider than the rounding of the sum.
      let margin = squaredChord.squareRoot() + 1e-9
      text += SQLText(
        " AND i.kind = \(IndexKind.location.rawValue) AND i.value BETWEEN ? AND ? AND ",
        [center.z - margin, center.z + margin])
      text += Self.chord("i", center)
      text += SQLText(" <= ?", [squaredChord])
    case .compare(let kind, _, _), .oneOf(let kind, _), .range(let kind, _, _):
      text += " AND i.kind = \(kind.rawValue) AND "
      text += values(of: leaf, column: "i.value")
    }
    text += ")"
    return text
  }

  private func values(of leaf: IndexTest.Leaf, column: String) -> SQLText {
    switch leaf {
    case .compare(_, let relation, let value):
      return SQLText("\(column) \(relation.rawValue) ?", [value])
    case .oneOf(_, let values):
      let marks = repeatElement("?", count: values.count).joined(separator: ",")
      return SQLText("\(column) IN (\(marks))", values)
    case .range(_, let lower, nil):
      return SQLText("\(column) >= ?", [lower])
    case .range(_, let lower, let upper?):
      return SQLText("(\(column) >= ? AND \(column) < ?)", [lower, upper])
    case .within, .present:
      return SQLText("1")
    }
  }

  /// As `SpherePoint.squaredChord(to:)`, in its order of operations.
  private static func chord(_ table: String, _ center: SpherePoint) -> SQLText {
    SQLText(
      "((\(table).x - ?) * (\(table).x - ?) + (\(table).y - ?) * (\(table).y - ?)"
        + " + (\(table).value - ?) * (\(table).value - ?))",
      [center.x, center.x, center.y, center.y, center.z, center.z])
  }

  // MARK: Order

  /// Kind (nil where it is always the same) and value of a sort key in SQL.
  private func expressions(of key: SortPlan.Key, _ index: Int) -> (String?, SQLText) {
    switch key.path {
    case .system(let field): (nil, SQLText(key.center == nil ? field.column : "NULL"))
    case .user:
      if let center = key.center {
        ("(s\(index).kind IS NOT NULL)", Self.chord("s\(index)", center))
      } else {
        ("coalesce(s\(index).kind, 0)", SQLText("s\(index).value"))
      }
    }
  }

  /// Strictly after a position: for some n, the first n keys are equal and the
  /// next one is beyond.
  private func after(_ position: SortPosition) -> SQLText {
    var alternatives: [SQLText] = []
    var equal: [SQLText] = []
    for (index, key) in plan.keys.enumerated() {
      let part = index < position.parts.count ? position.parts[index] : nil
      let (kind, value) = expressions(of: key, index)
      let beyond = key.descending ? "<" : ">"
      if let kind {
        let rank = key.center == nil ? part?.kind.rawValue ?? 0 : part == nil ? 0 : 1
        alternatives.append(
          .joined(equal + [SQLText("\(kind) \(beyond) ?", [rank])], by: " AND "))
        equal.append(SQLText("\(kind) = ?", [rank]))
      }
      if let part {
        alternatives.append(.joined(equal + [compare(value, beyond, part.value)], by: " AND "))
        equal.append(compare(value, "=", part.value))
      }
    }
    alternatives.append(
      .joined(equal + [SQLText("r.record_name > ?", [position.recordName])], by: " AND "))
    equal.append(SQLText("r.record_name = ?", [position.recordName]))
    alternatives.append(.joined(equal + [SQLText("z.zone > ?", [position.zone])], by: " AND "))
    return .joined(alternatives.map { wrap("(", $0, ")") }, by: " OR ")
  }

  private func compare(_ left: SQLText, _ operation: String, _ right: IndexScalar) -> SQLText {
    var text = left
    text += SQLText(" \(operation) ?", [right])
    return text
  }
}
