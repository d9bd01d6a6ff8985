import VencejoTools

/// *Did you mean*: the nearest of the words one could have typed.
enum Suggestion {
  /// At most two letters wrong and fewer than half; or the beginning of exactly one word.
  static func nearest(to typed: String, among words: [String]) -> String? {
    let typed = typed.lowercased()
    let begun = words.filter { $0.hasPrefix(typed) }
    if typed.count > 1, begun.count == 1 { return begun[0] }
    let ranked = words.map { ($0, editDistance(typed, $0)) }.min { $0.1 < $1.1 }
    guard let (word, wrong) = ranked, wrong <= min(2, typed.count / 2) else {
      return nil
    }
    return word
  }
}
