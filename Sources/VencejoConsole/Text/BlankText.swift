import VencejoTools

extension VisibleText {
  /// True when a reader would see nothing: only spaces, fillers and marks without a base. The
  /// messengers people know refuse to send such a message.
  static func isBlank(_ text: String) -> Bool {
    text.unicodeScalars.allSatisfy { scalar in
      switch scalar.value {
      case 0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800: return true
      default: break
      }
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator, .spaceSeparator: return true
      case .nonspacingMark, .enclosingMark: return scalar.properties.isVariationSelector
      default: return false
      }
    }
  }
}
