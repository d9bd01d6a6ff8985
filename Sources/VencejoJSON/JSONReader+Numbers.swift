extension JSONReader {
  /// The digits of a number, or of a string that is one.
  private func digits(_ node: JSONNode) -> String? {
    switch node.kind {
    case .number(let text): return text
    case .string(let text):
      // No blanks, signs or other spellings Swift's own parsers would take.
      guard let parsed = try? JSONParser.parse(text), case .number(let number) = parsed.kind,
        number == text
      else { return nil }
      return text
    default: return nil
    }
  }

  func integer<I: FixedWidthInteger>(
    _ node: JSONNode
  ) throws(JSONFault) -> I {
    guard let text = digits(node) else {
      throw fault("expected an integer, found \(node.description)", node)
    }
    if let value = I(text) ?? Self.integer(decimal: text) { return value }
    throw fault("\(text) is not an integer of \(I.bitWidth) bits", node)
  }

  /// An integer with a fraction of zeros or an exponent, like 1.0 or 5e2. Exact.
  private static func integer<I: FixedWidthInteger>(decimal text: String) -> I? {
    let parts = text.split { $0 == "e" || $0 == "E" }
    let number = parts[0].split(separator: ".")
    guard let whole = number.first, parts.count <= 2, number.count <= 2 else { return nil }
    guard var exponent = parts.count == 2 ? Int(parts[1]) : 0 else { return nil }
    var digits = String(whole)
    if number.count == 2 {
      digits += number[1]
      exponent = exponent.subtractingReportingOverflow(number[1].count).partialValue
    }
    while digits.last == "0" && exponent < 0 {
      digits.removeLast()
      exponent += 1
    }
    if digits.allSatisfy({ $0 == "0" || $0 == "-" }) { return 0 }
    // Twenty digits hold every UInt64.
    guard (0...20).contains(exponent) else { return nil }
    return I(digits + String(repeating: "0", count: exponent))
  }

  func floating<F: BinaryFloatingPoint & LosslessStringConvertible>(
    _ node: JSONNode
  ) throws(JSONFault) -> F {
    if case .string(let text) = node.kind {
      switch text {
      case "NaN": return .nan
      case "Infinity": return .infinity
      case "-Infinity": return -.infinity
      default: break
      }
    }
    guard let text = digits(node), let value = F(text) else {
      throw fault("expected a number, found \(node.description)", node)
    }
    guard value.isFinite else { throw fault("\(text) is too large", node) }
    return value
  }
}
