/// What is looked up of a message's type while one is read or written: all of it immutable, in
/// one object, so that passing it on costs one retain at most.
package final class MessageTable: Sendable {
  package typealias FieldInfo = DescriptorPool.FieldInfo

  package let fullName: String
  package let wellKnown: WellKnown?
  package let isMessageSet: Bool
  /// In the file's order.
  package let fields: [FieldInfo]
  /// Fields and extensions by number, as they stand on the wire.
  package let ordered: [FieldInfo]
  /// Of a map's entry.
  package let key: FieldInfo?
  package let value: FieldInfo?
  /// The fields, by all their names, and extensions.
  private let byName: [String: FieldInfo]

  // The spellings of field i at 2i (JSON's) and 2i + 1 (the file's), in `text`.
  private let text: [UInt8]
  private let spellings: [Range<Int>]
  /// A hash table of indices into `spellings`, -1 where there is none.
  private let slots: [Int]

  init(_ info: DescriptorPool.MessageInfo) {
    fullName = info.fullName
    wellKnown = info.wellKnown
    isMessageSet = info.isMessageSet
    fields = info.fields
    ordered = info.byNumber.values.sorted { $0.number < $1.number }
    key = info.isMapEntry ? info.byNumber[1] : nil
    value = info.isMapEntry ? info.byNumber[2] : nil
    byName = info.byName
    var text: [UInt8] = []
    var spellings: [Range<Int>] = []
    for field in info.fields {
      for name in [field.jsonName, field.name] {
        spellings.append(text.count..<text.count + name.utf8.count)
        text += name.utf8
      }
    }
    var size = 4
    while size < 2 * spellings.count { size *= 2 }
    var slots = [Int](repeating: -1, count: size)
    text.withUnsafeBytes { bytes in
      for (index, spelling) in spellings.enumerated() {
        let name = UnsafeRawBufferPointer(rebasing: bytes[spelling])
        var slot = Self.hash(name) & (size - 1)
        // Of two fields with one name the latter has it.
        while slots[slot] >= 0, !Self.equal(bytes, spellings[slots[slot]], name) {
          slot = (slot + 1) & (size - 1)
        }
        slots[slot] = index
      }
    }
    self.text = text
    self.spellings = spellings
    self.slots = slots
  }

  /// The index in ``fields`` of a name in either spelling. `expected` is tried first: fields
  /// mostly come in their order.
  package func index(of name: UnsafeRawBufferPointer, expected: Int) -> Int? {
    text.withUnsafeBytes { bytes in
      if expected < fields.count {
        if Self.equal(bytes, spellings[2 * expected], name) { return expected }
        if Self.equal(bytes, spellings[2 * expected + 1], name) { return expected }
      }
      var slot = Self.hash(name) & (slots.count - 1)
      while slots[slot] >= 0 {
        let spelling = slots[slot]
        if Self.equal(bytes, spellings[spelling], name) { return spelling / 2 }
        slot = (slot + 1) & (slots.count - 1)
      }
      return nil
    }
  }

  /// The extension with a name in brackets.
  package func `extension`(_ name: UnsafeRawBufferPointer) -> FieldInfo? {
    guard name.first == UInt8(ascii: "["), let field = byName[String(decoding: name, as: UTF8.self)],
      field.isExtension
    else { return nil }
    return field
  }

  /// Names come from descriptors and do not change: no text can make the chains longer than
  /// the type's own names do.
  private static func hash(_ name: UnsafeRawBufferPointer) -> Int {
    var hash: UInt32 = 2_166_136_261
    for byte in name { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
    return Int(hash ^ hash >> 15)
  }

  private static func equal(
    _ text: UnsafeRawBufferPointer, _ range: Range<Int>, _ name: UnsafeRawBufferPointer
  ) -> Bool {
    guard range.count == name.count else { return false }
    for index in 0..<range.count where text[range.lowerBound + index] != name[index] {
      return false
    }
    return true
  }
}
