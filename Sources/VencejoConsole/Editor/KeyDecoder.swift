/// What a key press means, whatever bytes the terminal sends for it.
enum Key: Sendable, Hashable {
  case text(String)
  /// Text between the brackets of a paste (xterm's mode 2004); its line feeds are no Enter.
  case paste(String)
  case enter, newline, tab, backTab, backspace, delete, escape
  case left, right, up, down, home, end, wordLeft, wordRight, killWordLeft
  /// Control with a letter, in lower case.
  case control(Character)
  case alt(Character)
}

/// Bytes of a terminal in, keys out; incremental, since a read may end inside a character or an
/// escape sequence. Invalid UTF-8 becomes U+FFFD, unknown sequences are swallowed whole.
struct KeyDecoder: Sendable {
  private enum State: Sendable {
    case ground
    case utf8(needed: Int)
    case escape
    case csi
    case ss3
    case paste
  }

  private var state = State.ground
  private var pending: [UInt8] = []

  /// A lone escape byte waits for what may follow. True while one does: the caller then gives it
  /// some tens of milliseconds and calls `flush()`.
  var awaitsEscape: Bool {
    if case .escape = state { true } else { false }
  }

  private static let pasteEnd = Array("\u{1B}[201~".utf8)
  /// A sequence longer than this is noise.
  private static let longestSequence = 32

  mutating func decode(_ bytes: some Sequence<UInt8>) -> [Key] {
    var keys: [Key] = []
    for byte in bytes { step(byte, &keys) }
    return keys
  }

  /// No more bytes came: the escape was the key itself.
  mutating func flush() -> [Key] {
    guard case .escape = state else { return [] }
    state = .ground
    return [.escape]
  }

  private mutating func step(_ byte: UInt8, _ keys: inout [Key]) {
    switch state {
    case .ground: ground(byte, &keys)
    case .utf8(let needed): continuation(byte, needed: needed, &keys)
    case .escape: afterEscape(byte, &keys)
    case .csi:
      pending.append(byte)
      if (0x40...0x7E).contains(byte) {
        state = .ground
        finishSequence(&keys)
      } else if byte < 0x20 || pending.count > Self.longestSequence {
        state = .ground
        pending.removeAll()
      }
    case .ss3:
      state = .ground
      if let key = Self.cursorKey(byte) { keys.append(key) }
    case .paste:
      pending.append(byte)
      if byte == 0x7E, pending.suffix(Self.pasteEnd.count).elementsEqual(Self.pasteEnd) {
        state = .ground
        pending.removeLast(Self.pasteEnd.count)
        keys.append(.paste(Self.pastedText(pending)))
        pending.removeAll()
      }
    }
  }

  private mutating func ground(_ byte: UInt8, _ keys: inout [Key]) {
    switch byte {
    case 0x1B: state = .escape
    case 0x0D, 0x0A: keys.append(.enter)
    case 0x09: keys.append(.tab)
    case 0x08, 0x7F: keys.append(.backspace)
    case 0x01...0x1A: keys.append(.control(Character(Unicode.Scalar(byte + 0x60))))
    case 0x00, 0x1C...0x1F: break
    case 0x20..<0x7F: keys.append(.text(String(Unicode.Scalar(byte))))
    case 0xC2...0xDF: begin(byte, needed: 1)
    case 0xE0...0xEF: begin(byte, needed: 2)
    case 0xF0...0xF4: begin(byte, needed: 3)
    default: keys.append(.text("\u{FFFD}"))
    }
  }

  private mutating func begin(_ byte: UInt8, needed: Int) {
    pending = [byte]
    state = .utf8(needed: needed)
  }

  private mutating func continuation(_ byte: UInt8, needed: Int, _ keys: inout [Key]) {
    guard (0x80..<0xC0).contains(byte) else {
      // The character broke off; this byte begins something else.
      pending.removeAll()
      state = .ground
      keys.append(.text("\u{FFFD}"))
      return ground(byte, &keys)
    }
    pending.append(byte)
    if needed > 1 {
      state = .utf8(needed: needed - 1)
    } else {
      state = .ground
      // `decoding` repairs what is still wrong: surrogates and overlong forms.
      let text = String(decoding: pending, as: UTF8.self)
      pending.removeAll()
      // The C1 controls are keys of nobody.
      if let first = text.unicodeScalars.first, (0x80..<0xA0).contains(first.value) { return }
      keys.append(.text(text.contains("\u{FFFD}") ? "\u{FFFD}" : text))
    }
  }

  private mutating func afterEscape(_ byte: UInt8, _ keys: inout [Key]) {
    state = .ground
    switch byte {
    case 0x5B:
      state = .csi
      pending.removeAll()
    case 0x4F: state = .ss3
    case 0x1B:
      state = .escape
      keys.append(.escape)
    case 0x0D, 0x0A: keys.append(.newline)
    case 0x08, 0x7F: keys.append(.killWordLeft)
    case 0x21..<0x7F: keys.append(.alt(Character(Unicode.Scalar(byte))))
    default:
      keys.append(.escape)
      ground(byte, &keys)
    }
  }

  private mutating func finishSequence(_ keys: inout [Key]) {
    let final = pending.removeLast()
    let parameters = String(decoding: pending, as: UTF8.self).split(
      separator: ";", omittingEmptySubsequences: false)
    pending.removeAll()
    let modifier = parameters.count > 1 ? Int(parameters[1]) ?? 1 : 1
    switch final {
    case 0x7E:
      switch parameters.first.flatMap({ Int($0) }) {
      case 1, 7: keys.append(.home)
      case 3: keys.append(.delete)
      case 4, 8: keys.append(.end)
      case 200: state = .paste
      default: break
      }
    case 0x43 where modifier > 2: keys.append(.wordRight)
    case 0x44 where modifier > 2: keys.append(.wordLeft)
    case 0x5A: keys.append(.backTab)
    default: if let key = Self.cursorKey(final) { keys.append(key) }
    }
  }

  private static func cursorKey(_ final: UInt8) -> Key? {
    switch final {
    case 0x41: .up
    case 0x42: .down
    case 0x43: .right
    case 0x44: .left
    case 0x46: .end
    case 0x48: .home
    default: nil
    }
  }

  /// Terminals send CR for the line ends of a paste.
  private static func pastedText(_ bytes: [UInt8]) -> String {
    var text = String.UnicodeScalarView()
    var previous: Unicode.Scalar = " "
    for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
      switch scalar {
      case "\r": text.append("\n")
      case "\n": if previous != "\r" { text.append("\n") }
      default: text.append(scalar)
      }
      previous = scalar
    }
    while text.last == "\n" { text.removeLast() }
    return String(text)
  }
}
