import Glibc
import Testing
import VencejoAPI
import VencejoProtobuf
import VencejoStore

@testable import VencejoServer

/// Exports as files, and files longer than what is read of them at once.
@Suite struct RecordLinesTests {
  private func file(_ bytes: [UInt8]) throws -> ByteSource {
    var template = Array("/tmp/vencejo-lines-XXXXXX".utf8CString)
    let descriptor = mkstemp(&template)
    try #require(descriptor >= 0)
    let written = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    #expect(written == bytes.count)
    close(descriptor)
    let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer { unlink(path) }
    return try ByteSource(path: path)
  }

  /// Of windows that are small here; letters, halves of letters and quotes lie across its parts.
  @Test(arguments: ["UTF-8", "UTF-16", "Windows-1252"])
  func longFilesAreReadInWindows(encoding: String) throws {
    var text = "n,text\n"
    var rows = 0
    while text.utf8.count < 300 << 10 {
      text += "\(rows),\"é, \(String(repeating: "ñandú\n", count: 70))\(rows)\"\n"
      rows += 1
    }
    let bytes: [UInt8] =
      switch encoding {
      case "UTF-16":
        [0xFF, 0xFE] + text.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
      case "Windows-1252": text.unicodeScalars.map { UInt8($0.value) }
      default: Array(text.utf8)
      }
    var options = RecordTable.Options()
    options.maxRow = 64 << 10
    var table = try RecordTable(try file(bytes), options)
    #expect(table.rows == rows && table.encoding.rawValue.hasPrefix(encoding))
    try table.rewind()
    var count = 0
    while let row = try table.next() {
      #expect(row.fields["n"] == .int64(Int64(count)) && row.line == 2 + count * 71)
      guard case .string(let cell)? = row.fields["text"] else { continue }
      #expect(cell.hasPrefix("é, ñandú\n") && cell.hasSuffix("ñandú\n\(count)"))
      count += 1
    }
    #expect(count == rows)
  }

  @Test func aRowHasAnEnd() throws {
    var options = RecordTable.Options()
    options.maxRow = 64 << 10
    let long = Array("a,b\n1,\"".utf8) + [UInt8](repeating: 0x78, count: 140 << 10)
    #expect(
      throws: DelimitedText.Fault(
        line: 2, problem: "a quote is opened here and not closed within 64 KiB")
    ) { _ = try RecordTable(ByteSource(long + Array("\"\n".utf8)), options) }
    let json = Array("{\"a\":1}\n{\"a\":\"".utf8) + [UInt8](repeating: 0x78, count: 140 << 10)
    #expect(throws: DelimitedText.Fault(line: 2, problem: "a row is longer than 64 KiB")) {
      _ = try RecordTable(ByteSource(json + Array("\"}\n".utf8)), options)
    }
  }

  @Test func rowsMayBeAMemberOfTheOnlyObject() throws {
    let text = """
      {"type": "FeatureCollection", "count": [1, 2], "features": [
        {"type": "Feature", "properties": {"name": "x"}, "geometry": {"coordinates": [1.5, 2]}},
        {"type": "Feature", "properties": {"name": "y"}, "geometry": {"coordinates": [[1], [2]]}}
      ], "after": {"a": 1}}
      """
    var table = try RecordTable(ByteSource(Array(text.utf8)))
    #expect(table.key == "features" && table.rows == 2)
    try table.rewind()
    let first = try table.next()
    #expect(first?.line == 2 && first?.fields["properties_name"] == .string("x"))
    #expect(
      try table.next()?.fields["geometry_coordinates"] == .list([.string("[1]"), .string("[2]")]))
    // Of two objects each is a row.
    let two = try RecordTable(ByteSource(Array("{\"a\":[{\"b\":1}]}\n{\"a\":[]}".utf8)))
    #expect(two.key == nil && two.rows == 2)
    // Names of nested and of plain members may be the same.
    var names = try RecordTable(ByteSource(Array("{\"a\":{\"b\":1},\"a_b\":2}".utf8)))
    try names.rewind()
    #expect(try names.next()?.fields == ["a_b": .int64(1), "a_b_2": .int64(2)])
    #expect(throws: DelimitedText.Fault.self) {
      _ = try RecordTable(ByteSource(Array("[{\"a\":1}] x".utf8)))
    }
  }

  @Test func excelAndPowerShellAreUnderstood() throws {
    var table = try RecordTable(ByteSource(Array("sep=;\r\na;b\r\n1,5;\"x,y\"\r\n".utf8)))
    #expect(table.separator == UInt8(ascii: ";") && table.rows == 1)
    try table.rewind()
    #expect(try table.next()?.fields == ["a": .double(1.5), "b": .string("x,y")])
    // UTF-16 without a mark.
    let units = "name,n\r\nana,1\r\nben,2\r\n".utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
    #expect(try RecordTable(ByteSource(units)).columns.map(\.field) == ["name", "n"])
  }

  @Test func exportsAreFiles() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let zone = try await ana.makeZone("z", in: "containers/notes/databases/private")
      for number in 0..<3 {
        _ = try await ana.save(
          "\(zone.name)/records/r\(number)", ["n": .init(kind: .int64Value(Int64(number)))])
      }
      let store = world.backend.store
      let place = try await RecordLines(store, container: "notes", user: "ana", owner: nil)
      var bytes: [UInt8] = []
      #expect(try await place.export(zone: nil, includesAssets: true) { bytes += $0 } == 3)
      #expect(bytes.split(separator: UInt8(ascii: "\n")).count == 3)
      let source = ByteSource(bytes)
      #expect(RecordLines.holds(source))
      #expect(try RecordLines.count(source) == (3, 0))
      #expect(!RecordLines.holds(ByteSource(Array("{\"record\": 1, \"n\": 2}\n".utf8))))
      let copy = try await RecordLines(store, container: "copy", user: "ana", owner: nil)
      let outcome = try await copy.take(source, zone: "all")
      #expect(outcome.imported == 3 && outcome.failed == 0)
      var back: [UInt8] = []
      _ = try await copy.export(zone: "all", includesAssets: true) { back += $0 }
      #expect(back.split(separator: UInt8(ascii: "\n")).count == 3)
      await #expect(throws: DelimitedText.Fault.self) {
        _ = try await copy.take(ByteSource(bytes + Array("{\"record\": x}".utf8)), zone: nil)
      }
    }
  }
}
