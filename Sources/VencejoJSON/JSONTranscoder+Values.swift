import VencejoDescriptors
import VencejoProtobuf

// One value of a field.
extension JSONTranscoder {
  /// Reads a value and writes it with its tag; false when it is the name of an enum's value
  /// that is to be ignored.
  mutating func value(
    _ field: Field, _ pool: DescriptorPool, skipsDefault: Bool = false, isTagged: Bool = true
  ) throws(JSONFault) -> Bool {
    let start = text.position
    switch field.kind {
    case .message:
      let type = pool.tables[field.type]
      out.varint(UInt64(field.tag))
      if field.isGroup {
        try message(type, pool)
        out.varint(UInt64(field.tag) + 1)
      } else {
        let mark = out.open()
        try message(type, pool)
        out.close(mark)
      }
    case .string:
      guard text.next == UInt8(ascii: "\"") else { throw text.unexpected("a string") }
      let bytes = try text.string()
      if skipsDefault && bytes.isEmpty { return true }
      out.varint(UInt64(field.tag))
      out.delimited(bytes)
    case .bytes:
      guard text.next == UInt8(ascii: "\"") else { throw text.unexpected("base64 in a string") }
      let letters = try text.string()
      if skipsDefault && letters.isEmpty { return true }
      out.varint(UInt64(field.tag))
      let mark = out.open()
      guard Base64.decode(letters, to: &out) else {
        throw text.fault("expected base64 in a string", at: start)
      }
      out.close(mark)
    case .bool:
      let value = text.next == UInt8(ascii: "t")
      if value {
        try text.word("true")
      } else if text.next == UInt8(ascii: "f") {
        try text.word("false")
      } else {
        throw text.unexpected("true or false")
      }
      if skipsDefault && !value { return true }
      if isTagged { out.varint(UInt64(field.tag)) }
      out.append(value ? 1 : 0)
    case .enum:
      guard let number = try enumeration(field, pool) else { return false }
      if skipsDefault && number == 0 { return true }
      if isTagged { out.varint(UInt64(field.tag)) }
      out.varint(UInt64(bitPattern: Int64(number)))
    case .double:
      let value = try double()
      if skipsDefault && value.bitPattern == 0 { return true }
      if isTagged { out.varint(UInt64(field.tag)) }
      out.fixed64(value.bitPattern)
    case .float:
      let value = try float()
      if skipsDefault && value.bitPattern == 0 { return true }
      if isTagged { out.varint(UInt64(field.tag)) }
      out.fixed32(value.bitPattern)
    default:
      try integer(
        field, try numberOrQuoted("an integer"), at: start, skipsDefault: skipsDefault,
        isTagged: isTagged)
    }
    return true
  }

  private mutating func enumeration(
    _ field: Field, _ pool: DescriptorPool
  ) throws(JSONFault) -> Int32? {
    let start = text.position
    let type = pool.enumTables[field.type]
    switch text.next {
    case UInt8(ascii: "\""):
      let name = try text.string()
      if let number = type.number(of: name) { return number }
      if options.ignoreUnknown { return nil }
      let unknown = String(decoding: name, as: UTF8.self)
      throw text.fault("\(type.fullName) has no \"\(unknown)\"", at: start)
    case UInt8(ascii: "n") where field.takesNull:
      try text.word("null")
      return 0
    case UInt8(ascii: "-"), 0x30...0x39:
      let digits = try text.number()
      guard let number = Self.integer(digits).flatMap({ $0.int64 }).flatMap(Int32.init(exactly:))
      else { throw text.fault("\(digits.string) is not an integer of 32 bits", at: start) }
      if !field.isClosed || type.name(of: number) != nil { return number }
      if options.ignoreUnknown { return nil }
      throw text.fault("\(type.fullName) has no \(number)", at: start)
    default: throw text.unexpected("the name of an enum's value")
    }
  }

  // MARK: Integers

  /// An integer of up to 64 bits and a sign.
  struct Integer {
    var magnitude: UInt64
    var isNegative: Bool

    var int64: Int64? {
      if !isNegative { return Int64(exactly: magnitude) }
      return magnitude <= 1 << 63 ? Int64(bitPattern: 0 &- magnitude) : nil
    }
    var uint64: UInt64? { isNegative && magnitude > 0 ? nil : magnitude }
  }

  /// A number, or a string that holds one and nothing else.
  private mutating func numberOrQuoted(_ wanted: String) throws(JSONFault) -> JSONCursor.Number {
    let start = text.position
    switch text.next {
    case UInt8(ascii: "-"), 0x30...0x39: return try text.number()
    case UInt8(ascii: "\""):
      guard let number = try Self.quoted(try text.string()) else {
        throw text.fault("expected \(wanted), found a string", at: start)
      }
      return number
    default: throw text.unexpected(wanted)
    }
  }

  /// The number a string holds.
  static func quoted(_ text: UnsafeRawBufferPointer) throws(JSONFault) -> JSONCursor.Number? {
    // No blanks, signs or other spellings Swift's own parsers would take.
    var cursor = JSONCursor(text)
    guard cursor.next == UInt8(ascii: "-") || cursor.next >= 0x30 && cursor.next <= 0x39 else {
      return nil
    }
    do throws(JSONFault) {
      let number = try cursor.number()
      return cursor.isAtEnd ? number : nil
    } catch {
      return nil
    }
  }

  /// Writes an integer as the field has it.
  mutating func integer(
    _ field: Field, _ digits: JSONCursor.Number, at start: Int, skipsDefault: Bool, isTagged: Bool
  ) throws(JSONFault) {
    guard let number = Self.integer(digits) else {
      throw text.fault("\(digits.string) is not an integer of 64 bits", at: start)
    }
    if skipsDefault && number.magnitude == 0 { return }
    if isTagged { out.varint(UInt64(field.tag)) }
    switch field.kind {
    case .int64:
      if let value = number.int64 { return out.varint(UInt64(bitPattern: value)) }
    case .sint64:
      if let value = number.int64 {
        return out.varint(UInt64(bitPattern: (value << 1) ^ (value >> 63)))
      }
    case .sfixed64:
      if let value = number.int64 { return out.fixed64(UInt64(bitPattern: value)) }
    case .uint64: if let value = number.uint64 { return out.varint(value) }
    case .fixed64: if let value = number.uint64 { return out.fixed64(value) }
    case .uint32:
      if let value = number.uint64.flatMap(UInt32.init(exactly:)) {
        return out.varint(UInt64(value))
      }
    case .fixed32:
      if let value = number.uint64.flatMap(UInt32.init(exactly:)) { return out.fixed32(value) }
    default:
      if let value = number.int64.flatMap(Int32.init(exactly:)) {
        switch field.kind {
        case .sint32:
          return out.varint(UInt64(UInt32(bitPattern: (value << 1) ^ (value >> 31))))
        case .sfixed32: return out.fixed32(UInt32(bitPattern: value))
        default: return out.varint(UInt64(bitPattern: Int64(value)))
        }
      }
    }
    throw text.fault("\(digits.string) is out of the field's range", at: start)
  }

  /// An integer, also with a fraction of zeros or an exponent, like 1.0 or 5e2. Exact.
  private static func integer(_ number: JSONCursor.Number) -> Integer? {
    guard number.isInteger else { return integer(decimal: number.string) }
    var value: UInt64 = 0
    let isNegative = number.text.first == UInt8(ascii: "-")
    for digit in number.text[(isNegative ? 1 : 0)...] {
      let (product, overflow) = value.multipliedReportingOverflow(by: 10)
      let (sum, carry) = product.addingReportingOverflow(UInt64(digit &- 0x30))
      if overflow || carry { return nil }
      value = sum
    }
    return Integer(magnitude: value, isNegative: isNegative)
  }

  private static func integer(decimal text: String) -> Integer? {
    let isNegative = text.first == "-"
    let parts = text.dropFirst(isNegative ? 1 : 0).split { $0 == "e" || $0 == "E" }
    guard let number = parts.first?.split(separator: "."), let whole = number.first,
      parts.count <= 2, number.count <= 2
    else { return nil }
    guard var exponent = parts.count == 2 ? Int(parts[1]) : 0 else { return nil }
    var digits = String(whole)
    if number.count == 2 {
      digits += number[1]
      exponent = exponent.subtractingReportingOverflow(number[1].utf8.count).partialValue
    }
    while digits.last == "0" && exponent < 0 {
      digits.removeLast()
      exponent += 1
    }
    if digits.allSatisfy({ $0 == "0" }) { return Integer(magnitude: 0, isNegative: isNegative) }
    // Twenty digits hold every UInt64.
    guard (0...20).contains(exponent),
      let magnitude = UInt64(digits + String(repeating: "0", count: exponent))
    else { return nil }
    return Integer(magnitude: magnitude, isNegative: isNegative)
  }

  // MARK: Floating-point numbers

  mutating func double() throws(JSONFault) -> Double {
    let start = text.position
    if let special = try special() { return special }
    let number = try numberOrQuoted("a number")
    if let value = Self.exact(number.text) { return value }
    return try finite(Double(number.string), number, at: start)
  }

  private mutating func float() throws(JSONFault) -> Float {
    let start = text.position
    if let special = try special() { return Float(special) }
    let number = try numberOrQuoted("a number")
    // Rounded once, from the text: a Double between would round twice.
    return try finite(Float(number.string), number, at: start)
  }

  private func finite<F: BinaryFloatingPoint>(
    _ value: F?, _ number: JSONCursor.Number, at start: Int
  ) throws(JSONFault) -> F {
    guard let value else { throw text.fault("expected a number", at: start) }
    guard value.isFinite else { throw text.fault("\(number.string) is too large", at: start) }
    return value
  }

  private mutating func special() throws(JSONFault) -> Double? {
    guard text.next == UInt8(ascii: "\"") else { return nil }
    let place = text.place
    let name = try text.string()
    if name.elementsEqual("NaN".utf8) { return .nan }
    if name.elementsEqual("Infinity".utf8) { return .infinity }
    if name.elementsEqual("-Infinity".utf8) { return -.infinity }
    text.goBack(to: place)
    return nil
  }

  private static let powersOfTen: [Double] = [
    1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
  ]

  /// The value of a number whose digits are less than 2^53 and whose power of ten is at most
  /// 22: both are exact, so what is made of them is rounded once (Clinger, "How to Read
  /// Floating Point Numbers Accurately"). nil for others.
  private static func exact(_ text: UnsafeRawBufferPointer) -> Double? {
    var index = 0
    let isNegative = text.first == UInt8(ascii: "-")
    if isNegative { index = 1 }
    var digits: UInt64 = 0
    var exponent = 0
    var isFraction = false
    while index < text.count {
      let byte = text[index]
      if byte == UInt8(ascii: ".") {
        isFraction = true
      } else if byte >= 0x30 && byte <= 0x39 {
        if digits >= 1 << 49 { return nil }
        digits = digits * 10 + UInt64(byte - 0x30)
        if isFraction { exponent -= 1 }
      } else {
        break
      }
      index += 1
    }
    if index < text.count {
      // Behind the e.
      index += 1
      let isBelow = index < text.count && text[index] == UInt8(ascii: "-")
      if isBelow || index < text.count && text[index] == UInt8(ascii: "+") { index += 1 }
      var power = 0
      while index < text.count {
        if power > 1000 { return nil }
        power = power * 10 + Int(text[index] - 0x30)
        index += 1
      }
      exponent += isBelow ? -power : power
    }
    guard digits <= 1 << 53, exponent.magnitude <= 22 else { return nil }
    let power = powersOfTen[Int(exponent.magnitude)]
    let value = exponent < 0 ? Double(digits) / power : Double(digits) * power
    return isNegative ? -value : value
  }
}
