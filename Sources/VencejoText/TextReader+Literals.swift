// Names, numbers and strings.
extension TextReader {
  var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  func fault(_ message: String, _ offset: Int? = nil) -> TextFault {
    TextFault(message: message, offset: offset ?? position)
  }

  /// Takes a character and the blanks and comments behind it.
  mutating func take() {
    position += 1
    skipBlanks()
  }

  mutating func skipBlanks() {
    while let next {
      switch next {
      case 0x20, 0x09...0x0D: position += 1
      case UInt8(ascii: "#"):
        while let next = self.next, next != 0x0A { position += 1 }
      default: return
      }
    }
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    byte >= 0x41 && byte <= 0x5A || byte >= 0x61 && byte <= 0x7A || byte == 0x5F
  }

  private static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

  mutating func identifier() throws(TextFault) -> String {
    let start = position
    guard let first = next, Self.isLetter(first) else { throw fault("expected a name") }
    while let next, Self.isLetter(next) || Self.isDigit(next) { position += 1 }
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    skipBlanks()
    return text
  }

  /// The name of an extension, or a type's URL, between brackets; blanks in it do not count.
  mutating func bracketName() throws(TextFault) -> String {
    let start = position
    take()
    var name: [UInt8] = []
    while let next {
      switch next {
      case UInt8(ascii: "]"):
        take()
        if name.isEmpty { throw fault("expected a name", start) }
        return String(decoding: name, as: UTF8.self)
      case 0x20, 0x09...0x0D, UInt8(ascii: "#"): skipBlanks()
      case UInt8(ascii: "%"):
        guard let first = hexDigit(at: position + 1), let second = hexDigit(at: position + 2) else {
          throw fault("expected two hexadecimal digits behind %")
        }
        name += [next, first, second]
        position += 3
      case _ where Self.isLetter(next) || Self.isDigit(next) || Self.urlMarks.contains(next):
        name.append(next)
        position += 1
      default: throw fault("not a name's character")
      }
    }
    throw fault("the bracket does not end", start)
  }

  /// What a type's URL may hold besides letters, digits and percent escapes.
  private static let urlMarks: Set<UInt8> = Set("-._~!$&()*+,;=/".utf8)

  private func hexDigit(at index: Int) -> UInt8? {
    guard index < bytes.count, bytes[index] < 0x80 else { return nil }
    return Character(Unicode.Scalar(bytes[index])).isHexDigit ? bytes[index] : nil
  }

  // MARK: Numbers

  /// A number's characters, without its sign.
  mutating func number() throws(TextFault) -> String {
    let start = position
    while let byte = next {
      let previous = position > start ? bytes[position - 1] | 0x20 : 0
      let isHex = position - start > 1 && bytes[start + 1] | 0x20 == UInt8(ascii: "x")
      let isSign =
        (byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+")) && previous == UInt8(ascii: "e")
        && !isHex
      guard Self.isLetter(byte) || Self.isDigit(byte) || byte == UInt8(ascii: ".") || isSign else {
        break
      }
      position += 1
    }
    if position == start { throw fault("expected a number") }
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    skipBlanks()
    return text
  }

  private mutating func sign() -> Bool {
    guard next == UInt8(ascii: "-") else { return false }
    take()
    return true
  }

  /// Decimal, octal behind a 0, hexadecimal behind 0x.
  mutating func integer<I: FixedWidthInteger>() throws(TextFault) -> I {
    let start = position
    let negative = sign()
    let text = try number()
    let lower = text.lowercased()
    let (radix, digits): (Int, Substring) =
      lower.hasPrefix("0x")
      ? (16, lower.dropFirst(2))
      : lower.hasPrefix("0") && lower.count > 1
        ? (8, lower.dropFirst()) : (10, lower[...])
    guard digits.first?.isHexDigit == true else { throw fault("expected an integer", start) }
    guard digits.allSatisfy({ $0.hexDigitValue.map { $0 < radix } ?? false }) else {
      throw fault("\(text) is no integer", start)
    }
    guard let value = I((negative ? "-" : "") + digits, radix: radix), !negative || I.isSigned
    else { throw fault("\(text) is not an integer of \(I.bitWidth) bits", start) }
    return value
  }

  mutating func floating<F: BinaryFloatingPoint & LosslessStringConvertible>() throws(TextFault)
    -> F
  {
    let start = position
    let negative = sign()
    var value: F
    if let first = next, Self.isLetter(first) {
      switch try identifier().lowercased() {
      case "inf", "infinity": value = .infinity
      case "nan": value = .nan
      default: throw fault("expected a number", start)
      }
    } else {
      var text = try number()
      if text.last == "f" || text.last == "F" { text.removeLast() }
      let isInteger = text.allSatisfy { $0.isNumber }
      // Octal and hexadecimal are for integers.
      guard let first = text.utf8.first, Self.isDigit(first) || first == UInt8(ascii: "."),
        text != ".", !(isInteger && text.count > 1 && first == UInt8(ascii: "0")),
        text.allSatisfy({ $0.isNumber || ".eE+-".contains($0) }),
        let parsed = F(text.last == "." ? text + "0" : text)
      else { throw fault("\(text) is no number", start) }
      value = parsed
    }
    return negative ? -value : value
  }

  // MARK: Strings

  /// One or more strings behind each other, which are one.
  mutating func strings() throws(TextFault) -> [UInt8] {
    guard next == UInt8(ascii: "\"") || next == UInt8(ascii: "'") else {
      throw fault("expected a string")
    }
    var result: [UInt8] = []
    while let quote = next, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") {
      let start = position
      position += 1
      while true {
        guard let byte = next, byte != 0x0A else { throw fault("the string does not end", start) }
        if byte == quote { break }
        position += 1
        if byte == UInt8(ascii: "\\") { try escape(into: &result) } else { result.append(byte) }
      }
      take()
    }
    return result
  }

  private mutating func escape(into result: inout [UInt8]) throws(TextFault) {
    let start = position - 1
    guard let byte = next else { throw fault("the string does not end", start) }
    position += 1
    switch byte {
    case UInt8(ascii: "a"): result.append(0x07)
    case UInt8(ascii: "b"): result.append(0x08)
    case UInt8(ascii: "f"): result.append(0x0C)
    case UInt8(ascii: "n"): result.append(0x0A)
    case UInt8(ascii: "r"): result.append(0x0D)
    case UInt8(ascii: "t"): result.append(0x09)
    case UInt8(ascii: "v"): result.append(0x0B)
    case UInt8(ascii: "?"), UInt8(ascii: "\\"), UInt8(ascii: "'"), UInt8(ascii: "\""):
      result.append(byte)
    case UInt8(ascii: "0")...UInt8(ascii: "7"):
      position -= 1
      let value = digits(radix: 8, atMost: 3).value
      guard value < 256 else { throw fault("an octal escape above \\377", start) }
      result.append(UInt8(truncatingIfNeeded: value))
    case UInt8(ascii: "x"), UInt8(ascii: "X"):
      let (value, count) = digits(radix: 16, atMost: 2)
      guard count > 0 else { throw fault("expected hexadecimal digits", start) }
      result.append(UInt8(truncatingIfNeeded: value))
    case UInt8(ascii: "u"), UInt8(ascii: "U"):
      // Surrogates are no characters, not even in pairs.
      let code = try unicode(byte, start)
      guard let scalar = Unicode.Scalar(code), let encoded = UTF8.encode(scalar) else {
        throw fault("no character has that number", start)
      }
      result += encoded
    default: throw fault("unknown escape", start)
    }
  }

  private mutating func unicode(_ letter: UInt8, _ start: Int) throws(TextFault) -> UInt32 {
    let wanted = letter == UInt8(ascii: "u") ? 4 : 8
    let (value, count) = digits(radix: 16, atMost: wanted)
    guard count == wanted else { throw fault("expected \(wanted) hexadecimal digits", start) }
    return value
  }

  private mutating func digits(radix: UInt32, atMost most: Int) -> (value: UInt32, count: Int) {
    var value: UInt32 = 0
    var count = 0
    while count < most, let byte = next, byte < 0x80,
      let digit = Character(Unicode.Scalar(byte)).hexDigitValue, digit < radix
    {
      value = value &* radix &+ UInt32(digit)
      count += 1
      position += 1
    }
    return (value, count)
  }
}
