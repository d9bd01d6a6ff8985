/// Text of other people made safe to print.
///
/// What arrives over the network may hold escape sequences that would move the cursor, change the
/// title or answer in the user's name, and direction overrides that make a name read as another.
/// None of it reaches the terminal.
public enum VisibleText {
  /// The text with controls drawn as pictures (␛ for escape), tabs as spaces, direction overrides
  /// dropped. Line feeds stay when `keepingLines`, and are spaces otherwise.
  public static func clean(_ text: String, keepingLines: Bool = false) -> String {
    if text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return text }
    var clean = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x0A: clean.append(keepingLines ? "\n" : " ")
      case 0x0D: break
      case 0x09: clean.append(" ")
      case 0x00..<0x20: clean.append(Unicode.Scalar(0x2400 + scalar.value) ?? "\u{FFFD}")
      case 0x7F: clean.append("\u{2421}")
      case 0x80..<0xA0, 0x2028, 0x2029: clean.append("\u{FFFD}")
      case 0x202A...0x202E, 0x2066...0x2069, 0x200E, 0x200F, 0xFEFF: break
      default: clean.append(scalar)
      }
    }
    return String(clean)
  }
}
