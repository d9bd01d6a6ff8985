/// Small numbers, each once.
package struct SmallSet {
  private var low: UInt64 = 0
  private var high: [UInt64] = []

  package init() {}

  /// Adds a number that is not negative; false when it was there.
  package mutating func insert(_ number: Int) -> Bool {
    let bit = 1 as UInt64 &<< UInt64(truncatingIfNeeded: number)
    if number < 64 {
      defer { low |= bit }
      return low & bit == 0
    }
    let word = number / 64 - 1
    while high.count <= word { high.append(0) }
    defer { high[word] |= bit }
    return high[word] & bit == 0
  }
}

/// Follows the fields of an encoded message and says whether they stand as encoders write them:
/// by number, a singular one once, a list's elements together, one of each oneof. Who writes
/// them out need then not hold the message.
package struct FieldCursor {
  // Of the type's table, which whoever follows its fields keeps: no count of references.
  private let fields: UnsafeMutableBufferPointer<FieldPlan>
  private var oneofs = SmallSet()
  /// How many of the type's ``MessageTable/ordered`` fields have been passed.
  package private(set) var passed = 0

  package init(_ type: MessageTable) { fields = type.ordered }

  /// The index in ``MessageTable/ordered`` of the field or extension a tag is of; nil when nobody
  /// knows it.
  package func index(of tag: UInt32) -> Int? {
    let number = Int32(bitPattern: tag >> 3)
    var found = passed
    if found >= fields.count || fields[found].number != number {
      var end = fields.count
      found = 0
      while found < end {
        let middle = (found + end) / 2
        if fields[middle].number < number { found = middle + 1 } else { end = middle }
      }
      guard found < fields.count, fields[found].number == number else { return nil }
    }
    let field = fields[found]
    return tag == field.tag || tag & 7 == 2 && field.isPackable ? found : nil
  }

  /// Goes on to a field; false when that is not where it should be.
  package mutating func enter(_ index: Int) -> Bool {
    guard index >= passed else { return false }
    passed = index + 1
    let oneof = fields[index].oneof
    return oneof < 0 || oneofs.insert(oneof)
  }
}
