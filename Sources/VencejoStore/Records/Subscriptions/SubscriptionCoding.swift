// Definitions of saved subscriptions as bytes, and queries back from theirs.

extension SavedSubscription {
  /// What is fired, without the name.
  var definition: [UInt8] {
    var writer = KeysetWriter()
    switch kind {
    case .query(let query, let firesOn, let once, let zone):
      writer.int(1)
      query.write(to: &writer)
      writer.int(firesOn.reduce(0) { $0 | 1 << $1.rawValue })
      writer.int(once ? 1 : 0)
      writer.text(zone ?? "")
    case .zone(let zone, let type):
      writer.int(2)
      writer.text(zone)
      writer.text(type ?? "")
    case .database(let type):
      writer.int(3)
      writer.text(type ?? "")
    }
    writer.text(info.title)
    writer.text(info.body)
    writer.int(Int64(info.desiredKeys.count))
    for key in info.desiredKeys { writer.text(key) }
    writer.int(info.incrementsBadge ? 1 : 0)
    writer.text(info.collapseField)
    writer.text(info.hookURI)
    return writer.bytes
  }

  /// Nil when the bytes are damaged.
  init?(id: SubscriptionID, definition: [UInt8], createTime: Int64, message: [UInt8]) {
    var reader = KeysetReader(definition)
    func optional(_ text: String) -> String? { text.isEmpty ? nil : text }
    switch reader.int() {
    case 1:
      guard let query = RecordQuery(&reader), let bits = reader.int(), let once = reader.int(),
        let zone = reader.text()
      else { return nil }
      let reasons = [Reason.creation, .update, .deletion].filter { bits & 1 << $0.rawValue != 0 }
      kind = .query(query, firesOn: Set(reasons), once: once == 1, zone: optional(zone))
    case 2:
      guard let zone = reader.text(), let type = reader.text() else { return nil }
      kind = .zone(zone, type: optional(type))
    case 3:
      guard let type = reader.text() else { return nil }
      kind = .database(type: optional(type))
    default: return nil
    }
    guard let title = reader.text(), let body = reader.text(), let count = reader.int(),
      count >= 0
    else { return nil }
    var keys: [String] = []
    for _ in 0..<count {
      guard let key = reader.text() else { return nil }
      keys.append(key)
    }
    guard let badge = reader.int(), let collapse = reader.text() else { return nil }
    info = NotificationInfo(
      title: title, body: body, desiredKeys: keys, incrementsBadge: badge == 1,
      collapseField: collapse, hookURI: reader.text() ?? "")
    self.id = id
    self.createTime = createTime
    self.message = message
  }
}

extension RecordQuery {
  /// Reads what ``write(to:)`` wrote; nil when the bytes are damaged.
  init?(_ reader: inout KeysetReader) {
    guard let type = reader.text(), let hasPredicate = reader.int() else { return nil }
    self.init(type: type)
    if hasPredicate == 1 {
      guard let predicate = Predicate(&reader, depth: 0) else { return nil }
      self.predicate = predicate
    }
    guard let count = reader.int(), count >= 0 else { return nil }
    for _ in 0..<count {
      guard let field = reader.text(), let descending = reader.int(),
        let latitude = reader.optionalDouble(), let longitude = reader.optionalDouble()
      else { return nil }
      var key = SortKey(field, descending: descending == 1)
      if let latitude, let longitude {
        key.relativeTo = RecordLocation(latitude: latitude, longitude: longitude)
      }
      sort.append(key)
    }
  }
}

extension Predicate {
  fileprivate init?(_ reader: inout KeysetReader, depth: Int) {
    guard depth <= Self.maxDepth + 1, let code = reader.int() else { return nil }
    func values(_ field: String) -> [RecordValue]? {
      guard case .list(let values)? = RecordCoding.read(&reader) else { return nil }
      return values
    }
    func texts() -> [String]? {
      guard let count = reader.int(), count >= 0 else { return nil }
      var texts: [String] = []
      for _ in 0..<count {
        guard let text = reader.text() else { return nil }
        texts.append(text)
      }
      return texts
    }
    switch code {
    case 1...3:
      guard let count = reader.int(), count >= 0 else { return nil }
      var parts: [Predicate] = []
      for _ in 0..<count {
        guard let part = Predicate(&reader, depth: depth + 1) else { return nil }
        parts.append(part)
      }
      guard code == 3 else {
        self = code == 1 ? .allOf(parts) : .anyOf(parts)
        return
      }
      guard parts.count == 1 else { return nil }
      self = .not(parts[0])
    case 11, 12:
      guard let words = texts(), let fields = texts() else { return nil }
      self = .search(words: words, all: code == 12, fields: fields)
    default:
      guard let field = reader.text() else { return nil }
      switch code {
      case 4:
        guard let number = reader.int(), let comparator = Comparator(code: number),
          let value = RecordCoding.read(&reader)
        else { return nil }
        self = .comparison(field: field, comparator, value)
      case 5, 7, 8:
        guard let values = values(field) else { return nil }
        self =
          code == 5
          ? .isIn(field: field, values) : .listContains(field: field, values, all: code == 8)
      case 6:
        guard let prefix = reader.text() else { return nil }
        self = .beginsWith(field: field, prefix)
      case 9:
        guard case .location(let center)? = RecordCoding.read(&reader),
          let radius = reader.double()
        else { return nil }
        self = .distance(field: field, center: center, radiusMeters: radius)
      case 10: self = .present(field: field)
      default: return nil
      }
    }
  }
}
