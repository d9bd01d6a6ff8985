import Glibc
import Testing
import VencejoCompression

/// Archives that other programs wrote.
@Suite struct ZipArchiveTests {
  private static let folder: String = {
    var parts = #filePath.split(separator: "/", omittingEmptySubsequences: false)
    parts.removeLast(2)
    return parts.joined(separator: "/") + "/WhatsApp"
  }()

  private func read(_ archive: ZipArchive) -> [[UInt8]?] {
    archive.entries.map { entry in
      var bytes: [UInt8] = []
      do {
        try archive.read(entry) { bytes += $0 }
        return bytes
      } catch { return nil }
    }
  }

  private func bytes(_ path: String) throws -> [UInt8] {
    let file = try #require(fopen(path, "r"))
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    return Array(bytes.prefix(fread(&bytes, 1, bytes.count, file)))
  }

  @Test func readsWhatPythonWrote() throws {
    #expect(ZipArchive.isArchive(path: "\(Self.folder)/ios-es.zip"))
    let deflated = try ZipArchive(path: "\(Self.folder)/ios-es.zip")
    #expect(deflated.entries.map(\.size) == [891, 9004, 18_909, 3004, 59])
    #expect(read(deflated).map { $0?.count } == [891, 9004, 18_909, 3004, 59])
    // Stored, with sizes of 64 bits in the headers of the files.
    let stored = try ZipArchive(path: "\(Self.folder)/android-de.zip")
    #expect(stored.entries.map(\.size) == [560, 9004, 3004, 46])
    let files = read(stored)
    #expect(files[1] == read(deflated)[1])
    #expect(
      files[3].map { String(decoding: $0, as: UTF8.self) }
        == "1/1/24, 10:00 - a note that looks like a chat\n")
  }

  /// Whatever is done to an archive: nothing traps, and no file comes out other than it was.
  @Test(arguments: ["ios-es.zip", "android-de.zip"])
  func damageIsFoundOut(_ name: String) throws {
    let whole = try bytes("\(Self.folder)/\(name)")
    let good = Set(read(try ZipArchive(path: "\(Self.folder)/\(name)")))
    var template = Array("/tmp/vencejo-zip-XXXXXX".utf8CString)
    let file = mkstemp(&template)
    let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer {
      close(file)
      unlink(path)
    }
    var random = SystemRandomNumberGenerator()
    for _ in 0..<300 {
      var bytes = whole
      switch Int.random(in: 0..<3, using: &random) {
      case 0: bytes.removeLast(Int.random(in: 1..<bytes.count, using: &random))
      case 1:
        // Mostly where numbers are: in the directory.
        let start = Bool.random(using: &random) ? bytes.count - 500 : 0
        for _ in 0..<Int.random(in: 1...4, using: &random) {
          bytes[Int.random(in: start..<bytes.count, using: &random)] = UInt8.random(
            in: 0...255, using: &random)
        }
      default: bytes.removeFirst(Int.random(in: 1..<bytes.count, using: &random))
      }
      try #require(ftruncate(file, 0) == 0 && pwrite(file, bytes, bytes.count, 0) == bytes.count)
      guard let archive = try? ZipArchive(path: path) else { continue }
      for case let found? in read(archive) {
        // A size and a checksum of nothing fit nothing.
        #expect(found.isEmpty || good.contains(found))
      }
    }
  }

  @Test(arguments: ["", "PK", "PK\u{5}\u{6}", String(repeating: "PK\u{5}\u{6}", count: 100)])
  func whatIsNoArchiveIsRefused(_ text: String) throws {
    var template = Array("/tmp/vencejo-zip-XXXXXX".utf8CString)
    let file = mkstemp(&template)
    let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer {
      close(file)
      unlink(path)
    }
    let bytes = Array(text.utf8)
    try #require(pwrite(file, bytes, bytes.count, 0) == bytes.count)
    #expect(throws: CompressionError.self) { _ = try ZipArchive(path: path) }
  }
}
