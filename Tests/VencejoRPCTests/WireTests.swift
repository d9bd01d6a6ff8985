import Testing

@testable import VencejoRPC

@Suite("Percent-encoding of grpc-message")
struct PercentEncodingTests {
  // Expected texts follow from the definition: bytes outside 0x20…0x7E and '%' as %XX.
  @Test(arguments: [
    ("", ""), ("plain text ~", "plain text ~"), ("100%", "100%25"), ("a\nb", "a%0Ab"),
    ("é", "%C3%A9"), ("😀", "%F0%9F%98%80"), ("\u{7f}", "%7F"),
  ])
  func encodes(_ text: String, _ encoded: String) {
    #expect(PercentEncoding.encode(text) == encoded)
    #expect(PercentEncoding.decode(encoded.utf8) == text)
  }

  @Test(arguments: [
    ("%", "%"), ("%4", "%4"), ("%zz", "%zz"), ("a%41b", "aAb"), ("%c3%a9", "é"),
    ("%FF", "\u{FFFD}"),
  ])
  func decodesLeniently(_ encoded: String, _ text: String) {
    #expect(PercentEncoding.decode(encoded.utf8) == text)
  }

  @Test func everyScalarOfTheBasicPlaneComesBack() {
    var text = ""
    for value in 0..<0x3000 { text.unicodeScalars.append(Unicode.Scalar(UInt32(value)) ?? "x") }
    #expect(PercentEncoding.decode(PercentEncoding.encode(text).utf8) == text)
  }
}

@Suite("Base64 of binary metadata")
struct Base64Tests {
  // RFC 4648 section 10.
  @Test(arguments: [
    ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"),
    ("fooba", "Zm9vYmE"), ("foobar", "Zm9vYmFy"),
  ])
  func vectors(_ plain: String, _ encoded: String) {
    #expect(Base64.encode(Array(plain.utf8)) == encoded)
    #expect(Base64.decode(encoded.utf8) == Array(plain.utf8))
    let padding = String(repeating: "=", count: (4 - encoded.count % 4) % 4)
    #expect(Base64.decode((encoded + padding).utf8) == Array(plain.utf8))
  }

  @Test(arguments: ["Z", "Zm9vY", "Zg=", "Zg===", "Z=g=", "Zm9v=", "Zm!v", "Zm9v Zg", "_-__"])
  func refuses(_ text: String) {
    #expect(Base64.decode(text.utf8) == nil)
  }
}

@Suite("grpc-timeout")
struct TimeoutTests {
  @Test(arguments: [
    ("1n", 1), ("99999999n", 99_999_999), ("5u", 5_000), ("100m", 100_000_000),
    ("2S", 2_000_000_000), ("3M", 180_000_000_000), ("1H", 3_600_000_000_000), ("0S", 0),
    ("99999999H", Int64.max),
  ])
  func parses(_ text: String, _ nanoseconds: Int64) {
    #expect(Array(text.utf8).withUnsafeBytes(Timeout.parse) == nanoseconds)
  }

  @Test(arguments: ["", "1", "S", "123456789S", "-1S", "1.5S", "1s", "1 S", "+1S", "1SS"])
  func refuses(_ text: String) {
    #expect(Array(text.utf8).withUnsafeBytes(Timeout.parse) == nil)
  }

  @Test(arguments: [
    (0, "1n"), (1, "1n"), (99_999_999, "99999999n"), (100_000_000, "100000u"),
    (100_000_001, "100001u"), (2_000_000_000, "2000000u"), (3_600_000_000_000, "3600000m"),
    (Int64.max, "2562048H"),
  ])
  func formats(_ nanoseconds: Int64, _ text: String) {
    #expect(Timeout.format(nanoseconds: nanoseconds) == text)
  }

  @Test func neverShorterThanAsked() {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<2_000 {
      let value = Int64.random(in: 1...Int64.max, using: &generator) >> Int.random(in: 0...62)
      let text = Timeout.format(nanoseconds: value)
      #expect(text.utf8.count <= 9)
      let parsed = Array(text.utf8).withUnsafeBytes(Timeout.parse)
      #expect((parsed ?? -1) >= value)
    }
  }

  @Test func durationsSaturate() {
    #expect(Duration.seconds(Int64.max).nanoseconds == .max)
    #expect(Duration.seconds(Int64.min).nanoseconds == .min)
    #expect(Duration.milliseconds(1500).nanoseconds == 1_500_000_000)
  }
}

@Suite("Length-prefixed messages")
struct DeframerTests {
  private func frame(_ message: [UInt8], flag: UInt8 = 0) -> [UInt8] {
    let count = message.count
    return [
      flag, UInt8(count >> 24), UInt8(count >> 16 & 255), UInt8(count >> 8 & 255),
      UInt8(count & 255),
    ] + message
  }

  private func messages(_ chunks: [[UInt8]], limit: Int = 1 << 20) throws -> [[UInt8]] {
    var deframer = Deframer(limit: limit)
    var out: [[UInt8]] = []
    for chunk in chunks {
      try chunk.withUnsafeBytes { bytes in
        var rest = bytes
        while let message = try deframer.next(&rest) { out.append(message) }
        #expect(rest.isEmpty)
      }
    }
    return out
  }

  @Test func anyCutGivesTheSameMessages() throws {
    let wanted: [[UInt8]] = [[], [1], Array(repeating: 7, count: 300), [2, 3], []]
    let all = wanted.flatMap { frame($0) }
    for size in 1...all.count {
      let chunks = stride(from: 0, to: all.count, by: size).map {
        Array(all[$0..<min($0 + size, all.count)])
      }
      #expect(try messages(chunks) == wanted)
    }
  }

  @Test func refusesAFlagItDoesNotKnow() {
    #expect(throws: Deframer.Failure.badFlag(2)) { try messages([frame([1], flag: 2)]) }
    #expect(throws: Deframer.Failure.compressed) { try messages([frame([1], flag: 1)]) }
  }

  /// compression.md: a server answers UNIMPLEMENTED, at a client the answer ends INTERNAL.
  @Test func anEncodingNobodyOffered() {
    let failure = Deframer.Failure.compressed
    #expect(
      failure.status(limit: 1, encoding: "br", inResponse: false).code == .unimplemented)
    #expect(failure.status(limit: 1, encoding: "br", inResponse: true).code == .internalError)
    for encoding in [nil, "identity"] {
      #expect(
        failure.status(limit: 1, encoding: encoding, inResponse: false).code == .internalError)
    }
  }

  @Test func refusesALengthAboveTheLimitBeforeItComes() {
    #expect(throws: Deframer.Failure.tooLong(0xFFFF_FFFF)) {
      try messages([[0, 0xFF, 0xFF, 0xFF, 0xFF]])
    }
    #expect(throws: Deframer.Failure.tooLong(11)) {
      try messages([frame(Array(repeating: 0, count: 11))], limit: 10)
    }
  }

  @Test func knowsWhetherItIsInsideAMessage() throws {
    var deframer = Deframer(limit: 100)
    for (index, byte) in frame([9, 9]).enumerated() {
      #expect(deframer.isInside == (index > 0))
      try [byte].withUnsafeBytes { bytes in
        var rest = bytes
        _ = try deframer.next(&rest)
      }
    }
    #expect(!deframer.isInside)
  }
}

@Suite("Metadata")
struct MetadataTests {
  private func receive(_ name: String, _ value: String) -> Metadata? {
    var metadata = Metadata()
    let ok = Array(name.utf8).withUnsafeBytes { name in
      Array(value.utf8).withUnsafeBytes { metadata.receive(name: name, value: $0) }
    }
    return ok ? metadata : nil
  }

  @Test func repeatedKeysKeepTheirOrder() {
    var metadata: Metadata = ["a": "1", "b": "2", "a": "3"]
    #expect(metadata[all: "a"] == ["1", "3"])
    #expect(metadata["a"] == "1")
    metadata["a"] = "9"
    #expect(metadata[all: "a"] == ["9"])
    metadata["a"] = nil
    #expect(metadata.map(\.key) == ["b"])
  }

  @Test func binaryFieldsMayBeListsWithOrWithoutPadding() {
    let metadata = receive("x-bin", "Zg==, Zm8,Zm9v")
    #expect(metadata?[allBinary: "x-bin"] == ["f", "fo", "foo"].map { Array($0.utf8) })
    #expect(receive("x-bin", "Zg==!") == nil)
  }

  @Test(arguments: [
    "grpc-timeout", "grpc-anything", "content-type", "te", "Upper", "with space", "", ":path",
    "connection", "user-agent",
  ])
  func refusesKeysThatMayNotBeSent(_ key: String) {
    #expect(([key: "v"] as Metadata).problem != nil)
  }

  @Test(arguments: ["line\nbreak", "tab\t", " leading", "trailing ", "ü", "\u{0}"])
  func refusesTextThatMayNotBeSent(_ text: String) {
    #expect((["key": text] as Metadata).problem != nil)
  }

  @Test func bytesNeedASuffixAndTextMustNotHaveIt() {
    var metadata = Metadata()
    metadata.add([1, 2], for: "plain")
    #expect(metadata.problem != nil)
    #expect((["x-bin": "text"] as Metadata).problem != nil)
    metadata = [:]
    metadata.add([0xFF, 0], for: "x-bin")
    #expect(metadata.problem == nil)
    #expect(metadata.fields.map(\.1) == ["/wA"])
  }
}

@Suite("Status codes")
struct StatusCodeTests {
  // gRPC "HTTP to gRPC Status Code Mapping".
  @Test(arguments: [
    (400, StatusCode.internalError), (401, .unauthenticated), (403, .permissionDenied),
    (404, .unimplemented), (429, .unavailable), (431, .internalError), (502, .unavailable),
    (503, .unavailable),
    (504, .unavailable), (500, .unknown), (302, .unknown), (200, .unknown),
  ])
  func mapsHTTP(_ status: Int, _ code: StatusCode) {
    #expect(StatusCode.mapping(httpStatus: status) == code)
  }

  // gRPC over HTTP2, "Errors".
  @Test(arguments: [
    (UInt32(0), StatusCode.internalError), (1, .internalError), (2, .internalError),
    (3, .internalError), (7, .unavailable), (8, .cancelled), (11, .resourceExhausted),
    (12, .permissionDenied),
  ])
  func mapsResets(_ reset: UInt32, _ code: StatusCode) {
    #expect(StatusCode.mapping(resetCode: reset) == code)
  }
}
