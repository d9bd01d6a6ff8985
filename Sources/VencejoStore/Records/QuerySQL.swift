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

  init?(_ value: SQLiteValue) {
    switch value {
    case .integer(let number): self = .integer(number)
    case .real(let number): self = .real(number)
    case .text(let text): self = .text(text)
    case .blob(let bytes): self = .blob(bytes)
    case .null: return nil
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

/// The statements of a query. Each reads one range of one index, in its order.
enum QuerySQL {
  /// The columns of a record, in the order that `RecordRow` reads.
  static let columns = """
    r.record_key, r.zone_key, z.zone, r.record_name, w.word, r.fields, r.change, r.change_tag, \
    r.created_us, r.modified_us, r.creator, r.modifier, r.deleted, r.cascaded, \
    r.parent, r.share
    """
  static let tables =
    "record r JOIN record_zone z ON z.zone_key = r.zone_key "
    + "JOIN record_word w ON w.word_key = r.type_key"

  /// Where names come from, in their order.
  enum Names {
    /// Every record of the type.
    case type
    /// Entries of single values, by field key.
    case entries([(field: Int64, kind: IndexKind, value: IndexScalar)])
    case system(SystemField, [IndexScalar])
    /// Shapes, by key.
    case shapes([Int64])
  }

  /// `record_name, record_key` after a name.
  static func names(
    _ source: Names, zone: Int64, type: Int64, after name: String?, descending: Bool, limit: Int
  ) -> SQLText {
    let beyond =
      name.map { SQLText(" AND record_name \(descending ? "<" : ">") ?", [$0]) } ?? SQLText()
    let direction = descending ? "DESC" : "ASC"
    func select(_ table: String, _ condition: SQLText) -> SQLText {
      var text = SQLText("SELECT record_name, record_key FROM \(table) WHERE ")
      text += condition
      text += beyond
      return text
    }
    func live(_ index: String) -> String { "record INDEXED BY \(index)" }
    var text: SQLText
    switch source {
    case .type:
      text = select(
        live("record_by_type"),
        SQLText("zone_key = ? AND type_key = ? AND deleted = 0", [zone, type]))
    case .system(let field, let values):
      // A partial index is only used by who asks for its part.
      let part = field == .share ? " AND share <> ''" : ""
      text = .joined(
        values.map {
          select(
            live(field.index),
            SQLText(
              "zone_key = ? AND type_key = ? AND deleted = 0 AND \(field.plainColumn) = ?\(part)",
              [zone, type, $0]))
        }, by: " UNION ALL ")
    case .shapes(let keys):
      text = .joined(
        keys.map {
          select(live("record_by_shape"), SQLText("shape_key = ? AND deleted = 0", [$0]))
        }, by: " UNION ALL ")
    case .entries(let entries):
      text = .joined(
        entries.map {
          select(
            "record_entry",
            SQLText(
              "zone_key = ? AND type_key = ? AND field_key = ? AND kind = ? AND value = ?",
              [zone, type, $0.field, $0.kind.rawValue, $0.value]))
        }, by: " UNION ")
    }
    text += SQLText(" ORDER BY record_name \(direction) LIMIT ?", [limit])
    return text
  }

  /// Where a range goes on.
  enum Cursor {
    /// Strictly after this value and name.
    case after(IndexScalar, name: String)
    /// From this value on.
    case from(IndexScalar)
    /// After this value, whatever the name.
    case beyond(IndexScalar)
  }

  /// `value, record_name, record_key` of a range of a user's field (by key) or a system field.
  static func range(
    _ segment: IndexSegment, of path: FieldPath, field: Int64, zone: Int64, type: Int64,
    cursor: Cursor?, descending: Bool, limit: Int
  ) -> SQLText {
    let column: String
    var text: SQLText
    if case .system(let system) = path {
      column = system.plainColumn
      text = SQLText(
        "SELECT \(column), record_name, record_key FROM record INDEXED BY \(system.index)"
          + " WHERE zone_key = ? AND type_key = ? AND deleted = 0", [zone, type])
    } else {
      column = "value"
      text = SQLText(
        "SELECT value, record_name, record_key FROM record_entry"
          + " WHERE zone_key = ? AND type_key = ? AND field_key = ? AND kind = ?",
        [zone, type, field, segment.kind.rawValue])
    }
    for condition in segment.conditions {
      text += SQLText(" AND \(column) \(condition.relation.rawValue) ?", [condition.value])
    }
    let than = descending ? "<" : ">"
    let isName = column == "record_name"
    switch cursor {
    case .after(let value, _)? where isName: text += SQLText(" AND \(column) \(than) ?", [value])
    case .after(let value, let name)?:
      text += SQLText(" AND (\(column), record_name) \(than) (?, ?)", [value, name])
    case .from(let value)?: text += SQLText(" AND \(column) \(than)= ?", [value])
    case .beyond(let value)?: text += SQLText(" AND \(column) \(than) ?", [value])
    case nil: break
    }
    let direction = descending ? "DESC" : "ASC"
    // Twice the same column would hide from SQLite that the index has the order.
    let then = isName ? "" : ", record_name \(direction)"
    text += SQLText(" ORDER BY \(column) \(direction)\(then) LIMIT ?", [limit])
    return text
  }

  /// `record_key` of a field's places, nearest or farthest first up to `Connection.nearSlack`,
  /// whose squared chord from the centre may lie between the bounds.
  static func near(
    _ center: SpherePoint, scope: Int64, low: Double, high: Double, farthest: Bool
  ) -> SQLText {
    SQLText(
      "SELECT record_key, x, y, z FROM record_geo"
        + " WHERE place_key MATCH vencejo_near(?, ?, ?, ?, ?, ?, ?)",
      [center.x, center.y, center.z, Double(scope), low, high, farthest ? 1.0 : 0.0])
  }
}

extension SystemField {
  /// The column without its table.
  var plainColumn: String { String(column.dropFirst(2)) }

  /// The index that has the type's records by this column.
  var index: String {
    switch self {
    case .recordName: "record_by_type"
    case .createTime: "record_by_create_time"
    case .updateTime: "record_by_update_time"
    case .creator: "record_by_creator"
    case .lastModifier: "record_by_modifier"
    case .share: "record_by_share"
    }
  }
}
