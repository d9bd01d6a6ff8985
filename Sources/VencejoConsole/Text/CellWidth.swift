import CTerminal
import Glibc

/// How many terminal cells text takes.
///
/// The unit is the grapheme cluster, for that is what a cursor moves over and what a terminal
/// draws as one picture. The widths of single scalars come from libc's `wcwidth`; what it does
/// not know (scalars newer than the C library) falls back to a short table.
enum CellWidth {
  /// Makes `wcwidth` speak UTF-8, whatever the user's locale says: with `LANG=C` it would call
  /// every letter beyond ASCII unprintable. True when a locale was found.
  private static let unicodeLocale: Bool = {
    for name in ["C.UTF-8", "C.utf8", "en_US.UTF-8"] where setlocale(LC_CTYPE, name) != nil {
      return true
    }
    return false
  }()

  /// Cells of one scalar: 0 for combining marks, 2 for wide ones; controls count 0.
  static func of(_ scalar: Unicode.Scalar) -> Int {
    let value = scalar.value
    if value < 0x20 || (0x7F..<0xA0).contains(value) { return 0 }
    if value < 0x7F { return 1 }
    if unicodeLocale {
      let width = wcwidth(wchar_t(bitPattern: value))
      if width >= 0 { return Int(width) }
    }
    return fallback(scalar)
  }

  /// Cells of one grapheme cluster.
  ///
  /// An emoji sequence (joined, with a skin tone, with the emoji presentation selector, a flag or
  /// a keycap) is one picture two cells wide; any other cluster is the sum of its scalars.
  static func of(_ cluster: Character) -> Int {
    let scalars = cluster.unicodeScalars
    guard let first = scalars.first else { return 0 }
    if scalars.count == 1 { return of(first) }
    if isRegionalIndicator(first) { return 2 }
    var sum = of(first)
    let pictographic = isPictographic(first)
    for scalar in scalars.dropFirst() {
      switch scalar.value {
      case 0xFE0F where first.properties.isEmoji, 0x20E3: return 2
      case 0x200D, 0x1F3FB...0x1F3FF, 0xE0020...0xE007F:
        if pictographic { return 2 }
      default: sum += of(scalar)
      }
    }
    return pictographic ? min(sum, 2) : sum
  }

  /// How many cells more a text takes on a terminal that draws the parts of emoji sequences side
  /// by side (older ones do) than on one that joins them.
  static func doubt(_ text: some StringProtocol) -> Int {
    text.reduce(0) { doubt, cluster in
      let scalars = cluster.unicodeScalars
      guard scalars.count > 1 else { return doubt }
      return doubt + max(0, scalars.reduce(0) { $0 + of($1) } - of(cluster))
    }
  }

  /// Cells of a text without controls.
  static func of(_ text: some StringProtocol) -> Int {
    text.reduce(0) { $0 + of($1) }
  }

  private static func isRegionalIndicator(_ scalar: Unicode.Scalar) -> Bool {
    (0x1F1E6...0x1F1FF).contains(scalar.value)
  }

  private static func isPictographic(_ scalar: Unicode.Scalar) -> Bool {
    scalar.properties.isEmoji && scalar.value > 0xFF
  }

  private static func fallback(_ scalar: Unicode.Scalar) -> Int {
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return 0
    default: break
    }
    switch scalar.value {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF,
      0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1FAFF,
      0x20000...0x3FFFD:
      return 2
    default: return 1
    }
  }
}
