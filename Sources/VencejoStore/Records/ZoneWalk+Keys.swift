import VencejoSQLite

// The order of a query with sort keys: the first key's range of the index has it, but for records
// with one value of that key, which the next key orders.

extension ZoneWalk {
  private enum Group {
    /// Nothing to sort by.
    case none
    case segment(IndexSegment)
    case places
  }

  /// The records that agree with `prefix` in the keys before `depth`, in order. `followsCursor`:
  /// the cursor agrees with it too.
  func walkKeys(
    _ depth: Int, prefix: [SortPosition.Part?], followsCursor: Bool
  ) throws(StoreError) -> Bool {
    let key = keys[depth]
    var groups: [Group] = [.none]
    if key.center == nil {
      groups += IndexSegment.segments(of: key.path, in: conjuncts).segments.map { .segment($0) }
    } else {
      groups.append(.places)
    }
    if key.descending { groups.reverse() }
    let start = followsCursor ? cursor?.parts[depth] : nil
    for group in groups {
      let goesOn: Bool
      switch group {
      case .none:
        let isHere = followsCursor && cursor != nil && start == nil
        if start != nil, !key.descending { continue }
        goesOn = try walkNone(depth, prefix: prefix, followsCursor: isHere)
      case .segment(let segment):
        if let cursor, followsCursor {
          guard let part = cursor.parts[depth] else {
            // The cursor stands among those with nothing: the first or the last of all.
            if key.descending { continue }
            goesOn = try walk(segment, depth, prefix: prefix, from: nil)
            guard goesOn else { return false }
            continue
          }
          let isPast =
            key.descending
            ? part.kind.rawValue < segment.kind.rawValue
            : part.kind.rawValue > segment.kind.rawValue
          if isPast { continue }
          goesOn = try walk(
            segment, depth, prefix: prefix, from: part.kind == segment.kind ? part.value : nil)
        } else {
          goesOn = try walk(segment, depth, prefix: prefix, from: nil)
        }
      case .places:
        if followsCursor, cursor != nil, start == nil, key.descending { continue }
        goesOn = try walkPlaces(key, prefix: prefix, from: start?.value)
      }
      guard goesOn else { return false }
    }
    return true
  }

  private func walkNone(
    _ depth: Int, prefix: [SortPosition.Part?], followsCursor: Bool
  ) throws(StoreError) -> Bool {
    let some = try shapes(without: keys[depth])
    guard some?.isEmpty != true else { return true }
    // A type of very many shapes: by name, and who has something to sort by is passed over.
    let source: QuerySQL.Names = some.map { .shapes($0.map(\.key)) } ?? .type
    let isLast = depth == keys.count - 1
    if !isLast {
      guard let some, some.reduce(0, { $0 + $1.records }) <= Int64(meter.groupLimit) else {
        return try walkKeys(depth + 1, prefix: prefix + [nil], followsCursor: followsCursor)
      }
      let few = try entries(of: source, after: nil, limit: meter.groupLimit)
      return try takeGroup(few.map(\.key), prefix: prefix + [nil])
    }
    return try walkNames(
      source, prefix: prefix + [nil], isNil: true,
      after: followsCursor ? cursor?.recordName : nil)
  }

  /// Candidates by name.
  func walkNames(
    _ source: QuerySQL.Names, prefix: [SortPosition.Part?], isNil: Bool, after: String? = nil,
    known: [Entry]? = nil
  ) throws(StoreError) -> Bool {
    var name = isNil ? after : cursor?.recordName
    // A record of the cursor's name may be in this zone and after the cursor's zone.
    if let cursor, !isAlone, !isNil || after != nil,
      let row = try recordKey(named: cursor.recordName),
      let record = try read(row), !take(record, prefix: prefix)
    {
      return false
    }
    for entry in known ?? [] {
      if let record = try read(entry.key), !take(record, prefix: prefix) { return false }
      name = entry.name
    }
    while true {
      let size = chunk
      let some = try entries(of: source, after: name, limit: size)
      for entry in some {
        if let record = try read(entry.key), !take(record, prefix: prefix) { return false }
      }
      guard some.count == size, let last = some.last else { return true }
      name = last.name
    }
  }

  private func recordKey(named name: String) throws(StoreError) -> Int64? {
    meter.read()
    return try transaction.first(
      """
      SELECT record_key FROM record
      WHERE zone_key = ? AND record_name = ? AND deleted = 0 AND type_key = ?
      """, zone, name, type
    ) { $0.int(0) }
  }

  private func walk(
    _ segment: IndexSegment, _ depth: Int, prefix: [SortPosition.Part?], from value: IndexScalar?
  ) throws(StoreError) -> Bool {
    let key = keys[depth]
    let isLast = depth == keys.count - 1
    var at: QuerySQL.Cursor? = value.map { .from($0) }
    if isLast, let value, let cursor {
      at = .after(value, name: cursor.recordName)
      // As above: the same name in a zone after the cursor's.
      if !isAlone, let same = try recordKey(named: cursor.recordName), let record = try read(same),
        SortPosition.areEqual(record.position.parts[depth], cursor.parts[depth]),
        !take(record, prefix: prefix)
      {
        return false
      }
    }
    var group: [Entry] = []
    while true {
      if hasMoved, meter.isSpent { return false }
      let size = chunk
      let some = try entries(
        of: segment, key.path, cursor: at, descending: key.descending, limit: size)
      let isEnd = some.count < size
      for entry in some {
        guard let found = entry.value else { continue }
        if isLast {
          if let record = try read(entry.key), !take(record, prefix: prefix) { return false }
          continue
        }
        if let before = group.last?.value, IndexScalar.order(before, found) != 0 {
          guard try takeGroup(group, segment.kind, depth, prefix) else { return false }
          group = []
        }
        group.append(entry)
      }
      if let last = some.last, let value = last.value {
        at = .after(value, name: last.name)
      }
      if !isLast, group.count > meter.groupLimit, let value = group.last?.value {
        guard try takeGroup(group, segment.kind, depth, prefix) else { return false }
        group = []
        at = .beyond(value)
        continue
      }
      guard !isEnd else { break }
    }
    return try takeGroup(group, segment.kind, depth, prefix)
  }

  /// The records of one value of a key, in the order of the keys after it.
  private func takeGroup(
    _ group: [Entry], _ kind: IndexKind, _ depth: Int, _ prefix: [SortPosition.Part?]
  ) throws(StoreError) -> Bool {
    guard let value = group.first?.value else { return true }
    let part = SortPosition.Part(kind: kind, value: value)
    if group.count > meter.groupLimit {
      // Too many to sort: the next key's range has their order.
      let reached = prefix + [part]
      let follows =
        cursor.map { zip($0.parts, reached).allSatisfy { SortPosition.areEqual($0, $1) } } ?? false
      return try walkKeys(depth + 1, prefix: reached, followsCursor: follows)
    }
    return try takeGroup(group.map(\.key), prefix: prefix + [part])
  }

  private func takeGroup(
    _ keys: [Int64], prefix: [SortPosition.Part?]
  ) throws(StoreError) -> Bool {
    // What is left does not suffice for all of them: they begin the next page.
    if hasMoved, keys.count > 2 * meter.affordable { return false }
    var records: [FoundRecord] = []
    for key in keys { if let record = try read(key) { records.append(record) } }
    return take(sorted: records, prefix: prefix)
  }

  // MARK: Places

  /// Neighbours come in order up to a rounding: one is taken once those after it cannot be
  /// nearer.
  private func walkPlaces(
    _ key: SortPlan.Key, prefix: [SortPosition.Part?], from start: IndexScalar?
  ) throws(StoreError) -> Bool {
    guard let center = key.center, case .user(let name) = key.path else { return true }
    let field = self.key(name)
    try checkIndexed()
    let scope = try transaction.first(
      "SELECT scope_key FROM record_scope WHERE zone_key = ? AND type_key = ? AND field_key = ?",
      zone, type, field
    ) { $0.int(0) }
    guard let scope else { return true }
    let slack = Connection.nearSlack
    var low = 0.0
    var high = 5.0
    for case .entry(key.path, .within(center, let chord)) in conjuncts {
      high = min(high, Self.square(chord.squareRoot() + slack))
    }
    if case .real(let reached)? = start {
      if key.descending {
        high = min(high, Self.square(reached.squareRoot() + slack))
      } else {
        low = Self.square(max(0, reached.squareRoot() - slack))
      }
    }
    let text = QuerySQL.near(
      center, scope: scope, low: low, high: high, farthest: key.descending)
    meter.note(text)
    var waiting: [FoundRecord] = []
    var failure: StoreError?
    var goesOn = true
    try transaction.each(dynamic: text.sql, text.values) { row in
      if hasMoved, meter.isSpent {
        goesOn = false
        return false
      }
      meter.read()
      let point = SpherePoint(x: row.double(1), y: row.double(2), z: row.double(3))
      let chord = point.squaredChord(to: center).squareRoot()
      do throws(StoreError) {
        goesOn = try take(&waiting, upTo: key.descending ? -chord : chord, prefix, center)
        if goesOn, let record = try read(row.int(0)) { waiting.append(record) }
      } catch {
        failure = error
        return false
      }
      return goesOn
    }
    if let failure { throw failure }
    return goesOn ? try take(&waiting, upTo: .infinity, prefix, center) : false
  }

  /// Takes those of `waiting` that are surely before a place at `reach`, in order.
  private func take(
    _ waiting: inout [FoundRecord], upTo reach: Double, _ prefix: [SortPosition.Part?],
    _ center: SpherePoint
  ) throws(StoreError) -> Bool {
    let depth = prefix.count
    let isDescending = keys[depth].descending
    func distance(_ record: FoundRecord) -> Double {
      guard case .real(let chord)? = record.position.parts[depth]?.value else { return 0 }
      return isDescending ? -chord.squareRoot() : chord.squareRoot()
    }
    let bound = reach - Connection.nearSlack
    // They came nearly in order: when the first cannot go, none can.
    guard let first = waiting.first, distance(first) < bound + Connection.nearSlack else {
      return true
    }
    let sure = waiting.filter { distance($0) < bound }
    guard !sure.isEmpty else { return true }
    waiting.removeAll { distance($0) < bound }
    return take(sorted: sure, prefix: prefix)
  }

  private static func square(_ number: Double) -> Double { number * number }
}
