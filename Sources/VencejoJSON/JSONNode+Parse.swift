extension JSONNode {
  /// Parses a JSON text (RFC 8259) strictly, for those who know its shape themselves.
  package static func parse(_ text: String) throws(JSONError) -> JSONNode {
    do throws(JSONFault) {
      return try JSONParser.parse(text)
    } catch {
      let (line, column) = JSONFormat.place(of: error.offset, in: text)
      throw error.error(line: line, column: column)
    }
  }
}
