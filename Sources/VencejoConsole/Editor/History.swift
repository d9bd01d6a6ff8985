import VencejoTools

/// The lines given before, oldest first, without repetitions, bounded.
struct History: Sendable {
  private(set) var lines: [String] = []
  let limit: Int

  init(_ lines: [String] = [], limit: Int = 1000) {
    self.limit = limit
    for line in lines { add(line) }
  }

  /// Appends a line; an equal older one goes. Blank lines are not kept.
  mutating func add(_ line: String) {
    if VisibleText.isBlank(line) { return }
    lines.removeAll { $0 == line }
    lines.append(line)
    if lines.count > limit { lines.removeFirst(lines.count - limit) }
  }

  /// The newest line before `index` that contains `text`.
  func search(_ text: String, before index: Int) -> Int? {
    if text.isEmpty { return nil }
    let wanted = Array(text.utf8)
    return lines[..<min(index, lines.count)].lastIndex { Self.contains(Array($0.utf8), wanted) }
  }

  private static func contains(_ line: [UInt8], _ wanted: [UInt8]) -> Bool {
    guard line.count >= wanted.count else { return false }
    return (0...(line.count - wanted.count)).contains { start in
      line[start..<(start + wanted.count)].elementsEqual(wanted)
    }
  }
}
