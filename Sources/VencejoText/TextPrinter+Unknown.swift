import VencejoDescriptors
import VencejoProtobuf

// Fields nobody knows, by their numbers. Also the decoding of a message without its type.
extension TextPrinter {
  /// Writes whole fields, tags included.
  mutating func unknown(_ fields: UnsafeRawBufferPointer) {
    var reader = WireReader(fields)
    _ = unknown(&reader, 0)
  }

  /// Writes the fields of the reader's current message; false when they are malformed.
  mutating func unknown(_ reader: inout WireReader, _ level: Int) -> Bool {
    while true {
      let tag = reader.nextTag()
      if tag == 0 { return reader.error == nil }
      switch tag & 7 {
      case 0: number(tag, reader.uint64())
      case 1: hexadecimal(tag, reader.fixedUInt64(), 16)
      case 5: hexadecimal(tag, UInt64(reader.fixedUInt32()), 8)
      case 3:
        let outer = reader.enterGroup(tag)
        open(tag >> 3)
        _ = unknown(&reader, level + 1)
        close()
        reader.leaveGroup(outer)
      default:
        let bytes = reader.span()
        guard reader.error == nil else { return false }
        // Whatever reads as a message is shown as one: but ten deep, as each level is tried.
        if bytes.isEmpty || level >= 10 || !attempt(tag, bytes, level) {
          begin(tag >> 3)
          quote(bytes, keepingUTF8: false)
          end()
        }
      }
    }
  }

  /// Writes bytes as a message; nothing, and false, when they are none.
  private mutating func attempt(_ tag: UInt32, _ bytes: UnsafeRawBufferPointer, _ level: Int)
    -> Bool
  {
    let mark = self.mark
    open(tag >> 3)
    var inner = WireReader(bytes)
    guard unknown(&inner, level + 1) else {
      goBack(to: mark)
      return false
    }
    close()
    return true
  }

  /// Writes a varint field.
  mutating func number(_ tag: UInt32, _ value: UInt64) {
    begin(tag >> 3)
    out.append(decimal: value)
    end()
  }

  private mutating func hexadecimal(_ tag: UInt32, _ value: UInt64, _ digits: Int) {
    begin(tag >> 3)
    out.append(literal: "0x")
    for index in (0..<digits).reversed() {
      let digit = UInt8(truncatingIfNeeded: value >> UInt64(4 * index) & 15)
      out.append(digit < 10 ? 0x30 + digit : 0x61 + digit - 10)
    }
    end()
  }
}
