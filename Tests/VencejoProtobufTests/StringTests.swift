import Testing

@testable import VencejoProtobuf

/// Strings of all lengths and kinds, read and written past Swift's ways to do so.
struct StringTests {
  /// Without it strings take Swift's ways: slower, and then somebody should look at
  /// StringObject.swift again.
  @Test func wordsAreKnown() { #expect(StringWords.areKnown) }

  @Test(arguments: ["abcdefghijklmnop", "é", "a漢", "\u{7F}\0", "x😀y"])
  func lengths(letters: String) throws {
    for count in 0...40 {
      // As made in Swift, not by the decoder.
      let string = String((0..<count).map { Array(letters)[$0 % letters.count] })
      let utf8 = Array(string.utf8)
      var length = [UInt8(truncatingIfNeeded: utf8.count & 0x7F)]
      if utf8.count > 127 { length = [length[0] | 0x80, UInt8(utf8.count >> 7)] }
      let field = utf8.isEmpty ? [] : [0x0A] + length + utf8
      let message = Google.StringValue(value: string)
      #expect(message.serializedBytes() == field)
      // At the end of what can be read, and before other fields.
      for behind in [[], [UInt8](repeating: 0x20, count: 30)] {
        let read = try Google.StringValue(serializedBytes: field + behind)
        #expect(read.value == string && Array(read.value.utf8) == utf8)
        #expect(read.value.hashValue == string.hashValue && read.value + "." == string + ".")
      }
    }
  }

  @Test func literalsAndParts() throws {
    let long = "a literal of more than fifteen letters"
    let part = String(long.dropFirst(2).prefix(20))
    var grown = long
    grown.reserveCapacity(1000)
    grown += "é"
    for string in [long, part, grown, "", "short"] {
      let bytes = Google.StringValue(value: string).serializedBytes()
      #expect(bytes.dropFirst(2).elementsEqual(string.utf8))
    }
  }

  @Test(arguments: 1...20) func notUTF8(count: Int) {
    for place in 0..<count {
      var bytes = [0x0A, UInt8(count)] + [UInt8](repeating: 0x61, count: count)
      bytes[2 + place] = 0xFF
      for behind in [[], [UInt8](repeating: 0x20, count: 30)] {
        #expect(throws: DecodingError.self) {
          try Google.StringValue(serializedBytes: bytes + behind)
        }
      }
    }
  }
}
