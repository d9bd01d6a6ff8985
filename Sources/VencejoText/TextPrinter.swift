import VencejoDescriptors
import VencejoProtobuf

/// Writes messages as text.
///
/// Of a message's bytes straight from wire format (TextPrinter+Wire), of a ``DynamicMessage``
/// from its fields (TextPrinter+Dynamic); here is what both write with.
struct TextPrinter: ~Copyable {
  let options: TextOptions
  var out: ByteBuffer
  /// Open brackets.
  private(set) var depth = 0

  init(_ options: TextOptions, capacity: Int = 256) {
    self.options = options
    out = ByteBuffer(capacity: capacity)
  }

  // MARK: Layout

  private mutating func begin() {
    if options.singleLine {
      if out.count > 0 { out.append(UInt8(ascii: " ")) }
    } else {
      for _ in 0..<depth { out.append(literal: "  ") }
    }
  }

  /// Begins a line up to its value.
  mutating func begin(_ name: UnsafeRawBufferPointer) {
    begin()
    out.append(name)
    out.append(literal: ": ")
  }

  /// Begins a line up to its value.
  mutating func begin(_ name: String) { Self.withBytes(name) { begin($0) } }

  /// Begins a line with a field's number.
  mutating func begin(_ number: UInt32) {
    begin()
    out.append(decimal: UInt64(number))
    out.append(literal: ": ")
  }

  /// Ends a line.
  mutating func end() {
    if !options.singleLine { out.append(UInt8(ascii: "\n")) }
  }

  mutating func open(_ name: UnsafeRawBufferPointer) {
    begin()
    out.append(name)
    opened()
  }

  mutating func open(_ name: String) { Self.withBytes(name) { open($0) } }

  mutating func open(_ number: UInt32) {
    begin()
    out.append(decimal: UInt64(number))
    opened()
  }

  private mutating func opened() {
    out.append(literal: " {")
    end()
    depth += 1
  }

  mutating func close() {
    depth -= 1
    begin()
    out.append(UInt8(ascii: "}"))
    end()
  }

  /// What has been written so far, to go back to.
  struct Mark {
    fileprivate let count: Int
    fileprivate let depth: Int
  }

  var mark: Mark { Mark(count: out.count, depth: depth) }

  mutating func goBack(to mark: Mark) {
    out.truncate(to: mark.count)
    depth = mark.depth
  }

  private static func withBytes(_ text: String, _ body: (UnsafeRawBufferPointer) -> Void) {
    text.utf8Span.span.bytes.withUnsafeBytes { body($0) }
  }

  // MARK: Values

  mutating func boolean(_ value: Bool) { out.append(literal: value ? "true" : "false") }

  /// A `float` or `double`: the fewest digits that read as the same.
  mutating func floating(_ value: some CustomStringConvertible, isNaN: Bool) {
    if isNaN { out.append(literal: "nan") } else { out.append(value.description) }
  }

  /// In quotes, with C's escapes.
  mutating func quote(_ bytes: UnsafeRawBufferPointer, keepingUTF8: Bool) {
    out.append(UInt8(ascii: "\""))
    var plain = 0
    for (index, byte) in bytes.enumerated() {
      if Self.isPlain(byte) || byte >= 0x80 && keepingUTF8 { continue }
      out.append(UnsafeRawBufferPointer(rebasing: bytes[plain..<index]))
      plain = index + 1
      out.append(UInt8(ascii: "\\"))
      switch byte {
      case 0x0A: out.append(UInt8(ascii: "n"))
      case 0x0D: out.append(UInt8(ascii: "r"))
      case 0x09: out.append(UInt8(ascii: "t"))
      case UInt8(ascii: "\""), UInt8(ascii: "'"), UInt8(ascii: "\\"): out.append(byte)
      default:
        out.append(0x30 + (byte >> 6))
        out.append(0x30 + (byte >> 3 & 7))
        out.append(0x30 + (byte & 7))
      }
    }
    out.append(UnsafeRawBufferPointer(rebasing: bytes[plain...]))
    out.append(UInt8(ascii: "\""))
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    byte >= 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "'")
      && byte != UInt8(ascii: "\\")
  }
}
