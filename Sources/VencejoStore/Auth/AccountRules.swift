/// What handles, addresses, names and passwords may look like.
enum AccountRules {
  /// Lower-cased `[a-z0-9][a-z0-9._-]{1,31}`.
  static func handle(_ text: String) throws(StoreError) -> String {
    let handle = lowercasedASCII(text)
    let letters = Array(handle.utf8)
    let isWord = { (byte: UInt8) in (0x61...0x7a).contains(byte) || (0x30...0x39).contains(byte) }
    guard (2...32).contains(letters.count), isWord(letters[0]),
      letters.allSatisfy({ isWord($0) || $0 == 0x2e || $0 == 0x5f || $0 == 0x2d })
    else {
      throw .invalid(
        "handle", "BAD_HANDLE",
        "a handle has 2 to 32 of the letters a-z, 0-9, '.', '_', '-' and begins with a letter or a digit"
      )
    }
    return handle
  }

  /// Trimmed; empty is allowed.
  static func email(_ text: String) throws(StoreError) -> String {
    let email = trimmed(text)
    guard !email.isEmpty else { return "" }
    let parts = email.split(separator: "@", omittingEmptySubsequences: false)
    guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }), email.utf8.count <= 254,
      email.unicodeScalars.allSatisfy({ !$0.properties.isWhitespace && $0.value > 0x20 })
    else {
      throw .invalid("email", "BAD_EMAIL", "this is not an e-mail address")
    }
    return email
  }

  static func displayName(_ text: String, handle: String) throws(StoreError) -> String {
    let name = trimmed(text)
    guard !isBlank(name) else { return handle }
    guard name.count <= 64, name.utf8.count <= 512, isOneLine(name) else {
      throw .invalid(
        "display_name", "BAD_DISPLAY_NAME",
        "a display name has at most 64 characters and no control characters")
    }
    return name
  }

  static func password(_ text: String) throws(StoreError) {
    guard text.unicodeScalars.count >= 8 else {
      throw .invalid("password", "WEAK_PASSWORD", "a password has at least 8 characters")
    }
    guard text.utf8.count <= 1024 else {
      throw .invalid("password", "BAD_PASSWORD", "a password has at most 1024 bytes")
    }
  }

  /// Texts of devices are for people to read; they are cut, not refused. By scalars: one
  /// character may have any number of bytes.
  static func label(_ text: String) -> String { String(text.unicodeScalars.prefix(64)) }

  static func lowercasedASCII(_ text: String) -> String {
    String(decoding: text.utf8.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
  }

  static func trimmed(_ text: String) -> String {
    let scalars = text.unicodeScalars
    guard let first = scalars.firstIndex(where: { !$0.properties.isWhitespace }),
      let last = scalars.lastIndex(where: { !$0.properties.isWhitespace })
    else { return "" }
    return String(scalars[first...last])
  }

  /// Nothing that would break the line a name is shown in, or turn the text around it:
  /// control characters, line separators, and the embeddings, overrides and isolates of
  /// Unicode's bidirectional algorithm (UAX #9, section 2).
  static func isOneLine(_ text: String) -> Bool {
    text.unicodeScalars.allSatisfy {
      switch $0.properties.generalCategory {
      case .control, .lineSeparator, .paragraphSeparator: false
      default: !(0x202A...0x202E).contains($0.value) && !(0x2066...0x2069).contains($0.value)
      }
    }
  }

  /// Nothing anybody could see: white space, and the letters that leave no mark, which people
  /// paste to send "empty" messages.
  static func isBlank(_ text: String) -> Bool {
    text.unicodeScalars.allSatisfy {
      $0.properties.isWhitespace || $0.properties.isDefaultIgnorableCodePoint
        || $0.properties.generalCategory == .control || $0.value == 0x2800
    }
  }
}
