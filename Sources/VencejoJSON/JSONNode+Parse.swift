extension JSONNode {
  /// Parses a JSON text (RFC 8259) strictly, for those who know its shape themselves.
  package static func parse(_ text: String) throws(JSONError) -> JSONNode {
    var copy = text
    let result: Result<JSONNode, JSONFault> = copy.withUTF8 { bytes in
      var cursor = JSONCursor(UnsafeRawBufferPointer(bytes))
      do throws(JSONFault) {
        cursor.skipBlanks()
        let node = try JSONNode(&cursor)
        cursor.skipBlanks()
        guard cursor.isAtEnd else { throw cursor.fault("unexpected text behind the value") }
        return .success(node)
      } catch {
        return .failure(error)
      }
    }
    do throws(JSONFault) {
      return try result.get()
    } catch {
      let (line, column) = JSONFormat.place(of: error.offset, in: text)
      throw error.error(line: line, column: column)
    }
  }

  private init(_ cursor: inout JSONCursor) throws(JSONFault) {
    offset = cursor.position
    var isFirst = true
    switch cursor.next {
    case UInt8(ascii: "{"):
      var members: [Member] = []
      try cursor.open()
      while try cursor.next(&isFirst, until: UInt8(ascii: "}")) {
        let start = cursor.position
        do throws(JSONFault) {
          let name = String(decoding: try cursor.name(), as: UTF8.self)
          try cursor.colon()
          members.append(Member(name: name, offset: start, value: try JSONNode(&cursor)))
        } catch {
          throw error.at(cursor.step(at: start))
        }
      }
      kind = .object(members)
    case UInt8(ascii: "["):
      var elements: [JSONNode] = []
      try cursor.open()
      while try cursor.next(&isFirst, until: UInt8(ascii: "]")) {
        do throws(JSONFault) {
          elements.append(try JSONNode(&cursor))
        } catch {
          throw error.at("[\(elements.count)]")
        }
      }
      kind = .array(elements)
    case UInt8(ascii: "\""): kind = .string(String(decoding: try cursor.string(), as: UTF8.self))
    case UInt8(ascii: "t"):
      try cursor.word("true")
      kind = .bool(true)
    case UInt8(ascii: "f"):
      try cursor.word("false")
      kind = .bool(false)
    case UInt8(ascii: "n"):
      try cursor.word("null")
      kind = .null
    case UInt8(ascii: "-"), 0x30...0x39: kind = .number(try cursor.number().string)
    default: throw cursor.unexpected("a value")
    }
  }
}
