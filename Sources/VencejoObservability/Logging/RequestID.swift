import VencejoRPC

/// The name of a request, the same in the lines of all programs it passes and in the error that
/// its caller sees.
public enum RequestID {
  /// The key of metadata it travels under.
  public static let metadataKey = "x-request-id"

  /// That of the call that the handler answers.
  @TaskLocal public static var current: String?

  /// 32 hexadecimal digits.
  static func make() -> String {
    Hex.text(.random(in: .min ... .max), digits: 16)
      + Hex.text(.random(in: .min ... .max), digits: 16)
  }

  /// A peer's, where it is fit for a log: up to 128 letters, digits and `-_.:/+=@`.
  static func accepted(_ text: String?) -> String? {
    guard let text, !text.isEmpty, text.utf8.count <= 128 else { return nil }
    let isFit = text.utf8.allSatisfy { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
      default: "-_.:/+=@".utf8.contains(byte)
      }
    }
    return isFit ? text : nil
  }
}
