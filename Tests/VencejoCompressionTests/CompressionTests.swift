import Testing
import VencejoCompression

@Suite("Compression")
struct CompressionTests {
  // Made with Python's gzip (mtime 0) and zlib of b"hola hola hola hola".
  static let gzip: [UInt8] = [
    31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 200, 207, 73, 84, 200, 64, 33, 0, 185, 168, 51, 219, 19,
    0, 0, 0,
  ]
  static let zlib: [UInt8] = [120, 156, 203, 200, 207, 73, 84, 200, 64, 33, 0, 69, 163, 6, 241]
  static let plain = Array("hola hola hola hola".utf8)

  @Test func readsWhatPythonWrote() throws {
    #expect(try Compression.gzip.decompress(Self.gzip, limit: 100) == Self.plain)
    #expect(try Compression.deflate.decompress(Self.zlib, limit: 100) == Self.plain)
  }

  @Test(arguments: Compression.allCases)
  func roundTrips(_ compression: Compression) throws {
    var generator = SystemRandomNumberGenerator()
    for size in [0, 1, 2, 100, 65_535, 65_536, 1 << 20] {
      let repetitive = (0..<size).map { UInt8(truncatingIfNeeded: $0 / 7) }
      let random = (0..<size).map { _ in UInt8.random(in: 0...255, using: &generator) }
      for bytes in [repetitive, random] {
        let packed = try compression.compress(bytes)
        #expect(try compression.decompress(packed, limit: size) == bytes)
        if size > 0 {
          #expect(throws: CompressionError.tooLong(limit: size - 1)) {
            try compression.decompress(packed, limit: size - 1)
          }
        }
      }
    }
  }

  @Test func aBombStopsAtTheLimit() throws {
    let bomb = try Compression.gzip.compress([UInt8](repeating: 0, count: 64 << 20))
    #expect(bomb.count < 100_000)
    #expect(throws: CompressionError.tooLong(limit: 4 << 20)) {
      try Compression.gzip.decompress(bomb, limit: 4 << 20)
    }
  }

  @Test func everyTruncationAndWhatFollowsIsMalformed() throws {
    for count in 0..<Self.gzip.count {
      #expect(throws: CompressionError.malformed) {
        try Compression.gzip.decompress(Array(Self.gzip.prefix(count)), limit: 100)
      }
    }
    #expect(throws: CompressionError.malformed) {
      try Compression.gzip.decompress(Self.gzip + [0], limit: 100)
    }
    #expect(throws: CompressionError.malformed) {
      try Compression.gzip.decompress(Self.zlib, limit: 100)
    }
    #expect(throws: CompressionError.malformed) {
      try Compression.deflate.decompress(Self.plain, limit: 100)
    }
  }
}
