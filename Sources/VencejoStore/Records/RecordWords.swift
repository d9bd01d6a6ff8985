import VencejoSQLite

/// The words of a record's texts, cut and folded as FTS5's unicode61 does it.
enum RecordWords {
  /// Words of a field that count, repeats included; what follows is not searched.
  static let maxPerField = 2_000
  /// Most words of one search.
  static let maxSearched = 32

  /// The words of a text.
  static func words(of text: String) -> [String] {
    WordTokenizer.unicode61?.words(text, limit: maxPerField) ?? []
  }

  /// The words of a field's value: of a string, and of a list of strings.
  static func words(of value: RecordValue) -> [String] {
    switch value {
    case .string(let text): return words(of: text)
    case .list(let elements):
      var found: [String] = []
      for case .string(let text) in elements where found.count < maxPerField {
        found += words(of: text)
      }
      return Array(found.prefix(maxPerField))
    default: return []
    }
  }

  /// Every word of a record once.
  static func all(in record: StoredRecord) -> Set<String> {
    var found: Set<String> = []
    for value in record.fields.values { found.formUnion(words(of: value)) }
    return found
  }

  /// The words of some fields; of all with none named.
  static func all(in record: StoredRecord, fields: [String]) -> Set<String> {
    guard !fields.isEmpty else { return all(in: record) }
    var found: Set<String> = []
    for name in fields {
      if let value = record.fields[name] { found.formUnion(words(of: value)) }
    }
    return found
  }
}
