import Testing

@testable import VencejoServer
@testable import VencejoStore

/// CSV and JSON files as programs write them.
@Suite struct RecordTableTests {
  private func rows(
    _ text: String, _ change: (inout RecordTable.Options) -> Void = { _ in }
  ) throws -> (types: [String: String], rows: [[String: RecordValue]], faults: [String]) {
    try rows(Array(text.utf8), change)
  }

  private func rows(
    _ bytes: [UInt8], _ change: (inout RecordTable.Options) -> Void = { _ in }
  ) throws -> (types: [String: String], rows: [[String: RecordValue]], faults: [String]) {
    var options = RecordTable.Options()
    change(&options)
    var table = try RecordTable(ByteSource(bytes), options)
    var types: [String: String] = [:]
    for column in table.columns {
      types[column.field] = column.isList ? "[\(column.type.name)]" : column.type.name
    }
    var found: [[String: RecordValue]] = []
    try table.rewind()
    while let row = try table.next() { found.append(row.fields) }
    // As an import reads it: without a text of each cell.
    let faults = table.faults
    try table.rewind()
    var part = BulkRows(type: "Row", fields: table.fields)
    let zone = try ZoneID(database: DatabaseID(container: "c", database: "public"), zone: "z")
    while try table.next(
      into: &part, named: nil, { _, line in try RecordID(zone: zone, record: "\(line)") }) != nil
    {}
    #expect(part.rows.map { RecordCoding.decode($0.blob) } == found)
    #expect(table.faults == faults)
    return (types, found, table.faults.map(\.description))
  }

  @Test func quotesLineEndsAndBlankLines() throws {
    let text =
      "\u{FEFF}a,b\r\n\"x, \"\"y\"\"\",\"two\r\nlines\"\r\n\r\n,\"\"\r\n\"q\"uoted,5\" tall\r\nlast,"
    let table = try rows(text)
    #expect(
      table.rows == [
        ["a": .string("x, \"y\""), "b": .string("two\r\nlines")], ["b": .string("")],
        ["a": .string("quoted"), "b": .string("5\" tall")], ["a": .string("last")],
      ])
    #expect(table.faults == [])
    // An old Mac's.
    #expect(try rows("a\r1\r2").rows == [["a": .int64(1)], ["a": .int64(2)]])
    #expect(try rows("").rows.isEmpty)
    #expect(try rows("only,a,header\n").rows.isEmpty)
    #expect(
      throws: DelimitedText.Fault(line: 3, problem: "a quote is opened here and never closed")
    ) {
      try rows("a,b\n1,2\n\"3,4\n5,6\n")
    }
  }

  @Test(arguments: [",", ";", "\t", "|"])
  func separatorsAreFound(mark: String) throws {
    let text = ["name\(mark)text", "\"a, b; c | d\"\(mark)x", "e\(mark)y"].joined(separator: "\n")
    #expect(try rows(text).rows.count == 2)
    #expect(try rows(text).rows[1] == ["name": .string("e"), "text": .string("y")])
  }

  @Test func encodingsAreKnownByTheirMarkOrTheirBytes() throws {
    let utf16 = Array("a;b\nñ;€\n".utf16)
    let expected: [String: RecordValue] = ["a": .string("ñ"), "b": .string("€")]
    let little: [UInt8] =
      [0xFF, 0xFE] + utf16.flatMap { unit -> [UInt8] in [UInt8(unit & 0xFF), UInt8(unit >> 8)] }
    let big: [UInt8] =
      [0xFE, 0xFF] + utf16.flatMap { unit -> [UInt8] in [UInt8(unit >> 8), UInt8(unit & 0xFF)] }
    #expect(try rows(little).rows == [expected])
    #expect(try rows(big).rows == [expected])
    #expect(try rows("a;b\nñ;€\n").rows == [expected])
    // Windows-1252: ñ is F1, € is 80.
    #expect(try rows(Array("a;b\n".utf8) + [0xF1, 0x3B, 0x80, 0x0A]).rows == [expected])
  }

  @Test func typesAreTheNarrowestThatLosesNothing() throws {
    let text = """
      int,negative,zip,phone,big,real,exponent,long,bool,mixed,none,quoted
      1,-5,01234,+34600,9223372036854775808,1.5,1e3,0.12345678901234567890,true,1,,"7"
      0,0,99999,600,1,2,-2.5E-3,1.5,FALSE,x,,"8"
      """
    let table = try rows(text)
    #expect(
      table.types == [
        "int": "INT64", "negative": "INT64", "zip": "STRING", "phone": "STRING", "big": "STRING",
        "real": "DOUBLE", "exponent": "DOUBLE", "long": "STRING", "bool": "INT64 (true/false)",
        "mixed": "STRING", "none": "STRING", "quoted": "INT64",
      ])
    #expect(table.rows[0]["zip"] == .string("01234"))
    #expect(table.rows[0]["bool"] == .int64(1) && table.rows[1]["bool"] == .int64(0))
    #expect(table.rows[1]["exponent"] == .double(-0.0025))
    #expect(table.rows[0]["none"] == nil)
    #expect(try rows("a;b\n1,5;x\n2;y").types["a"] == "DOUBLE (decimal comma)")
    #expect(try rows("a;b\n1,5;x\n2;y").rows[0]["a"] == .double(1.5))
    #expect(try rows("a;b\n1.234,5;x\n2;y").types["a"] == "STRING")
  }

  /// Seconds from `date -u -d TEXT +%s`.
  @Test func datesAreReadInSeveralForms() throws {
    func time(_ text: String, _ dates: TimeForm? = nil) throws -> Int64? {
      let table = try rows("t,x\n\"\(text)\",1\n") { $0.dates = dates }
      guard case .timestamp(let time)? = table.rows.first?["t"] else { return nil }
      return time / 1_000_000
    }
    #expect(try time("2024-02-29") == 1_709_164_800)
    #expect(try time("2024/2/9") == 1_707_436_800)
    #expect(try time("2024-02-29T12:30:15Z") == 1_709_209_815)
    #expect(try time("2024-02-29 12:30:15.25+02:00") == 1_709_202_615)
    #expect(try time("2024-02-29T12:30:15-0530") == 1_709_229_615)
    #expect(try time("2024-02-29 12:30") == 1_709_209_800)
    #expect(try time("29.02.2024") == 1_709_164_800)
    #expect(try time("29/02/2024 1:05 PM") == 1_709_211_900)
    #expect(try time("02/29/2024 12:00 AM") == 1_709_164_800)
    // Nobody knows which; somebody may say.
    #expect(try time("03/04/2024") == nil)
    #expect(try time("03/04/2024", .dayFirst) == 1_712_102_400)
    #expect(try time("03/04/2024", .monthFirst) == 1_709_510_400)
    #expect(try time("2023-02-29") == nil)
    #expect(try time("2024-13-01") == nil)
    #expect(try time("24-02-29") == nil)
    // One row decides for the column.
    #expect(
      try rows("t\n03/04/2024\n13/04/2024\n").types == ["t": "TIMESTAMP (day first)"])
  }

  @Test func headersBecomeFieldNames() throws {
    let table = try rows("Título,título,,2nd,a b-c,a_b_c,\n1,2,3,4,5,6,7\n")
    #expect(
      Set(table.types.keys) == [
        "T_tulo", "t_tulo", "column_3", "f_2nd", "a_b_c", "a_b_c_2", "column_7",
      ])
  }

  @Test func raggedRowsAreToldAndLeftOut() throws {
    let table = try rows("a,b\n1,2\n3\n4,5,6\n7,8,,\n\"9\n\",10,11\n")
    #expect(table.rows == [["a": .int64(1), "b": .int64(2)], ["a": .int64(7), "b": .int64(8)]])
    #expect(
      table.faults == [
        "line 3: 1 cells, and the header has 2", "line 4: 3 cells, and the header has 2",
        "line 6: 3 cells, and the header has 2",
      ])
  }

  @Test func operatorsOverrule() throws {
    let text = "a,b,c\n1,NA,x\n2,5,y\n"
    let table = try rows(text) {
      $0.nulls = ["NA"]
      $0.types = ["a": "string", "c": "skip"]
    }
    #expect(table.rows == [["a": .string("1")], ["a": .string("2"), "b": .int64(5)]])
    #expect(throws: RecordViolation.self) { try rows(text) { $0.types = ["z": "string"] } }
    #expect(throws: RecordViolation.self) { try rows(text) { $0.types = ["a": "number"] } }
    // A type that does not fit is a fault of the row.
    #expect(
      try rows(text) { $0.types = ["c": "int64"] }.faults
        == ["line 2: c: 'x' is no INT64", "line 3: c: 'y' is no INT64"])
  }

  @Test func jsonComesInLinesOrAsAnArray() throws {
    let lines = """
      {"id": 1, "name": "a\\u00e9\\ud83d\\ude00\\n", "at": "2024-02-29", "tags": ["x", "y"], "o": {"n": 1.5}}
      {"id": 9007199254740993, "name": "007", "tags": [], "extra": true, "o": null}

      {"id": null, "name": null, "tags": "single", "mixed": 1}
      {"mixed": "one"}
      """
    let table = try rows(lines)
    #expect(
      table.types == [
        "id": "INT64", "name": "STRING", "at": "TIMESTAMP (year first)", "tags": "[STRING]",
        "o_n": "DOUBLE", "extra": "INT64 (true/false)", "o": "STRING", "mixed": "STRING",
      ])
    #expect(table.rows[0]["name"] == .string("aé😀\n"))
    #expect(table.rows[0]["tags"] == .list([.string("x"), .string("y")]))
    #expect(table.rows[1]["id"] == .int64(9_007_199_254_740_993))
    #expect(table.rows[2] == ["tags": .list([.string("single")]), "mixed": .string("1")])
    let array = try rows("[ {\"a\": 1},\n {\"a\": 2} ]")
    #expect(array.rows == [["a": .int64(1)], ["a": .int64(2)]])
    for bad in ["{\"a\": }", "{\"a\" 1}", "{", "[{\"a\":1}", "[1]", "{\"a\": \"x", "{\"a\": tru}"] {
      #expect(throws: DelimitedText.Fault.self) { try rows(bad) }
    }
  }
}
