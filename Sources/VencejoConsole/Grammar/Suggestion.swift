/// *Did you mean*: the nearest of the words one could have typed.
enum Suggestion {
  /// At most a third of the letters wrong, two swapped ones counted once; or the beginning of
  /// exactly one word.
  static func nearest(to typed: String, among words: [String]) -> String? {
    let typed = typed.lowercased()
    let begun = words.filter { $0.hasPrefix(typed) }
    if typed.count > 1, begun.count == 1 { return begun[0] }
    let ranked = words.map { ($0, distance(Array(typed), Array($0))) }.min { $0.1 < $1.1 }
    guard let (word, wrong) = ranked, wrong <= max(1, min(typed.count, word.count) / 3) else {
      return nil
    }
    return word
  }

  /// Edits between two words (optimal string alignment).
  static func distance(_ one: [Character], _ other: [Character]) -> Int {
    if one.isEmpty || other.isEmpty { return max(one.count, other.count) }
    var rows = [[Int]](
      repeating: [Int](repeating: 0, count: other.count + 1), count: one.count + 1)
    for i in 0...one.count { rows[i][0] = i }
    for j in 0...other.count { rows[0][j] = j }
    for i in 1...one.count {
      for j in 1...other.count {
        let cost = one[i - 1] == other[j - 1] ? 0 : 1
        rows[i][j] = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + cost)
        if i > 1, j > 1, one[i - 1] == other[j - 2], one[i - 2] == other[j - 1] {
          rows[i][j] = min(rows[i][j], rows[i - 2][j - 2] + 1)
        }
      }
    }
    return rows[one.count][other.count]
  }
}
