import VencejoProtobuf

/// What is looked up of an enum's values while messages are read or written.
//
// @unchecked: nothing changes after `init`.
package final class EnumTable: @unchecked Sendable {
  package let fullName: String
  /// The number of the first value in the file.
  package let first: Int32
  /// Whether no name has characters that JSON escapes.
  package let isPlain: Bool
  private let names: NameTable
  private let numbers: [Int32]
  /// Each number once, sorted, and the index of its first name.
  private let sorted: UnsafeMutableBufferPointer<(number: Int32, index: Int)>

  init(_ info: DescriptorPool.EnumInfo) {
    fullName = info.fullName
    first = info.proto.value.first?.number ?? 0
    isPlain = info.proto.value.allSatisfy { VencejoDescriptors.isPlain($0.name ?? "") }
    names = NameTable(info.proto.value.map { $0.name ?? "" })
    numbers = info.proto.value.map { $0.number ?? 0 }
    var firsts: [Int32: Int] = [:]
    for (index, number) in numbers.enumerated() where firsts[number] == nil {
      firsts[number] = index
    }
    sorted = .allocate(capacity: firsts.count)
    _ = sorted.initialize(
      from: firsts.map { (number: $0.key, index: $0.value) }.sorted { $0.number < $1.number })
  }

  deinit { sorted.deallocate() }

  /// The number of a name in the file.
  package func number(of name: UnsafeRawBufferPointer) -> Int32? {
    names.index(of: name).map { numbers[$0] }
  }

  /// The first name of a number.
  package func name(of number: Int32) -> UnsafeRawBufferPointer? {
    guard let least = sorted.first?.number else { return nil }
    // Most enums leave out no number.
    let guess = Int(number) - Int(least)
    if guess >= 0, guess < sorted.count, sorted[guess].number == number {
      return names[sorted[guess].index]
    }
    var low = 0
    var high = sorted.count
    while low < high {
      let middle = (low + high) / 2
      if sorted[middle].number < number { low = middle + 1 } else { high = middle }
    }
    return low < sorted.count && sorted[low].number == number ? names[sorted[low].index] : nil
  }
}
