/// Names one after the other in memory of their own, found by a hash of their bytes. Looking one
/// up neither makes a string nor counts references.
//
// @unchecked: nothing changes after `init`.
package final class NameTable: @unchecked Sendable {
  package let count: Int
  private let text: UnsafeMutableBufferPointer<UInt8>
  /// Where each name begins, and where the last one ends.
  private let starts: UnsafeMutableBufferPointer<Int>
  /// Indices of names, -1 where there is none; a power of two of them.
  private let slots: UnsafeMutableBufferPointer<Int>

  /// Of equal names the last one is found.
  init(_ names: [String]) {
    count = names.count
    text = .allocate(capacity: names.reduce(1) { $0 + $1.utf8.count })
    text.initialize(repeating: 0)
    starts = .allocate(capacity: count + 1)
    starts.initialize(repeating: 0)
    var size = 4
    while size < 2 * count { size *= 2 }
    slots = .allocate(capacity: size)
    slots.initialize(repeating: -1)
    var end = 0
    for (index, name) in names.enumerated() {
      for byte in name.utf8 {
        text[end] = byte
        end += 1
      }
      starts[index + 1] = end
      slots[slot(of: self[index])] = index
    }
  }

  deinit {
    text.deallocate()
    starts.deallocate()
    slots.deallocate()
  }

  /// A name's bytes, valid as long as the table is.
  package subscript(_ index: Int) -> UnsafeRawBufferPointer {
    guard index >= 0, index < count, let base = text.baseAddress else {
      return UnsafeRawBufferPointer(start: nil, count: 0)
    }
    return UnsafeRawBufferPointer(
      start: base + starts[index], count: starts[index + 1] - starts[index])
  }

  /// The index of a name.
  package func index(of name: UnsafeRawBufferPointer) -> Int? {
    let index = slots[slot(of: name)]
    return index >= 0 ? index : nil
  }

  /// Whether a name is the one at an index.
  package func matches(_ index: Int, _ name: UnsafeRawBufferPointer) -> Bool {
    index < count && Self.equal(self[index], name)
  }

  /// Where a name is among the slots, or is to be. Names come from descriptors and do not
  /// change: no text can make the chains longer than the type's own names do.
  private func slot(of name: UnsafeRawBufferPointer) -> Int {
    var hash: UInt32 = 2_166_136_261
    for byte in name { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
    var slot = Int(hash ^ hash >> 15) & (slots.count - 1)
    while slots[slot] >= 0, !Self.equal(self[slots[slot]], name) {
      slot = (slot + 1) & (slots.count - 1)
    }
    return slot
  }

  private static func equal(
    _ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer
  ) -> Bool {
    guard left.count == right.count else { return false }
    for index in 0..<left.count where left[index] != right[index] { return false }
    return true
  }
}
